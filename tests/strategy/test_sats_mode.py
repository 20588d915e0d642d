"""Rune orders of a fixed number of sats: unit prices are spread, quantities follow."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from msgspec import structs

from strategy.book import Snapshot
from strategy.config.bid import BidConfig
from strategy.decision import BidPlan
from tests.shapes import replace
from tests.worlds import market as m


def sats_config(**changes: Any) -> BidConfig:
    """50,000 sats an order, from 0.5 to 0.75 of the floor, in two orders."""
    values = {"quantity_mode": "sats", "sats_per_order": 50_000, "bid_percent_low": Decimal("0.5"), "bid_count": 2}
    return m.rune_config(**{**values, **changes})


def market(unit_price: str = "100", divisibility: int | None = 2) -> Snapshot:
    return Snapshot(m.NOW, (m.rune_ask("5000", unit_price),), divisibility=divisibility)


def made(result: BidPlan) -> list[tuple[int, str]]:
    def text(quantity: Decimal) -> str:
        return f"{quantity:f}".rstrip("0").rstrip(".") if "." in f"{quantity:f}" else f"{quantity:f}"

    return [(intent.price_sats, text(intent.quantity)) for intent in result.to_place]


@pytest.mark.parametrize(
    ("divisibility", "expected"),
    [
        (0, [(49_950, "666"), (50_000, "1000")]),
        (2, [(49_999, "666.66"), (50_000, "1000")]),
        (8, [(49_999, "666.66666666"), (50_000, "1000")]),
        (38, [(49_999, "666." + "6" * 38), (50_000, "1000")]),
    ],
)
def test_quantities_are_in_the_runes_smallest_unit(divisibility: int, expected: list[tuple[int, str]]) -> None:
    assert made(m.plan(sats_config(), market(divisibility=divisibility))) == expected


def test_an_unknown_unit_places_nothing_and_keeps_what_is_live() -> None:
    own = [m.order(1, 50_000, quantity=Decimal(1_000)), m.order(2, 60_000, quantity=Decimal(1_000))]

    result = m.plan(sats_config(), market(divisibility=None), own)

    assert m.rung_reasons(result) == ["unit_unknown"] * 2
    assert m.cancelled(result) == [(60_000, True, "wrong_quantity")]
    assert m.bid_reasons(result)[1] == "unit_unknown"


def test_less_than_the_smallest_unit_is_no_order() -> None:
    config = sats_config(bid_percent_low=Decimal("0.1"), bid_percent_high=Decimal("0.9"), bid_count=3)

    result = m.plan(config, market("100000", divisibility=0))  # 90,000 / 50,000 / 10,000 a token

    assert m.rung_reasons(result) == ["below_lot", "place", "place"]
    assert made(result) == [(50_000, "1"), (50_000, "5")]


def test_a_total_below_the_venues_minimum_is_no_order() -> None:
    profile = structs.replace(m.RUNES, min_bid=40_000)

    result = m.plan(sats_config(bid_count=1), market("40000", divisibility=0), profile=profile)  # 30,000 for one

    assert [note.label for note in result.rungs] == ["range_empty (min_bid)"]
    small = m.plan(sats_config(sats_per_order=39_999), market(), profile=profile)
    assert [note.label for note in small.rungs] == ["range_empty (min_bid)"] * 2


def test_the_total_stays_below_what_the_ask_would_cost() -> None:
    config = sats_config(bid_percent_high=Decimal("1.2"), bid_count=1)

    result = m.plan(config, market("100"))

    assert made(result) == [(49_999, "500")]


def test_rungs_are_told_apart_by_their_unit_price_not_by_their_total() -> None:
    config = sats_config()
    own = m.carry_out(config, [], m.plan(config, market()))

    assert m.rung_reasons(m.plan(config, market(), own)) == ["kept", "kept"]
    old = [replace(each, created_ms=m.NOW - 600_000) for each in own]
    moved = m.plan(config, market("90"), old)
    # 50 a token is within a quarter of the gap between 67.5 and 45, 75 is above the range.
    assert m.cancelled(moved) == [(49_999, True, "above_range")]
    assert m.rung_reasons(moved) == ["place", "kept"]
    far = m.plan(replace(config, keep_within_gap=Decimal(0)), market("90"), old)
    assert m.cancelled(far) == [(49_999, True, "above_range"), (50_000, False, "surplus")]


@pytest.mark.parametrize(
    ("price", "quantity", "reason"),
    [
        (50_000, "1000", None),
        (49_999, "666.66", None),
        (49_900, "998", "wrong_quantity"),  # of another satsPerOrder
        (50_001, "1000", "wrong_quantity"),
        (50_000, "600", "above_range"),
        (50_000, "500", "at_ask"),
        (49_999, "500", "above_range"),
    ],
)
def test_what_is_cancelled_at_any_age(price: int, quantity: str, reason: str | None) -> None:
    own = [m.order(1, price, quantity=Decimal(quantity), created_ms=m.NOW)]

    result = m.plan(sats_config(), market(), own)

    assert m.cancelled(result) == ([] if reason is None else [(price, True, reason)])


def test_the_floor_of_a_total_is_not_below_the_range() -> None:
    """938 tokens at 53.3 cost 49,995.4: the bid for 49,995 is the low end's own."""
    config = sats_config(bid_percent_low=Decimal("0.533"), bid_count=1, update_bid_enabled=False)

    def reason(price: int) -> str:
        return m.bid_reasons(m.plan(config, market(divisibility=0), [m.order(1, price, quantity=Decimal(938))]))[1]

    assert (reason(49_995), reason(49_994)) == ("update_off", "below_range")


