"""The pace that makes a period's calls last: pure arithmetic on how far use is ahead of an even pace.

From the first call of the period the even pace leads to `paced` of the quota at its end. Use may be ahead of it:

    ahead, of the month   of the day      pressure    what is done
    up to 3 %             up to 6 %       below 0     nothing: a busy day or hour does no harm
    3 % to 5 %            6 % to 10 %     below 0     people's looks are refused: they never slow a task down
    5 % to 8 %            10 % to 16 %    0 to 1      reads may be older and older, up to ten minutes
    8 % to 10 %           16 % to 20 %    1 to 2      new and renewed bids are refused too, a ladder's lowest first
    10 % and more         20 % and more   from 2 on   no bid is placed, nothing is listed

A day's steps are twice as wide, because 5 % of a free key's 2,000 calls are 100, and starting twenty tasks takes more.
Its even pace is lower, so that the steps end at 95 % all the same. `paced` and `head_start` of a day come to the
`paced` of a month: calls that are spread evenly over the month never meet the measures of a day.

Where several users share a key, those within their share of it (`shares.py`) come into this table `further` later.
Those beyond it may not read at all from the last line on, but for their own bids and listings, and their looks stop at
2 % (4 % of a day) already. Their workers' first reads of these get older like all others, since each restart costs one.

The measures at one pressure slow the calls down until use is level with the pace, whatever tasks want. Cancels and
their challenges are never refused; the last 5 % is left to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Period:
    """A calendar period (UTC) in which a key's calls are counted, and the steps of its pace as shares of the quota."""

    name: str
    spelling: str  # of its date, as strftime has it; a later period's date sorts later
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
        """The lead from which those beyond their share read nothing but their own bids and listings."""
        return self.head_start + self.stretching + self.refusing

    def of(self, now_ms: int) -> str:
        """Returns the date of the period that an epoch time is in: 2026-11, 2026-11-28."""
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
_MOST_RUNGS = 32  # placed at pressure 1; half as many with each further fifth


@dataclass(frozen=True, slots=True)
class Use:
    """One period's calls: `used` of `limit` from `since_ms` (the first call) until now; the period ends at `end_ms`."""

    period: Period
    limit: int
    used: int
    since_ms: int
    end_ms: int


def ahead(use: Use, now_ms: int) -> float:
    """Returns how far use is ahead of the even pace, as a share of the quota."""
    return use.used / use.limit - _due(use, now_ms)


def room(use: Use, now_ms: int, head_start: float) -> float:
    """Returns the calls that may have been made by now."""
    return use.limit * (_due(use, now_ms) + head_start)


def level_in_s(use: Use, now_ms: int, allowed: float) -> float:
    """Returns the seconds until use is no more than `allowed` ahead, if no more calls are made."""
    return max(ahead(use, now_ms) - allowed, 0.0) / use.period.paced * (use.end_ms - use.since_ms) / 1000


def pressure(use: Use, now_ms: int, further: float = 0.0) -> float:
    """Returns the pressure by the table above, which begins `further` later; at least -2."""
    over = ahead(use, now_ms) - use.period.head_start - further
    if over < use.period.stretching:
        return max(over / use.period.stretching, -2.0)
    return 1 + (over - use.period.stretching) / use.period.refusing


def _due(use: Use, now_ms: int) -> float:
    length_ms = max(use.end_ms - use.since_ms, 1)
    return use.period.paced * min(max(now_ms - use.since_ms, 0), length_ms) / length_ms


def stretch_s(pressure: float) -> float:
    """Returns the age in seconds that reads may have, even if less was asked for; 0 = none.

    Pressure 0.5 gives 55 s, 1 ten minutes.
    """
    if pressure <= 0:
        return 0.0
    return float(SHORTEST_STRETCH_S * (LONGEST_STRETCH_S / SHORTEST_STRETCH_S) ** min(pressure, 1.0))


def rungs(pressure: float) -> int | None:
    """Returns how many rungs, from a ladder's top, may have new bids; None = all. Pressure 1.4 gives 8, 1.8 two."""
    if pressure < 1:
        return None
    return int(_MOST_RUNGS ** (2 - pressure)) if pressure < 2 else 0
