"""The way to the gateway for pictures: threads, places and a limit of their own, so that no other question waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from markets.base import NoPicture, Picture
from markets.client import MarketClient
from server.http.api_errors import too_many
from server.http.blocking import Pool
from server.http.call_limit import CallLimit
from server.http.user_market import Seats, UserMarket

A_MINUTE = 600  # of one user: a page shows sixty, and may be scrolled
WAITING = 200
_THREADS = 8
_PATIENCE_S = 30.0


class PictureWay:
    """Asks the gateway for pictures; `clock` is monotonic."""

    def __init__(self, gateway_socket: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = Pool(lambda: MarketClient(gateway_socket), _THREADS, "picture", MarketClient.close)
        self._seats = Seats(waiting=WAITING, looks=_THREADS, patience_s=_PATIENCE_S)
        self._limit = CallLimit(A_MINUTE, clock)

    def count(self, user: int) -> None:
        """Counts one picture that a user asks for. Raises ApiError (429) when these are too many."""
        if wait_s := self._limit.take(str(user)):
            raise too_many("Too many pictures", wait_s, f"A user may ask for {A_MINUTE} pictures a minute.")

    async def picture(self, user: int, inscription_id: str, url: str | None, until: float) -> Picture | NoPicture:
        """Returns the picture that a venue says is at `url`. Raises VenueError."""
        ask = UserMarket(self._pool, self._seats, user, "look", until)
        return await ask(lambda market: market.picture(inscription_id, url))

    def close(self) -> None:
        """Ends the threads."""
        self._pool.close()
