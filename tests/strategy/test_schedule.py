"""A listing's price over time. The numbers are the worked example's, and were computed by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec import structs

from strategy.config.listing import (
    ListingConfig,
    PriceStep,
    dump_listing_config,
    load_listing_config,
    problems,
    unstartable,
)  # fmt: skip
from strategy.plan_listing import HOUR_MS, plan_listing, scheduled, wanted
from tests.shapes import replace
from tests.strategy.listings import NOW, found, listed

STEPS = tuple(PriceStep(hours, Decimal(percent)) for hours, percent in ((0, "1.30"), (48, "1.15"), (96, "1.00")))
CONFIG = ListingConfig(cost_sats=80_000, min_margin=Decimal("0.10"), price_schedule=STEPS)


def price_after(hours: int, floor: int, config: ListingConfig = CONFIG) -> tuple[int | None, bool]:
    """Returns the price wanted so long after the first listing, and whether the guard holds it, at a fee of 2 %."""
    now = scheduled(config, NOW - hours * HOUR_MS, NOW)
    price = wanted(found(floor, config=now, fee_ppm=20_000))
    return price.price, price.is_at_min


def test_the_worked_example() -> None:
    assert problems(CONFIG) == []
    assert [price_after(hours, 100_000) for hours in (0, 47, 48, 95, 96, 5_000)] == [
        (130_000, False), (130_000, False), (115_000, False), (115_000, False), (100_000, False), (100_000, False),
    ]  # fmt: skip
    assert price_after(96, 85_000) == (90_000, True)


def test_it_begins_with_the_first_listing() -> None:
    assert scheduled(CONFIG, None, NOW).price_percent == Decimal("1.30")
    assert scheduled(CONFIG, NOW + 1, NOW).price_percent == Decimal("1.30"), "a clock that was set back"
    assert scheduled(CONFIG, NOW - 48 * HOUR_MS + 1, NOW).price_percent == Decimal("1.30")


def test_before_the_first_step_the_price_is_the_configs_own() -> None:
    fixed = ListingConfig(
        price_mode="fixed", price_sats=200_000, price_schedule=(PriceStep(2, None, 150_000), *STEPS[1:])
    )
    assert problems(fixed) == []
    assert [price_after(hours, 100_000, fixed)[0] for hours in (1, 2, 48)] == [200_000, 150_000, 115_000]
    assert fixed.wants_asks and fixed.wants_collection and not replace(fixed, price_schedule=STEPS[:0]).wants_asks
    undercut = ListingConfig(price_mode="undercut", price_schedule=STEPS[1:])
    assert [price_after(hours, 100_000, undercut)[0] for hours in (0, 48)] == [99_000, 115_000]


def test_a_step_lowers_the_price_by_a_tenth_an_hour_at_most() -> None:
    now = scheduled(CONFIG, NOW - 48 * HOUR_MS, NOW)
    inputs = found(
        100_000, config=now, fee_ppm=20_000, listed=listed(130_000, minutes_ago=2_880), highest_last_hour=130_000
    )
    first = plan_listing(inputs)
    assert (first.action, first.price) == ("reprice", 117_000)
    again = replace(inputs, listed=listed(117_000, minutes_ago=61), highest_last_hour=117_000)
    assert plan_listing(again).price == 115_000


def test_a_multiple_needs_what_its_reference_needs() -> None:
    fixed = ListingConfig(price_mode="fixed", price_sats=9, reference="purchase")
    assert unstartable(fixed) == []
    assert [each.field for each in unstartable(replace(fixed, price_schedule=STEPS))] == ["cost_sats"]
    trait = replace(fixed, reference="traitFloor", trait_type="Hat", trait_value="Crown")
    assert trait.trait is None and replace(trait, price_schedule=STEPS).trait == ("Hat", "Crown")


@pytest.mark.parametrize(
    "steps",
    [
        (PriceStep(1),), (PriceStep(1, Decimal(1), 1),), (PriceStep(1, Decimal(0)),), (PriceStep(1, Decimal("NaN")),),
        (PriceStep(-1, Decimal(1)),), (PriceStep(8_761, Decimal(1)),), (PriceStep(1, None, 0),), STEPS[::-1],
        tuple(PriceStep(hours, Decimal(1)) for hours in range(21)), (PriceStep(0, Decimal("0.99")),),
    ],
)  # fmt: skip
def test_wrong_steps_are_named(steps: tuple[PriceStep, ...]) -> None:
    assert [each.field for each in problems(replace(CONFIG, price_schedule=steps))] == ["price_schedule"]


def test_steps_below_what_the_owner_allows_are_refused() -> None:
    below = replace(CONFIG, price_schedule=(PriceStep(0, Decimal("0.99")),))
    assert problems(replace(below, allow_below_reference=True)) == []
    sats = replace(CONFIG, min_price_sats=50_000, price_schedule=(PriceStep(0, None, 49_999),))
    assert [each.field for each in problems(sats)] == ["price_schedule"]


def test_a_schedule_is_stored_exactly() -> None:
    config = replace(CONFIG, price_schedule=(*STEPS, PriceStep(100, None, 95_000)), ignore_addresses=("a" * 26,))
    assert load_listing_config(dump_listing_config(config)) == config


def test_sellers_to_ignore_are_no_market() -> None:
    inputs = found(50_000, 100_000)
    assert inputs.asks is not None
    bait = structs.replace(inputs.asks[0], maker="bait")
    seen = replace(inputs, asks=(bait, inputs.asks[1]), own_wallets=inputs.own_wallets | {"bait"})
    assert plan_listing(seen).price == 105_000
