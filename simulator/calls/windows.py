"""Rate limits that count in fixed windows of the clock, as ord.net's do."""

from __future__ import annotations

from collections.abc import Callable

from simulator.wire import ApiError

WINDOW_SECONDS = 60


class Windows:
    """How often each asker asked in the window that is now. `clock` is in ms."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.seconds = WINDOW_SECONDS
        self._window = -1
        self._counts: dict[tuple[str, str], int] = {}

    def admit(self, bucket: str, asker: str, limit: int) -> None:
        """Counts one request of `asker`, also one that is refused. Raises ApiError(429) beyond `limit`."""
        window = self._clock() // (1000 * self.seconds)
        if window != self._window:
            self._window, self._counts = window, {}
        count = self._counts[bucket, asker] = self._counts.get((bucket, asker), 0) + 1
        if count > limit:
            raise ApiError(429, "Too many requests")
