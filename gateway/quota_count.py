"""Counts a key's calls in a month and a day, and derives the pressure that makes the quota last.

The count is stored in a file, or in a table on PostgreSQL (`quota_table.py`). The stored count includes the calls until
the next write, so a crash makes it too high, never too low. A clean stop stores the exact count.

The even pace runs from the period's first call to `paced` of the quota at its end. If use is ahead of that pace:

    ahead (month)         ahead (day)     pressure    measure
    up to 3 %             up to 6 %       below 0     none: a busy day or hour does no harm
    3 % to 5 %            6 % to 10 %     below 0     people's looks are refused, so that they never slow a task down
    5 % to 8 %            10 % to 16 %    0 to 1      reads may be older and older, up to ten minutes
    8 % to 10 %           16 % to 20 %    1 to 2      new and renewed bids are refused too, a ladder's lowest first
    10 % and more         20 % and more   from 2 on   no bid is placed, nothing is listed

A day's steps are twice as wide, because 5 % of a free key's 2,000 calls are 100 and starting twenty tasks takes more.
Its even pace is lower, so that its steps also end at 95 %. A day's `paced` plus `head_start` equals a month's `paced`,
so calls spread evenly over the month never trigger a day's measures.

If several users share a key, the measures start `further` later for users within their share (`level` in `quota.py`).
Users over their share are restricted more: their looks stop at 2 % (4 % of a day), and from the last line on they may
read only their own bids and listings. Their workers' first reads may be old too, because each restart costs one.

The measures slow the calls down until use is back at the pace, whatever tasks request. Cancels and their challenges are
never refused; the last 5 % is reserved for them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from core.errors import BidkeeperError
from core.files import free_reserve, is_full


class Period(Struct, frozen=True):
    """A calendar period (UTC) for counting a key's calls; the floats are shares of the quota."""

    name: str
    spelling: str  # strftime format of its date; dates sort chronologically as text
    longest: timedelta
    paced: float
    looking: float  # the lead from which looks are refused
    looking_over_share: float
    head_start: float
    stretching: float
    refusing: float
    further: float
    spent_on_reads: float  # the use from which reads and places are refused
    spent_on_own_bids: float

    @property
    def reading_over_share(self) -> float:
        """The lead from which users over their share may read only their own bids and listings."""
        return self.head_start + self.stretching + self.refusing

    def of(self, now_ms: int) -> str:
        """Returns the date of the period that contains an epoch time: 2026-11 or 2026-11-28."""
        return datetime.fromtimestamp(now_ms / 1000, UTC).strftime(self.spelling)

    def end_ms(self, date: str) -> int:
        """Returns the epoch milliseconds at which a period ends and the next begins."""
        in_next = datetime.strptime(date, self.spelling) + self.longest
        following = datetime.strptime(in_next.strftime(self.spelling), self.spelling)
        return int(following.replace(tzinfo=UTC).timestamp()) * 1000


MONTH = Period(
    name="month",
    spelling="%Y-%m",
    longest=timedelta(days=31),
    paced=0.85,
    looking=0.03,
    looking_over_share=0.02,
    head_start=0.05,
    stretching=0.03,
    refusing=0.02,
    further=0.06,
    spent_on_reads=0.98,
    spent_on_own_bids=0.995,
)
DAY = Period(
    name="day",
    spelling="%Y-%m-%d",
    longest=timedelta(days=1),
    paced=0.75,
    looking=0.06,
    looking_over_share=0.04,
    head_start=0.10,
    stretching=0.06,
    refusing=0.04,
    further=0.12,
    spent_on_reads=0.97,
    spent_on_own_bids=0.985,
)
PERIODS = (MONTH, DAY)
SHORTEST_STRETCH_S, LONGEST_STRETCH_S = 5.0, 600.0
_MOST_RUNGS = 32  # placed at pressure 1; halved with each further 0.2


class Use(Struct, frozen=True):
    """One period's calls: `used` of `limit` since `since_ms` (the first call); the period ends at `end_ms`."""

    period: Period
    limit: int
    used: int
    since_ms: int
    end_ms: int


def ahead(use: Use, now_ms: int) -> float:
    """Returns how far use is ahead of the even pace, as a share of the quota."""
    return use.used / use.limit - _due(use, now_ms)


def room(use: Use, now_ms: int, head_start: float) -> float:
    """Returns the number of calls allowed by now, `head_start` ahead of the even pace."""
    return use.limit * (_due(use, now_ms) + head_start)


def level_in_s(use: Use, now_ms: int, allowed: float) -> float:
    """Returns the seconds until use is no more than `allowed` ahead, if no more calls are made."""
    return max(ahead(use, now_ms) - allowed, 0.0) / use.period.paced * (use.end_ms - use.since_ms) / 1000


def pressure(use: Use, now_ms: int, further: float = 0.0) -> float:
    """Returns the pressure as in the module's table, shifted by `further`; at least -2."""
    over = ahead(use, now_ms) - use.period.head_start - further
    if over < use.period.stretching:
        return max(over / use.period.stretching, -2.0)
    return 1 + (over - use.period.stretching) / use.period.refusing


