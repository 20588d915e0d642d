"""A bid's config: bounds, what its fields need, and configs that were stored before."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from strategy.config import bid
from strategy.config.bid import (
    FloorDrop,
    dump_bid_config,
    load_bid_config,
)
from strategy.config.bid import problems as problems_of_bids
from strategy.config.listing import dump_listing_config, load_listing_config
from strategy.config.listing import problems as problems_of_listing
from tests.shapes import replace
from tests.worlds.market import ladder_config, rune_config


def fields_of(found: list[bid.Problem]) -> list[str]:
    return [problem.field for problem in found]


def sats_config(**changes: Any) -> bid.BidConfig:
    return rune_config(**{"quantity_mode": "sats", "sats_per_order": 50_000, **changes})


LEGAL: list[bid.BidConfig] = [
    ladder_config(),
    rune_config(),
    sats_config(),
    sats_config(sats_per_order=10_000_000),  # as much as the hard cap
    bid.BidConfig("cats", bid_mode="fixed"),
    ladder_config(bid_count=1),
    ladder_config(bid_count=100),
    ladder_config(hardcap_sats=bid.MAX_SATS),
    ladder_config(bid_percent_low=Decimal("0.75")),
    ladder_config(bid_percent_high=Decimal(10)),
    ladder_config(outbid_percent=Decimal("1E-38")),
    ladder_config(bid_expiry_minutes=15, loop_seconds=5),
    ladder_config(bid_expiry_minutes=15, loop_seconds=420),
    ladder_config(bid_expiry_minutes=10_080, loop_seconds=86_400),
    *(
        ladder_config(pause_on_floor_drop=FloorDrop(Decimal("0.1"), window, 60), **loop)
        for window, loop in ((4, {}), (2, {"loop_seconds": 31}), (1, {"loop_seconds": 30}))
    ),
    ladder_config(bid_type="trait", trait_type="Hat", trait_value="Crown"),
    ladder_config(trait_type="Hat"),  # of a mode that is not selected
    ladder_config(sats_per_order=500_000),  # of a mode that is not selected
    ladder_config(quantity=Decimal(3)),
    rune_config(quantity=Decimal("0.5")),
    rune_config(slug="A"),
    rune_config(slug="ABCDEFGHIJKLMNOPQRSTUVWXYZAB"),
    rune_config(slug="dog•go"),
    ladder_config(slug="Quiet-Cats_2.0"),
    ladder_config(slug="a" * 200),
    *(ladder_config(fee_rate=rate) for rate in ("fastestFee", "halfHourFee", "hourFee", "minimumFee")),
    *(ladder_config(fee_rate=Decimal(rate)) for rate in ("1", "12.345", "10000")),
]

BROKEN: list[tuple[bid.BidConfig, str]] = [
    *(
        (ladder_config(slug=slug), "slug")
        for slug in ("", " ", "-cats", "cats dogs", "cats/dogs", "кот", "\u212aat", "a" * 201, "-" * 200)
    ),
    *((rune_config(slug=slug), "slug") for slug in ("", "A1", "•A", "A•", "A••B", "A B", "A" * 29, "ß")),
    (ladder_config(type="runes"), "type"),
    (ladder_config(bid_mode="cheap"), "bid_mode"),
    (ladder_config(outbid_mode=""), "outbid_mode"),
    (ladder_config(bid_type="item"), "bid_type"),
    (rune_config(quantity_mode="tokens"), "quantity_mode"),
    (bid.BidConfig("cats"), "hardcap_sats"),
    (ladder_config(bid_percent_low=Decimal("0.76")), "bid_percent_low"),
    (ladder_config(bid_mode="fixed", bid_percent_low=Decimal("0.76")), "bid_percent_low"),
    (ladder_config(bid_fixed_low=50_001), "bid_fixed_low"),
    (ladder_config(bid_mode="fixed", bid_fixed_low=50_001), "bid_fixed_low"),
    *(
        (ladder_config(**{name: Decimal(value)}), name)
        for name in ("bid_percent_low", "bid_percent_high", "outbid_percent")
        for value in ("0", "-0.1", "10.01", "NaN", "sNaN", "Infinity", "-Infinity", "1E-39", "1E-999999")
    ),
    *(
        (ladder_config(**{name: value}), name)
        for name in (
            "bid_fixed_low", "bid_fixed_high", "hardcap_sats", "max_bid_total", "outbid_amount", "sats_per_order",
            "depth_sats", "spend_cap_sats", "max_fills",
        )
        for value in (-1, bid.MAX_SATS + 1, 10**400)
    ),
    (ladder_config(depth_sats=0), "depth_sats"),
    *((ladder_config(bid_count=value), "bid_count") for value in (-1, 0, 101)),
    *((ladder_config(loop_seconds=value), "loop_seconds") for value in (0, 4, 86_401)),
    *((ladder_config(bid_expiry_minutes=value), "bid_expiry_minutes") for value in (0, 14, 10_081)),
    (ladder_config(loop_seconds=421, bid_expiry_minutes=15), "bid_expiry_minutes"),
    (ladder_config(loop_seconds=3_600), "bid_expiry_minutes"),
    *(
        (ladder_config(pause_on_floor_drop=FloorDrop(Decimal("0.1"), window, 60), **loop), "pause_on_floor_drop")
        for window, loop in ((3, {}), (1, {"loop_seconds": 31}), (6, {"loop_seconds": 200}))
    ),
    (ladder_config(bid_type="trait", trait_value="Crown"), "trait_type"),
    (ladder_config(bid_type="trait", trait_type="Hat", trait_value=" "), "trait_value"),
    (ladder_config(trait_type="x" * 201), "trait_type"),
    (ladder_config(trait_value="x" * 201), "trait_value"),
    (rune_config(bid_type="trait", trait_type="Hat", trait_value="Crown"), "bid_type"),
    (ladder_config(use_vwap=True), "use_vwap"),
    (ladder_config(quantity_mode="sats", sats_per_order=50_000), "quantity_mode"),
    (sats_config(sats_per_order=0), "sats_per_order"),
    (sats_config(hardcap_sats=49_999), "sats_per_order"),
    (sats_config(bid_mode="fixed"), "quantity_mode"),
    *(
        (rune_config(quantity=Decimal(value)), "quantity")
        for value in ("0", "-1", "NaN", "Infinity", "1E+39", "1E-39")
    ),
    (ladder_config(quantity=Decimal("1.5")), "quantity"),
    *((ladder_config(fee_rate=rate), "fee_rate") for rate in ("", "economyFee", "12")),
    *(
        (ladder_config(fee_rate=Decimal(rate)), "fee_rate")
        for rate in ("0.999", "10000.1", "1.2345", "NaN", "Infinity")
    ),
]  # fmt: skip


@pytest.mark.parametrize("config", LEGAL, ids=str)
def test_legal(config: bid.BidConfig) -> None:
    assert bid.problems(config) == []


@pytest.mark.parametrize(("config", "field"), BROKEN, ids=lambda value: value if isinstance(value, str) else None)
def test_one_broken_rule_is_named_once(config: bid.BidConfig, field: str) -> None:
    named = fields_of(bid.problems(config))

    assert named.count(field) == 1
    assert set(named) - {field} <= PARTNERS.get(field, set())


# The other rules that a value may break beside the field's own.
PARTNERS = {"bid_fixed_high": {"bid_fixed_low"}, "type": {"slug"}}


def test_every_broken_rule_is_listed_at_once() -> None:
    config = bid.BidConfig(
        slug="no spaces",
        bid_percent_low=Decimal(2),
        bid_percent_high=Decimal(1),
        bid_fixed_low=9,
        bid_fixed_high=8,
        bid_count=0,
        loop_seconds=600,
        bid_type="trait",
        use_vwap=True,
        quantity=Decimal("NaN"),
        fee_rate="free",
    )

    assert sorted(fields_of(bid.problems(config))) == [
        "bid_count",
        "bid_expiry_minutes",
        "bid_fixed_low",
        "bid_percent_low",
        "fee_rate",
        "hardcap_sats",
        "quantity",
        "slug",
        "trait_type",
        "trait_value",
        "use_vwap",
    ]


def test_problems_read_as_a_sentence_after_the_fields_name() -> None:
    found = [problem for config, _ in BROKEN for problem in bid.problems(config)]

    assert {problem.field for problem in found} <= {f.name for f in fields(bid.BidConfig)}
    assert all(problem.text.split()[0] in {"must", "is", "trait", "sats"} for problem in found)


def test_legal_but_not_built() -> None:
    config = ladder_config(quantity=Decimal(2))

    assert bid.problems(config) == []
    assert fields_of(bid.unsupported(config)) == ["quantity"]


@pytest.mark.parametrize("config", [config for config in LEGAL if config.is_rune or config.quantity == 1], ids=str)
def test_everything_else_is_built(config: bid.BidConfig) -> None:
    assert bid.unsupported(config) == []


def test_defaults_of_expiry_and_cycle() -> None:
    assert (bid.BidConfig("cats").expiry_ms, bid.BidConfig("cats").loop_s) == (16 * 60_000, 30)
    config = bid.BidConfig("cats", bid_expiry_minutes=20, loop_seconds=5)
    assert (config.expiry_ms, config.loop_s) == (20 * 60_000, 5)


@pytest.mark.parametrize(
    ("type_", "slug", "normal"),
    [
        ("ordinals", " Quiet-Cats ", "quiet-cats"),
        ("rune", "DOG•GO•TO•THE•MOON", "DOGGOTOTHEMOON"),
        ("rune", " doggotothemoon", "DOGGOTOTHEMOON"),
    ],
)
def test_slugs_are_unique_after_normalising(type_: str, slug: str, normal: str) -> None:
    assert bid.normal_slug(type_, slug) == normal


class TestStorage:
    @pytest.mark.parametrize("config", LEGAL, ids=str)
    def test_what_is_stored_comes_back_the_same(self, config: bid.BidConfig) -> None:
        assert bid.load_bid_config(bid.dump_bid_config(config)) == config

    def test_every_field_is_stored_and_decimals_are_text(self) -> None:
        stored = json.loads(bid.dump_bid_config(ladder_config(fee_rate=Decimal("12.50"))))

        assert stored.keys() == {f.name for f in fields(bid.BidConfig)}
        assert (stored["bid_percent_low"], stored["quantity"], stored["fee_rate"]) == ("0.15", "1", "12.50")
        assert stored["hardcap_sats"] == 100_000

    def test_equal_configs_are_stored_as_equal_text(self) -> None:
        assert bid.dump_bid_config(ladder_config()) == bid.dump_bid_config(replace(ladder_config()))

    def test_fields_of_a_later_version_get_their_default(self) -> None:
        assert bid.load_bid_config('{"slug": "cats", "hardcap_sats": 7}') == bid.BidConfig("cats", hardcap_sats=7)

    def test_a_broken_value_is_loaded_for_problems_to_name(self) -> None:
        config = bid.load_bid_config('{"slug": "cats", "bid_percent_low": "NaN", "bid_count": 0, "hardcap_sats": 1}')

        assert fields_of(bid.problems(config)) == ["bid_percent_low", "bid_count"]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "Expecting value"),
            ("[]", "not a JSON object"),
            ("{}", "`slug`"),
            ('{"slug": "cats", "colour": 1, "age": 2}', "unknown fields: age, colour"),
            ('{"slug": 5}', r"`\$.slug`"),
            ('{"slug": null}', r"`\$.slug`"),
            ('{"slug": "cats", "bid_count": "5"}', r"`\$.bid_count`"),
            ('{"slug": "cats", "bid_count": true}', r"`\$.bid_count`"),
            ('{"slug": "cats", "bid_count": 5.0}', r"`\$.bid_count`"),
            ('{"slug": "cats", "bid_count": null}', r"`\$.bid_count`"),
            ('{"slug": "cats", "outbid_enabled": 1}', r"`\$.outbid_enabled`"),
            ('{"slug": "cats", "quantity": 1}', "quantity cannot be 1"),
            ('{"slug": "cats", "bid_percent_low": 0.15}', "bid_percent_low cannot be 0.15"),
            ('{"slug": "cats", "bid_percent_low": "cheap"}', r"`\$.bid_percent_low`"),
            ('{"slug": "cats", "fee_rate": "economyFee"}', "fee_rate cannot be 'economyFee'"),
            ('{"slug": "cats", "fee_rate": 5}', "fee_rate cannot be 5"),
            ("[" * 100_000, "nested"),
        ],
    )
    def test_what_was_not_stored_by_us_is_refused(self, text: str, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            bid.load_bid_config(text)


STORED = [
    json.loads(line) for line in Path(__file__).with_name("stored_configs_5c2b9fa7.jsonl").read_text().splitlines()
]


def stored_part(text: str, written: str) -> str:
    """Returns `written` without the fields that the first version did not have."""
    return json.dumps({name: json.loads(written)[name] for name in json.loads(text)}, sort_keys=True)


BIDS = [text for kind, text in STORED if kind == "bid"]
LISTINGS = [text for kind, text in STORED if kind == "listing"]


@pytest.mark.parametrize("text", BIDS)
def test_a_stored_bidding_config_is_read_and_written_the_same(text: str) -> None:
    config = load_bid_config(text)
    assert stored_part(text, dump_bid_config(config)) == text
    assert problems_of_bids(config) == []
    if config.on_fill is not None:
        assert problems_of_listing(load_listing_config(config.on_fill.autolist)) == []


@pytest.mark.parametrize("text", LISTINGS)
def test_a_stored_listing_config_is_read_and_written_the_same(text: str) -> None:
    config = load_listing_config(text)
    assert stored_part(text, dump_listing_config(config)) == text
    assert problems_of_listing(config) == []


def test_every_field_has_another_value_than_its_default_somewhere() -> None:
    """A field that always had its default would be read right without being read."""
    for texts, load in ((BIDS, load_bid_config), (LISTINGS, load_listing_config)):
        configs = [load(text) for text in texts]
        same = {name for name in json.loads(texts[0]) if len({repr(getattr(each, name)) for each in configs}) == 1}
        assert same == set()


def test_a_part_with_a_key_of_a_later_version_is_refused() -> None:
    text = BIDS[-1].replace('"for_minutes"', '"most_sats": 5, "for_minutes"')
    assert text != BIDS[-1]
    with pytest.raises(ValueError, match="pause_on_floor_drop"):
        load_bid_config(text)
