"""Points at which a worker is killed, what leads up to each, and the ladders that are to stand at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.worlds.worker import Crash, CrashAt, World, ask
from workers.context import NAMES

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
