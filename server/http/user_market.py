"""The way to the marketplaces for what one user does by hand: a few questions at a time, so that others get through."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from markets.base import TooManyLookups
from markets.client import MarketClient
from markets.verbs import Purpose
from server.http.blocking import Pool, TooSlow
from server.http.turns import TooManyWaiting, Turns

AT_ONCE = 4
# The pool has a thread for each, and some for withdrawals under way.
LOOKS_AT_ONCE, ACTS_AT_ONCE = 10, 10
# A page asks more than four questions when it opens, so the fifth waits instead of being refused; but not without end,
# for each one that waits holds a connection.
WAITING = 16
PATIENCE_S = 10.0
Value = TypeVar("Value")


class Seats:
    """Places for the questions of each user to the marketplaces: AT_ONCE at a time, and `waiting` behind them.

    What a user does has places of its own beside what the user looks at. Of all users' looks `looks` are asked at a
    time, of all acts `acts`, users in turn. Who waits longer than `patience_s` is refused.
    """

    def __init__(
        self,
        *,
        waiting: int = WAITING,
        looks: int = LOOKS_AT_ONCE,
        acts: int = ACTS_AT_ONCE,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._looks = Turns(looks, AT_ONCE, waiting=waiting, patience_s=patience_s)
        self._acts = Turns(acts, AT_ONCE, waiting=waiting, patience_s=patience_s)

    async def ask(self, user: int, purpose: Purpose, question: Callable[[], Awaitable[Value]]) -> Value:
        """Asks when it is its turn. Raises TooManyLookups when too many wait already, or it waits too long."""
        asked = asyncio.ensure_future(self._seated(user, purpose, question))
        asked.add_done_callback(_look_at)
        # A client that gives up leaves the thread busy, so its place stays taken until that has its answer.
        return await asyncio.shield(asked)

    def __len__(self) -> int:
        return len(self._looks) + len(self._acts)

    async def _seated(self, user: int, purpose: Purpose, question: Callable[[], Awaitable[Value]]) -> Value:
        turns = self._looks if purpose == "look" else self._acts
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(turns.of((user, purpose)))
            except TooManyWaiting:
                raise _too_many() from None
            return await question()


class UserMarket:
    """Asks the gateway for one user who looks at something, or acts, until the monotonic clock shows `until`."""

    def __init__(self, pool: Pool[MarketClient], seats: Seats, user: int, purpose: Purpose, until: float) -> None:
        self._pool = pool
        self._seats = seats
        self._user = user
        self._purpose = purpose
        self._until = until

    async def __call__(self, question: Callable[[MarketClient], Value]) -> Value:
        """Asks `question` in a thread when it is its turn. Raises VenueError; TooSlow at the end."""
        user, purpose, until = self._user, self._purpose, self._until

        def ask() -> Awaitable[Value]:
            return self._pool(lambda market: question(market.by(user, purpose, until)))

        return await in_time(self._seats.ask(user, purpose, ask), until)


async def in_time(answer: Awaitable[Value], until: float) -> Value:
    """Returns the marketplace's answer. Raises TooSlow once the monotonic clock shows `until`."""
    try:
        async with asyncio.timeout(max(until - time.monotonic(), 0)):
            return await answer
    except TimeoutError:
        raise TooSlow("it has not answered in time, since many calls wait or it is slow; ask again soon") from None


def _look_at(asked: asyncio.Future[Any]) -> None:
    """Takes note of an error that nobody waits for any more."""
    if not asked.cancelled():
        asked.exception()


def _too_many() -> TooManyLookups:
    return TooManyLookups(2.0, f"{AT_ONCE} of your questions to marketplaces are being asked, and more wait")
