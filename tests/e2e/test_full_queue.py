"""A person's look-ups while hundreds of tasks' reads wait at the gateway."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from markets.base import VenueError
from markets.client import MarketClient
from tests.e2e.installation import Installation, Trader, until

pytestmark = pytest.mark.slow

READS = 300  # a minute of the practice market's five calls a second
WALLET_S = 5.0


@contextlib.contextmanager
def full_queue(service: Installation) -> Iterator[None]:
    """Has as many reads of tasks wait at the gateway, each for another collection."""
    socket = service.data_dir / "run" / "gateway.sock"

    def read(number: int) -> None:
        with MarketClient(socket) as market, contextlib.suppress(VenueError):
            market.asks(f"slug-{number}", 0)

    readers = [threading.Thread(target=read, args=(number,)) for number in range(READS)]
    for reader in readers:
        reader.start()
    try:
        until(lambda: waiting(socket) > READS / 2, "a full queue")
        yield
        assert waiting(socket), "the queue went empty too soon"
    finally:
        for reader in readers:
            reader.join()


def waiting(socket: object) -> int:
    with MarketClient(socket) as market:  # type: ignore[arg-type]
        return sum(venue["waiting"] for venue in market.status()["venues"].values())


def test_a_new_users_wallet_is_answered_although_the_queue_is_full(service: Installation) -> None:
    newcomers = [Trader(service).sign_in() for _ in range(3)]
    with full_queue(service):
        for trader in newcomers:
            began = time.monotonic()
            wallet = trader.ok("GET", "/api/wallet")
            took_s = time.monotonic() - began
            print(f"GET /api/wallet: {took_s:.2f} s")
            assert took_s <= WALLET_S
            assert wallet["biddingWallet"] is not None, wallet.get("balanceError")
