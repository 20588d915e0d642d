"""The effect of each class of fault on a bidding task: no single answer ends it, and none closes what is open."""

from __future__ import annotations

import pytest

from tests.fault_classes import EFFECTS, Effect
from tests.worlds.worker import World, seconds

LADDER = dict.fromkeys([75_000, 60_000, 45_000, 30_000, 15_000], "live")


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_fault_of_a_write_ends_no_task_and_backs_off_by_its_class(world: World, effect: Effect) -> None:
    task = world.task()
    bidder = world.bidder(task)
    world.market.fail("place", effect.error)
    pause_s = seconds(bidder.cycle())
    assert world.row(task).last_error_code == effect.code
    assert (pause_s <= 1) is effect.backs_off
    first = {**dict(world.closed()), **world.open(task)}[75_000]
    assert first == effect.fate
    world.later(60, bidder)
    assert len(world.market.prices) >= 4, "it continues"


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
@pytest.mark.parametrize("operation", ["own_bids", "asks"])
def test_fault_of_a_read_ends_no_task_and_closes_no_order(world: World, effect: Effect, operation: str) -> None:
    task, _ = world.begun()
    assert world.open(task) == LADDER
    world.market.fail(operation, *[effect.error] * 9)
    bidder = world.bidder(task)
    for _ in range(3):
        bidder.cycle()
        assert world.row(task).last_error_code == effect.code
    assert world.open(task) == LADDER
    world.market.script.clear()
    world.later(60, bidder)
    assert (world.row(task).last_error, world.open(task)) == (None, LADDER)