def test_budget_counts_totals() -> None:
    result = m.plan(sats_config(), market(), limits=m.with_limits(task_total=99_998))

    assert m.rung_reasons(result) == ["place", "task_total"]


class TestOutbid:
    CONFIG = sats_config(outbid_enabled=True, bid_count=1)

    @pytest.mark.parametrize(
        ("changes", "rival", "expected"),
        [
            # 49,000 buy 816.66 at 60; a thousand more spread over them is 61.2245 a token.
            ({"outbid_amount": 1_000}, m.bid(60_000, "1000"), (49_999, "816.66")),
            ({"outbid_amount": 1}, m.bid(60_000, "1000"), (49_999, "833.31")),
            ({"outbid_amount": 0}, m.bid(60_000, "1000"), (49_999, "833.31")),  # a sat at least
            ({"outbid_mode": "percent"}, m.bid(60_000, "1000"), (49_999, "825.08")),
            ({"outbid_mode": "percent", "outbid_percent": Decimal("1E-9")}, m.bid(60_000, "1000"), (49_999, "833.31")),
            ({}, m.bid(75_000, "1000"), (50_000, "1000")),  # beyond the range: the low end
            ({}, m.bid(20_000, "1000"), (50_000, "1000")),
            ({"outbid_amount": 50_000}, m.bid(60_000, "1000"), (50_000, "1000")),  # more than a whole order
        ],
    )
    def test_the_amount_is_spread_over_the_order(
        self, changes: dict[str, Any], rival: Any, expected: tuple[int, str]
    ) -> None:
        result = m.plan(replace(self.CONFIG, **changes), m.rivals(market(), rival))

        assert made(result) == [expected]
        if rival.unit_price == 60 and expected[1] != "1000":
            assert Fraction(expected[0]) / Fraction(expected[1]) > 60

    def test_not_up_to_the_ask(self) -> None:
        config = replace(self.CONFIG, bid_percent_high=Decimal("1.5"), outbid_amount=1)
        rival = m.bid(99_999, "1000")

        assert made(m.plan(config, m.rivals(market(), rival))) == [(50_000, "1000")]

    def test_then_planned_again_there_is_nothing_to_do(self) -> None:
        seen = m.rivals(market(), m.bid(60_000, "1000"))
        own = m.carry_out(self.CONFIG, [], m.plan(self.CONFIG, seen))

        assert m.rung_reasons(m.plan(self.CONFIG, seen, own)) == ["kept"]

    def test_only_if_highest_compares_unit_prices(self) -> None:
        config = sats_config(only_bid_if_highest=True)

        assert m.rung_reasons(m.plan(config, m.rivals(market(), m.bid(600, "10")))) == ["place", "not_highest"]