def _due(use: Use, now_ms: int) -> float:
    length_ms = max(use.end_ms - use.since_ms, 1)
    return use.period.paced * min(max(now_ms - use.since_ms, 0), length_ms) / length_ms


def stretch_s(pressure: float) -> float:
    """Returns the age in seconds that answers may have even if the request asks for less; 0 without pressure.

    Pressure 0.5 gives 55 s, pressure 1 ten minutes.
    """
    if pressure <= 0:
        return 0.0
    return float(SHORTEST_STRETCH_S * (LONGEST_STRETCH_S / SHORTEST_STRETCH_S) ** min(pressure, 1.0))


def rungs(pressure: float) -> int | None:
    """Returns how many rungs from a ladder's top may have new bids; None = all. Pressure 1.4 gives 8, 1.8 gives 2."""
    if pressure < 1:
        return None
    return int(_MOST_RUNGS ** (2 - pressure)) if pressure < 2 else 0


MOST_USERS = 1_000  # calls of further users are counted without a user
BLOCK = 20  # calls between writes; after a crash the count is at most this much too high
_AHEAD_MS = 3_600_000  # a first call this far in the future was counted by a wrong clock


class Counts(Protocol):
    """A store of the counts, by venue name. Thread-safe."""

    def get(self, venue: str) -> Mapping[str, Any] | None:
        """Returns a venue's stored count, or None."""

    def put(self, venue: str, kept: Mapping[str, Any]) -> None:
        """Stores a venue's count durably; logs a failure."""


class _PeriodCount:
    """The calls of the current period, in total and by user."""

    _date: str
    _since_ms: int
    _end_ms: int
    used: int
    by_user: dict[int, int]

    def __init__(self, period: Period, now_ms: int) -> None:
        self._period = period
        self._begin(now_ms)

    def turn(self, now_ms: int) -> bool:
        """Starts a new period if the current one is over or in the future; returns whether it did.

        A clock that is set back does not restore an earlier period's quota. If the clock was over an hour ahead, the
        calls so far move to the present period, because otherwise they would count until the wrong period is over.
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
        """Continues a stored count, unless its period is over."""
        if kept[self._period.name] >= self._date:
            self._date, self._since_ms, self.used = kept[self._period.name], kept["since_ms"], kept["used"]
            self.by_user = {int(user): used for user, used in kept["users"].items()}
            self._end_ms = self._period.end_ms(self._date)

    def kept(self, more: int) -> dict[str, Any]:
        """Returns the count to store, plus `more` calls that are not made yet."""
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
    """The count of one venue's key. Thread-safe. The key's hash is stored too, so that a new key starts at zero.

    Both periods are counted even if only one has a quota, so that a quota set later includes earlier calls.
    """

    def __init__(self, counts: Counts, venue: str, key: str, now_ms: Callable[[], int], block: int = BLOCK) -> None:
        self._counts = counts
        self._venue = venue
        self._of = f"{venue} {hashlib.sha256(key.encode()).hexdigest()[:16]}"
        self._now_ms = now_ms
        self._block = block
        self._lock = threading.Lock()  # guards the numbers; never held while waiting for the disk
        self._writing = threading.Lock()  # serialises `count`, so that no call is sent before it is stored
        self._periods = {period: _PeriodCount(period, now_ms()) for period in PERIODS}
        self._ahead: int | None = 0  # stored count minus real count; None: the stored one is of an earlier period
        self._load()

    def count(self, user: int | None = None) -> None:
        """Counts a call of `user` (None = no user) that is about to be sent.

        A failure to store the count is logged and does not stop the call.
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
        """Returns the period's use by user, without calls of no user and without a few calls after a crash."""
        with self._lock:
            self._turn()
            return dict(self._periods[period].by_user)

    def close(self) -> None:
        """Stores the exact count if the stored one differs."""
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
            # A count of an older version has no `day`; if its month began today, its calls are today's.
            self._periods[DAY].load(kept.get("day") or {**kept, "day": DAY.of(kept["since_ms"])})

    def _kept(self, more: int) -> dict[str, Any]:
        of_month, of_day = (self._periods[period].kept(more) for period in (MONTH, DAY))
        return {"of": self._of, **of_month, "day": of_day}


log = logging.getLogger(__name__)


class QuotaFile:
    """The file of counts. Each venue has: `of` (venue and hash of its key), `month`, `since_ms`, `used`, `users` (calls
    by user), and the same for the day in the object `day`.

    Files of older versions may lack `day`, or hold one venue's object instead of a list.
    """

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises BidkeeperError if it exists and cannot be read."""
        self._path = path
        self._lock = threading.Lock()
        self._kept = self._load()

    def get(self, venue: str) -> Mapping[str, Any] | None:
        """Returns a venue's stored count, or None."""
        with self._lock:
            return self._kept.get(venue)

    def put(self, venue: str, kept: Mapping[str, Any]) -> None:
        """Writes a venue's count and all others' to the disk; logs a failure."""
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
        new_file = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with new_file.open("w") as file:
                json.dump({"counts": list(self._kept.values())}, file)
                file.flush()
                os.fsync(file.fileno())
            new_file.replace(self._path)
        except OSError as error:
            if is_full(error):
                free_reserve(self._path.parent)  # so that the next write succeeds
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
