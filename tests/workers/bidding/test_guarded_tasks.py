"""A task's guards in whole cycles: what keeps it from bidding survives a new worker."""

from __future__ import annotations

from decimal import Decimal

import pytest

from models.ledger import orders
from models.ledger.limits import exposure_limits_of
from models.ledger.orders import SoldInto
from models.tasks import cycles
from strategy.config.bid import ActiveHours, BidLevel, FloorDrop
from strategy.reasons import Reason
from tests.shapes import replace
from tests.workers.bidding.test_own_ceilings import MINUTE_MS, limits, order
from tests.worlds.worker import CATS, START_MS, World, ask, seconds
from workers.context import BadConfig

HOUR_MS = 60 * MINUTE_MS


def test_levels_of_ones_own_are_placed(world: World) -> None:
    levels = tuple(BidLevel(Decimal(at), count) for at, count in (("0.9", 1), ("0.85", 2), ("0.7", 2)))
    world.begun(replace(CATS, hardcap_sats=88_000, bid_percent_high=Decimal("0.9"), bid_levels=levels, bid_count=5))
    assert world.market.prices == [88_000, 85_000, 85_000, 70_000, 70_000]


def test_a_fallen_floor_takes_all_bids_away_for_two_hours_whoever_works(world: World) -> None:
    task, bidder = world.begun(replace(CATS, pause_on_floor_drop=FloorDrop(Decimal("0.10"), 60, 120)))
    assert world.market.prices != []
    world.market.asks_ = [ask(89_000)]
    world.later(40 * 60, bidder)
    fallen_ms = world.clock()
    world.later(30, bidder)
    assert world.market.prices == []
    assert "skipped 5 floor_drop" in world.action(task)
    for minutes in (1, 118):
        world.clock.advance(minutes * 60)
        world.bidder(task).cycle()
        assert world.market.prices == []
    world.clock.advance((fallen_ms + 2 * HOUR_MS - world.clock()) / 1000)
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.market.prices[0] == 66_000


def test_a_floor_beyond_the_bounds_keeps_a_fixed_range_from_bidding(world: World) -> None:
    bounds = (Decimal(101_000), Decimal(150_000))
    fixed = replace(CATS, bid_mode="fixed", bid_count=1, bid_fixed_high=52_000, only_while_floor_between=bounds)
    task, bidder = world.begun(fixed)
    assert (world.market.prices, "skipped 1 floor_guard" in world.action(task)) == ([], True)
    world.market.asks_ = [ask(102_000)]
    world.later(61, bidder)
    assert world.market.prices == [], "102,010 is one percent inside"
    world.market.asks_ = [ask(102_010)]
    world.later(61, world.bidder(task))
    assert world.market.prices == [52_000]
    key = ("ordinals", "cats", "floor")
    assert cycles.history(*key, world.clock()).samples == 3, "a guarded task samples the floor in any mode"


def test_a_spike_that_was_clamped_is_outside_the_bounds_all_the_same(world: World) -> None:
    task = world.task(replace(CATS, bid_count=1, only_while_floor_between=(Decimal(80_000), Decimal(130_000))))
    for minute in range(1, 12):
        cycles.record_reference("ordinals", "cats", "floor", Decimal(100_000), world.clock() - minute * MINUTE_MS)
    bidder = world.bidder(task)
    for floor, prices in ((180_000, []), (128_701, []), (128_700, [93_000])):
        world.market.asks_ = [ask(floor)]
        world.later(61, bidder)
        assert world.market.prices == prices, f"at {floor}, where bids would follow 125,000 at most"


def test_beyond_its_hours_a_task_has_no_bids(world: World) -> None:
    # START_MS in UTC decides which hours are now.
    minute = START_MS // MINUTE_MS % 1_440
    begin, end = (f"{m // 60 % 24:02d}:{m % 60:02d}" for m in (minute, minute + 10))
    task, bidder = world.begun(replace(CATS, active_hours=ActiveHours("UTC", begin, end)))
    assert world.market.prices != []
    world.later(10 * 60, bidder)
    world.later(30, bidder)
    assert (world.market.prices, "skipped 5 active_hours" in world.action(task)) == ([], True)


