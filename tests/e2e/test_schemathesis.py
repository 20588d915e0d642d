"""Schemathesis drives the running service by its own description: no 5xx, and no answer that is not described.

In `make test` a sixteenth of the operations: all are two minutes of work, and tests/server asks all in one process.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.installation import Installation, Trader
from tests.examples import some_of
from tests.server.driver import OPERATIONS

pytestmark = [pytest.mark.slow, pytest.mark.sampled, pytest.mark.thorough]

# Rules between fields (a hard cap is required in percent mode, ...) are none that a schema can state, so that a body
# of the schema may be refused. That each refusal is a 400 with its details is asked elsewhere.
CHECKS_LEFT_OUT = "positive_data_acceptance"


LEFT_OUT = {"signOut", "signOutEverywhere", "endSession"}  # without a token the rest would reach refusals only


def test_schemathesis_finds_nothing(service: Installation, tmp_path: Path) -> None:
    asked = some_of(sorted(OPERATIONS.keys() - LEFT_OUT), __name__, dear=True)
    trader = Trader(service).sign_in()
    service.put_collection("quiet-cats", [100_000])
    trader.task(slug="quiet-cats", hardcapSats=90_000)
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"{service.url}/api/openapi.json",
            f"--header=Authorization: {trader.session.headers['Authorization']}",
            *(f"--include-operation-id={name}" for name in asked),
            f"--exclude-checks={CHECKS_LEFT_OUT}",
            "--phases=examples,coverage,fuzzing",
            "--max-examples=25",
            "--seed=1",
            "--generation-database=none",
            "--request-timeout=180",  # ten seconds without it; a stop or a delete may take longer
            "--no-color",
        ],
        capture_output=True,
        text=True,
        timeout=3_600,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
    counts = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert counts and int(counts[1]) == int(counts[2]) > 20 * len(asked), done.stdout[-3_000:]
    # Its token still counted at the end, so that it reached more than refusals.
    assert trader.ok("GET", "/api/auth/me")["address"] == trader.address
