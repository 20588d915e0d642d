"""A signer behind its real socket, on a clock of the test's, with the keys of `listings.py` and a facts socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from core import local_server
from tests.json_lines import ask
from tests.wallet.conftest import START_MS, USER
from tests.wallet.fixed_keys import fixed_keys
from wallet.facts_client import ask_facts
from wallet.signer import reading
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger
from wallet.signer.signer import Signer
from wallet.signer_client import SignerClient
from wallet.terms import Ceilings

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
