"""A day of 2,000 calls, spent by the real gateway and workers and counted by the marketplace."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from core.subscription_plans import SubscriptionPlan
from drills.machine.owner import Owners
from gateway.quota_count import DAY
from strategy.config.bid import BidConfig
from tests.shapes import replace
from tests.worlds.house import House, Market

pytestmark = pytest.mark.slow

PLAN = SubscriptionPlan("Beta", 20, 20, 50_000_000, 0, 365)
PER_DAY, PER_MONTH = 2_000, 60_000
LADDER = BidConfig(slug="cats", hardcap_sats=10_000_000, bid_count=5)
FLOOR, RIVAL = 1_000_000, 400_000


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class Day:
    """A calendar day in UTC from its first minute on, in a house whose key has both quotas."""

    def __init__(self, house: House) -> None:
        self.house = house
        house.settings = replace(house.settings, satflow_monthly_calls=PER_MONTH, satflow_daily_calls=PER_DAY)
        house.open_gateway()
        self.owners = Owners(house)
        self.market = Market(house, self.owners.told, self.owners.wallets)
        house.world.limits.change(per_second=1_000, burst=1_000, monthly=10**9)
        now_ms = house.clock.now_ms
        self.ends_ms = DAY.end_ms(DAY.of(now_ms)) + 86_400_000
        house.clock.advance((self.ends_ms - 86_400_000 - now_ms) / 1000 + 20)

    def start(self, user: int, *configs: BidConfig) -> None:
        self.market.balance(user, 50_000_000)
        for config in configs:
            self.market.collection(config.slug, FLOOR, [RIVAL])
            task = self.owners.create(user, config)
            assert task is not None
            self.owners.start(task)

    def hours(self, hours: int) -> Iterator[int]:
        for hour in range(hours):
            self.house.run(3_600)
            yield hour

    def calls(self) -> int:
        """Counts the day's calls as the marketplace does."""
        return sum(int(kept["usedToday"]) for kept in self.house.world.limits.dump().values())

    def live(self, user: int) -> int:
        return sum(bid.wallet == self.owners.wallets[user] for bid in self.market.ours())

    def end_with_cancels(self) -> None:
        """Stops all tasks in the day's last hour, and has their bids cancelled."""
        for task in self.owners.tasks:
            self.owners.stop(task)
        self.house.run((self.ends_ms - self.house.clock.now_ms) / 1000 - 60)
        assert not self.market.ours()
        assert self.calls() <= PER_DAY
        assert not self.house.complaints


@contextmanager
def begun() -> Iterator[Day]:
    house = House(plan=PLAN, installation=100_000_000)
    try:
        yield Day(house)
    finally:
        house.close()


def test_one_ladder_that_wants_more_than_the_day_has_keeps_its_bids_to_the_end() -> None:
    """It would send 2,352 calls. Its reads get older; none of its bids is missing."""
    with begun() as day:
        day.start(0, LADDER)
        for hour in day.hours(23):
            assert day.live(0) == 5, hour
            assert hour > 0 or day.calls() < 0.15 * PER_DAY
        assert 0.8 * PER_DAY < day.calls() <= PER_DAY
        day.end_with_cancels()


@pytest.mark.faults
def test_several_ladders_that_want_three_times_what_the_day_has_leave_calls_for_cancels() -> None:
    with begun() as day:
        day.start(0, *(replace(LADDER, slug=f"cats-{n}") for n in range(4)))
        calls = [day.calls() for _ in day.hours(23)]
        assert calls[11] < 0.75 * PER_DAY < calls[-1], "the second half of the day has calls, too"
        day.end_with_cancels()


@pytest.mark.faults
def test_a_modest_user_keeps_a_bid_while_another_wants_far_too_much() -> None:
    with begun() as day:
        day.start(1, replace(LADDER, slug="dogs", bid_count=1, bid_expiry_minutes=120, loop_seconds=600))
        day.start(0, *(replace(LADDER, slug=f"cats-{n}") for n in range(4)))
        for hour in day.hours(23):
            assert day.live(1) == 1, hour
            assert day.calls() <= PER_DAY
        day.end_with_cancels()
