"""A dry run reads real values and writes nothing: neither the signer nor the venue hears of it."""

from __future__ import annotations

import pytest

from markets.base import Unavailable
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from strategy.config.bid import BidConfig, dump_bid_config
from tests.shapes import replace
from tests.worlds.worker import CATS, LADDER, Crash, CrashAt, World, ask

DRY = replace(CATS, dry_run=True)


def switch(world: World, task: int, config: BidConfig) -> None:
    row = world.row(task)
    tasks.change_bidding_task(
        row, type=config.type, slug=config.slug, slug_key=config.slug, config=dump_bid_config(config)
    )


def assert_untouched(world: World) -> None:
    assert world.market.done == []
    assert world.signer.signed == {}


def test_its_ladder_is_in_the_ledger_only(world: World) -> None:
    task, bidder = world.begun(DRY)
    assert_untouched(world)
    assert world.open(task) == dict.fromkeys(LADDER, "live")
    assert world.action(task) == "dry run: placed 5, kept 0, cancelled 0"
    assert orders.task_exposure(task, dry_run=True) == 225_000
    assert (orders.exposure(world.user.id), orders.task_exposure(task)) == (0, 0)
    bidder.cycle()
    assert world.action(task) == "dry run: placed 0, kept 5, cancelled 0"


def test_it_follows_the_market_and_its_orders_expire_by_the_clock(world: World) -> None:
    task, bidder = world.begun(DRY)
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]
    bidder.cycle()
    assert sorted(world.open(task), reverse=True) == [52_000, 41_000, 30_000, 21_000, 11_000]
    assert "cancelled 4 (2 above_range, 2 surplus)" in world.action(task)

    world.market.fail("asks", Unavailable("down"))
    world.later(17 * 60, bidder)
    assert world.open(task) == {}
    assert {reason for _, reason in world.closed()} == {"cancelled", "expired"}
    assert_untouched(world)


def test_it_asks_for_our_bids_only_while_real_ones_are_open(world: World) -> None:
    _, bidder = world.begun(DRY)
    bidder.cycle()
    assert world.market.max_ages == []


def test_it_has_the_same_limits_counted_by_themselves(database: str) -> None:
    world = World(max_exposure=150_000)
    real = world.task(replace(CATS, slug="dogs"))
    dry = world.task(DRY)
    for task in (real, dry):
        world.bidder(task).cycle()
    assert world.market.prices == [75_000, 60_000, 15_000]
    assert sorted(world.open(dry), reverse=True) == [75_000, 60_000, 15_000]
    assert (orders.exposure(world.user.id), orders.exposure(world.user.id, dry_run=True)) == (150_000, 150_000)


def test_real_orders_of_a_task_that_turns_dry_are_cancelled(world: World) -> None:
    task, _ = world.begun()
    switch(world, task, DRY)
    bidder = world.bidder(task)
    world.market.fail("cancel", "lie")
    bidder.cycle()
    assert world.market.prices == [75_000], "which was not cancelled"
    assert "cancelled 4 (dry_run)" in world.action(task)
    assert orders.task_exposure(task) == 75_000
    bidder.cycle()
    assert world.market.prices == []
    assert orders.task_exposure(task) == 0
    assert orders.task_exposure(task, dry_run=True) == 225_000
    assert len(world.market.placed) == 5


def test_what_ran_dry_ends_when_the_task_turns_to_earnest(world: World) -> None:
    task, _ = world.begun(DRY)
    switch(world, task, CATS)
    world.bidder(task).cycle()
    assert world.market.prices == LADDER
    assert orders.task_exposure(task, dry_run=True) == 0
    assert orders.task_exposure(task) == 225_000


@pytest.mark.parametrize("point", ["after_reserve", "after_record", "after_plan"])
def test_a_crash_leaves_no_half_placed_order(world: World, point: str) -> None:
    task = world.task(DRY)
    with pytest.raises(Crash):
        world.bidder(task, CrashAt(point)).cycle()
    world.bidder(task).cycle()
    assert world.open(task) == dict.fromkeys(LADDER, "live")
    assert_untouched(world)


@pytest.mark.parametrize("cancel_on_stop", [True, False])
def test_a_stop_ends_it_without_asking_anybody(world: World, cancel_on_stop: bool) -> None:
    task, _ = world.begun(replace(DRY, cancel_on_stop=cancel_on_stop))
    tasks.set_desired(world.row(task), STOPPED)
    drain = world.drain(task)
    pause = drain.cycle()
    if not cancel_on_stop:
        assert pause is not None
        world.clock.advance(17 * 60)
        assert drain.cycle() is None
    assert orders.count_open(task) == 0
    assert {row.close_reason for row in Order.select()} == {"cancelled" if cancel_on_stop else "expired"}
    assert world.market.max_ages == []
    assert_untouched(world)