@pytest.mark.parametrize("loop_s", [None, 3_600])
def test_a_task_wakes_when_its_hours_end_however_long_its_loop(world: World, loop_s: int | None) -> None:
    minute = START_MS // MINUTE_MS % 1_440
    begin, end = (f"{m // 60 % 24:02d}:{m % 60:02d}" for m in (minute, minute + 1))
    config = replace(CATS, active_hours=ActiveHours("UTC", begin, end), loop_seconds=loop_s, bid_expiry_minutes=180)
    task, bidder = world.begun(config)
    assert world.market.prices != []
    for _ in range(5):
        world.clock.advance(seconds(bidder.cycle()))
    bidder.cycle()
    assert (world.clock() - START_MS) / 1000 < 180
    assert (world.market.prices, "skipped 5 active_hours" in world.action(task)) == ([], True)


def test_an_unknown_zone_is_a_config_that_cannot_be_run(world: World) -> None:
    task = world.task(replace(CATS, active_hours=ActiveHours("Mars/Olympus", "08:00", "09:00")))
    with pytest.raises(BadConfig, match="time zone"):
        world.bidder(task).cycle()
    assert "active_hours: tz must be" in str(world.row(task).last_error)


def test_a_days_fills_and_sats_are_those_of_the_last_24_hours(world: World) -> None:
    task = world.task()
    for hour, price in enumerate((10_000, 20_000, 40_000)):
        filled_ms = START_MS + hour * HOUR_MS
        assert orders.fill(order(world, task, price, filled_ms), filled_ms, SoldInto(f"sale-{hour}"))

    def left(now_ms: int) -> tuple[int | None, int | None]:
        found = limits(world, task, now_ms, max_fills_per_day=5, spend_cap_per_day_sats=100_000)
        return found.fills_left_today, found.spend_left_today_sats

    assert left(START_MS + 3 * HOUR_MS) == (2, 30_000)
    assert left(START_MS + 24 * HOUR_MS - 1) == (2, 30_000)
    assert left(START_MS + 24 * HOUR_MS) == (3, 40_000)
    assert left(START_MS + 26 * HOUR_MS) == (5, 100_000)
    assert limits(world, task).fills_left_today is None and limits(world, task).spend_left_today_sats is None


def test_the_days_limits_hold_when_a_bid_is_reserved(world: World) -> None:
    plan = world.settings.plans["beta"]
    config = replace(CATS, max_fills=4, max_fills_per_day=2, spend_cap_per_day_sats=90_000)
    found = limits(world, world.task(), max_fills=4, max_fills_per_day=2, spend_cap_per_day_sats=90_000)
    ceilings = exposure_limits_of(config, plan, found, 0, 0)
    assert (ceilings.fills, ceilings.task) == (2, 90_000)


def test_a_task_ends_its_day_after_so_many_fills_and_goes_on_a_day_later(world: World) -> None:
    task, bidder = world.begun(replace(CATS, max_fills_per_day=1, pause_after_fill_seconds=0))
    assert world.market.prices == [75_000]
    world.market.sell(75_000)
    world.later(61, bidder)
    assert (world.market.prices, "skipped 5 max_fills_per_day" in world.action(task)) == ([], True)
    assert "maxFillsPerDay (1)" in str(world.row(task).last_error)
    world.clock.advance(86_400)
    world.bidder(task).cycle()
    assert world.market.prices == [75_000]


@pytest.mark.parametrize("pause_s", [0, 60, 3_600])
def test_the_pause_after_a_fill_is_the_tasks_own(world: World, pause_s: int) -> None:
    task = world.task()
    assert orders.fill(order(world, task, 50_000, START_MS), START_MS, SoldInto("sale"))

    def hold(after_s: int) -> Reason | None:
        return limits(world, task, START_MS + after_s * 1000, pause_after_fill_seconds=pause_s).hold

    assert [hold(pause_s - 1) if pause_s else None, hold(pause_s)] == [Reason.FILL_PAUSE if pause_s else None, None]
