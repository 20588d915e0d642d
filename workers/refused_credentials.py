"""The end of a task whose credentials a venue refuses: one refusal is no evidence, so it is looked up or waited for.

A single 401 or 403 may come from a firewall, from a plan that lacks one route, or from a fault of the venue. A refusal
of a write counts when a read with the same key or session is refused, too. Without that it counts when another write is
refused hours after it and none was accepted between.
"""

from __future__ import annotations

from collections.abc import Callable

from strategy.reasons import FaultCode
from workers.context import BadCredentials
from workers.faults import Faults

REFUSED_APART_MS = 2 * 3_600_000  # between two refused writes that end a task by themselves


class RefusedCredentials:
    """The first refusal of a write since the last accepted one, in the worker's memory alone.

    A worker that is started again counts from the beginning, so a restart can only prolong a task.
    """

    def __init__(self) -> None:
        self._first_ms: int | None = None

    def judge(self, faults: Faults, look: Callable[[Faults], object], now_ms: int) -> None:
        """Judges a cycle's faults. `look` reads at the venue with the same credentials, and notes how that failed.

        Raises BadCredentials when the refusal of a write counts. A cycle with an accepted write counts for none.
        """
        if faults.has_accepted_write:
            self._first_ms = None
        elif faults.rejected is not None:
            first_ms = self._first_ms = now_ms if self._first_ms is None else self._first_ms
            looked = Faults()
            look(looked)
            if any(fault.code is FaultCode.AUTH_FAILED for fault in looked.coded):
                raise BadCredentials(f"{faults.rejected}; a read with the same credentials is refused, too")
            if now_ms - first_ms >= REFUSED_APART_MS:
                hours = f"{(now_ms - first_ms) / 3_600_000:.0f} hours"
                raise BadCredentials(f"{faults.rejected}; the venue has accepted no write for {hours}")
