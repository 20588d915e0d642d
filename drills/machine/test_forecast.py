"""The forecast of a month's calls, against the calls that the real parts send on a market that stands still."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

import pytest

from core.subscription_plans import SubscriptionPlan
from drills.machine.owner import Owners
from markets.venues import call_costs
from strategy import decision
from strategy.config.bid import DEFAULT_LOOP_SECONDS, BidConfig
from strategy.monthly import MONTH_S, Bidding, monthly_calls, rune_calls
from tests.shapes import replace
from tests.worlds.clockwork import VENUE
from tests.worlds.house import House, Market

pytestmark = pytest.mark.slow

COSTS = call_costs(VENUE)
PLAN = SubscriptionPlan("Beta", 20, 20, 50_000_000, 0, 365)
CATS = BidConfig(slug="cats", hardcap_sats=10_000_000, bid_count=5)
RUNE = BidConfig(slug="MODELRUNE", type="rune", hardcap_sats=10_000_000, bid_count=5, quantity=Decimal(1_000))
LONG = 120
RIVAL = 400_000
READS, WRITES = ("floors", "book", "own_bids", "sales"), ("place", "challenge", "cancel")
WITHIN = Decimal("0.03")
DAY_S = 86_400
# Every second renewal is in a turn of every fourth loop, or none, by the loop in which a task began: a forecast is the
# mean of both, 3.1 % from either.
EITHER_WAY_S = (0, DEFAULT_LOOP_SECONDS)
LADDERS = [1, 5, pytest.param(12, marks=pytest.mark.faults), pytest.param(20, marks=pytest.mark.faults)]


class Sent(NamedTuple):
    """Calls to the marketplace; `rune_asks` are those to the source of runes' asks."""

    reads: int
    writes: int
    rune_asks: int = 0


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def soon_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour and a half without a move are over with the second cycle."""
    monkeypatch.setattr(decision, "_STEPS", ((20_000, decision.MOST_LOOPS),))


def sent(configs: list[BidConfig], seconds: int, *, before_s: int, late_s: int = 0) -> Sent:
    """Counts the calls in `seconds` of one user's tasks with these configs, after they have run for `before_s`; they
    begin `late_s` after a turn.
    """
    house = House(plan=PLAN, installation=100_000_000)
    try:
        owners = Owners(house)
        market = Market(house, owners.told, owners.wallets)
        house.world.limits.change(per_second=1_000, burst=1_000, monthly=10**9)
        market.balance(0, 50_000_000)
        # Into the pause after all turns, or a ladder that is begun in one is renewed in two.
        house.clock.advance(20 + late_s)
        for config in configs:
            if config.is_rune:
                market.rune(config.slug, 100, [])
            else:
                market.collection(config.slug, 1_000_000, [RIVAL])
            task = owners.create(0, config)
            assert task is not None
            owners.start(task)
        house.run(before_s)
        before = _counted(house)
        house.run(seconds)
        calls = _counted(house) - before
        assert not house.complaints
    finally:
        house.close()
    reads = sum(calls[name] for name in READS)
    return Sent(reads, sum(calls[name] for name in WRITES), calls["rune_asks"])


def _counted(house: House) -> Counter[str]:
    """As `GET /sim/requests` tells them. The source of runes' asks is another provider than the marketplace."""
    rows = house.world.counts.rows()
    counted = Counter({operation: sum(keys.values()) for operation, keys in rows.items()})
    counted["rune_asks"] = rows.get("book", {}).get(RUNE.slug, 0)
    counted["book"] -= counted["rune_asks"]
    return counted


def agrees(
    configs: list[BidConfig],
    rounds: int,
    within: Decimal = WITHIN,
    *,
    in_all: bool = False,
    begins_s: Sequence[int] = (0,),
    alone: Decimal | None = None,
) -> None:
    """A whole number of rounds of the first of them; a day or more of all is what a month is a multiple of.

    With `in_all` reads and writes may differ where their sum does not. Each of `begins_s` after a turn is a run, and
    what is sent in all of them counts; with `alone` each of them is to agree by itself, too, within that.
    """
    tasks = [Bidding(config, config.bid_count, "me") for config in configs]
    round_s = tasks[0].round_s(COSTS)
    seconds = rounds * round_s
    runs = [sent(configs, seconds, before_s=round_s + 15, late_s=late_s) for late_s in begins_s]
    month = monthly_calls(tasks, COSTS)
    of_runes = rune_calls((task, COSTS) for task in tasks)
    for some, most in [(runs, within), *(([run], alone) for run in runs if alone)]:
        found = Sent(*map(sum, zip(*some, strict=True)))
        for what, real, told in (
            ("reads", found.reads, month.reads),
            ("writes", found.writes, month.writes),
            ("calls", found.reads + found.writes, month.reads + month.writes),
            ("asks of runes", found.rune_asks, of_runes.reads),
        ):
            if in_all and what in ("reads", "writes"):
                continue
            share = Decimal(told) * len(some) * seconds / MONTH_S
            assert abs(real - share) <= most * real, f"{what}: {real} sent, {share:.1f} told ({found})"


@pytest.mark.thorough_cases("1")
@pytest.mark.usefixtures("soon_calm")
@pytest.mark.parametrize("bids", LADDERS)
def test_a_ladder_of_the_default_life(bids: int) -> None:
    agrees([replace(CATS, bid_count=bids)], 8)


@pytest.mark.thorough_cases("1")
@pytest.mark.usefixtures("soon_calm")
@pytest.mark.parametrize("bids", LADDERS)
def test_a_ladder_of_two_hours(bids: int) -> None:
    agrees([replace(CATS, bid_count=bids, bid_expiry_minutes=LONG)], 1)


def test_a_ladder_that_outbids() -> None:
    agrees([replace(CATS, outbid_enabled=True)], 2)


@pytest.mark.thorough
def test_a_loop_of_thirty_seconds() -> None:
    agrees([replace(CATS, loop_seconds=30)], 2)


@pytest.mark.thorough
def test_a_loop_of_two_minutes() -> None:
    agrees([replace(CATS, loop_seconds=120)], 4)


@pytest.mark.thorough
@pytest.mark.usefixtures("soon_calm")
def test_a_rune() -> None:
    agrees([RUNE], 8, begins_s=EITHER_WAY_S, alone=Decimal("0.04"))


def test_tasks_of_one_wallet_share_floors_and_own_bids() -> None:
    """Two that renew in the same moment may share a read, which the forecast does not count."""
    agrees([replace(CATS, slug=slug, loop_seconds=30) for slug in ("cats", "dogs")], 3, Decimal("0.06"))


@pytest.mark.faults
@pytest.mark.usefixtures("soon_calm")
@pytest.mark.parametrize("outbids", [False, True])
@pytest.mark.parametrize("minutes", [16, LONG])
@pytest.mark.parametrize("bids", [1, 5, 12, 20])
def test_a_whole_day(bids: int, minutes: int, outbids: bool) -> None:
    """A rung that was replaced once is renewed apart from the others: some more writes, of few."""
    config = replace(CATS, bid_count=bids, bid_expiry_minutes=minutes, outbid_enabled=outbids)
    rounds = DAY_S // Bidding(config, bids).round_s(COSTS)
    agrees([config], rounds, in_all=True)


@pytest.mark.faults
@pytest.mark.usefixtures("soon_calm")
def test_a_whole_day_of_a_rune() -> None:
    agrees([RUNE], DAY_S // Bidding(RUNE, RUNE.bid_count).round_s(COSTS), begins_s=EITHER_WAY_S)
