"""A worker killed at each point of the write path: its successor leaves no bid untracked and makes none twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from models import orders
from models.orders import Order
from tests.workers_cycle.fakes import ask
from tests.workers_cycle.world import Crash, CrashAt, World
from workers.crashpoints import NAMES, VARIABLE

LADDER = [75_000, 60_000, 45_000, 30_000, 15_000]
LOWER = [52_000, 41_000, 30_000, 21_000, 11_000]
# After these the signed bid may be out for all the ledger knows, though it never left: its slot stays blocked.
IN_DOUBT = ("after_sign", "after_store", "before_submit")


def crash_in_a_cycle(world: World, task: int, point: str, turn: int) -> None:
    crash = CrashAt(point, turn)
    with pytest.raises(Crash):
        world.bidder(task, crash).cycle()
    assert crash.has_hit


def assert_sound(world: World, task: int) -> None:
    assert world.untracked() == []
    assert max(Counter(world.market.prices).values(), default=1) == 1, "a bid was made twice"
    assert len(world.market.bids) <= 5
    assert orders.task_exposure(task) >= sum(world.market.prices)


@pytest.mark.parametrize("turn", [1, 3, 5])
@pytest.mark.parametrize("point", [name for name in NAMES if not name.startswith(("after_cancel",))])
def test_a_crash_while_placing(world: World, point: str, turn: int) -> None:
    task = world.task()
    crash_in_a_cycle(world, task, point, turn)
    assert_sound(world, task)

    bidder = world.bidder(task)
    for _ in range(3):
        bidder.cycle()
        assert_sound(world, task)
        world.clock.advance(30)
    missing = [LADDER[turn - 1]] if point in IN_DOUBT else []
    assert world.market.prices == [price for price in LADDER if price not in missing]
    assert orders.task_exposure(task) == 225_000

    world.clock.advance(17 * 60)
    for _ in range(3):
        bidder.cycle()
        assert_sound(world, task)
    assert world.market.prices == LADDER
    assert Order.select().where(Order.close_reason == "lost").count() == len(missing)


@pytest.mark.parametrize("turn", [1, 4])
@pytest.mark.parametrize("point", ["after_cancelling", "after_cancel"])
def test_a_crash_while_cancelling(world: World, point: str, turn: int) -> None:
    task = world.task()
    world.bidder(task).cycle()
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]
    crash_in_a_cycle(world, task, point, turn)
    assert_sound(world, task)

    bidder = world.bidder(task)
    for _ in range(3):
        bidder.cycle()
        assert_sound(world, task)
        world.clock.advance(30)
    assert world.market.prices == LOWER
    assert sorted(world.open(task)) == sorted(LOWER)


@pytest.mark.parametrize("point", ["after_reserve", "after_submit", "after_record"])
def test_a_crash_in_the_recovery_of_a_crash(world: World, point: str) -> None:
    task = world.task()
    crash_in_a_cycle(world, task, "before_submit", 2)
    crash_in_a_cycle(world, task, point, 1)
    bidder = world.bidder(task)
    for _ in range(2):
        bidder.cycle()
        assert_sound(world, task)
    assert world.market.prices == [75_000, 45_000, 30_000, 15_000]


def test_a_crash_after_a_bid_left_and_before_it_shows(world: World) -> None:
    task = world.task()
    crash_in_a_cycle(world, task, "after_submit", 1)
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
        "from workers.crashpoints import crashpoint\n"
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
