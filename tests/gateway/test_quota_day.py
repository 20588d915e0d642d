"""Days of a key with 2,000 calls a day and 60,000 a month, on a clock that the test moves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from gateway import app
from gateway.quota import Priority, Quota, QuotaRestraint
from gateway.quota_count import DAY, MONTH, Period, Use, pressure
from markets.base import RateLimited, Refused
from tests.clock import Clock
from tests.gateway.test_quota_month import Abuser, Month, play

DAY_MS, MINUTE_MS = 86_400_000, 60_000
NOVEMBER, MIDNIGHT = (int(datetime(2026, 11, day, tzinfo=UTC).timestamp()) * 1000 for day in (1, 15))
REAL = Settings(market="satflow", satflow_url="https://satflow.example/v1", satflow_api_key="k", unisat_api_key="key")
PER_DAY = 2_000
EACH_MINUTE = {"slugs": 1, "bid_s": 1_800}  # with five bids some 4,500 calls a day
MODEST = {"ladders": [2], "slugs": 1, "every": 15, "bid_s": 7_200}  # some 370 calls a day
Make = Callable[..., Month]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(MIDNIGHT)
    monkeypatch.setattr(app, "now_ms", clock)
    return clock


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Make:
    """Makes users' tasks at UniSat, whose key has used `used` calls since the first of the month."""

    def make(kind: type[Month] = Month, quota: Quota | None = None, used: int = 20_000, **given: Any) -> Month:
        settings = Settings(**{name: getattr(REAL, name) for name in _GIVEN}, data_dir=tmp_path)
        if quota is None:
            key = hashlib.sha256(b"key").hexdigest()[:16]
            kept = {"of": f"unisat {key}", "month": "2026-11", "since_ms": NOVEMBER, "used": used, "users": {}}
            settings.quota_file.write_text(json.dumps({"counts": [kept]}))
            quota = app.quotas(settings)["unisat"]
        return kind(quota, clock, QuotaRestraint(quota), clock.now_ms, **given)

    return make


_GIVEN = ("market", "satflow_url", "satflow_api_key", "unisat_api_key")


def of_today(month: Month) -> int:
    return int(month.quota.status()["day"]["used"])


def play_a_day(*months: Month) -> None:
    """Plays to the last minute before midnight."""
    play(*months, until_ms=MIDNIGHT + DAY_MS - 60 * MINUTE_MS)
    for _ in range(59):
        for month in months:
            copy_context().run(month.cycle)
        months[0].clock.now_ms += MINUTE_MS


def test_a_day_ahead_of_the_months_pace_ends_within_the_days_quota_and_its_cancels_go_out(make: Make) -> None:
    """These tasks want 2,600 calls, which would take the key from 1.4 % to 2.9 % ahead of the month's pace."""
    due = int(0.85 * 60_000 * 14 / 30)
    month = make(used=due + 840, ladders=[5], slugs=1, every=2, bid_s=1_800)

    play_a_day(month)

    assert 1_700 < month.used <= PER_DAY
    left = PER_DAY - month.used
    for _ in range(5):
        month._call(Priority.CANCEL, 2)
    assert left >= 40 and month.used <= PER_DAY


def test_a_spent_day_refuses_all_but_cancels_until_midnight(make: Make, clock: Clock) -> None:
    month = make(used=20_000)
    for _ in range(PER_DAY):
        month.quota.count(1)
    with pytest.raises(Refused, match="the day's quota of calls runs short: nothing is placed") as refused:
        month.quota.permit_place(0, 1)
    assert refused.value.code == "quota"
    for priority in (Priority.PLACE, Priority.REST, Priority.OWN_BIDS):
        with pytest.raises(RateLimited, match="the day's quota of calls is used up"):
            month.quota.permit(priority, 1)
    with pytest.raises(RateLimited, match="the day's calls are used faster than they last"):
        month.quota.permit(Priority.LOOKUP, 1)
    month.quota.permit(Priority.CANCEL, 1)

    clock.now_ms = MIDNIGHT + DAY_MS
    for priority in Priority:
        month.quota.permit(priority, 1)
    month.quota.permit_place(9, 1)
    assert (month.quota.stretch_s(1), month.quota.rungs(1), of_today(month)) == (0, None, 0)


