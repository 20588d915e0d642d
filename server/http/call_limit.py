"""A limit of calls per minute, of a client that signs in or of a user, counted in this server process's memory."""

from __future__ import annotations

import math
from collections.abc import Callable

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
