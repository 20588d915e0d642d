"""The quota of one key, the tightest of its month's and its day's: may a call be made, how old may reads be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from gateway.limits import Priority
from gateway.quota.period_quota import PeriodQuota
from gateway.quota_count import DAY, MONTH, PERIODS, Period, QuotaCount, rungs, stretch_s
from markets.base import Refused

_GRACE = 0.25  # of pressure: a client just told that a rung may be placed has already cancelled the bid it replaces
_HOUR_MS = 3_600_000
_SLOT_MS = 60_000


class Quota:
    """The quotas of a key by period, `limits` calls each; a period with none is left out. `now_ms` is the epoch."""

    def __init__(self, limits: Mapping[Period, int], count: QuotaCount, now_ms: Callable[[], int]) -> None:
        self._count = count
        self._now_ms = now_ms
        # The month first: where both refuse, its refusal lasts longer.
        self._parts = [PeriodQuota(each, limits[each], count, now_ms) for each in PERIODS if limits.get(each)]
        self._recent: deque[list[int]] = deque()  # [slot, calls] of the last hour

    def count(self, user: int | None = None) -> None:
        """Counts a call of `user` (None = nobody's) that is about to be sent. Safe in any thread."""
        self._count.count(user)

    def note(self) -> None:
        """Notes a call for the projection. In the loop's thread only."""
        slot = self._now_ms() // _SLOT_MS
        if not self._recent or self._recent[-1][0] != slot:
            self._recent.append([slot, 0])
            self._forget(slot)
        self._recent[-1][1] += 1

    def permit(self, priority: Priority, user: int | None = None) -> None:
        """Raises RateLimited when a period has no call left at this priority. Cancels always have one."""
        for each in self._parts:
            each.permit(priority, user)

    def look_wait_s(self, user: int | None = None) -> float | None:
        """Returns the seconds that people's looks have to wait, for the sake of the tasks; None = they need not."""
        return max((wait_s for each in self._parts if (wait_s := each.look_wait_s(user)) is not None), default=None)

    def permit_place(self, rung: int, user: int | None = None) -> None:
        """Raises Refused('quota') when the user's bids at this rung (0 is the top) have to wait."""
        tightest = max(self._parts, key=lambda each: each.pressure(user))
        allowed = rungs(tightest.pressure(user) - _GRACE)
        if allowed is not None and rung >= allowed:
            which = "nothing is placed or listed" if not allowed else f"only the top {allowed} of a ladder are placed"
            raise Refused("quota", f"the {tightest.period.name}'s quota of calls runs short: {which} for now")

    def stretch_s(self, user: int | None = None) -> float:
        """Returns the age in seconds that the user's reads may have, even if less was asked for; 0 = none."""
        return stretch_s(self._pressure(user))

    def rungs(self, user: int | None = None) -> int | None:
        """Returns how many rungs of a user's ladder may have new bids; None = all."""
        return rungs(self._pressure(user))

    def is_beyond_share(self, user: int | None) -> bool:
        """Tells whether this user, one of several, has used more than their share of a period's calls due by now."""
        return any(each.is_beyond_share(user) for each in self._parts)

    def status(self) -> dict[str, Any]:
        """Returns how old reads may be, the rungs that may have bids, and the use of each period with a quota.

        The month's use is in the answer itself, the day's in its object `day`. `users` are those with the most calls,
        by their numbers; all others' are the rest.
        """
        return self._told(lambda each: {"users": each.busiest()})

    def facts(self, user: int | None) -> dict[str, Any]:
        """Returns the same for users: `yours` is the part of this one, and no other is named."""
        return self._told(lambda each: {} if user is None else {"yours": each.share_of(user)})

    def _told(self, of_users: Callable[[PeriodQuota], dict[str, Any]]) -> dict[str, Any]:
        now_ms = self._now_ms()
        self._forget(now_ms // _SLOT_MS)
        span_ms = min(max(now_ms - self._recent[0][0] * _SLOT_MS, _SLOT_MS), _HOUR_MS) if self._recent else _HOUR_MS
        lately = sum(calls for _, calls in self._recent)
        found = {each.period: each.status(lately, span_ms) | of_users(each) for each in self._parts}
        told = found.get(MONTH, {}) | {"stretch_s": round(self.stretch_s()), "rungs": self.rungs()}
        return told | {"day": found[DAY]} if DAY in found else told

    def close(self) -> None:
        """Writes the exact count."""
        self._count.close()

    def _forget(self, slot: int) -> None:
        while self._recent and (slot - self._recent[0][0]) * _SLOT_MS > _HOUR_MS:
            self._recent.popleft()

    def _pressure(self, user: int | None) -> float:
        return max(each.pressure(user) for each in self._parts)
