"""The quota of one key's month: may a call be made, how old may reads be, what is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from gateway.limits.call_budget import Priority
from gateway.quota.count import QuotaCount
from gateway.quota.quota_pace import SPENT_ON_OWN_BIDS, SPENT_ON_READS, pressure, rungs, stretch_s
from markets.base import RateLimited, Refused

_SPENT = {Priority.REST: SPENT_ON_READS, Priority.PLACE: SPENT_ON_READS, Priority.OWN_BIDS: SPENT_ON_OWN_BIDS}
_GRACE = 0.25  # of pressure: a client just told that a rung may be placed has already cancelled the bid it replaces
_HOUR_MS = 3_600_000
_SLOT_MS = 60_000
LONGEST_PAUSE_S = 900.0


class Quota:
    """A quota of `limit` calls a calendar month (UTC), counted by `count`. `now_ms` is the epoch."""

    def __init__(self, limit: int, count: QuotaCount, now_ms: Callable[[], int]) -> None:
        self.limit = limit
        self._count = count
        self._now_ms = now_ms
        self._recent: deque[list[int]] = deque()  # [slot, calls] of the last hour

    def count(self) -> None:
        """Counts a call that is about to be sent. Safe in any thread."""
        self._count.count()

    def note(self) -> None:
        """Notes a call for the projection. In the loop's thread only."""
        slot = self._now_ms() // _SLOT_MS
        if not self._recent or self._recent[-1][0] != slot:
            self._recent.append([slot, 0])
            self._forget(slot)
        self._recent[-1][1] += 1

    def permit(self, priority: Priority) -> None:
        """Raises RateLimited when the month has no call left at this priority. Cancels always have one."""
        use = self._count.use(self.limit)
        if use.used >= _SPENT.get(priority, float("inf")) * self.limit:
            left_s = max(use.end_ms - self._now_ms(), 0) / 1000
            raise RateLimited(min(left_s, LONGEST_PAUSE_S), "the month's quota of calls is used up")

    def permit_place(self, rung: int) -> None:
        """Raises Refused('quota') when bids at this rung (0 is the top) have to wait."""
        allowed = rungs(self._pressure() - _GRACE)
        if allowed is not None and rung >= allowed:
            which = "no bid is placed" if not allowed else f"only the top {allowed} of a ladder are placed"
            raise Refused("quota", f"the month's quota of calls runs short: {which} for now")

    def stretch_s(self) -> float:
        """Returns the age in seconds that reads may have, even if less was asked for; 0 = none."""
        return stretch_s(self._pressure())

    def rungs(self) -> int | None:
        """Returns how many rungs of a ladder may have new bids; None = all."""
        return rungs(self._pressure())

    def status(self) -> dict[str, Any]:
        """Returns the calls used and left; `projected` is the month's use at the last hour's rate."""
        use, now_ms = self._count.use(self.limit), self._now_ms()
        self._forget(now_ms // _SLOT_MS)
        span_ms = min(max(now_ms - self._recent[0][0] * _SLOT_MS, _SLOT_MS), _HOUR_MS) if self._recent else _HOUR_MS
        lately = sum(calls for _, calls in self._recent)
        return {
            "limit": self.limit,
            "used": use.used,
            "left": max(self.limit - use.used, 0),
            "projected": use.used + lately * max(use.end_ms - now_ms, 0) // span_ms,
            "ends_ms": use.end_ms,
            "stretch_s": round(self.stretch_s()),
            "rungs": self.rungs(),
        }

    def close(self) -> None:
        """Writes the exact count."""
        self._count.close()

    def _forget(self, slot: int) -> None:
        while self._recent and (slot - self._recent[0][0]) * _SLOT_MS > _HOUR_MS:
            self._recent.popleft()

    def _pressure(self) -> float:
        return pressure(self._count.use(self.limit), self._now_ms())
