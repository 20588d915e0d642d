"""The calls that one user may cause by hand: so many a minute, whatever is asked, at all marketplaces together.

It is kept here and not in the server, since only the gateway knows how many calls an answer took (none, when it was
known), and since several server processes have one gateway. The clock is an argument, in monotonic seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gateway.limits.errand import Errand
from markets.base import TooManyLookups

# Acts go on while this many minutes' calls are owed: pressing stop or delete must work after a busy minute of looking,
# and yet a loop of them must cost no more than one of looks.
_OWED_BY_ACTS = 2
_MOST_USERS = 10_000


class LookupBudget:
    """A bucket of `per_minute` calls for each user. An answer's true cost is taken, so a bucket may go below empty."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._left: dict[int, tuple[float, float]] = {}  # calls left, and when that was

    def permit(self, errand: Errand) -> None:
        """Raises TooManyLookups when the user has caused too many calls; a task's are never too many."""
        if errand.user is None or errand.purpose == "task":
            return
        least = -_OWED_BY_ACTS * self._per_minute if errand.purpose == "act" else 0
        left = self._now_left(errand.user)
        if left < least + 1:
            wait_s = math.ceil((least + 1 - left) * 60 / self._per_minute)
            text = f"a user may cause {self._per_minute} calls to marketplaces a minute by looking"
            raise TooManyLookups(wait_s, f"{text}; ask again in {wait_s} s")

    def is_short(self, errand: Errand) -> bool:
        """Tells whether a look of the user would be refused now, were it to cause a call."""
        return errand.purpose == "look" and errand.user is not None and self._now_left(errand.user) < 1

    def take(self, errand: Errand, calls: int = 1) -> None:
        """Counts calls that the errand causes; negative ones were not made after all."""
        if errand.user is None or errand.purpose == "task":
            return
        if errand.user not in self._left and len(self._left) >= _MOST_USERS:
            self._forget()
        self._left[errand.user] = (self._now_left(errand.user) - calls, self._clock())

    def _now_left(self, user: int) -> float:
        left, at = self._left.get(user, (float(self._per_minute), self._clock()))
        return min(left + (self._clock() - at) * self._per_minute / 60, float(self._per_minute))

    def _forget(self) -> None:
        """Drops the full buckets: an unknown user's is as full."""
        self._left = {user: kept for user, kept in self._left.items() if self._now_left(user) < self._per_minute}
