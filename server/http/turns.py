"""Turns between users at what they share, so that a user who asks for much makes only their own requests wait.

And a limit of calls a minute, of a client that signs in or of a user, counted in this process's memory.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from math import inf

_HALVED_S = 60.0  # after this the time that a user has held places counts for half
_MOST_REMEMBERED = 1_000  # users


class TooManyWaiting(Exception):
    """A refusal: as many requests of this user wait as may, or one has waited too long."""


class Turns:
    """Places that users share: `at_once` in all, `each` of one user, and behind them `waiting` of one user.

    A free place goes to the waiting user with the fewest places, then to the one who has held places for the shortest
    time of late, then in turn. Use it in one loop; `clock` is monotonic.
    """

    def __init__(
        self,
        at_once: float,
        each: int,
        *,
        waiting: float = inf,
        patience_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free = at_once
        self._each = each
        self._waiting = waiting
        self._patience_s = patience_s
        self._clock = clock
        self._held: dict[Hashable, tuple[float, float]] = {}  # by user: seconds, as of when
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
        began_s = self._clock()
        try:
            yield
        finally:
            self._leave(user, self._clock() - began_s)

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
                self._leave(user, 0.0)  # the place was given at the moment of the cancel
            else:
                self._withdraw(user, turn)
            raise

    def _withdraw(self, user: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(user, deque())
        if turn in queue:
            queue.remove(turn)
        if not queue:
            self._queues.pop(user, None)

    def _held_s(self, user: Hashable, now_s: float) -> float:
        seconds, at_s = self._held.get(user, (0.0, now_s))
        return float(seconds * 0.5 ** ((now_s - at_s) / _HALVED_S))

    def _leave(self, user: Hashable, seconds: float) -> None:
        now_s = self._clock()
        self._held[user] = self._held_s(user, now_s) + seconds, now_s
        if len(self._held) > _MOST_REMEMBERED:
            del self._held[min(self._held, key=lambda each: self._held_s(each, now_s))]
        self._free += 1
        self._taken[user] -= 1
        if not self._taken[user]:
            del self._taken[user]
        self._hand_out()

    def _hand_out(self) -> None:
        now_s = self._clock()
        while self._free:
            ready = [user for user in self._queues if self._taken.get(user, 0) < self._each]
            if not ready:
                return
            user = min(ready, key=lambda user: (self._taken.get(user, 0), self._held_s(user, now_s)))
            queue = self._queues.pop(user)
            turn = queue.popleft()
            if queue:
                self._queues[user] = queue  # behind the others
            if not turn.cancelled():  # by a caller that gave up and has not run since
                self._free -= 1
                self._taken[user] += 1
                turn.set_result(None)


WINDOW_S = 60.0
_MOST_KEYS = 50_000


class CallLimit:
    """`limit` calls for each key in a window of a minute that starts with its first call."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}

    def take(self, key: str) -> int:
        """Counts one call of `key`; returns 0 when it fits, else the whole seconds until the window ends."""
        now = self._clock()
        start, used = self._windows.get(key, (now, 0))
        if now - start >= WINDOW_S:
            start, used = now, 0
        if used >= self._limit:
            return max(1, math.ceil(start + WINDOW_S - now))
        if key not in self._windows and len(self._windows) >= _MOST_KEYS:
            self._forget(now)
        self._windows[key] = (start, used + 1)
        return 0

    def _forget(self, now: float) -> None:
        """Drops windows that ended; if a flood of addresses leaves none, all of them, rather than grow for ever."""
        self._windows = {key: window for key, window in self._windows.items() if now - window[0] < WINDOW_S}
        if len(self._windows) >= _MOST_KEYS:
            self._windows.clear()
