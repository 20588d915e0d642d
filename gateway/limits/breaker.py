"""A breaker: a venue that does not answer is asked once in ten seconds until it does. The clock is an argument, in
monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable

FAILURES = 5  # in a row, and over at least SPAN_S
SPAN_S = 3.0  # a blip that hits several calls at once is one failure
PROBE_S = 10.0


class Breaker:
    """One venue's breaker: open after FAILURES; then one probe every PROBE_S may go out, and an answer closes it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._first_at = 0.0
        self._probe_at: float | None = None  # None = closed

    @property
    def is_open(self) -> bool:
        return self._probe_at is not None

    def wait_s(self, *, may_probe: bool = True) -> float | None:
        """Returns None when a call may go out now, perhaps as the probe, else the seconds until the next probe.

        Asks for one call only. A write whose fate would be unknown is no probe (`may_probe` False).
        """
        if self._probe_at is None:
            return None
        now = self._clock()
        if may_probe and now >= self._probe_at:
            self._probe_at = now + PROBE_S
            return None
        return max(self._probe_at - now, 0.0)

    def answered(self) -> None:
        """Notes an answer of the venue, whatever it said."""
        self._failures = 0
        self._probe_at = None

    def failed(self) -> None:
        """Notes a call without an answer, or with one that could not be used."""
        now = self._clock()
        if not self._failures:
            self._first_at = now
        self._failures += 1
        if self._probe_at is None and self._failures >= FAILURES and now - self._first_at >= SPAN_S:
            self._probe_at = now + PROBE_S