def test_the_tightest_period_sets_the_measures(make: Make) -> None:
    month = make(used=60_000)
    with pytest.raises(RateLimited, match="the month's quota of calls is used up"):
        month.quota.permit(Priority.REST)
    assert (month.quota.stretch_s(), month.quota.rungs()) == (600, 0)
    assert month.quota.status()["left"] == 0 and month.quota.status()["day"]["left"] == PER_DAY


@pytest.mark.parametrize("period", [MONTH, DAY])
def test_the_steps_leave_the_last_calls_to_cancels(period: Period) -> None:
    assert period.paced + period.reading_over_share == pytest.approx(0.95)
    assert 0 < period.looking_over_share < period.looking < period.head_start
    assert 0.95 + period.refusing / 4 < period.spent_on_reads < period.spent_on_own_bids <= 1


def test_calls_spread_evenly_over_a_month_never_meet_the_measures_of_a_day() -> None:
    for minute in range(24 * 60):
        now_ms = MIDNIGHT + minute * MINUTE_MS
        used = int(MONTH.paced * PER_DAY * minute / (24 * 60))
        assert pressure(Use(DAY, PER_DAY, used, MIDNIGHT, MIDNIGHT + DAY_MS), now_ms) <= 1e-9, minute


@pytest.mark.parametrize("hour", [0, 12, 23])
def test_a_start_of_twenty_tasks_makes_no_read_older_and_refuses_nothing(make: Make, clock: Clock, hour: int) -> None:
    """Each reads a book, the wallet's bids are read, and five bids are placed."""
    clock.now_ms += hour * 3_600_000
    month = make(used=20_000 + hour * 50, ladders=[5] * 20, slugs=20)
    month._read("own_bids", "own_bids", 0)
    for slug in range(20):
        month._read("asks", f"asks {slug}", 3)
        for rung in range(5):
            month.quota.permit_place(rung, 1)
            month._call(Priority.PLACE)
    assert month.used == 20 * 6 + 1
    assert (month.first, month.quota.stretch_s(1), month.quota.rungs(1)) == ({}, 0, None)


@pytest.mark.slow
@pytest.mark.parametrize("ladders", [[5], [5] * 3 + [0] * 17, [1] * 30])
def test_days_of_one_task_and_of_many_last_to_their_end(make: Make, ladders: list[int]) -> None:
    month = make(used=20_000, ladders=ladders, **EACH_MINUTE)
    for day in range(3):
        before, first = month.used, MIDNIGHT + day * DAY_MS
        month.first.clear()
        play(month, until_ms=first + DAY_MS // 2)
        assert month.used - before < 0.7 * PER_DAY, "the second half has calls, too"
        assert "stretched" not in month.first or month.first["stretched"] > first + 20 * MINUTE_MS
        placed = sum(month.placed.values())
        play(month, until_ms=first + DAY_MS)
        assert 0.85 * PER_DAY < month.used - before <= PER_DAY
        assert sum(month.placed.values()) > placed or max(ladders) == 1
        assert PER_DAY - (month.used - before) >= 40  # left for cancels
    assert month.in_vain < month.cancelled / 10


@pytest.mark.slow
def test_a_user_with_far_too_many_bids_costs_a_modest_one_none(make: Make, clock: Clock) -> None:
    alone = make(**MODEST)
    play_a_day(alone)
    clock.now_ms = MIDNIGHT
    modest = make(user=2, **MODEST)
    greedy = make(quota=modest.quota, user=1, ladders=[10] * 3, **EACH_MINUTE)

    play_a_day(modest, greedy)

    assert modest.first == {} and modest.placed == alone.placed
    assert 0.85 * PER_DAY < of_today(modest) <= PER_DAY
    assert 9 in greedy.refused and greedy.cancelled > 0


@pytest.mark.slow
def test_a_user_who_looks_without_end_costs_a_modest_one_no_bid(make: Make, clock: Clock) -> None:
    alone = make(**MODEST)
    play_a_day(alone)
    clock.now_ms = MIDNIGHT
    modest = make(user=2, **MODEST)
    abuser = make(Abuser, quota=modest.quota, user=3)

    play_a_day(modest, abuser)

    assert modest.placed == alone.placed and modest.refused == set()
    assert of_today(modest) <= PER_DAY
