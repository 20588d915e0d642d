"""Crashes at every named point: the successor mends what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from models.ledger import orders
from models.ledger.states import Order
from tests.examples import some_of
from tests.worlds.worker import LADDER, Crash, CrashAt, World, ask
from workers.context import NAMES, VARIABLE

LOWER = [52_000, 41_000, 30_000, 21_000, 11_000]
RENEWED = [52_000, 41_000, 31_000, 21_000, 11_000]  # 30,000 stood for its rung until it had to be renewed
# After these the signed bid may be out for all the ledger knows, though it never left: its slot stays blocked.
IN_DOUBT = ("after_sign", "after_store", "before_submit")


def crash_in_a_cycle(world: World, task: int, point: str, turn: int) -> None:
    crash = CrashAt(point, turn)
    with pytest.raises(Crash):
        world.bidder(task, crash).cycle()
    assert crash.has_hit


def place(world: World, task: int) -> None:
    pass


def let_the_floor_fall(world: World, task: int) -> None:
    world.bidder(task).cycle()
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]


def leave_one_reserved(world: World, task: int) -> None:
    crash_in_a_cycle(world, task, "after_reserve", 1)


def leave_one_submitted(world: World, task: int) -> None:
    crash_in_a_cycle(world, task, "after_submit", 1)


def sell_one(world: World, task: int) -> None:
    world.bidder(task).cycle()
    world.market.sell(75_000)


# Every point, by what leads up to it and the turns at which it comes by then: no name may be left out.
SCENES: dict[str, tuple[Callable[[World, int], None], tuple[int, ...]]] = {
    "after_free": (leave_one_reserved, (1,)),
    "after_adopt": (leave_one_submitted, (1,)),
    "after_fill": (sell_one, (1,)),
    "after_settle": (let_the_floor_fall, (1, 2)),
    "after_plan": (let_the_floor_fall, (1,)),
    "after_cancelling": (let_the_floor_fall, (1, 4)),
    "after_cancel": (let_the_floor_fall, (1, 2)),
    "before_replace": (let_the_floor_fall, (1,)),
    "after_reserve": (place, (1, 3, 5)),
    "after_build": (place, (1, 3, 5)),
    "after_sign": (place, (1, 3, 5)),
    "after_store": (place, (1, 3, 5)),
    "before_submit": (place, (1, 3, 5)),
    "after_submit": (place, (1, 3, 5)),
    "after_record": (place, (1, 3, 5)),
    "before_break": (let_the_floor_fall, (1,)),
    "after_replace": (let_the_floor_fall, (1,)),
}
HITS = [(point, turn) for point in NAMES for turn in SCENES[point][1]]


def assert_sound(world: World, task: int) -> None:
    assert world.untracked() == []
    assert max(Counter(world.market.prices).values(), default=1) == 1, "a bid was made twice"
    assert len(world.market.own_) <= 7, "two make way for what takes their place, and stand until it does"
    assert world.market.peak_sats <= 225_000
    assert orders.task_exposure(task) >= sum(world.market.prices)


@pytest.mark.parametrize(("point", "turn"), some_of(HITS, __name__))
def test_a_crash_at_each_point_leaves_its_successor_a_ladder_to_mend(world: World, point: str, turn: int) -> None:
    task = world.task()
    lead_up, _ = SCENES[point]
    lead_up(world, task)
    crash_in_a_cycle(world, task, point, turn)
    assert_sound(world, task)

    bidder = world.bidder(task)
    for _ in range(5):
        bidder.cycle()
        assert_sound(world, task)
        world.clock.advance(31)
    wanted = LOWER if lead_up is let_the_floor_fall else LADDER
    missing = [wanted[turn - 1]] if point in IN_DOUBT else []
    assert world.market.prices == [price for price in wanted if price not in missing]
    assert orders.task_exposure(task) == sum(wanted)

    world.clock.advance(17 * 60)
    for _ in range(3):
        bidder.cycle()
        assert_sound(world, task)
        world.clock.advance(6)
    assert world.market.prices == (RENEWED if wanted is LOWER else wanted)
    assert Order.select().where(Order.close_reason == "lost").count() == len(missing)
    assert Order.select().where(Order.close_reason == "filled").count() == (lead_up is sell_one)


@pytest.mark.parametrize("point", ["after_settle", "after_reserve", "after_submit", "after_record"])
def test_a_crash_in_the_recovery_of_a_crash(world: World, point: str) -> None:
    task = world.task()
    crash_in_a_cycle(world, task, "before_submit", 2)
    crash_in_a_cycle(world, task, point, 1)
    bidder = world.bidder(task)
    for _ in range(2):
        bidder.cycle()
        assert_sound(world, task)
    assert world.market.prices == [75_000, 45_000, 30_000, 15_000]


@pytest.mark.parametrize("point", some_of(NAMES, __name__))
def test_a_worker_that_dies_at_every_turn_of_a_point_still_makes_no_mess(world: World, point: str) -> None:
    """Each successor dies the next time it comes by; what is left is put right by one that lives."""
    task = world.task()
    SCENES[point][0](world, task)
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
    assert world.market.prices == (RENEWED if SCENES[point][0] is let_the_floor_fall else LADDER)


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
