"""A request's origin and priority, the budget of users' look-ups, and the quotas of API keys.

Look-ups are counted here and not in the server, because only the gateway knows how many calls an answer took. The
tighter of a key's monthly and daily quotas applies. Users share a quota; a user's unused calls are free for the others.
A user's share is the per-user cap at which all users together use the calls due so far; see `level`.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from enum import IntEnum
from typing import Any, Literal

from msgspec import Struct, UnsetType

from gateway.quota_count import (
    DAY,
    LONGEST_STRETCH_S,
    MONTH,
    PERIODS,
    Period,
    QuotaCount,
    Use,
    ahead,
    level_in_s,
    pressure,
    room,
    rungs,
    stretch_s,
)
from markets import verbs
from markets.base import RateLimited, Refused, TooManyLookups
from markets.verbs import Purpose, Request


class Origin(Struct, frozen=True):
    """The user (a number; None = no user) and the purpose of a request.

    `task`: a task's work. `look`: a person views something, which can always wait. `act`: a person starts or deletes
    something; it has a larger budget than looks and is refused long after them. `withdraw`: a person withdraws their
    assets; it has its own budget and the quota refuses it last. `brake`: bids are taken off the market, before all
    other requests.
    """

    user: int | None = None
    purpose: Literal["task"] | Purpose = "task"

    def may_share(self, other: Origin) -> bool:
        """Returns whether a request of this origin may share a read that `other` began.

        A look's read may be refused where a task's is not, so a task never shares one, and no user shares another
        user's. A brake never shares a task's read, because its own is sent first.
        """
        return other == self or (other.purpose == "task" and self.purpose != "brake")


# The current request's origin; a context variable because venues are called many functions below the handler.
ORIGIN: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 (frozen)


def origin_of(request: Request) -> Origin:
    """Returns the user and the purpose of a request."""
    return Origin(None if isinstance(request.user, UnsetType) else request.user, request.purpose)


class Priority(IntEnum):
    """The order in which waiting requests are sent; first come, first served within a priority."""

    BRAKE = -1  # takes bids off the market
    CANCEL = 0
    OWN_BIDS = 1
    PLACE = 2
    REST = 3
    LOOKUP = 4  # a person's view; see TASK_TURNS


# Acts and withdrawals start with six times the look-up budget, so that cleaning up is not delayed: 90 calls at 15 a
# minute, for 90 starts or deletions or two withdrawals of 20 coins. Refills are slow: a day for 90 acts, six hours for
# 90 calls of withdrawals.
_AT_ONCE = 6


_ACTS_S, _WITHDRAWALS_S = 4 * 3600, 3600


_MOST_USERS = 10_000


class LookupBudget:
    """Three token buckets for each user: looks (`per_minute` calls), and larger, slower ones for acts and withdrawals.

    An answer's true number of calls is deducted, so a bucket may go below zero. Acts and withdrawals refill slowly
    because the quota refuses them as late as tasks or later, whereas it refuses looks before it slows any task down.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._looks = _Buckets(per_minute, per_minute / 60, clock)
        self._acts = _Buckets(_AT_ONCE * per_minute, per_minute / _ACTS_S, clock)
        self._withdrawals = _Buckets(_AT_ONCE * per_minute, per_minute / _WITHDRAWALS_S, clock)

    def permit(self, origin: Origin) -> None:
        """Raises TooManyLookups when the user's budget is empty; tasks' calls are not limited here."""
        buckets = self._of(origin)
        if buckets is None or origin.user is None or (wait_s := buckets.wait_s(origin.user)) <= 0:
            return
        most = f"{self._per_minute} calls to marketplaces a minute by looking"
        if origin.purpose == "act":
            most = f"{self._per_minute} calls to marketplaces in four hours by starting and deleting"
        elif origin.purpose == "withdraw":
            most = f"{self._per_minute} calls to marketplaces in an hour by withdrawing"
        wait_s = math.ceil(wait_s)
        raise TooManyLookups(wait_s, f"a user may cause {most}; ask again in {wait_s} s")

    def is_short(self, origin: Origin) -> bool:
        """Returns whether the origin is a look that would be refused now if it needed a call."""
        return origin.purpose == "look" and origin.user is not None and self._looks.wait_s(origin.user) > 0

    def take(self, origin: Origin, calls: int = 1) -> None:
        """Deducts calls from the origin's bucket; a negative number gives back calls that were not made."""
        buckets = self._of(origin)
        if buckets is not None and origin.user is not None:
            buckets.take(origin.user, calls)

    def __len__(self) -> int:
        return len(self._looks) + len(self._acts) + len(self._withdrawals)

    def _of(self, origin: Origin) -> _Buckets | None:
        return {"look": self._looks, "act": self._acts, "withdraw": self._withdrawals}.get(origin.purpose)


