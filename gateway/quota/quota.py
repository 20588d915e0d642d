"""The quota of one key's month: may a call be made, how old may reads be, what is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from gateway.limits.call_budget import Priority
from gateway.quota.count import QuotaCount
from gateway.quota.quota_pace import (
    HEAD_START,
    LOOKING,
    LOOKING_OVER_SHARE,
    PACED,
    READING_OVER_SHARE,
    SPENT_ON_OWN_BIDS,
    SPENT_ON_READS,
    Use,
    ahead,
    level_in_s,
    pressure,
    room,
    rungs,
    stretch_s,
)
from gateway.quota.shares import FURTHER, BeyondShare, level
from markets.base import RateLimited, Refused

_SPENT = dict.fromkeys((Priority.PLACE, Priority.REST, Priority.LOOKUP), SPENT_ON_READS)
_SPENT[Priority.OWN_BIDS] = SPENT_ON_OWN_BIDS
_GRACE = 0.25  # of pressure: a client just told that a rung may be placed has already cancelled the bid it replaces
_HOUR_MS = 3_600_000
_SLOT_MS = 60_000
_MOST_SHOWN = 20
LONGEST_PAUSE_S = 900.0


class Quota:
    """A quota of `limit` calls a calendar month (UTC), counted by `count`. `now_ms` is the epoch."""

    def __init__(self, limit: int, count: QuotaCount, now_ms: Callable[[], int]) -> None:
        self.limit = limit
        self._count = count
        self._now_ms = now_ms
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
        """Raises RateLimited when the month has no call left at this priority. Cancels always have one."""
        if priority is Priority.LOOKUP and (wait_s := self.look_wait_s(user)) is not None:
            text = "the month's calls are used faster than they last, and tasks go first"
            raise RateLimited(wait_s, f"{text}: looks wait; nothing was sent")
        if priority is Priority.REST and (wait_s := self._read_wait_s(user)) is not None:
            text = "the month's calls run short, and this user has used more than their share"
            raise BeyondShare(wait_s, f"{text}: reads wait; nothing was sent")
        use = self._count.use(self.limit)
        if use.used >= _SPENT.get(priority, float("inf")) * self.limit:
            left_s = max(use.end_ms - self._now_ms(), 0) / 1000
            raise RateLimited(min(left_s, LONGEST_PAUSE_S), "the month's quota of calls is used up")

    def look_wait_s(self, user: int | None = None) -> float | None:
        """Returns the seconds that people's looks have to wait, for the sake of the tasks; None = they need not."""
        use, now_ms = self._count.use(self.limit), self._now_ms()
        if ahead(use, now_ms) < LOOKING_OVER_SHARE:
            return None
        # Before all of them stop, those stop who have used more than their share, so that one's looks are not others'.
        allowed = LOOKING_OVER_SHARE if self._is_beyond(use, user, LOOKING_OVER_SHARE) else LOOKING
        return None if ahead(use, now_ms) < allowed else _pause_s(use, now_ms, allowed)

    def _read_wait_s(self, user: int | None) -> float | None:
        """Returns the seconds that tasks' reads have to wait, so that others' share is left; None = they need not.

        Nothing is placed on them any more, and made as old as they get they may still be more than the month has.
        """
        use, now_ms = self._count.use(self.limit), self._now_ms()
        if ahead(use, now_ms) < READING_OVER_SHARE or user is None:
            return None
        is_beyond = self._is_beyond(use, user, READING_OVER_SHARE)
        return _pause_s(use, now_ms, READING_OVER_SHARE) if is_beyond else None

    def permit_place(self, rung: int, user: int | None = None) -> None:
        """Raises Refused('quota') when the user's bids at this rung (0 is the top) have to wait."""
        allowed = rungs(self._pressure(user) - _GRACE)
        if allowed is not None and rung >= allowed:
            which = "nothing is placed or listed" if not allowed else f"only the top {allowed} of a ladder are placed"
            raise Refused("quota", f"the month's quota of calls runs short: {which} for now")

    def stretch_s(self, user: int | None = None) -> float:
        """Returns the age in seconds that the user's reads may have, even if less was asked for; 0 = none."""
        return stretch_s(self._pressure(user))

    def rungs(self, user: int | None = None) -> int | None:
        """Returns how many rungs of a user's ladder may have new bids; None = all."""
        return rungs(self._pressure(user))

    def is_beyond_share(self, user: int | None) -> bool:
        """Tells whether this user, one of several, has used more than their share of the calls due by now."""
        return user is not None and self._is_beyond(self._count.use(self.limit), user, HEAD_START)

    def share_of(self, user: int) -> dict[str, int]:
        """Returns the user's calls of this month, and their part of the whole month were it divided evenly now."""
        by_user = {user: 0} | self._count.by_user()
        nobodys = self._count.use(self.limit).used - sum(by_user.values())
        month = (PACED + HEAD_START) * self.limit - nobodys
        return {"used": by_user[user], "share": max(int(month / len(by_user)), 0)}

    def status(self) -> dict[str, Any]:
        """Returns the calls used and left; `projected` is the month's use at the last hour's rate.

        `users` are those with the most calls, by their numbers; all others' are the rest.
        """
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
            "users": dict(sorted(self._count.by_user().items(), key=lambda each: -each[1])[:_MOST_SHOWN]),
        }

    def close(self) -> None:
        """Writes the exact count."""
        self._count.close()

    def _forget(self, slot: int) -> None:
        while self._recent and (slot - self._recent[0][0]) * _SLOT_MS > _HOUR_MS:
            self._recent.popleft()

    def _pressure(self, user: int | None) -> float:
        use, now_ms = self._count.use(self.limit), self._now_ms()
        found = pressure(use, now_ms)
        if found > 0 and self._is_within(use, user, room(use, now_ms, HEAD_START)):
            return pressure(use, now_ms, HEAD_START + FURTHER)
        return found

    def _is_beyond(self, use: Use, user: int | None, allowed: float) -> bool:
        """Tells whether there are others, and the user is beyond their share of what may be used by now."""
        others = self._count.by_user().keys() - {user}
        return bool(others) and not self._is_within(use, user, room(use, self._now_ms(), allowed))

    def _is_within(self, use: Use, user: int | None, allowed: float) -> bool:
        """Tells whether the user is within their share of the calls `allowed` by now; nobody never is."""
        if user is None:
            return False
        by_user = {user: 0} | self._count.by_user()
        # What is nobody's cannot be divided: it is taken off first.
        nobodys = use.used - sum(by_user.values())
        return by_user[user] < level(by_user.values(), allowed - nobodys)


def _pause_s(use: Use, now_ms: int, allowed: float) -> float:
    return min(max(level_in_s(use, now_ms, allowed), 1.0), LONGEST_PAUSE_S)
