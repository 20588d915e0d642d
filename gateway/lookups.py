"""Lookups."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from enum import IntEnum
from typing import Literal

from msgspec import Struct, UnsetType

from markets.base import TooManyLookups
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


# A context variable, since a reading is begun many calls deep: whatever is begun for a request inherits its origin.
_current: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 (frozen)


def current_origin() -> Origin:
    """Returns the origin of the work that calls this."""
    return _current.get()


def origin_of(request: Request) -> Origin:
    """Returns whose request it is, and what for."""
    return Origin(None if isinstance(request.user, UnsetType) else request.user, request.purpose)


def begin_for(origin: Origin) -> None:
    """Makes all further work of this asyncio task, and what it begins, be on `origin`."""
    _current.set(origin)


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
