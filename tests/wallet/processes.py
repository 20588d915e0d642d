"""The signer as a process of its own, for tests that talk to it over its socket."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.json_lines import ask
from tests.shapes import replace
from tests.wallet.conftest import BID, GRANT, HOUR_MS, intent
from wallet.keystore import keystore
from wallet.keystore.keys import seed_of
from wallet.keystore.keystore_file import Contents
from wallet.keystore.seal import Work
from wallet.protocol import BidMessage, Grant
from wallet.signer_client import SignerClient, SignerUnavailable

DEADLINE_S = 120.0
PROGRAM = """
import os, sys
from functools import partial
from pathlib import Path
from wallet.terms import Ceilings
from wallet.signer import signer_process
from wallet.signer.signer_process import now_ms, run
# On a busy machine a test's source of facts may take long to answer.
signer_process.ask_facts = partial(signer_process.ask_facts, timeout_s=60.0)
data, socket, market = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
passphrase_file = Path(sys.argv[4]) if sys.argv[4:] else None
allowed_uids = frozenset(map(int, filter(None, os.environ.get("ALLOWED_UIDS", "").split(",")))) or None
stands_at_ms = int(os.environ.get("CLOCK_STANDS_AT_MS", 0))
run(
    data / "signer",
    socket,
    market,
    Ceilings(),
    data / "facts.sock",
    clock=lambda: stands_at_ms or now_ms(),
    allowed_uids=allowed_uids,
    passphrase_file=passphrase_file,
)
"""


class SignerProcess:
    def __init__(
        self,
        data_dir: Path,
        market: str,
        *passphrase_file: str | Path,
        environment: Mapping[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
        socket: Path | None = None,
    ) -> None:
        self.socket = socket or data_dir / "signer.sock"
        self.client = SignerClient(self.socket, timeout_s=DEADLINE_S)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, data_dir, self.socket, market, *passphrase_file],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            pass_fds=pass_fds,
        )

    def wait_until_it_answers(self) -> None:
        end = time.monotonic() + DEADLINE_S
        while True:
            try:
                self.client.status()
                return
            except SignerUnavailable:
                assert self.process.poll() is None, self.process.stderr and self.process.stderr.read()
                assert time.monotonic() < end
                time.sleep(0.01)

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Exit code, and what it said."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, said

    def unlock(self, passphrase: str) -> dict[str, Any]:
        return ask(self.socket, "signer", {"op": "unlock", "passphrase": passphrase}, timeout=DEADLINE_S)


Start = Callable[..., SignerProcess]


def started_in(data_dir: Path) -> Iterator[Start]:
    """For a fixture: starts signers in one data directory, and ends them afterwards."""
    started: list[SignerProcess] = []

    def start_one(market: str = "simulator", *passphrase_file: str | Path, **options: Any) -> SignerProcess:
        signer = SignerProcess(data_dir, market, *passphrase_file, **options)
        started.append(signer)
        signer.wait_until_it_answers()
        return signer

    yield start_one
    for signer in started:
        if signer.process.poll() is None:
            signer.end(signal.SIGKILL)
        assert signer.process.stderr
        signer.process.stderr.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def live_grant(token: int = 5, **changes: Any) -> Grant:
    return replace(GRANT, token=token, expires_ms=now_ms() + HOUR_MS, **changes)


def live_bid(number: int = 1) -> BidMessage:
    return replace(BID, intent=intent(number), expires_ms=now_ms() + HOUR_MS // 2, timestamp_ms=now_ms())


PASSPHRASE = "an opened eye of newt"
WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
QUICK = Work(n=1 << 10)


def sealed_keystore(data_dir: Path, *users: str, work: Work = QUICK) -> Path:
    """Returns a keystore for real money where the signer of this data directory looks for it."""
    path = data_dir / "signer" / "keystore.json"
    keystore.create(path, PASSPHRASE, Contents(seed_of(WORDS), users), work=work)
    return path