class _Buckets:
    """A token bucket for each user, of `most` calls, refilled at `per_s` calls a second."""

    def __init__(self, most: int, per_s: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._per_s = per_s
        self._clock = clock
        self._left: dict[int, tuple[float, float]] = {}  # calls left, and the time of that count

    def wait_s(self, user: int) -> float:
        """Returns the seconds until the user has a call left."""
        return max(1 - self._now_left(user), 0.0) / self._per_s

    def take(self, user: int, calls: int) -> None:
        if user not in self._left and len(self._left) >= _MOST_USERS:
            # Drop full buckets, because a user without an entry has a full one.
            self._left = {each: kept for each, kept in self._left.items() if self._now_left(each) < self._most}
        self._left[user] = (self._now_left(user) - calls, self._clock())

    def __len__(self) -> int:
        return len(self._left)

    def _now_left(self, user: int) -> float:
        left, at = self._left.get(user, (float(self._most), self._clock()))
        return min(left + (self._clock() - at) * self._per_s, float(self._most))


class BeyondShare(RateLimited):
    """This user's read was refused; another user's may be allowed."""


def level(used: Collection[int], room: float) -> float:
    """Returns the per-user cap at which total use equals `room` (water-filling); inf if total use is below it."""
    left = room
    for position, each in enumerate(sorted(used)):
        share = left / (len(used) - position)
        if each > share:
            return max(share, 0.0)
        left -= each
    return float("inf")


LONGEST_PAUSE_S = 900.0
_MOST_SHOWN = 20


class PeriodQuota:
    """A quota of `limit` calls a period, counted by `count`. `now_ms` returns epoch milliseconds."""

    def __init__(self, period: Period, limit: int, count: QuotaCount, now_ms: Callable[[], int]) -> None:
        self.period = period
        self.limit = limit
        self._count = count
        self._now_ms = now_ms
        reads, own_bids = period.spent_on_reads, period.spent_on_own_bids
        self._spent = dict.fromkeys((Priority.PLACE, Priority.REST, Priority.LOOKUP), reads)
        self._spent[Priority.OWN_BIDS] = own_bids

    def permit(self, priority: Priority, user: int | None = None) -> None:
        """Raises RateLimited when the period has no call left at this priority. Cancels are never refused."""
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
        """Returns the seconds that looks have to wait so that tasks have enough calls, or None."""
        use, now_ms, over_share = self._use(), self._now_ms(), self.period.looking_over_share
        if ahead(use, now_ms) < over_share:
            return None
        # A user over their share is stopped earlier, so that one user's looks do not stop everybody's.
        allowed = over_share if self._is_beyond(use, user, over_share) else self.period.looking
        return None if ahead(use, now_ms) < allowed else _pause_s(use, now_ms, allowed)

    def _read_wait_s(self, user: int | None) -> float | None:
        """Returns the seconds that the user's task reads have to wait so that other users keep their share, or None.

        At this point the tasks can place no bid anyway, and even the oldest allowed answers may cost too many calls.
        """
        use, now_ms, allowed = self._use(), self._now_ms(), self.period.reading_over_share
        if ahead(use, now_ms) < allowed or user is None:
            return None
        return _pause_s(use, now_ms, allowed) if self._is_beyond(use, user, allowed) else None

    def pressure(self, user: int | None) -> float:
        """Returns the pressure on this user's calls; see the table in `gateway/quota_count.py`."""
        use, now_ms = self._use(), self._now_ms()
        found = pressure(use, now_ms)
        if found > 0 and self._is_within(use, user, room(use, now_ms, self.period.head_start)):
            return pressure(use, now_ms, self.period.further)
        return found

    def is_beyond_share(self, user: int | None) -> bool:
        """Returns whether this user has used more than their share of the calls due by now; False for a single user."""
        return user is not None and self._is_beyond(self._use(), user, self.period.head_start)

    def share_of(self, user: int) -> dict[str, int]:
        """Returns the user's calls in this period, and an even share of the whole period's calls."""
        by_user = {user: 0} | self._count.by_user(self.period)
        nobodys = self._use().used - sum(by_user.values())
        whole = (self.period.paced + self.period.head_start) * self.limit - nobodys
        return {"used": by_user[user], "share": max(int(whole / len(by_user)), 0)}

    def status(self, lately: int, span_ms: int) -> dict[str, Any]:
        """Returns the calls used and left; `projected` is the final use at a rate of `lately` calls in `span_ms`."""
        use = self._use()
        return {
            "limit": self.limit,
            "used": use.used,
            "left": max(self.limit - use.used, 0),
            "projected": use.used + lately * max(use.end_ms - self._now_ms(), 0) // span_ms,
            "ends_ms": use.end_ms,
        }

    def busiest(self) -> dict[int, int]:
        """Returns the calls of the 20 users with the most calls, the busiest first."""
        return dict(sorted(self._count.by_user(self.period).items(), key=lambda each: -each[1])[:_MOST_SHOWN])

    def _use(self) -> Use:
        return self._count.use(self.period, self.limit)

    def _is_beyond(self, use: Use, user: int | None, allowed: float) -> bool:
        """Returns whether there are other users and this one is over their share of the calls `allowed` by now."""
        others = self._count.by_user(self.period).keys() - {user}
        return bool(others) and not self._is_within(use, user, room(use, self._now_ms(), allowed))

    def _is_within(self, use: Use, user: int | None, allowed: float) -> bool:
        """Returns whether the user is within their share of the calls `allowed` by now; False for user None."""
        if user is None:
            return False
        by_user = {user: 0} | self._count.by_user(self.period)
        # Calls of no user cannot be divided, so they are deducted first.
        nobodys = use.used - sum(by_user.values())
        return by_user[user] < level(by_user.values(), allowed - nobodys)


def _pause_s(use: Use, now_ms: int, allowed: float) -> float:
    return min(max(level_in_s(use, now_ms, allowed), 1.0), LONGEST_PAUSE_S)


_GRACE = 0.25  # of pressure, because a client that was just allowed a rung has already cancelled the bid it replaces
_HOUR_MS = 3_600_000
_SLOT_MS = 60_000


class Quota:
    """A key's quotas, `limits` calls for each period; 0 or missing = no quota. `now_ms` returns epoch milliseconds."""

    def __init__(self, limits: Mapping[Period, int], count: QuotaCount, now_ms: Callable[[], int]) -> None:
        self._count = count
        self._now_ms = now_ms
        # The month first, because its refusal lasts longer if both refuse.
        self._parts = [PeriodQuota(each, limits[each], count, now_ms) for each in PERIODS if limits.get(each)]
        self._recent: deque[list[int]] = deque()  # [slot, calls] of the last hour

    def count(self, user: int | None = None) -> None:
        """Counts a call of `user` (None = no user) that is about to be sent. Thread-safe."""
        self._count.count(user)

    def note(self) -> None:
        """Counts a call for the projection. Call it in the loop's thread only."""
        slot = self._now_ms() // _SLOT_MS
        if not self._recent or self._recent[-1][0] != slot:
            self._recent.append([slot, 0])
            self._forget(slot)
        self._recent[-1][1] += 1

    def permit(self, priority: Priority, user: int | None = None) -> None:
        """Raises RateLimited when a period has no call left at this priority."""
        for each in self._parts:
            each.permit(priority, user)

    def look_wait_s(self, user: int | None = None) -> float | None:
        return max((wait_s for each in self._parts if (wait_s := each.look_wait_s(user)) is not None), default=None)

    def permit_place(self, rung: int, user: int | None = None) -> None:
        """Raises Refused('quota') when the quota is too short for the user's bids at this rung (0 is the top)."""
        tightest = max(self._parts, key=lambda each: each.pressure(user))
        allowed = rungs(tightest.pressure(user) - _GRACE)
        if allowed is not None and rung >= allowed:
            which = "nothing is placed or listed" if not allowed else f"only the top {allowed} of a ladder are placed"
            raise Refused("quota", f"the {tightest.period.name}'s quota of calls runs short: {which} for now")

    def stretch_s(self, user: int | None = None) -> float:
        """Returns the age in seconds that the user's answers may have even if less is requested; 0 without pressure."""
        return stretch_s(self._pressure(user))

    def rungs(self, user: int | None = None) -> int | None:
        """Returns how many rungs of a user's ladder may have new bids; None = all."""
        return rungs(self._pressure(user))

    def is_beyond_share(self, user: int | None) -> bool:
        return any(each.is_beyond_share(user) for each in self._parts)

    def status(self) -> dict[str, Any]:
        """Returns how old reads may be, the rungs that may have bids, and the use of each period with a quota.

        The month's use is at the top level, the day's in the object `day`. `users` has the calls of the 20 busiest.
        """
        return self._report(lambda each: {"users": each.busiest()})

    def facts(self, user: int | None) -> dict[str, Any]:
        """Returns `status` for a user's eyes: with `yours`, the user's own share, and without other users' calls."""
        return self._report(lambda each: {} if user is None else {"yours": each.share_of(user)})

    def _report(self, of_users: Callable[[PeriodQuota], dict[str, Any]]) -> dict[str, Any]:
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


Kind = type[verbs.Args[Any]]
_STARTUP_READS: frozenset[Kind] = frozenset({verbs.OwnBids, verbs.OwnListings})
_BOOKS: frozenset[Kind] = frozenset({verbs.Asks, verbs.Bids, verbs.RuneAsks})
_SPENT_LOOK_S = 60.0  # the age that a cached answer may have for a look whose user's budget is empty
_NOW_S = 1.0  # a request for a younger answer wants to see a write that was just made
# Bids are signed only on a book a few seconds old, so a request for such a book is not stretched far.
_FOR_PLACING_S, _STRETCHED_FOR_PLACING_S = 5.0, 8.0


class QuotaRestraint:
    """Stretches the age of answers from one source as its key's quota and the users' look-up budgets require."""

    def __init__(
        self, quota: Quota | None, source: verbs.Source = "market", lookups: LookupBudget | None = None
    ) -> None:
        self._quota = quota
        self._source = source
        self._lookups = lookups

    def stretched_s(self, kind: Kind, max_age_s: float) -> float:
        """Returns the age in seconds that the verb's answer may have, at least `max_age_s`."""
        if kind.quota_of != self._source:
            return max_age_s
        origin = ORIGIN.get()
        stretch_s = 0.0 if self._quota is None else self._quota.stretch_s(origin.user)
        if origin.purpose == "look":
            return max(max_age_s, stretch_s, self._stretch_of_looks_s(origin))
        if not stretch_s or (max_age_s < _NOW_S and not self._is_begun_too_often(kind, origin)):
            return max_age_s
        if kind in _BOOKS and max_age_s < _FOR_PLACING_S:
            stretch_s = min(stretch_s, _STRETCHED_FOR_PLACING_S)
        return max(max_age_s, stretch_s)

    def remark(self) -> str:
        """Returns the member `,"quota":{...}` for an answer's JSON object, or "" if the quota is not short."""
        user = ORIGIN.get().user
        if self._quota is None or not (stretch_s := self._quota.stretch_s(user)):
            return ""
        return ',"quota":' + json.dumps({"stretch_s": round(stretch_s), "rungs": self._quota.rungs(user)})

    def _is_begun_too_often(self, kind: Kind, origin: Origin) -> bool:
        """Returns whether this is a worker's first read and its user is over their share; each restart costs one."""
        return kind in _STARTUP_READS and self._quota is not None and self._quota.is_beyond_share(origin.user)

    def _stretch_of_looks_s(self, origin: Origin) -> float:
        if self._quota is not None and self._quota.look_wait_s(origin.user) is not None:
            return LONGEST_STRETCH_S
        return _SPENT_LOOK_S if self._lookups is not None and self._lookups.is_short(origin) else 0.0
