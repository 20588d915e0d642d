"""Rate limits in fixed windows of the clock, as ord.net's are."""

from __future__ import annotations

from collections.abc import Callable

from simulator.wire import ApiError

WINDOW_SECONDS = 60


class Windows:
    """Counts of each client's requests in the current window. `clock` is in ms."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.seconds = WINDOW_SECONDS
        self._window = -1
        self._counts: dict[tuple[str, str], int] = {}

    def admit(self, bucket: str, asker: str, limit: int) -> None:
        """Counts one request of `asker`, even if it is refused. Raises ApiError(429) beyond `limit`."""
        window = self._clock() // (1000 * self.seconds)
        if window != self._window:
            self._window, self._counts = window, {}
        count = self._counts[bucket, asker] = self._counts.get((bucket, asker), 0) + 1
        if count > limit:
            raise ApiError(429, "Too many requests")
