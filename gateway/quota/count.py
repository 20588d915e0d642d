"""The count of a key's calls in a month and a day, kept in a file or a table: a crash makes it too high, never too low.

The stored count is ahead of the real one: it is the count that will be reached before it is written again. A clean end
writes the exact numbers.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gateway.quota.quota_pace import DAY, MONTH, PERIODS, Period, Use

MOST_USERS = 1_000  # the calls of further ones are nobody's
BLOCK = 20  # calls for each write: a crash counts at most this many too many
_AHEAD_MS = 3_600_000  # a first call so much later than now was counted by a clock that was wrong


class Counts(Protocol):
    """The place where the counts are kept, each under its venue's name. Safe in any thread."""

    def get(self, venue: str) -> Mapping[str, Any] | None:
        """Returns a venue's stored count, or None."""

    def put(self, venue: str, kept: Mapping[str, Any]) -> None:
        """Stores a venue's count for good. When that fails, it is logged."""


class _PeriodCount:
    """The calls of the current period, from its first call on, in all and by user."""

    _date: str
    _since_ms: int
    _end_ms: int
    used: int
    by_user: dict[int, int]

    def __init__(self, period: Period, now_ms: int) -> None:
        self._period = period
        self._begin(now_ms)

    def turn(self, now_ms: int) -> bool:
        """Begins anew if the period is over, and tells whether it was.

        A clock that was set back does not bring back the last period's quota. If it was hours ahead, the calls so far
        are of the present period: of a wrong one they would count for as long as that is ahead.
        """
        is_over, was_ahead = now_ms >= self._end_ms, now_ms < self._since_ms - _AHEAD_MS
        used, by_user = self.used, self.by_user
        if is_over or was_ahead:
            self._begin(now_ms)
        if was_ahead:
            self.used, self.by_user = used, by_user
        return is_over or was_ahead

    def add(self, user: int | None) -> None:
        self.used += 1
        if user in self.by_user or (user is not None and len(self.by_user) < MOST_USERS):
            self.by_user[user] = self.by_user.get(user, 0) + 1

    def use(self, limit: int) -> Use:
        return Use(self._period, limit, self.used, self._since_ms, self._end_ms)

    def load(self, kept: Mapping[str, Any]) -> None:
        """Goes on from a stored count, unless its period is over."""
        if kept[self._period.name] >= self._date:
            self._date, self._since_ms, self.used = kept[self._period.name], kept["since_ms"], kept["used"]
            self.by_user = {int(user): used for user, used in kept["users"].items()}
            self._end_ms = self._period.end_ms(self._date)

    def kept(self, more: int) -> dict[str, Any]:
        """Returns the count to store, `more` calls ahead."""
        users = {str(user): calls for user, calls in self.by_user.items()}
        return {
            self._period.name: self._date,
            "since_ms": self._since_ms,
            "used": self.used + more,
            "users": users,
        }

    def _begin(self, now_ms: int) -> None:
        self._date, self._since_ms = self._period.of(now_ms), now_ms
        self.used, self.by_user = 0, {}
        self._end_ms = self._period.end_ms(self._date)


class QuotaCount:
    """The count of one venue's key; `counts` keeps its hash, so that another key begins anew. Safe in any thread.

    Both periods are counted, whichever the key has a quota of: a quota that is set later finds its calls counted.
    """

    def __init__(self, counts: Counts, venue: str, key: str, now_ms: Callable[[], int], block: int = BLOCK) -> None:
        self._counts = counts
        self._venue = venue
        self._of = f"{venue} {hashlib.sha256(key.encode()).hexdigest()[:16]}"
        self._now_ms = now_ms
        self._block = block
        self._lock = threading.Lock()  # guards the numbers; never held while waiting for the disk
        self._writing = threading.Lock()  # lets calls pass the file one by one: none leaves before it is written down
        self._periods = {period: _PeriodCount(period, now_ms()) for period in PERIODS}
        self._ahead: int | None = 0  # calls that the stored count has too many; None: it is of an earlier period
        self._load()

    def count(self, user: int | None = None) -> None:
        """Counts a call that is about to be sent, of `user` (None = nobody's).

        When it cannot be kept, that is logged and the call goes out.
        """
        with self._writing:
            with self._lock:
                self._turn()
                for each in self._periods.values():
                    each.add(user)
                if self._ahead:
                    self._ahead -= 1
                    return
                self._ahead = self._block - 1
                kept = self._kept(self._ahead)
            self._counts.put(self._venue, kept)

    def use(self, period: Period, limit: int) -> Use:
        """Returns the period's use so far."""
        with self._lock:
            self._turn()
            return self._periods[period].use(limit)

    def by_user(self, period: Period) -> dict[int, int]:
        """Returns the period's use by user. Calls of nobody, and a few after a crash, are missing."""
        with self._lock:
            self._turn()
            return dict(self._periods[period].by_user)

    def close(self) -> None:
        """Writes the exact number, if it has changed."""
        with self._writing:
            with self._lock:
                if self._ahead == 0:
                    return
                self._ahead = 0
                kept = self._kept(0)
            self._counts.put(self._venue, kept)

    def _turn(self) -> None:
        now_ms = self._now_ms()
        for each in self._periods.values():
            if each.turn(now_ms):
                self._ahead = None

    def _load(self) -> None:
        kept = self._counts.get(self._venue)
        if kept is not None and kept["of"] == self._of:
            self._periods[MONTH].load(kept)
            # A count stored before days were counted has no day; if its month began today, its calls are today's.
            self._periods[DAY].load(kept.get("day") or {**kept, "day": DAY.of(kept["since_ms"])})

    def _kept(self, more: int) -> dict[str, Any]:
        """Returns the stored form: the month's count, and the day's in it."""
        of_month, of_day = (self._periods[period].kept(more) for period in (MONTH, DAY))
        return {"of": self._of, **of_month, "day": of_day}
