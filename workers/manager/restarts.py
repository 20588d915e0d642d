"""Restarts of a worker that died: growing delays, and an end for one that only dies.

Times are seconds of a monotonic clock, given by the caller.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from workers.manager.starts import Absences

MAX_DEATHS = 5
WINDOW_S = 600.0
LONGEST_REST_S = 60.0
_JITTER = 0.2


def _nothing() -> None:
    pass


class Restarts:
    """One task's record of deaths and failed starts. A finished cycle, or its user, wipes it out (`forgive`).

    `look` is called when a rest has ended early, since signer and gateway are there again; `absences` are all tasks'.
    """

    def __init__(
        self,
        rng: random.Random,
        first_rest_s: float = 1.0,
        absences: Absences | None = None,
        look: Callable[[], None] = _nothing,
    ) -> None:
        self._rng = rng
        self._first_rest_s = first_rest_s
        self._absences = absences or Absences()
        self._look = look
        self._deaths: list[float] = []
        self._failures = 0
        self._unanswered = 0
        self.not_before = 0.0  # no automatic start before this time

    def died(self, now: float) -> bool:
        """Counts a death of its own; returns True for the MAX_DEATHS-th within WINDOW_S: do not start it again."""
        self._deaths = [death for death in self._deaths if death > now - WINDOW_S] + [now]
        self.rest(now)
        return len(self._deaths) >= MAX_DEATHS

    def rest(self, now: float) -> float:
        """Makes the next start wait 1, 2, 4 ... times the first rest, at most LONGEST_REST_S; less up to 20 %.

        Returns the seconds.
        """
        self._failures += 1
        return self.rest_for(now, self._growing(self._failures, LONGEST_REST_S))

    def rest_for(self, now: float, seconds: float) -> float:
        """Makes the next start wait this long; returns it."""
        self.wait_no_more()
        self.not_before = now + seconds
        return seconds

    def rest_for_peers(self, now: float) -> None:
        """Makes the next start wait for signer and gateway; their absence is no failure of the task's."""
        self._unanswered += 1
        self.not_before = now + self._growing(self._unanswered, self._absences.longest_rest_s(self._peers_are_back))

    def answered(self) -> None:
        """Notes that signer and gateway are there, and wakes all tasks that wait for them."""
        self._unanswered = 0
        self.wait_no_more()
        self._absences.are_over()

    def wait_no_more(self) -> None:
        """Leaves this task out of those that wait for signer and gateway."""
        self._absences.forget(self._peers_are_back)

    def forgive(self) -> None:
        """Forgets every death and delay."""
        self._deaths.clear()
        self._failures = self._unanswered = 0
        self.not_before = 0.0

    def _peers_are_back(self) -> None:
        self.not_before = 0.0
        self._look()

    def _growing(self, times: int, at_most: float) -> float:
        return min(at_most, self._first_rest_s * 2.0 ** min(times - 1, 10)) * (1 - _JITTER * self._rng.random())
