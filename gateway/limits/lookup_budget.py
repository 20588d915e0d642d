"""The calls that one user may cause by hand, at all marketplaces together: so many a minute by looking, and by acting
as many in four hours.

It is kept here and not in the server, since only the gateway knows how many calls an answer took (none, when it was
known), and since several server processes have one gateway. The clock is an argument, in monotonic seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gateway.limits.errand import Errand
from markets.base import TooManyLookups

# A day of cleaning up must go through at once (minutes' worth of looks), but nobody starts and deletes tasks for ever.
_ACTS_AT_ONCE = 6
_ACTS_S = 4 * 3600
_MOST_USERS = 10_000


class LookupBudget:
    """A bucket of `per_minute` calls by looking for each user, and another one for acts, which fills in hours.

    An answer's true cost is taken, so a bucket may go below empty. Looks are refused while any task waits for the
    month; acts are not, hence their small number.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._looks = _Buckets(per_minute, per_minute / 60, clock)
        self._acts = _Buckets(_ACTS_AT_ONCE * per_minute, per_minute / _ACTS_S, clock)

    def permit(self, errand: Errand) -> None:
        """Raises TooManyLookups when the user has caused too many calls; a task's are never too many."""
        buckets = self._of(errand)
        if buckets is None or errand.user is None or (wait_s := buckets.wait_s(errand.user)) <= 0:
            return
        most = f"{self._per_minute} calls to marketplaces a minute by looking"
        if errand.purpose == "act":
            most = f"{self._per_minute} calls to marketplaces in four hours by starting, deleting and withdrawing"
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
        return len(self._looks) + len(self._acts)

    def _of(self, errand: Errand) -> _Buckets | None:
        return {"look": self._looks, "act": self._acts}.get(errand.purpose)


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
