"""A gateway with a real socket and a fake venue, on a loop in a thread; tests ask it as workers do."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.local_server import bind
from core.settings import Settings
from gateway import venue, writes
from gateway.app import Gateway
from gateway.program import Program
from gateway.reads import chain
from gateway.venue import CallBudget
from markets.base import BidOrder, VenueError, from_wire
from markets.client import MarketClient
from markets.http import Http
from tests.gateway.fake_venue import FakeVenue
from tests.shapes import replace

ORDER = BidOrder(
    price=500_000,
    quantity=Decimal(1),
    slug="goosinals",
    kind="ordinals",
    payment="bc1qpayment",
    payment_pubkey="02" + "ab" * 32,
    receive="bc1preceive",
    expires_ms=1_700_000_960_000,
    timestamp_ms=1_700_000_000_000,
    signature="AkcwRA==",
    fee_rate="halfHourFee",
)
# How long things wait in a test's own gateway: so long that none of it ends before the test ends it, however busy the
# machine is. A pause is shorter than what waits through it.
PAUSE_S, READ_WAIT_S, SOON_S, LONGEST_WAIT_S, READ_S, CLIENT_S = 60.0, 70.0, 80.0, 90.0, 60.0, 120.0


class Bench:
    """One running gateway and its venue."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.venue = FakeVenue()
        self.least: dict[int, int] = {}
        self.is_the_one: Callable[[], bool] = lambda: True
        self._directory = directory
        self._changed = settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._clients: list[MarketClient] = []
        self.run(self._begin)

    async def _begin(self) -> None:
        self._server = self.venue.start()
        base = f"http://127.0.0.1:{self.venue.port}"
        settings = Settings(
            data_dir=self._directory,
            satflow_url=base,
            unisat_url=base,
            ordnet_url=f"{base}/ordnet",
            ordinalswallet_url=f"{base}/ordinalswallet",
            mempool_url=base,
        )
        if self._changed.pop("with_ord", False):
            settings = replace(settings, ord_url=base)
        self.settings = replace(settings, **self._changed)
        self.gateway = self.make()
        self._gateway_server = self.gateway.listen(bind(self.settings.gateway_socket, self.gateway.admission.uids))

    def make(self) -> Program:
        """Makes the program under test."""
        return Gateway(self.settings, lambda task: self.least.get(task, 0), lambda: self.is_the_one())

    def run(self, work: Callable[..., Any], *args: Any) -> Any:
        """Runs `work` on the gateway's loop and returns what it returns."""

        async def on_loop() -> Any:
            result = work(*args)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result(60)

    def client(self, venue: str | None = None) -> MarketClient:
        """Returns a new asker with a connection of its own."""
        client = MarketClient(self.settings.gateway_socket, timeout_s=CLIENT_S, venue=venue)
        self._clients.append(client)
        return client

    def ask(self, request: dict[str, Any]) -> Any:
        """Sends a request as it is, and returns the answer. Raises VenueError leaves."""
        answer = json.loads(self.client()._exchange(json.dumps(request).encode(), repeatable=False))
        if "error" in answer:
            raise from_wire(answer["error"])
        return answer["ok"]

    def pause(self, seconds: float = PAUSE_S) -> None:
        """Stops Satflow's key, as a 429 does."""
        self.run(self.gateway.venues.markets["simulator"].budget.pause, seconds)

    def go_on(self, budget: CallBudget | None = None) -> None:
        """Ends that pause, or one of another `budget`: it is so long that all requests wait by then on any machine."""
        budget = budget or self.gateway.venues.markets["simulator"].budget

        def end() -> None:
            budget._paused_until = budget._counted_at = budget._clock()
            budget.pump()

        self.run(end)

    def waiting(self) -> int:
        """Requests that wait for their turn at Satflow."""
        return self.gateway.venues.markets["simulator"].budget.waiting()

    def turns(self) -> list[str]:
        """Makes a list to which each operation at Satflow is added, from now on, when its turn has come.

        At the venue they may arrive in another order, since each is sent by a thread of its own.
        """
        satflow, operations = self.gateway.venues.markets["simulator"], list[str]()
        run = satflow.run

        async def noted(verb: str, operation: str, call: Callable[[], Any], lost: type[VenueError]) -> Any:
            operations.append(operation)
            return await run(verb, operation, call, lost)

        satflow.run = noted  # type: ignore[method-assign]
        return operations

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.venue.closed_gates.clear()
        self.run(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._gateway_server.stop()
        await self.gateway.stop()
        await self._gateway_server.close_all_connections()
        self._server.stop()
        await self._server.close_all_connections()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@pytest.fixture
def make_bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    """Makes benches in short paths, since a socket's path has 107 bytes at most."""
    assert Http.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(Http.__init__.__kwdefaults__, "read_s", READ_S)
    monkeypatch.setattr(chain, "PATIENCE_S", READ_S)
    monkeypatch.setattr(venue, "READ_WAIT_S", READ_WAIT_S)
    monkeypatch.setattr(writes, "LONGEST_WAIT_MS", round(1000 * LONGEST_WAIT_S))
    made: list[Bench] = []
    with tempfile.TemporaryDirectory(prefix="gw") as directory:

        def make(kind: type[Bench] = Bench, **settings: Any) -> Bench:
            made.append(kind(Path(directory), **settings))
            return made[-1]

        yield make
        for bench in made:
            bench.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """A gateway on the practice market's dialect."""
    return make_bench()


def soon(within_s: float = SOON_S) -> int:
    """Returns a deadline for a write."""
    return int((time.time() + within_s) * 1000)


def eventually(true: Callable[[], bool], within_s: float = 60) -> None:
    """Waits until `true`; fails after `within_s`."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.005)
