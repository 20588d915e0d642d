"""The doctor on a running service: real programs, the practice market, and what can be wrong with them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.doctor.questions import About
from cli.doctor.venue_check import examine
from core.setting_values import HELD
from core.settings import load
from tests import postgresql
from tests.cli.commands import Way, as_program, in_this_process
from tests.cli.half_made import PARTS, examined
from tests.cli.venue import venue
from tests.e2e.installation import Installation, in_path, installation, until
from tests.goldens import hold
from wallet.keystore import keys as keys_import
from wallet.keystore import keystore
from wallet.keystore.keys import Contents

pytestmark = pytest.mark.slow

SLUG, RUNE = "nodemonkes-demo", "PRACTICE•RUNE•TOKEN"
# What these find is the machine's own affair; the tests' PostgreSQL does not wait for its disk.
OF_THE_MACHINE = {"time sync", "disk space", "swap", "open files", "file system", "postgresql"}


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    with installation(BIDKEEPER_SATFLOW_MONTHLY_CALLS="100000") as made:
        ask = {"price": 5_200_000}
        made.sim("PUT", f"/sim/collections/{SLUG}", {"asks": [ask], "bids": [{"price": 4_000_000}] * 2})
        made.sim("POST", "/sim/sell", {"slug": SLUG})
        rune = {"asks": [{"tokens": 10_000, "unitPrice": 2.75}], "bids": [{"tokens": 10_000, "unitPrice": 2.25}] * 2}
        made.sim("PUT", f"/sim/runes/{in_path(RUNE)}", {"divisibility": 2, **rune})
        made.sim("POST", "/sim/sell", {"slug": RUNE})
        yield made


@pytest.fixture
def healthy(running: Installation) -> Iterator[Installation]:
    """The same, and again without faults afterwards."""
    yield running
    running.sim("PUT", "/sim/faults", [])
    until(running.ready_again, "ready again")


def doctor(environment: dict[str, str], *options: str, way: Way = in_this_process) -> tuple[int, list[str]]:
    """Returns the exit code and the lines."""
    code, said, complained = way(environment, "doctor", *options)
    assert complained == ""
    return code, said.splitlines()


def test_a_healthy_service(healthy: Installation) -> None:
    until(healthy.ready_again, "ready")
    code, lines = doctor(healthy.environment, "--json", way=as_program)
    answer = json.loads("\n".join(lines))
    checks = {check["name"]: check for check in answer["checks"] if check["name"] not in OF_THE_MACHINE}
    assert [check for check in answer["checks"] if check["status"] != "ok" and check["name"] in checks] == []
    assert code == (0 if answer["ok"] else 1)
    programs = {"signer", "gateway", "facts", "manager", "hooks", "simulator", "server", f"port {healthy.port}"}
    venues = {"satflow floors", "satflow listings", "satflow bids", "unisat rune listings", "mempool fees", "ord index"}
    assert programs | venues | {"database", "audit log", "quota", "rune unit"} <= set(checks)
    assert checks[f"port {healthy.port}"]["text"] == "used by this Bidkeeper"
    lines = [f"{name}: {check['text']}".replace(str(healthy.data_dir), "DATA") for name, check in checks.items()]
    hold(
        "doctor_running.txt",
        [re.sub(r"migrated by .*|\d[\d.,]*", "N", line) for line in lines if not line.startswith("python")],
    )


@pytest.mark.parametrize("part", PARTS)
def test_every_part_judges_a_running_service(healthy: Installation, part: str) -> None:
    until(healthy.ready_again, "ready")
    found = examined(healthy.environment, "--only", part)
    failed = [check.line() for check in found if check.status == "FAIL" and check.name not in OF_THE_MACHINE]
    assert [line.split(":")[0] for line in failed] == (["FAIL live market"] if part == "live" else []), failed


def test_it_reads_and_writes_nothing_at_the_venue(healthy: Installation) -> None:
    before = healthy.history()
    code, lines = doctor(healthy.environment, "--only", "venues")
    assert code == 0
    assert "ok   calls: 9 to satflow, 2 to unisat, 3 to mempool, 1 to ord made by the doctor" in lines[-1]
    assert healthy.history() == before


def test_a_gateway_that_hangs(healthy: Installation) -> None:
    [gateway] = healthy.processes("cli.main gateway")
    os.kill(gateway, signal.SIGSTOP)
    try:
        code, lines = doctor(healthy.environment, "--only", "programs")
    finally:
        os.kill(gateway, signal.SIGCONT)
    assert code == 1
    failed = [line for line in lines if line.startswith("FAIL")]
    assert failed[0].startswith("FAIL gateway: does not answer: no answer within 5 s -> ")
    assert (
        f"supervisord does not restart a program that hangs: if it stays silent, end it (kill {gateway})" in failed[0]
    )
    assert "gateway" in failed[1]
    assert failed[1].startswith("FAIL server:")
    assert len(failed) == 2


def test_a_gateway_whose_socket_is_missing(healthy: Installation) -> None:
    """The gateway is stopped, because it would make the socket again; the file is put back."""
    [gateway] = healthy.processes("cli.main gateway")
    path = healthy.data_dir / "run" / "gateway.sock"
    os.kill(gateway, signal.SIGSTOP)
    try:
        path.rename(path.with_suffix(".kept"))
        _, lines = doctor(healthy.environment, "--only", "programs")
        path.touch()
        _, dead = doctor(healthy.environment, "--only", "programs")
        path.with_suffix(".kept").rename(path)
    finally:
        os.kill(gateway, signal.SIGCONT)
    for found, what in ((lines, "is missing"), (dead, "is a dead process's")):
        [failed] = [line for line in found if line.startswith("FAIL gateway")]
        said, _, remedy = failed.partition(" -> ")
        assert said == f"FAIL gateway: does not answer: its socket {path} {what}"
        assert remedy.startswith("run the doctor again in a moment: a running program makes its socket again,")


def test_a_key_that_is_not_accepted(healthy: Installation) -> None:
    healthy.sim("PUT", "/sim/faults", [{"operation": "floors", "mode": "auth_401"}])
    code, lines = doctor(healthy.environment, "--only", "venues")
    assert code == 1
    [failed] = [line for line in lines if line.startswith("FAIL")]
    assert failed.startswith("FAIL satflow floors: status 401, the key was refused: invalid API key -> put a valid key")
    assert "BIDKEEPER_SATFLOW_API_KEY" in failed
    assert "calls: 1 to satflow" in lines[-1], "a key that is refused once is not shown again and again"


def test_an_answer_that_is_no_json(healthy: Installation) -> None:
    healthy.sim("PUT", "/sim/faults", [{"operation": "book", "mode": "bad_json", "count": 1}])
    code, lines = doctor(healthy.environment, "--only", "venues")
    assert code == 1
    [failed] = [line for line in lines if line.startswith("FAIL")]
    assert failed.startswith("FAIL satflow listings: its answer is not understood: failed to read /activity/listings")
    assert "not JSON" in failed
    assert failed.endswith("-> bidkeeper venue probe satflow --save FILE, and report what it saves")


def test_a_venue_that_asks_for_a_pause(healthy: Installation) -> None:
    healthy.sim("PUT", "/sim/faults", [{"operation": "floors", "mode": "rate_429"}])
    code, lines = doctor(healthy.environment, "--only", "venues")
    assert code == 0
    assert any(line.startswith("warn satflow floors: too many calls") for line in lines)


@contextmanager
def signer_alone(out: Path, *, has_keys: bool) -> Iterator[Installation]:
    """Starts a signer alone, for real money, with a locked keystore or none."""
    with venue({}) as made:
        url = f"{made.url}/v1"
        real = {"BIDKEEPER_MARKET": "satflow", "BIDKEEPER_SATFLOW_API_KEY": "key", "BIDKEEPER_SATFLOW_URL": url}
        alone = Installation(**real)
        if has_keys:
            keys = alone.data_dir / "signer"
            keys.mkdir(mode=0o700)
            seed = keys_import.seed_of(keys_import.words_of(os.urandom(32)))
            keystore.create(keys / "keystore.json", "a passphrase", Contents(seed, ()))
        command = [sys.executable, "-m", "cli.main", "signer"]
        with out.open("w") as log:
            signer = subprocess.Popen(command, env=alone.environment, stdout=log, stderr=log)
        try:
            until(lambda: "answering at" in out.read_text(), "the signer's socket")
            yield alone
        finally:
            signer.kill()
            signer.wait()
            alone.destroy()


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Installation]:
    with signer_alone(tmp_path / "out", has_keys=True) as alone:
        yield alone


@pytest.mark.parametrize(("has_keys", "way"), [(True, "run bidkeeper keys unlock"), (False, "run bidkeeper keys init")])
def test_every_part_judges_a_signer_that_was_never_unlocked(tmp_path: Path, has_keys: bool, way: str) -> None:
    with signer_alone(tmp_path / "out", has_keys=has_keys) as alone:
        found = {part: {each.name: each for each in examined(alone.environment, "--only", part)} for part in PARTS}
    assert (found["live"]["live keys"].status, found["live"]["live keys"].remedy) == ("FAIL", way)
    assert (found["programs"]["signer"].status, found["programs"]["signer"].remedy) == ("FAIL", way)


def test_a_signer_that_is_locked(locked: Installation) -> None:
    code, lines = doctor(locked.environment, "--only", "programs")
    assert code == 1
    [line] = [line for line in lines if " signer: " in line]
    assert line.startswith("FAIL signer: locked: ")
    assert line.endswith("-> run bidkeeper keys unlock")
    gone = {line.split(":")[0] for line in lines if "does not answer" in line}
    # On PostgreSQL these may run on another machine.
    elsewhere = set() if postgresql.is_wanted() else {"FAIL manager", "FAIL hooks"}
    assert gone == {"FAIL gateway", "FAIL facts", "FAIL server"} | elsewhere


@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_key_that_only_the_gateway_may_read(tmp_path: Path, is_accepted: bool) -> None:
    floors = {"success": True, "data": [{"slug": SLUG, "floor": 500_000}]} if is_accepted else 401
    with venue({"/v1/collection-stats/floors": floors}) as made:
        real = {"BIDKEEPER_MARKET": "satflow", "BIDKEEPER_SATFLOW_URL": f"{made.url}/v1"}
        alone = Installation(**real, BIDKEEPER_SATFLOW_API_KEY="key")
        command = [sys.executable, "-m", "cli.main", "gateway"]
        with (tmp_path / "out").open("w") as out:
            gateway = subprocess.Popen(command, env=alone.environment, stdout=out, stderr=out)
        try:
            until(lambda: "listening at" in (tmp_path / "out").read_text(), "the gateway's socket")
            settings = load({**alone.environment, "BIDKEEPER_SATFLOW_API_KEY": HELD})
            found = list(examine(settings, About(SLUG, RUNE), lambda: 0))
        finally:
            gateway.terminate()
            gateway.wait()
            alone.destroy()
    [check] = [check for check in found if check.name == "satflow"]
    assert len(made.asked) == 1
    if is_accepted:
        assert check.text == "the gateway asked one question, and its key was accepted"
    else:
        assert check.line().startswith("FAIL satflow: the gateway's key was refused: no such thing -> put a valid key")
