"""Signers behind a real socket, in a thread or in a process of their own, with the facts that they ask for.

than they do.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from cli.main import main
from core import local_server
from tests.json_lines import ask
from tests.shapes import replace
from tests.wallet.listings import former, honest
from tests.worlds.signer import BID, GRANT, HOUR_MS, START_MS, USER, fixed_keys, intent
from wallet.keystore import keystore
from wallet.keystore.keys import Contents, seed_of
from wallet.keystore.seal import Work
from wallet.protocol import BidMessage, Grant
from wallet.psbt.common import OutpointFacts
from wallet.signer import reading
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger
from wallet.signer.reading import ask_facts
from wallet.signer.signer import Signer
from wallet.signer_client import SignerClient, SignerUnavailable
from wallet.terms import Ceilings

Tell = Callable[[dict[str, Any]], bytes]


def ok(value: object) -> bytes:
    return json.dumps({"ok": value}).encode()


def wire(facts: OutpointFacts | None = None) -> dict[str, Any]:
    """Facts (those of the honest listing) as the object that crosses the socket, of an output that `former` made."""
    told = facts or honest().facts
    assert told is not None
    made_by = None
    if told.value_sats is not None and told.script is not None:
        made_by = former(told.script, told.value_sats, told.outpoint.vout, witness=False).hex()
    return {
        "transaction": made_by,
        "outpoint": str(told.outpoint),
        "value": told.value_sats,
        "script": None if told.script is None else told.script.hex(),
        "is_unspent": told.is_unspent,
        "is_confirmed": told.is_confirmed,
        "inscriptions": None if told.inscriptions is None else list(told.inscriptions),
        "runes": None if told.runes is None else list(told.runes),
        "tip_height": told.tip_height,
        "index_height": told.index_height,
        "spent_by": None,
        "is_spent_in_block": told.is_spent_in_block,
        "item_offset": told.item_offset,
    }


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """An asker that has gone away is none."""


@contextmanager
def facts_server(path: Path, tell: Tell) -> Iterator[list[dict[str, Any]]]:
    """Answers with what `tell` makes of each request; gives the list of the requests that came."""
    came: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            came.append(request)
            body = tell(request)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            return

        def address_string(self) -> str:
            return "unix"

    server = _Server(str(path), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield came
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# On a busy machine each side may take long to answer.
_PATIENCE_S = 60.0


class House:
    """`now_ms` is the signer's clock. It runs in a thread, and answers over its socket only."""

    def __init__(self, directory: Path, ceilings: Ceilings) -> None:
        self.directory = directory
        self.socket = directory / "signer.sock"
        self.facts_socket = directory / "facts.sock"
        self.audit_path = directory / "audit.jsonl"
        self.now_ms = START_MS
        self.steady_ms = 0
        self.client = SignerClient(self.socket, timeout_s=_PATIENCE_S)
        self._ceilings = ceilings
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def ask(self, request: dict[str, Any], timeout: float = _PATIENCE_S) -> dict[str, Any]:
        return ask(self.socket, "signer", request, timeout=timeout)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(_PATIENCE_S)

    def end(self) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        with closing(AuditLog(self.audit_path)) as audit, closing(Ledger(self.directory / "signer.db")) as ledger:
            clocks = {"clock": lambda: self.now_ms, "steady_ms": lambda: self.steady_ms}
            signer = Signer(ledger, audit, fixed_keys(USER), ceilings=self._ceilings, **clocks)
            answer = signer.answering(partial(ask_facts, self.facts_socket, timeout_s=_PATIENCE_S))
            server = await local_server.serve(self.socket, reading.verbs(answer))
            self._ready.set()
            await self._stop.wait()
            server.close()
            await asyncio.sleep(0)


@contextmanager
def house(directory: Path, ceilings: Ceilings | None = None) -> Iterator[House]:
    opened = House(directory, ceilings or Ceilings())
    opened.start()
    try:
        yield opened
    finally:
        opened.end()


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


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["cli.keys", __name__])


@dataclass
class Said:
    code: int
    out: str
    err: str


def run(arguments: Sequence[str], environment: Mapping[str, str], given: str, directory: Path, seconds: float) -> Said:
    """Runs one verb with `given` as its standard input; the three streams are files in the directory."""
    streams = [directory / name for name in ("given", "out", "err")]
    streams[0].write_text(given)
    process = _FORKS.Process(target=_command, args=(list(arguments), dict(environment), streams), daemon=True)
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError(f"{arguments} goes on after {seconds} s: {streams[1].read_text()} {streams[2].read_text()}")
    return Said(process.exitcode, streams[1].read_text(), streams[2].read_text())


def _command(arguments: list[str], environment: dict[str, str], streams: list[Path]) -> None:
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ |= environment
    # The streams stay open: what is raised here is told on them.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.exit(main(arguments))
