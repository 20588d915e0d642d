"""Turns between users at what they share, so that a user who asks for much makes only their own requests wait."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from math import inf


class TooManyWaiting(Exception):
    """A refusal: as many requests of this user wait as may, or one has waited too long."""


class Turns:
    """Places that users share: `at_once` in all, `each` of one user, and behind them `waiting` of one user.

    A free place goes to the waiting user with the fewest places; between equals in turn. Use it in one loop.
    """

    def __init__(self, at_once: int, each: int, *, waiting: float = inf, patience_s: float | None = None) -> None:
        self._free = at_once
        self._each = each
        self._waiting = waiting
        self._patience_s = patience_s
        self._taken: Counter[Hashable] = Counter()
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}  # the next user's first

    def __len__(self) -> int:
        """Returns how many users have a place or wait for one."""
        return len(self._queues.keys() | self._taken.keys())

    @asynccontextmanager
    async def of(self, user: Hashable) -> AsyncIterator[None]:
        """Holds a place of the user's for the block. Raises TooManyWaiting."""
        try:
            async with asyncio.timeout(self._patience_s):
                await self._enter(user)
        except TimeoutError:
            raise TooManyWaiting from None
        try:
            yield
        finally:
            self._leave(user)

    def close(self) -> None:
        """Cancels all that wait for a turn."""
        for turn in [turn for queue in self._queues.values() for turn in queue]:
            turn.cancel()

    async def _enter(self, user: Hashable) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(user, deque()).append(turn)
        self._hand_out()
        if turn.done():
            return
        if len(self._queues[user]) > self._waiting:
            self._withdraw(user, turn)
            raise TooManyWaiting
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(user)  # the place was given at the moment of the cancel
            else:
                self._withdraw(user, turn)
            raise

    def _withdraw(self, user: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(user, deque())
        if turn in queue:
            queue.remove(turn)
        if not queue:
            self._queues.pop(user, None)

    def _leave(self, user: Hashable) -> None:
        self._free += 1
        self._taken[user] -= 1
        if not self._taken[user]:
            del self._taken[user]
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free:
            ready = [user for user in self._queues if self._taken.get(user, 0) < self._each]
            if not ready:
                return
            user = min(ready, key=lambda user: self._taken.get(user, 0))
            queue = self._queues.pop(user)
            turn = queue.popleft()
            if queue:
                self._queues[user] = queue  # behind the others
            if not turn.cancelled():  # by a caller that gave up and has not run since
                self._free -= 1
                self._taken[user] += 1
                turn.set_result(None)
