"""The count of a key's calls in a month and a day, kept in a file: a crash makes it too high, never too low.

The stored count is ahead of the real one: it is the count that will be reached before it is written again. A clean end
writes the exact numbers. A gateway at PostgreSQL keeps it in a table instead (`gateway/quota_table.py`)."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from core.errors import BidkeeperError
from core.files import free_reserve, is_full
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


log = logging.getLogger(__name__)


class QuotaFile:
    """The file of counts, for each venue: `of` (venue and hash of its key), `month`, `since_ms`, `used`, `users` (the
    calls by user), and `day`, an object with the same of the day.

    An older file has no `day`; one of one venue alone is just that object.
    """

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises BidkeeperError when it is there and cannot be read."""
        self._path = path
        self._lock = threading.Lock()
        self._kept = self._load()

    def get(self, venue: str) -> Mapping[str, Any] | None:
        """Returns a venue's stored count, or None."""
        with self._lock:
            return self._kept.get(venue)

    def put(self, venue: str, kept: Mapping[str, Any]) -> None:
        """Writes a venue's count to the disk, beside the others'. When that fails, it is logged."""
        with self._lock:
            self._kept[venue] = dict(kept)
            self._write()

    def _load(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self._path.read_text())
            rows = [found] if "of" in found else found["counts"]
            return {str(row["of"]).partition(" ")[0]: _checked(row) for row in rows}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise BidkeeperError(
                f"{self._path} cannot be read ({type(error).__name__}); without it the key's count begins anew"
            ) from error

    def _write(self) -> None:
        beside = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("w") as file:
                json.dump({"counts": list(self._kept.values())}, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            if is_full(error):
                free_reserve(self._path.parent)  # for the next one
            log.error("failed to write %s (%s): a crash now would forget calls", self._path, error.strerror)


def _checked(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {"of": str(row["of"]), **_period(row, MONTH)}
    return found if row.get("day") is None else found | {"day": _period(row["day"], DAY)}


def _period(row: Mapping[str, Any], period: Period) -> dict[str, Any]:
    date = str(row[period.name])
    period.end_ms(date)
    return {
        period.name: date,
        "since_ms": int(row["since_ms"]),
        "used": int(row["used"]),
        "users": {str(int(user)): int(calls) for user, calls in dict(row.get("users", {})).items()},
    }
