"""Restarts of a worker that died: growing delays, and an end for one that only dies.

Times are seconds of a monotonic clock, given by the caller.
"""

from __future__ import annotations

import random

MAX_DEATHS = 5
WINDOW_S = 600.0
LONGEST_REST_S = 60.0
_JITTER = 0.2


class Restarts:
    """One task's record of deaths and failed starts. A finished cycle, or its user, wipes it out (`forgive`)."""

    def __init__(self, rng: random.Random, first_rest_s: float = 1.0) -> None:
        self._rng = rng
        self._first_rest_s = first_rest_s
        self._deaths: list[float] = []
        self._failures = 0
        self._for_peers_until: float | None = None
        self.not_before = 0.0  # no automatic start before this time

    def died(self, now: float) -> bool:
        """Counts a death of its own; returns True for the MAX_DEATHS-th within WINDOW_S: do not start it again."""
        self._deaths = [death for death in self._deaths if death > now - WINDOW_S] + [now]
        self.rest(now)
        return len(self._deaths) >= MAX_DEATHS

    def rest(self, now: float, at_most: float = LONGEST_REST_S) -> float:
        """Makes the next start wait 1, 2, 4 ... times the first rest, at most `at_most`; less up to 20 %.

        Returns the seconds.
        """
        longest = min(at_most, self._first_rest_s * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return self.rest_for(now, longest * (1 - _JITTER * self._rng.random()))

    def rest_for(self, now: float, seconds: float) -> float:
        """Makes the next start wait this long; returns it."""
        self.not_before = now + seconds
        return seconds

    def rest_for_peers(self, now: float, at_most: float) -> None:
        """Rests as `rest`, but no longer than until `peers_are_back`."""
        self.rest(now, at_most)
        self._for_peers_until = self.not_before

    def peers_are_back(self) -> bool:
        """Ends a rest for peers; tells whether there was one, and not another since."""
        if was_for_peers := self.not_before == self._for_peers_until:
            self.not_before = 0.0
        return was_for_peers

    def forgive(self) -> None:
        """Forgets every death and delay."""
        self._deaths.clear()
        self._failures = 0
        self.not_before = 0.0
