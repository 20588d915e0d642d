"""The calls that one user may cause by hand, at all marketplaces together: so many a minute by looking, as many in
four hours by acting, and as many in an hour by withdrawing.

It is kept here and not in the server, since only the gateway knows how many calls an answer took (none, when it was
known), and since several server processes have one gateway. The clock is an argument, in monotonic seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gateway.limits.errand import Errand
from markets.base import TooManyLookups

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

    def permit(self, errand: Errand) -> None:
        """Raises TooManyLookups when the user has caused too many calls; a task's are never too many."""
        buckets = self._of(errand)
        if buckets is None or errand.user is None or (wait_s := buckets.wait_s(errand.user)) <= 0:
            return
        most = f"{self._per_minute} calls to marketplaces a minute by looking"
        if errand.purpose == "act":
            most = f"{self._per_minute} calls to marketplaces in four hours by starting and deleting"
        elif errand.purpose == "withdraw":
            most = f"{self._per_minute} calls to marketplaces in an hour by withdrawing"
        wait_s = math.ceil(wait_s)
        raise TooManyLookups(wait_s, f"a user may cause {most}; ask again in {wait_s} s")

    def is_short(self, errand: Errand) -> bool:
        """Tells whether a look of the user would be refused now, were it to cause a call."""
        return errand.purpose == "look" and errand.user is not None and self._looks.wait_s(errand.user) > 0

    def take(self, errand: Errand, calls: int = 1) -> None:
        """Counts calls that the errand causes; negative ones were not made after all."""
        buckets = self._of(errand)
        if buckets is not None and errand.user is not None:
            buckets.take(errand.user, calls)

    def __len__(self) -> int:
        return len(self._looks) + len(self._acts) + len(self._withdrawals)

    def _of(self, errand: Errand) -> _Buckets | None:
        return {"look": self._looks, "act": self._acts, "withdraw": self._withdrawals}.get(errand.purpose)


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
