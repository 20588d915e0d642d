"""Local time in a time zone. The zones' data are the system's; nothing is loaded before somebody asks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MINUTE_MS = 60_000


def is_zone(name: str) -> bool:
    """Tells whether this system knows a time zone of this name."""
    try:
        _zone(name)
    except (ValueError, OSError, KeyError):  # no such key, or a folder of zones
        return False
    return True


def is_between(zone: str, begin: str, end: str, now_ms: int) -> bool:
    """Tells whether clocks in the zone show a time from `begin` on and before `end` ("22:00", "06:30").

    If `end` is the earlier one the hours go past midnight. Where clocks are set back, an hour comes twice and counts
    twice; one that is skipped does not come at all. Raises KeyError (ZoneInfoNotFoundError) for an unknown zone.
    """
    shown = datetime.fromtimestamp(now_ms // 1000, UTC).astimezone(_zone(zone)).strftime("%H:%M")
    if begin < end:
        return begin <= shown < end
    return shown >= begin or shown < end


def next_change_ms(zone: str, begin: str, end: str, now_ms: int, within_ms: int) -> int | None:
    """Returns when `is_between` next changes its answer, in whole minutes; None if not within this time."""
    now = is_between(zone, begin, end, now_ms)
    first = (now_ms // MINUTE_MS + 1) * MINUTE_MS
    minutes = range(first, now_ms + within_ms + 1, MINUTE_MS)
    return next((ms for ms in minutes if is_between(zone, begin, end, ms) is not now), None)


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # most workers never need it

    return ZoneInfo(name)
