"""Every way in which the venue may fail at every operation of a bidding task: nothing that must hold is broken by one.

Listings have cells of their own (drills/faults/test_listing_cells.py), since they need more than one process.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drills.machine.machine import DRAINED_S, SLUGS
from drills.machine.owner import Owners
from drills.machine.promises import Watch
from models.ledger import orders
from models.ledger.states import LIVE
from models.tasks.tasks import Task
from simulator.calls import MODES
from strategy.config.bid import BidConfig
from tests.worlds.house import House, Market

pytestmark = pytest.mark.slow
READS, WRITES = ("challenge", "floors", "book", "own_bids", "balance"), ("place", "cancel")
# Each mode at one of the writes, those whose answer is lost at a place, is in CI, and every second one in `make test`;
# the others are in `make faults`.
CANCEL_IN = frozenset({"auth_401", "bad_json", "cancel_lie", "error_500", "rate_429", "refuse_400", "slow"})
CELLS = [
    pytest.param(operation, mode, marks=() if operation == often else pytest.mark.faults)
    for mode in sorted(MODES)
    for often in ["cancel" if mode in CANCEL_IN else "place"]
    for operation in (*READS, *WRITES)
]
STRIKES = {"floors": 1, "balance": 2}  # read seldom, else three
HANGS = ("timeout", "accept_then_timeout")
CATS, DOGS = SLUGS
MINUTE_S = 60
DOUBT_S = 17 * MINUTE_S  # a bid whose fate is unknown blocks its rung for as long as it may be live
WELL_S = 240  # the longest back-off and two loops


@pytest.fixture
def scene() -> Iterator[Scene]:
    found = Scene()
    yield found
    found.house.close()


class Scene:
    """Two users: one outbids and follows the floor, the other has a ladder. All is well, and both have their bids."""

    def __init__(self) -> None:
        self.house = House()
        self.owners = Owners(self.house)
        self.market = Market(self.house, self.owners.told, self.owners.wallets)
        self.watch = Watch(self.house, self.owners)
        self.floors(100_000, rivals=[50_000])
        outbids = BidConfig(CATS, bid_count=2, hardcap_sats=99_000, outbid_enabled=True, loop_seconds=20)
        ladder = BidConfig(DOGS, bid_count=3, hardcap_sats=99_000, max_bid_total=140_000, loop_seconds=30)
        self.tasks = [self.owners.create(user, config) for user, config in enumerate((outbids, ladder))]
        for task in self.started():
            self.owners.start(task)
        self.house.run(60)
        assert len(self.market.ours()) >= 4

    def started(self) -> list[int]:
        return [task for task in self.tasks if task is not None]

    def floors(self, floor: int | None, rivals: list[int]) -> None:
        for slug in SLUGS:
            self.market.collection(slug, floor, rivals)

    def end_doubt(self) -> None:
        """Goes on until no bid's fate is unknown, but no longer than that may block its rung."""
        for _ in range(DOUBT_S // MINUTE_S):
            if all(order.state == LIVE for task in self.started() for order in orders.open_orders(task)):
                return
            self.house.run(MINUTE_S)

    def is_used_up(self) -> bool:
        return all(row["count"] == 0 for row in self.house.world.faults.rows())

    def faults_of_tasks(self) -> list[str | None]:
        return [Task.get_by_id(task).last_error for task in self.started()]


@pytest.mark.thorough_cases(
    "cancel-bad_json",
    "cancel-error_500",
    "cancel-rate_429",
    "cancel-slow",
    "place-accept_twice",
    "place-late",
    "place-stale",
)
@pytest.mark.parametrize(("operation", "mode"), CELLS)
def test_what_must_hold_holds(scene: Scene, operation: str, mode: str) -> None:
    scene.market.fault(operation, mode, STRIKES.get(operation, 3), 30 if mode in HANGS else 4)
    # The floor rises, so that what a stale book shows is lower: it may keep us from bidding, never bid too much. Its
    # asks are away for a while, as only then a task wants to know whether the market has heard of its collection.
    for floor, rival in ((104_000, 55_000), (108_000, 60_000), (None, 60_000), (112_000, 65_000), (140_000, 88_000)):
        scene.floors(floor, rivals=[rival])
        scene.house.run(45)
        assert scene.watch.broken() == []
    first, *_ = scene.started()
    scene.owners.stop(first)
    scene.house.run(45)
    scene.owners.start(first)
    for rival in range(66_000, 90_000, 6_000):
        scene.floors(140_000, rivals=[rival])
        scene.house.run(45)
    assert scene.watch.broken() == []
    assert scene.is_used_up(), "the fault struck too seldom: this cell says nothing"

    # All is well again, and a key that was not accepted has been mended: both trade, and nothing is forgotten.
    scene.market.no_faults()
    for task in scene.started():
        scene.owners.start(task)
    scene.end_doubt()
    scene.floors(120_000, rivals=[50_000])
    scene.house.run(WELL_S)
    assert scene.watch.broken() == []
    assert scene.faults_of_tasks() == [None, None]
    assert {bid.slug for bid in scene.market.ours()} == set(SLUGS)
    for task in scene.started():
        scene.owners.stop(task)
    scene.house.run(DRAINED_S)
    assert scene.watch.broken_after_drain() == []
    for _ in range(30):
        scene.house.run(60)
        if not orders.tasks_with_open_orders():
            break
    assert scene.watch.broken_in_the_end() == []
