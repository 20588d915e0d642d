"""The origin of a request, its urgency, and the calls that people and their tasks may cause.

What one user causes by hand is counted here and not in the server, since only the gateway knows how many calls an
answer took. The quota of a key is the tightest of its month's and its day's. It is divided between users: what one does
not use, others may. A user is within their share as long as they have used no more than the rest could, were each to
have as much: the level.
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
    """The user (a number; None = nobody's) and the purpose of a request.

    `task`: a task's work. `look`: a person wants to see something, which can always wait. `act`: a person starts or
    deletes something; it is counted like a look, and refused only long after looks are. `withdraw`: a person takes
    their own out, which is counted by itself, and which a quota refuses as late as it can. `brake`: bids are taken
    off the market, which goes before everything else.
    """

    user: int | None = None
    purpose: Literal["task"] | Purpose = "task"

    def may_share(self, other: Origin) -> bool:
        """Tells whether a request of this origin may wait for a reading that `other` began.

        A look's reading may be refused where a task's is not, so a task never depends on one, and no user on another's.
        A brake's reading goes first, so it waits for no task's.
        """
        return other == self or (other.purpose == "task" and self.purpose != "brake")


# The origin of the work under way, which whatever is begun for a request inherits: a reading is begun many calls deep.
ORIGIN: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 (frozen)


def origin_of(request: Request) -> Origin:
    """Returns the user and the purpose of a request."""
    return Origin(None if isinstance(request.user, UnsetType) else request.user, request.purpose)


class Priority(IntEnum):
    """The order in which waiting requests are sent; equal ones in the order they came."""

    BRAKE = -1  # takes bids off the market
    CANCEL = 0
    OWN_BIDS = 1
    PLACE = 2
    REST = 3
    LOOKUP = 4  # what a person wants to see; see TASK_TURNS


# Cleaning up must go through at once (at 15 a minute, 90 calls: 90 starts or deletions, or two withdrawals of 20 coins
# by an index that counts), but nobody does it for ever: 90 more acts take a day, 90 more calls to withdraw six hours.
_AT_ONCE = 6


_ACTS_S, _WITHDRAWALS_S = 4 * 3600, 3600


_MOST_USERS = 10_000


class LookupBudget:
    """Buckets for each user: one of `per_minute` calls by looking, and larger ones that fill slowly for the rest.

    An answer's true cost is taken, so a bucket may go below empty. The quota refuses looks before it slows any task
    down; acts and withdrawals it refuses as late as tasks or later, hence so few in the long run.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._looks = _Buckets(per_minute, per_minute / 60, clock)
        self._acts = _Buckets(_AT_ONCE * per_minute, per_minute / _ACTS_S, clock)
        self._withdrawals = _Buckets(_AT_ONCE * per_minute, per_minute / _WITHDRAWALS_S, clock)

    def permit(self, origin: Origin) -> None:
        """Raises TooManyLookups when the user has caused too many calls; a task's are never too many."""
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
        """Tells whether a look of the user would be refused now, were it to cause a call."""
        return origin.purpose == "look" and origin.user is not None and self._looks.wait_s(origin.user) > 0

    def take(self, origin: Origin, calls: int = 1) -> None:
        """Counts calls that the origin causes; negative ones were not made after all."""
        buckets = self._of(origin)
        if buckets is not None and origin.user is not None:
            buckets.take(origin.user, calls)

    def __len__(self) -> int:
        return len(self._looks) + len(self._acts) + len(self._withdrawals)

    def _of(self, origin: Origin) -> _Buckets | None:
        return {"look": self._looks, "act": self._acts, "withdraw": self._withdrawals}.get(origin.purpose)


class _Buckets:
    """A bucket for each user that holds `most` calls and fills by `per_s`."""

    def __init__(self, most: int, per_s: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._per_s = per_s
        self._clock = clock
        self._left: dict[int, tuple[float, float]] = {}  # calls left, and when that was

    def wait_s(self, user: int) -> float:
        """Returns the seconds until there is a call left."""
        return max(1 - self._now_left(user), 0.0) / self._per_s

    def take(self, user: int, calls: int) -> None:
        if user not in self._left and len(self._left) >= _MOST_USERS:
            # An unknown user's bucket is full, too.
            self._left = {each: kept for each, kept in self._left.items() if self._now_left(each) < self._most}
        self._left[user] = (self._now_left(user) - calls, self._clock())

    def __len__(self) -> int:
        return len(self._left)

    def _now_left(self, user: int) -> float:
        left, at = self._left.get(user, (float(self._most), self._clock()))
        return min(left + (self._clock() - at) * self._per_s, float(self._most))


class BeyondShare(RateLimited):
    """A refusal of this user's reading; another user's may go on."""


def level(used: Collection[int], room: float) -> float:
    """Returns the cap of each user at which all use comes to `room`; infinite where it does so uncut."""
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
        """Returns the pressure on this user's calls; see `gateway/quota_count.py`."""
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
        by_user = {user: 0} | self._count.by_user(self.period)
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
        return dict(sorted(self._count.by_user(self.period).items(), key=lambda each: -each[1])[:_MOST_SHOWN])

    def _use(self) -> Use:
        return self._count.use(self.period, self.limit)

    def _is_beyond(self, use: Use, user: int | None, allowed: float) -> bool:
        """Tells whether there are others, and the user is beyond their share of what may be used by now."""
        others = self._count.by_user(self.period).keys() - {user}
        return bool(others) and not self._is_within(use, user, room(use, self._now_ms(), allowed))

    def _is_within(self, use: Use, user: int | None, allowed: float) -> bool:
        """Tells whether the user is within their share of the calls `allowed` by now; nobody never is."""
        if user is None:
            return False
        by_user = {user: 0} | self._count.by_user(self.period)
        # What is nobody's cannot be divided: it is taken off first.
        nobodys = use.used - sum(by_user.values())
        return by_user[user] < level(by_user.values(), allowed - nobodys)


def _pause_s(use: Use, now_ms: int, allowed: float) -> float:
    return min(max(level_in_s(use, now_ms, allowed), 1.0), LONGEST_PAUSE_S)


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
        """Raises RateLimited when a period has no call left at this priority."""
        for each in self._parts:
            each.permit(priority, user)

    def look_wait_s(self, user: int | None = None) -> float | None:
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


Kind = type[verbs.Args[Any]]
_OF_A_BEGINNING: frozenset[Kind] = frozenset({verbs.OwnBids, verbs.OwnListings})
_BOOKS: frozenset[Kind] = frozenset({verbs.Asks, verbs.Bids, verbs.RuneAsks})
_SPENT_LOOK_S = 60.0  # a look beyond its user's budget gets an answer of this age, if there is one
_NOW_S = 1.0  # requests for an answer younger than this look for a fresh write
# A bid is signed only on a book some seconds old; a request for one gets one young enough for that.
_FOR_PLACING_S, _STRETCHED_FOR_PLACING_S = 5.0, 8.0


class QuotaRestraint:
    """The quota of one key, if it has one, and the budget of looks, applied to reads of its source and to answers."""

    def __init__(
        self, quota: Quota | None, source: verbs.Source = "market", lookups: LookupBudget | None = None
    ) -> None:
        self._quota = quota
        self._source = source
        self._lookups = lookups

    def stretched_s(self, kind: Kind, max_age_s: float) -> float:
        """Returns the age that the quota allows an answer of a verb, for one who asks for `max_age_s`."""
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
        """Returns further members of an answer's JSON object that tell of the savings; empty without a shortage."""
        user = ORIGIN.get().user
        if self._quota is None or not (stretch_s := self._quota.stretch_s(user)):
            return ""
        return ',"quota":' + json.dumps({"stretch_s": round(stretch_s), "rungs": self._quota.rungs(user)})

    def _is_begun_too_often(self, kind: Kind, origin: Origin) -> bool:
        """Tells whether a worker's first read is one restart too many for the user's share; each costs such a read."""
        return kind in _OF_A_BEGINNING and self._quota is not None and self._quota.is_beyond_share(origin.user)

    def _stretch_of_looks_s(self, origin: Origin) -> float:
        if self._quota is not None and self._quota.look_wait_s(origin.user) is not None:
            return LONGEST_STRETCH_S
        return _SPENT_LOOK_S if self._lookups is not None and self._lookups.is_short(origin) else 0.0
