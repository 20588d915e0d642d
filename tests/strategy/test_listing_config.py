"""The config of an auto-list task: rules, storage, and that no field is ignored."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import fields

from strategy.config import listing
from strategy.plan_listing import ListingInputs, plan_listing
from tests.shapes import replace
from tests.strategy.listings import asks, found

MARKET = found(100_000, 110_000, trait_asks=asks(150_000), last_sales=(130_000,) * 3)
PERCENT = listing.ListingConfig()
FIXED = listing.ListingConfig(price_mode="fixed", price_sats=50_000)
UNDERCUT = listing.ListingConfig(price_mode="undercut")
TRAIT = listing.ListingConfig(reference="traitFloor", trait_type="Hat", trait_value="Crown")

# field -> a config and what the field becomes; the price in MARKET has to differ
FLIPS: dict[str, tuple[listing.ListingConfig, Any]] = {
    "price_mode": (replace(PERCENT, price_sats=50_000), "fixed"),
    "price_percent": (PERCENT, Decimal("1.2")),
    "price_sats": (FIXED, 60_000),
    "undercut_sats": (UNDERCUT, 3_000),
    "min_price_sats": (PERCENT, 200_000),
    "cost_sats": (PERCENT, 200_000),
    "min_margin": (replace(PERCENT, cost_sats=100_000), Decimal("0.5")),
    "reference": (PERCENT, "lastSale"),
}
# Fields by which a config is allowed, or by which asks are gathered; the price follows from these.
ELSEWHERE = {
    "allow_below_reference", "trait_type", "trait_value", "loop_seconds", "price_schedule",
    "ignore_addresses", "dry_run",
}  # fmt: skip


@pytest.mark.parametrize("name", FLIPS)
def test_a_field_that_were_ignored_would_show(name: str) -> None:
    config, value = FLIPS[name]
    other = replace(config, **{name: value})
    assert listing.problems(config) == listing.problems(other) == []
    assert getattr(config, name) != value

    first, second = (plan_listing(replace(MARKET, config=each)) for each in (config, other))

    assert first.action == second.action == "list"
    assert first.price != second.price


def test_every_field_is_here_or_used_elsewhere() -> None:
    assert FLIPS.keys().isdisjoint(ELSEWHERE)
    assert FLIPS.keys() | ELSEWHERE == {field.name for field in fields(listing.ListingConfig)}


def test_each_reference_is_one_of_its_own() -> None:
    config = listing.ListingConfig(price_percent=Decimal(1), cost_sats=90_000)
    prices = {
        reference: plan_listing(replace(MARKET, config=replace(config, reference=reference))).price
        for reference in ("floor", "traitFloor", "purchase", "lastSale")
    }

    assert prices == {"floor": 100_000, "traitFloor": 150_000, "purchase": 90_000, "lastSale": 130_000}


def test_fields_of_other_modes_change_nothing() -> None:
    def price(config: listing.ListingConfig, inputs: ListingInputs = MARKET) -> int | None:
        return plan_listing(replace(inputs, config=config)).price

    assert price(replace(PERCENT, price_sats=1, undercut_sats=5, trait_type="Hat")) == price(PERCENT)
    assert price(replace(FIXED, price_percent=Decimal(9), undercut_sats=5, reference="lastSale")) == price(FIXED)
    assert price(replace(UNDERCUT, price_percent=Decimal(9), price_sats=1, reference="lastSale")) == price(UNDERCUT)


def test_the_trait_is_asked_for_where_it_is_used() -> None:
    assert TRAIT.trait == ("Hat", "Crown")
    assert replace(TRAIT, reference="floor").trait is None
    assert replace(TRAIT, price_mode="undercut").trait is None


def test_the_asks_are_wanted_where_the_price_hangs_on_them() -> None:
    configs = [PERCENT, TRAIT, UNDERCUT, replace(UNDERCUT, reference="purchase")]
    sale = replace(PERCENT, reference="lastSale")
    others = [FIXED, replace(PERCENT, reference="purchase"), replace(FIXED, reference="lastSale")]

    assert all(config.wants_asks and config.wants_collection for config in configs)
    assert (sale.wants_asks, sale.wants_collection) == (False, True)
    assert not any(config.wants_asks or config.wants_collection for config in others)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"price_mode": "auction"}, "price_mode"),
        ({"reference": "moon"}, "reference"),
        ({"price_percent": Decimal(0)}, "price_percent"),
        ({"price_percent": Decimal("-1.05")}, "price_percent"),
        ({"price_percent": Decimal("1000.01")}, "price_percent"),
        ({"price_percent": Decimal("1." + "0" * 18 + "1")}, "price_percent"),
        ({"price_percent": Decimal("NaN")}, "price_percent"),
        ({"price_percent": Decimal("Infinity")}, "price_percent"),
        ({"price_percent": Decimal("0.999")}, "price_percent"),
        ({"price_percent": Decimal("0.5"), "reference": "purchase", "cost_sats": 5}, "price_percent"),
        ({"min_margin": Decimal("-0.1")}, "min_margin"),
        ({"min_margin": Decimal(101)}, "min_margin"),
        ({"price_sats": -1}, "price_sats"),
        ({"undercut_sats": 2_100_000_000_000_001}, "undercut_sats"),
        ({"min_price_sats": -1}, "min_price_sats"),
        ({"cost_sats": -1}, "cost_sats"),
        ({"cost_sats": 1_050_000_000_000_001, "min_margin": Decimal(1)}, "cost_sats"),
        ({"price_mode": "fixed"}, "price_sats"),
        ({"price_mode": "fixed", "price_sats": 9_999, "min_price_sats": 10_000}, "price_sats"),
        ({"loop_seconds": 4}, "loop_seconds"),
        ({"loop_seconds": 3_601}, "loop_seconds"),
        ({"trait_type": "x" * 201}, "trait_type"),
        ({"trait_value": "x" * 201}, "trait_value"),
    ],
)
def test_broken_rules(changes: dict[str, Any], field: str) -> None:
    assert [problem.field for problem in listing.problems(listing.ListingConfig(**changes))] == [field]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"price_percent": Decimal(1)},
        {"price_percent": Decimal("0.5"), "allow_below_reference": True},
        # It is the multiple of a reference only in percent mode.
        {"price_percent": Decimal("0.5"), "price_mode": "undercut"},
        {"price_percent": Decimal(1000), "min_margin": Decimal(100)},
        # Twice this is all the bitcoin there will ever be.
        {"cost_sats": 1_050_000_000_000_000, "min_margin": Decimal(1)},
        {"price_mode": "fixed", "price_sats": 10_000, "min_price_sats": 10_000},
        {"loop_seconds": 5},
        {"loop_seconds": 3_600},
    ],
)
def test_kept_rules(changes: dict[str, Any]) -> None:
    assert listing.problems(listing.ListingConfig(**changes)) == []


def test_all_broken_rules_are_told_at_once() -> None:
    config = listing.ListingConfig(price_mode="auction", price_percent=Decimal(0), min_margin=Decimal(-1), cost_sats=-5)

    assert {p.field for p in listing.problems(config)} == {"price_mode", "price_percent", "min_margin", "cost_sats"}


def test_what_a_start_needs() -> None:
    def missing(**changes: Any) -> list[str]:
        config = listing.ListingConfig(**changes)
        assert listing.problems(config) == []
        return [problem.field for problem in listing.unstartable(config)]

    assert missing() == missing(reference="lastSale") == []
    assert missing(reference="purchase") == ["cost_sats"]
    assert missing(reference="purchase", cost_sats=5) == missing(reference="purchase", price_mode="undercut") == []
    assert missing(reference="traitFloor") == ["trait_type", "trait_value"]
    assert missing(reference="traitFloor", trait_type="Hat", trait_value=" ") == ["trait_value"]
    assert missing(reference="traitFloor", trait_type="Hat", trait_value="Crown") == []


def test_a_price_without_any_guard_is_warned_of() -> None:
    assert listing.warnings(PERCENT) and listing.warnings(UNDERCUT)
    assert "minPriceSats" in listing.warnings(PERCENT)[0]
    for guarded in (FIXED, replace(PERCENT, min_price_sats=1), replace(UNDERCUT, cost_sats=0)):
        assert listing.warnings(guarded) == []


@pytest.mark.parametrize("config", [PERCENT, TRAIT, replace(UNDERCUT, cost_sats=5, min_margin=Decimal("0.1"))])
def test_storage_gives_back_what_it_was_given(config: listing.ListingConfig) -> None:
    assert listing.load_listing_config(listing.dump_listing_config(config)) == config


def test_a_config_of_an_older_version_has_the_defaults() -> None:
    stored = json.loads(listing.dump_listing_config(listing.ListingConfig(price_percent=Decimal("1.5"))))
    for name in ELSEWHERE:
        del stored[name]

    assert listing.load_listing_config(json.dumps(stored)) == listing.ListingConfig(price_percent=Decimal("1.5"))


@pytest.mark.parametrize(
    "stored",
    ["[]", '{"price_mode": 5}', '{"price_sats": true}', '{"price_sats": "5"}', '{"price_percent": 1.05}',
     '{"price_percent": "much"}', '{"more": 1}', '{"price_sats": null}', "[" * 100_000],
)  # fmt: skip
def test_storage_that_is_none_is_an_error(stored: str) -> None:
    with pytest.raises(ValueError):
        listing.load_listing_config(stored)
