"""The pace that makes a month's calls last: pure arithmetic on how far use is ahead of an even pace.

From the first call of the month the even pace leads to PACED of the quota at its end. Use may be ahead of it:

    ahead, of the quota     pressure    what is done
    up to 3 %               below 0     nothing: a busy day does no harm
    3 % to 5 %              below 0     people's looks are refused: they never slow a task down
    5 % to 8 %              0 to 1      reads may be older and older, up to ten minutes
    8 % to 10 %             1 to 2      new and renewed bids are refused too, a ladder's lowest rungs first
    10 % and more           from 2 on   no bid is placed, nothing is listed

Where several users share a key, those within their share of it (`shares.py`) come into this table 6 % later. Those
beyond it may not read at all from 10 % on, but for their own bids and listings, and their looks stop at 2 % already.
Their workers' first reads of these get older like all others, since each restart costs one.

The measures at one pressure slow the calls down until use is level with the pace, whatever tasks want. Cancels and
their challenges are never refused; PACED and 10 % leave the last 5 % to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

PACED = 0.85
LOOKING, LOOKING_OVER_SHARE = 0.03, 0.02  # shares of the quota by which use is ahead when looks are refused
READING_OVER_SHARE = 0.10
HEAD_START, STRETCHING, REFUSING = 0.05, 0.03, 0.02  # shares of the quota
SPENT_ON_READS, SPENT_ON_OWN_BIDS = 0.98, 0.995  # shares of the quota from which such reads are refused
SHORTEST_STRETCH_S, LONGEST_STRETCH_S = 5.0, 600.0
_MOST_RUNGS = 32  # placed at pressure 1; half as many with each further fifth


@dataclass(frozen=True, slots=True)
class Use:
    """One month's calls: `used` of `limit` between `since_ms` (the first call) and now; the month ends at `end_ms`."""

    limit: int
    used: int
    since_ms: int
    end_ms: int


def month_of(now_ms: int) -> str:
    """Returns the calendar month (UTC) of an epoch time: 2026-11."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m")


def end_of(month: str) -> int:
    """Returns the epoch milliseconds at which a month ends and the next begins."""
    year, number = map(int, month.split("-"))
    following = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    return int(following.timestamp()) * 1000


def ahead(use: Use, now_ms: int) -> float:
    """Returns how far use is ahead of the even pace, as a share of the quota."""
    return use.used / use.limit - _due(use, now_ms)


def room(use: Use, now_ms: int, head_start: float) -> float:
    """Returns the calls that may have been made by now."""
    return use.limit * (_due(use, now_ms) + head_start)


def level_in_s(use: Use, now_ms: int, allowed: float) -> float:
    """Returns the seconds until use is no more than `allowed` ahead, if no more calls are made."""
    return max(ahead(use, now_ms) - allowed, 0.0) / PACED * (use.end_ms - use.since_ms) / 1000


def pressure(use: Use, now_ms: int, head_start: float = HEAD_START) -> float:
    """Returns the pressure by the table above; at least -2."""
    over = ahead(use, now_ms) - head_start
    if over < STRETCHING:
        return max(over / STRETCHING, -2.0)
    return 1 + (over - STRETCHING) / REFUSING


def _due(use: Use, now_ms: int) -> float:
    length_ms = max(use.end_ms - use.since_ms, 1)
    return PACED * min(max(now_ms - use.since_ms, 0), length_ms) / length_ms


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
