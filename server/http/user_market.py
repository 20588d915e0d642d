"""The way to the marketplaces for what one user does by hand: a few questions at a time, so that others get through."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from markets.base import TooManyLookups
from markets.gateway_client import Purpose
from markets.market_client import MarketClient
from server.http.blocking import Pool

AT_ONCE = 4
# All users' looks together leave some of the pool's threads to acts, withdrawals and the metrics.
LOOKS_AT_ONCE = 10
# A page asks more than four questions when it opens, so the fifth waits instead of being refused; but not without end,
# for each one that waits holds a connection.
WAITING = 16
PATIENCE_S = 10.0
Value = TypeVar("Value")


class Seats:
    """Places for the questions of each user to the marketplaces: AT_ONCE at a time, and `waiting` behind them.

    What a user does has places of its own beside what the user looks at; and of all looks `looks` are asked. Who waits
    longer than `patience_s` is refused.
    """

    def __init__(self, *, waiting: int = WAITING, looks: int = LOOKS_AT_ONCE, patience_s: float = PATIENCE_S) -> None:
        self._rows: dict[tuple[int, Purpose], _Row] = {}
        self._waiting = waiting
        self._looks = asyncio.Semaphore(looks)
        self._patience_s = patience_s

    async def ask(self, user: int, purpose: Purpose, question: Callable[[], Awaitable[Value]]) -> Value:
        """Asks when it is its turn. Raises TooManyLookups when too many wait already, or it waits too long."""
        row = self._rows.setdefault((user, purpose), _Row())
        if row.there >= AT_ONCE + self._waiting:
            raise _too_many()
        row.there += 1
        asked = asyncio.ensure_future(self._seated((user, purpose), row, question))
        asked.add_done_callback(_look_at)
        # A client that gives up leaves the thread busy, so its place stays taken until that has its answer.
        return await asyncio.shield(asked)

    def __len__(self) -> int:
        return len(self._rows)

    async def _seated(self, whose: tuple[int, Purpose], row: _Row, question: Callable[[], Awaitable[Value]]) -> Value:
        try:
            async with AsyncExitStack() as held:
                try:
                    async with asyncio.timeout(self._patience_s):
                        await held.enter_async_context(row.seats)
                        if whose[1] == "look":
                            await held.enter_async_context(self._looks)
                except TimeoutError:
                    raise _too_many() from None
                return await question()
        finally:
            row.there -= 1
            if not row.there:
                self._rows.pop(whose, None)


class UserMarket:
    """Asks the gateway for one user who looks at something, or acts."""

    def __init__(self, pool: Pool[MarketClient], seats: Seats, user: int, purpose: Purpose) -> None:
        self._pool = pool
        self._seats = seats
        self._user = user
        self._purpose = purpose

    async def __call__(self, question: Callable[[MarketClient], Value]) -> Value:
        """Asks `question` in a thread when it is its turn. Raises VenueError."""
        return await self._seats.ask(
            self._user, self._purpose, lambda: self._pool(lambda market: question(market.by(self._user, self._purpose)))
        )


class _Row:
    def __init__(self) -> None:
        self.seats = asyncio.Semaphore(AT_ONCE)
        self.there = 0


def _look_at(asked: asyncio.Future[Any]) -> None:
    """Takes note of an error that nobody waits for any more."""
    if not asked.cancelled():
        asked.exception()


def _too_many() -> TooManyLookups:
    return TooManyLookups(2.0, f"{AT_ONCE} of your questions to marketplaces are being asked, and more wait")
