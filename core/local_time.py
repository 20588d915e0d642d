"""Local time in a time zone, by the system's zone data, which is loaded at first use."""

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
    except (ValueError, OSError, KeyError):  # no such zone, or a folder of zones
        return False
    return True


def is_between(zone: str, begin: str, end: str, now_ms: int) -> bool:
    """Tells whether local time in the zone is at or after `begin` and before `end` ("22:00", "06:30").

    If `end` is earlier than `begin`, the hours extend past midnight. An hour that occurs twice, when clocks are set
    back, counts twice. Raises KeyError (ZoneInfoNotFoundError) for an unknown zone.
    """
    shown = datetime.fromtimestamp(now_ms // 1000, UTC).astimezone(_zone(zone)).strftime("%H:%M")
    if begin < end:
        return begin <= shown < end
    return shown >= begin or shown < end


def next_change_ms(zone: str, begin: str, end: str, now_ms: int, within_ms: int) -> int | None:
    """Returns the first full minute at which `is_between` changes its answer; None if not within `within_ms`."""
    now = is_between(zone, begin, end, now_ms)
    first = (now_ms // MINUTE_MS + 1) * MINUTE_MS
    minutes = range(first, now_ms + within_ms + 1, MINUTE_MS)
    return next((ms for ms in minutes if is_between(zone, begin, end, ms) is not now), None)


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # most workers never need it

    return ZoneInfo(name)
