"""Reads while nothing moves, and no action on values that were read too long ago."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from core.subscription_plans import SubscriptionPlan
from drills.machine.owner import Owners
from models.ledger import orders
from models.tasks import tasks
from models.users import HALT
from strategy import decision
from strategy.config.bid import BidConfig
from tests.shapes import replace
from tests.worlds.house import House, Market

PLAN = SubscriptionPlan("Beta", 40, 20, 50_000_000, 0, 365)
CATS = BidConfig(slug="cats", hardcap_sats=10_000_000, bid_count=2, bid_expiry_minutes=120)
OFTEN = replace(CATS, loop_seconds=30)
FLOOR = 1_000_000
HALF_HOUR_S = 1_800


class Home:
    """A house with one user's tasks on a calm market."""

    def __init__(self, *configs: BidConfig) -> None:
        self.house = House(plan=PLAN, installation=100_000_000)
        self.owners = Owners(self.house)
        self.market = Market(self.house, self.owners.told, self.owners.wallets)
        self.market.balance(0, 50_000_000)
        for config in configs:
            self.market.collection(config.slug, FLOOR, [])
            task = self.owners.create(0, config)
            assert task is not None
            self.owners.start(task)
        self.task = self.owners.tasks[0]

    def reads(self, seconds: float) -> Counter[str]:
        """Counts the reads in the next `seconds`, by operation."""
        before = self._counts()
        self.house.run(seconds)
        return self._counts() - before

    def _counts(self) -> Counter[str]:
        return Counter({name: sum(keys.values()) for name, keys in self.house.world.counts.rows().items()})

    def prices(self) -> list[int]:
        """Of our live bids, highest first."""
        return sorted((bid.price for bid in self.market.ours()), reverse=True)

    def action(self) -> str:
        return str(tasks.with_owner(self.task).last_cycle_action)


@pytest.fixture
def home(request: pytest.FixtureRequest) -> Iterator[Home]:
    """With the configs of the test's parameter, else one task in cycles of 30 s."""
    logging.disable(logging.WARNING)
    made = Home(*getattr(request, "param", [OFTEN]))
    made.house.run(95)
    yield made
    made.house.close()
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("home", [[OFTEN, replace(OFTEN, slug="dogs")]], indirect=True)
@pytest.mark.slow
def test_floors_are_read_each_cycle_asks_every_ten_minutes_and_own_bids_every_second_one(home: Home) -> None:
    home.reads(600)
    read = home.reads(HALF_HOUR_S)
    assert (read["book"], read["own_bids"]) == (6, 30)
    assert 57 <= read["floors"] <= 60


@pytest.mark.slow
def test_a_collection_alone_has_its_asks_read_in_each_cycle(home: Home) -> None:
    home.reads(600)
    read = home.reads(HALF_HOUR_S)
    assert (read["book"], read["own_bids"], read["floors"]) == (60, 30, 0)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("minutes", [10, pytest.param(30, marks=pytest.mark.faults)])
@pytest.mark.parametrize("home", [[replace(OFTEN, slug=f"cats-{n}", bid_count=1) for n in range(20)]], indirect=True)
def test_twenty_plain_tasks_ask_for_their_floors_in_one_call(home: Home, minutes: int) -> None:
    """2,520 reads an hour, were each slug's asks and the wallet's bids read in every cycle."""
    home.reads(600)
    read = home.reads(60 * minutes)
    assert sum(read[name] for name in ("book", "own_bids", "floors")) <= 420 * minutes / 60


def test_a_floor_that_moves_is_seen_in_the_next_cycle(home: Home) -> None:
    assert home.prices()[0] == 750_000
    for floor, top in ((800_000, 600_000), (1_200_000, 900_000)):
        home.house.run(61)  # bids younger than a minute are not replaced
        home.market.collection("cats", floor, [])
        home.house.run(61)
        assert home.prices()[0] == top


def test_a_fill_is_seen_within_two_cycles_and_nothing_takes_its_place_at_once(home: Home) -> None:
    home.house.run(300)
    home.market.sell(0)
    home.house.run(62)
    assert orders.count_open(home.task) == 1
    assert "fill_pause" in home.action()


@pytest.mark.parametrize("cycles", [1, 2])
def test_before_anything_is_done_own_bids_are_read(home: Home, cycles: int) -> None:
    """Whichever of two quiet cycles comes next: a fill that nobody has seen yet keeps all from being placed."""
    home.house.run(300 + 30 * cycles)
    home.market.sell(0)
    home.market.collection("cats", 1_200_000, [])
    home.house.run(31)
    assert home.action().startswith("filled 1, placed 0")


@pytest.mark.parametrize("home", [[CATS]], indirect=True)
def test_cycles_come_less_often_until_something_moves(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "_STEPS", ((300_000, 4), (150_000, 2)))
    home.house.run(600)
    assert home.reads(HALF_HOUR_S)["own_bids"] == 15

    home.market.collection("cats", 1_100_000, [])
    home.house.run(121)

    assert home.prices()[0] == 825_000
    read = home.reads(120)
    assert read["floors"] + read["book"] >= 4


@pytest.mark.parametrize("home", [[CATS]], indirect=True)
def test_control_is_heard_within_half_a_minute_however_seldom_cycles_are(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision, "_STEPS", ((60_000, 4),))
    home.house.run(600)
    assert len(home.prices()) == 2
    for after_s in (5, 35, 65):
        home.house.run(120 + after_s)
        home.owners.control("task", 0, HALT)
        home.house.run(33)
        assert home.prices() == []
        home.owners.control("task", 0, "run")
        home.house.run(200)
        assert len(home.prices()) == 2
