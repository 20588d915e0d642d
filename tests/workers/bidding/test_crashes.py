"""A worker killed at each point of the write path: its successor leaves no bid untracked and makes none twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from models.ledger import orders
from models.ledger.states import Order
from tests.examples import some_of
from tests.workers.bidding import crash_scenes
from tests.worlds.worker import LADDER, Crash, CrashAt, World
from workers.context import NAMES, VARIABLE


def assert_sound(world: World, task: int) -> None:
    assert world.untracked() == []
    assert max(Counter(world.market.prices).values(), default=1) == 1, "a bid was made twice"
    assert len(world.market.own_) <= 7, "two make way for what takes their place, and stand until it does"
    assert world.market.peak_sats <= 225_000
    assert orders.task_exposure(task) >= sum(world.market.prices)


@pytest.mark.parametrize(("point", "turn"), some_of(crash_scenes.HITS, __name__))
def test_a_crash_at_each_point_leaves_its_successor_a_ladder_to_mend(world: World, point: str, turn: int) -> None:
    task = world.task()
    lead_up, _ = crash_scenes.SCENES[point]
    lead_up(world, task)
    crash_scenes.crash_in_a_cycle(world, task, point, turn)
    assert_sound(world, task)

    bidder = world.bidder(task)
    for _ in range(5):
        bidder.cycle()
        assert_sound(world, task)
        world.clock.advance(31)
    wanted = crash_scenes.LOWER if lead_up is crash_scenes.let_the_floor_fall else LADDER
    missing = [wanted[turn - 1]] if point in crash_scenes.IN_DOUBT else []
    assert world.market.prices == [price for price in wanted if price not in missing]
    assert orders.task_exposure(task) == sum(wanted)

    world.clock.advance(17 * 60)
    for _ in range(3):
        bidder.cycle()
        assert_sound(world, task)
        world.clock.advance(6)
    assert world.market.prices == (crash_scenes.RENEWED if wanted is crash_scenes.LOWER else wanted)
    assert Order.select().where(Order.close_reason == "lost").count() == len(missing)
    assert Order.select().where(Order.close_reason == "filled").count() == (lead_up is crash_scenes.sell_one)


@pytest.mark.parametrize("point", ["after_settle", "after_reserve", "after_submit", "after_record"])
def test_a_crash_in_the_recovery_of_a_crash(world: World, point: str) -> None:
    task = world.task()
    crash_scenes.crash_in_a_cycle(world, task, "before_submit", 2)
    crash_scenes.crash_in_a_cycle(world, task, point, 1)
    bidder = world.bidder(task)
    for _ in range(2):
        bidder.cycle()
        assert_sound(world, task)
    assert world.market.prices == [75_000, 45_000, 30_000, 15_000]


@pytest.mark.parametrize("point", some_of(NAMES, __name__))
def test_a_worker_that_dies_at_every_turn_of_a_point_still_makes_no_mess(world: World, point: str) -> None:
    """Each successor dies the next time it comes by; what is left is put right by one that lives."""
    task = world.task()
    crash_scenes.SCENES[point][0](world, task)
    for _ in range(4):
        crash = CrashAt(point)
        try:
            world.bidder(task, crash).cycle()
        except Crash:
            assert crash.has_hit
        assert_sound(world, task)
        world.clock.advance(6)
    world.clock.advance(17 * 60)
    bidder = world.bidder(task)
    for _ in range(4):
        bidder.cycle()
        assert_sound(world, task)
        world.clock.advance(61)
    assert world.market.prices == (
        crash_scenes.RENEWED if crash_scenes.SCENES[point][0] is crash_scenes.let_the_floor_fall else LADDER
    )


def test_a_crash_after_a_bid_left_and_before_it_shows(world: World) -> None:
    task = world.task()
    crash_scenes.crash_in_a_cycle(world, task, "after_submit", 1)
    world.market.fail("own_bids", "empty")
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.open(task)[75_000] == "unknown"
    bidder.cycle()
    assert world.open(task)[75_000] == "live"
    assert world.market.prices == LADDER


@pytest.mark.parametrize(("wanted", "hits"), [("after_sign", 1), ("after_sign:3", 3)])
def test_a_named_point_kills_the_process_as_kill_9_would(wanted: str, hits: int) -> None:
    program = (
        "from workers.context import crashpoint\n"
        "for turn in range(5):\n"
        "    crashpoint('after_store')\n"
        "    print(turn, flush=True)\n"
        "    crashpoint('after_sign')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {VARIABLE: wanted},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert len(done.stdout.split()) == hits
