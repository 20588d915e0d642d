"""The quota of one key's month or day: may a call be made, how far is use ahead of the pace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.limits import Priority
from gateway.quota.shares import BeyondShare, level
from gateway.quota_count import Period, QuotaCount, Use, ahead, level_in_s, pressure, room
from markets.base import RateLimited

LONGEST_PAUSE_S = 900.0
_MOST_SHOWN = 20


class PeriodQuota:
    """A quota of `limit` calls a period, counted by `count`. `now_ms` is the epoch."""

    def __init__(self, period: Period, limit: int, count: QuotaCount, now_ms: Callable[[], int]) -> None:
        self.period = period
        self.limit = limit
        self._count = count
        self._now_ms = now_ms
        reads, own_bids = period.spent_on_reads, period.spent_on_own_bids
        self._spent = dict.fromkeys((Priority.PLACE, Priority.REST, Priority.LOOKUP), reads)
        self._spent[Priority.OWN_BIDS] = own_bids

    def permit(self, priority: Priority, user: int | None = None) -> None:
        """Raises RateLimited when the period has no call left at this priority. Cancels always have one."""
        if priority is Priority.LOOKUP and (wait_s := self.look_wait_s(user)) is not None:
            text = f"the {self.period.name}'s calls are used faster than they last, and tasks go first"
            raise RateLimited(wait_s, f"{text}: looks wait; nothing was sent")
        if priority is Priority.REST and (wait_s := self._read_wait_s(user)) is not None:
            text = f"the {self.period.name}'s calls run short, and this user has used more than their share"
            raise BeyondShare(wait_s, f"{text}: reads wait; nothing was sent")
        use = self._use()
        if use.used >= self._spent.get(priority, float("inf")) * self.limit:
            left_s = max(use.end_ms - self._now_ms(), 0) / 1000
            raise RateLimited(min(left_s, LONGEST_PAUSE_S), f"the {self.period.name}'s quota of calls is used up")

    def look_wait_s(self, user: int | None = None) -> float | None:
        """Returns the seconds that people's looks have to wait, for the sake of the tasks; None = they need not."""
        use, now_ms, over_share = self._use(), self._now_ms(), self.period.looking_over_share
        if ahead(use, now_ms) < over_share:
            return None
        # Before all of them stop, those stop who have used more than their share, so that one's looks are not others'.
        allowed = over_share if self._is_beyond(use, user, over_share) else self.period.looking
        return None if ahead(use, now_ms) < allowed else _pause_s(use, now_ms, allowed)

    def _read_wait_s(self, user: int | None) -> float | None:
        """Returns the seconds that tasks' reads have to wait, so that others' share is left; None = they need not.

        Nothing is placed on them any more, and made as old as they get they may still be more than the period has.
        """
        use, now_ms, allowed = self._use(), self._now_ms(), self.period.reading_over_share
        if ahead(use, now_ms) < allowed or user is None:
            return None
        return _pause_s(use, now_ms, allowed) if self._is_beyond(use, user, allowed) else None

    def pressure(self, user: int | None) -> float:
        """Returns the pressure on this user's calls; see `quota_pace`."""
        use, now_ms = self._use(), self._now_ms()
        found = pressure(use, now_ms)
        if found > 0 and self._is_within(use, user, room(use, now_ms, self.period.head_start)):
            return pressure(use, now_ms, self.period.further)
        return found

    def is_beyond_share(self, user: int | None) -> bool:
        """Tells whether this user, one of several, has used more than their share of the calls due by now."""
        return user is not None and self._is_beyond(self._use(), user, self.period.head_start)

    def share_of(self, user: int) -> dict[str, int]:
        """Returns the user's calls of this period, and their part of all of it were it divided evenly now."""
        by_user = {user: 0} | self._by_user()
        nobodys = self._use().used - sum(by_user.values())
        whole = (self.period.paced + self.period.head_start) * self.limit - nobodys
        return {"used": by_user[user], "share": max(int(whole / len(by_user)), 0)}

    def status(self, lately: int, span_ms: int) -> dict[str, Any]:
        """Returns the calls used and left; `projected` is the whole use at the rate of `lately` calls in `span_ms`."""
        use = self._use()
        return {
            "limit": self.limit,
            "used": use.used,
            "left": max(self.limit - use.used, 0),
            "projected": use.used + lately * max(use.end_ms - self._now_ms(), 0) // span_ms,
            "ends_ms": use.end_ms,
        }

    def busiest(self) -> dict[int, int]:
        """Returns the calls of the users with the most, the busiest first."""
        return dict(sorted(self._by_user().items(), key=lambda each: -each[1])[:_MOST_SHOWN])

    def _use(self) -> Use:
        return self._count.use(self.period, self.limit)

    def _by_user(self) -> dict[int, int]:
        return self._count.by_user(self.period)

    def _is_beyond(self, use: Use, user: int | None, allowed: float) -> bool:
        """Tells whether there are others, and the user is beyond their share of what may be used by now."""
        others = self._by_user().keys() - {user}
        return bool(others) and not self._is_within(use, user, room(use, self._now_ms(), allowed))

    def _is_within(self, use: Use, user: int | None, allowed: float) -> bool:
        """Tells whether the user is within their share of the calls `allowed` by now; nobody never is."""
        if user is None:
            return False
        by_user = {user: 0} | self._by_user()
        # What is nobody's cannot be divided: it is taken off first.
        nobodys = use.used - sum(by_user.values())
        return by_user[user] < level(by_user.values(), allowed - nobodys)


def _pause_s(use: Use, now_ms: int, allowed: float) -> float:
    return min(max(level_in_s(use, now_ms, allowed), 1.0), LONGEST_PAUSE_S)
