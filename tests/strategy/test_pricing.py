"""Prices: grid, range, rungs, reference and the volume-weighted average."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from strategy.book import ceil_to_tick, floor_to_tick, times, vwap
from strategy.ladders import targets
from tests.worlds.market import book, ladder_config, placed, plan, rune_ask, with_limits

ENOUGH = with_limits(user_headroom=10**18, balance_sats=10**18)
TWO_ASKS = [rune_ask("100", "2"), rune_ask("100", "1")]


@pytest.mark.parametrize(
    ("value", "tick", "floor", "ceil"),
    [
        ("0", 1_000, 0, 0),
        ("1000", 1_000, 1_000, 1_000),
        ("1000.0000000000000000000000000000000000001", 1_000, 1_000, 2_000),
        ("1999.9999999999999999999999999999999999999", 1_000, 1_000, 2_000),
        ("74205", 1_000, 74_000, 75_000),
        ("0.3", 1, 0, 1),
        ("-1", 1_000, -1_000, 0),
        ("2100000000000000.5", 1, 2_100_000_000_000_000, 2_100_000_000_000_001),
    ],
)
def test_ticks_are_exact(value: str, tick: int, floor: int, ceil: int) -> None:
    assert floor_to_tick(Decimal(value), tick) == floor
    assert ceil_to_tick(Decimal(value), tick) == ceil


def test_products_are_not_rounded_whatever_the_callers_precision() -> None:
    factors = [Decimal("0.12345678901234567890123456789"), Decimal("99999.99999"), Decimal("1000.1")]
    with localcontext() as context:
        context.prec = 3
        product = times(*factors)

    assert Fraction(product) == Fraction(factors[0]) * Fraction(factors[1]) * Fraction(factors[2])
    assert floor_to_tick(times(Decimal("0.9999999999999999999999999999999"), 100), 1) == 99


@pytest.mark.parametrize(
    ("low", "high", "count", "tick", "expected"),
    [
        (15_000, 75_000, 5, 1_000, [75_000, 60_000, 45_000, 30_000, 15_000]),
        (53_000, 70_000, 4, 1_000, [70_000, 64_000, 58_000, 53_000]),
        (11_000, 52_000, 5, 1_000, [52_000, 41_000, 31_000, 21_000, 11_000]),
        (63_000, 100_000, 3, 1_000, [100_000, 81_000, 63_000]),
        (50_000, 63_000, 3, 1_000, [63_000, 56_000, 50_000]),
        (10_000, 50_000, 1, 1_000, [50_000]),
        (10_000, 50_000, 2, 1_000, [50_000, 10_000]),
        (10_000, 10_000, 3, 1_000, [10_000, 10_000, 10_000]),
        (1, 2, 4, 1, [2, 1, 1, 1]),
        (10_000, 50_000, 0, 1_000, []),
    ],
)
def test_targets(low: int, high: int, count: int, tick: int, expected: list[int]) -> None:
    assert targets(low, high, count, tick) == expected


@pytest.mark.parametrize(
    ("floor", "low", "high", "hardcap", "expected"),
    [
        (100_000, "0.15", "0.75", 100_000, [75_000, 15_000]),
        (87_300, "0.60", "0.85", 70_000, [70_000, 53_000]),
        (100_000, "0.15", "0.75", 75_999, [75_000, 15_000]),
        (100_000, "0.15", "0.75", 74_999, [74_000, 15_000]),
        (100_000, "0.01", "0.75", 100_000, [75_000, 10_000]),  # the venue's minimum
        (100_000, "0.99", "1.00", 200_000, [99_000, 99_000]),  # a tick below the ask
        (99_999, "0.15", "0.75", 100_000, [74_000, 15_000]),
        (2_100_000_000_000_000, "0.15", "0.75", 2_100_000_000_000_000, [1_575_000_000_000_000, 315_000_000_000_000]),
    ],
)
def test_ends_of_the_range(floor: int, low: str, high: str, hardcap: int, expected: list[int]) -> None:
    config = ladder_config(
        bid_percent_low=Decimal(low), bid_percent_high=Decimal(high), hardcap_sats=hardcap, bid_count=2
    )

    assert placed(plan(config, book(floor, floor * 2), limits=ENOUGH)) == expected


@pytest.mark.parametrize(
    ("depth", "price", "walked"),
    [
        (50, "1", 50),
        (100, "1", 100),
        (200, "1.333333333333", 200),  # 100 + 50 tokens
        (300, "1.5", 300),
        (1_000, "1.5", 300),  # thinner than the depth: the average of what there is
        (0, None, 0),
    ],
)
def test_vwap_walks_asks_upwards_and_takes_the_last_in_part(depth: int, price: str | None, walked: int) -> None:
    average, spent = vwap(TWO_ASKS, depth)

    assert spent == walked
    if price is None:
        assert average is None
    else:
        assert average is not None
        assert abs(average - Decimal(price)) < Decimal("1e-12")


def test_vwap_of_an_empty_or_worthless_book_is_not_known() -> None:
    assert vwap([], 1_000) == (None, 0)
    assert vwap([rune_ask("100", "0"), rune_ask("0", "5")], 1_000) == (None, 0)


def test_vwap_passes_over_asks_of_nothing() -> None:
    assert vwap([rune_ask("0", "0.5"), rune_ask("100", "0"), *TWO_ASKS], 100) == (Decimal(1), 100)
