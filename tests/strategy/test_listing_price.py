"""The price of a first listing: modes, references, outliers, the believable market, the guard. Ticks are 1,000."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from strategy.config.listing import ListingConfig
from strategy.plan_listing import ListingInputs, foreign_prices, guard, plan_listing, without_outliers
from strategy.reasons import Reason
from tests.shapes import replace
from tests.strategy.listings import BARE, VAULT, asks, found, listed, price_of

PERCENT: dict[str, Any] = {"price_percent": Decimal("1.05")}
UNDERCUT: dict[str, Any] = {"price_mode": "undercut"}


def test_floor_times_percent() -> None:
    assert price_of(found(100_000, config=PERCENT)) == 105_000


def test_the_own_listing_is_no_floor() -> None:
    inputs = found(config=PERCENT, asks=asks(95_000, maker=VAULT) + asks(100_000))

    assert price_of(inputs) == 105_000


def test_the_minimum_holds() -> None:
    # 60,000 x 1.05 = 63,000, raised to 70,000
    decision = plan_listing(found(60_000, config={**PERCENT, "min_price_sats": 70_000}))

    assert (decision.action, decision.price, decision.reason) == ("list", 70_000, Reason.AT_MIN)


def test_the_cost_margin_and_fee_hold() -> None:
    config: dict[str, Any] = {**PERCENT, "cost_sats": 80_000, "min_margin": Decimal("0.10")}
    # 80,000 x 1.10 / 0.98 = 89,795.9..., on the grid 90,000
    assert guard(ListingConfig(**config), 20_000, 1) == 89_796
    assert price_of(found(60_000, config=config, fee_ppm=20_000)) == 90_000


def test_a_bait_ask_is_dropped_and_the_median_is_only_a_brake() -> None:
    # 20,000 is under 70 % of 98,000; max(98,000, 75,000) x 1.05 = 102,900, on the grid 103,000
    assert price_of(found(20_000, 98_000, 99_000, config=PERCENT, median_60m=100_000)) == 103_000


@pytest.mark.parametrize(
    ("config", "inputs", "price"),
    [
        # Percent: 87,300 x 1.1 = 96,030, rounded up to 97,000.
        ({"price_percent": Decimal("1.1")}, found(87_300), 97_000),
        # Exactly on the grid stays there: 87,500 x 1.2 = 105,000.
        ({"price_percent": Decimal("1.2")}, found(87_500), 105_000),
        # The market fell by half within the hour: 0.75 x 100,000 x 1.05 = 78,750 -> 79,000.
        (PERCENT, found(50_000, 51_000, median_60m=100_000), 79_000),
        # Three quarters of the median are below the floor: 76,000 x 1.05 = 79,800 -> 80,000.
        (PERCENT, found(76_000, median_60m=100_000), 80_000),
        # Trait floor: the collection's floor of 50,000 does not matter; 200,000 x 1.05 = 210,000.
        ({**PERCENT, "reference": "traitFloor"}, found(50_000, trait_asks=asks(200_000, 230_000)), 210_000),
        # Cost: 40,000 x 1.5 = 60,000, more than the cost itself.
        ({"price_percent": Decimal("1.5"), "reference": "purchase", "cost_sats": 40_000}, found(), 60_000),
        # Last sale: 123,456 x 2 = 246,912 -> 247,000.
        ({"price_percent": Decimal(2), "reference": "lastSale"}, found(last_sales=(123_456,) * 3), 247_000),
        # Below the reference, which was meant: 100,000 x 0.9.
        ({"price_percent": Decimal("0.9"), "allow_below_reference": True}, found(100_000), 90_000),
        # Fixed, off the grid: rounded up.
        ({"price_mode": "fixed", "price_sats": 123_400}, found(50_000), 124_000),
        # Fixed below cost: 100,000 is what was paid.
        ({"price_mode": "fixed", "price_sats": 90_000, "cost_sats": 100_000}, found(), 100_000),
        # A minimum off the grid is rounded up, too.
        ({**PERCENT, "min_price_sats": 70_001}, found(60_000), 71_000),
        # The higher of both guards: 50,000 x 1.2 / 0.95 = 63,157.9 -> 64,000, above the minimum 60,000.
        ({**PERCENT, "min_price_sats": 60_000, "cost_sats": 50_000, "min_margin": Decimal("0.2")},
         found(10_000, fee_ppm=50_000), 64_000),
        # ... and the other way round: 50,000 is below the minimum 60,000.
        ({**PERCENT, "min_price_sats": 60_000, "cost_sats": 50_000}, found(10_000), 60_000),
        # An item that cost nothing has no guard.
        ({**PERCENT, "cost_sats": 0}, found(10_000), 11_000),
        # Undercut by one tick, and by more.
        (UNDERCUT, found(100_000, 105_000), 99_000),
        ({**UNDERCUT, "undercut_sats": 5_500}, found(100_000), 95_000),
        # Less than a tick would be no undercutting when rounded up: 99,999 -> 100,000 is not below the ask.
        ({**UNDERCUT, "undercut_sats": 1}, found(100_000), 99_000),
        # An ask off the grid: 100,300 - 1,000 = 99,300 -> 100,000, which is below 100,300.
        (UNDERCUT, found(100_300), 100_000),
        # Zero is joining the cheapest, never passing it.
        ({**UNDERCUT, "undercut_sats": 0}, found(100_000), 100_000),
        ({**UNDERCUT, "undercut_sats": 0}, found(100_300), 100_000),
        # Bait is not undercut.
        (UNDERCUT, found(20_000, 98_000, 99_000), 97_000),
        # 70,000 and 80,000 cannot be undercut above 90,000; 120,000 can. (70,000 is not under 70 % of 80,000.)
        ({**UNDERCUT, "min_price_sats": 90_000}, found(70_000, 80_000, 120_000), 119_000),
        # 91,000 - 1,000 is the minimum itself: that is allowed.
        ({**UNDERCUT, "min_price_sats": 90_000}, found(70_000, 91_000), 90_000),
        # Whoever asks less than three quarters of the median is not followed: next is 90,000.
        (UNDERCUT, found(70_000, 90_000, median_60m=100_000), 89_000),
        (UNDERCUT, found(60_000, 70_000, median_60m=100_000), 75_000),
    ],
)  # fmt: skip
def test_prices(config: dict[str, Any], inputs: ListingInputs, price: int) -> None:
    decision = plan_listing(replace(inputs, config=ListingConfig(**config)))

    assert (decision.action, decision.price) == ("list", price), decision.note


def test_an_undercut_stays_at_the_guard_when_all_asks_are_below_it() -> None:
    decision = plan_listing(found(60_000, 70_000, config={**UNDERCUT, "min_price_sats": 90_000}))

    assert (decision.price, decision.reason) == (90_000, Reason.AT_MIN)


@pytest.mark.parametrize(
    ("ascending", "left"),
    [
        ([], []),
        ([20_000], [20_000]),
        ([20_000, 98_000], [98_000]),
        # Exactly 70 % is not under it.
        ([70_000, 100_000], [70_000, 100_000]),
        ([69_999, 100_000], [100_000]),
        # Two steps, each under 70 % of the next; a third is believed.
        ([10, 20, 40, 80], [40, 80]),
        ([10, 20, 40], [40]),
        # The lowest is close to the next, so that neither is dropped: two agree with one another.
        ([20_000, 21_000, 98_000], [20_000, 21_000, 98_000]),
        ([20_000, 20_000, 98_000], [20_000, 20_000, 98_000]),
    ],
)
def test_outliers(ascending: list[int], left: list[int]) -> None:
    assert without_outliers(ascending) == left


def test_asks_that_cannot_be_are_not_seen() -> None:
    strange = asks(0, -5, 2_100_000_000_000_001, 100_000)

    assert foreign_prices(strange, ()) == [100_000]


def test_the_own_asks_do_not_make_others_look_dear() -> None:
    # Without the own 21,000 the foreign 20,000 is under 70 % of 98,000.
    book = asks(20_000, 98_000) + asks(21_000, maker="bc1qpayment")

    assert foreign_prices(book, BARE.own_wallets) == [98_000]


@pytest.mark.parametrize("median", [None, Decimal(0), Decimal(-1), Decimal("NaN"), Decimal("Infinity")])
def test_a_median_that_is_none_brakes_nothing(median: Decimal | None) -> None:
    assert price_of(found(50_000, config=PERCENT, median_60m=median)) == 53_000


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        (PERCENT, {"asks": None}),
        (PERCENT, {"asks": ()}),
        (PERCENT, {"asks": asks(95_000, maker=VAULT)}),
        (PERCENT, {"asks": None, "median_60m": Decimal(100_000)}),
        ({"reference": "traitFloor"}, {"trait_asks": None}),
        ({"reference": "traitFloor"}, {"trait_asks": ()}),
        ({"reference": "purchase"}, {}),
        ({"reference": "purchase", "cost_sats": 0}, {}),
        ({"reference": "lastSale"}, {}),
        ({"reference": "lastSale"}, {"last_sales": ()}),
        ({"reference": "lastSale"}, {"last_sales": (100_000, 100_000)}),
        ({"reference": "lastSale"}, {"last_sales": (100_000, 100_000, 0, -5, 2_100_000_000_000_001)}),
        (UNDERCUT, {"asks": None}),
        (UNDERCUT, {"asks": ()}),
        # Nothing can be undercut, and there is no guard to stay at.
        (UNDERCUT, {"asks": asks(1_000)}),
    ],
)
def test_without_a_reference_nothing_is_listed_and_a_listing_stays(
    config: dict[str, Any], changes: dict[str, Any]
) -> None:
    inputs = found(100_000, config=config, **changes)
    fresh = plan_listing(inputs)
    kept = plan_listing(found(100_000, config=config, **changes, listed=listed(50_000)))

    assert (fresh.action, fresh.price, fresh.reason) == ("wait", None, Reason.NO_REFERENCE)
    assert (kept.action, kept.price, kept.reason) == ("keep", 50_000, Reason.NO_REFERENCE)
    assert fresh.note


@pytest.mark.parametrize(
    ("newest_first", "price"),
    [
        ((20_000, 98_000, 99_000), 98_000),
        ((900_000, 98_000, 99_000), 99_000),
        ((20_000, 21_000, 100_000, 101_000, 102_000), 100_000),
        ((100_000, 102_000, 104_000, 106_000), 103_000),
        ((100_000, 101_000, 102_000, 103_000, 104_000, 1, 1, 1, 1, 1, 1), 102_000),
        ((0, 100_000, 100_000, 100_000), 100_000),
    ],
)
def test_no_single_sale_sets_the_price(newest_first: tuple[int, ...], price: int) -> None:
    inputs = found(config={"reference": "lastSale", "price_percent": Decimal(1)}, last_sales=newest_first)

    assert price_of(inputs) == price
    assert (
        f"the median of the last {min(5, len([x for x in newest_first if x > 0]))} sales" in plan_listing(inputs).note
    )


def test_a_fixed_price_needs_no_market() -> None:
    inputs = found(config={"price_mode": "fixed", "price_sats": 50_000}, asks=None)

    assert price_of(inputs) == 50_000


def test_more_than_every_bitcoin_is_no_price() -> None:
    inputs = found(2_000_000_000_000_000, config={"price_percent": Decimal(1000)})
    decision = plan_listing(inputs)

    assert (decision.action, decision.reason) == ("wait", Reason.IMPOSSIBLE_PRICE)


@pytest.mark.parametrize(("tick", "fee"), [(0, 0), (-1, 0), (1, -1), (1, 1_000_000)])
def test_a_tick_or_fee_that_cannot_be_is_an_error(tick: int, fee: int) -> None:
    with pytest.raises(ValueError):
        plan_listing(found(100_000, tick=tick, fee_ppm=fee))
