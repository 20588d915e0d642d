"""Hours of a day in a time zone, also when its clocks are set."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from core.local_time import is_between, is_zone, next_change_ms

NIGHT, DAY = ("22:00", "06:30"), ("09:00", "17:00")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


def berlin(hours: tuple[str, str], utc: str) -> bool:
    return is_between("Europe/Berlin", *hours, ms(utc))


@pytest.mark.parametrize(
    ("hours", "utc", "is_active"),
    [
        (DAY, "2026-01-15T07:59:59", False),
        (DAY, "2026-01-15T08:00:00", True),
        (DAY, "2026-01-15T15:59:59", True),
        (DAY, "2026-01-15T16:00:00", False),
        # In summer the same local hours begin an hour earlier by UTC.
        (DAY, "2026-07-15T07:00:00", True),
        (DAY, "2026-07-15T06:59:59", False),
        (NIGHT, "2026-01-15T20:59:59", False),
        (NIGHT, "2026-01-15T21:00:00", True),
        (NIGHT, "2026-01-16T05:29:59", True),
        (NIGHT, "2026-01-16T05:30:00", False),
        # 29 March 2026: 02:00 becomes 03:00 (01:00 UTC). 02:30 does not come, 03:00 does.
        (("02:30", "03:30"), "2026-03-29T00:59:59", False),
        (("02:30", "03:30"), "2026-03-29T01:00:00", True),
        (("02:00", "03:00"), "2026-03-29T01:00:00", False),
        # 25 October 2026: 03:00 becomes 02:00 (01:00 UTC). 02:30 comes twice.
        (("02:30", "03:00"), "2026-10-25T00:30:00", True),
        (("02:30", "03:00"), "2026-10-25T01:00:00", False),
        (("02:30", "03:00"), "2026-10-25T01:30:00", True),
        (("02:30", "03:00"), "2026-10-25T02:00:00", False),
    ],
)
def test_local_hours(hours: tuple[str, str], utc: str, is_active: bool) -> None:
    assert berlin(hours, utc) is is_active


def test_zones() -> None:
    assert is_zone("UTC") and is_zone("America/New_York")
    assert not any(map(is_zone, ("", "Europe", "Mars/Olympus", "../etc/passwd", "/etc/passwd", "europe/nowhere")))


def test_the_next_change() -> None:
    zone, before = ("Europe/Berlin", *DAY), ms("2026-01-15T07:58:30")
    assert next_change_ms(*zone, before, 120_000) == ms("2026-01-15T08:00:00")
    assert next_change_ms(*zone, before, 89_000) is None
    assert next_change_ms(*zone, ms("2026-01-15T15:59:00"), 60_000) == ms("2026-01-15T16:00:00")


@pytest.mark.slow
def test_nobody_loads_zones_without_need() -> None:
    code = "import sys, workers.bidding.bidder; print('zoneinfo' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
