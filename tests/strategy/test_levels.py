"""Levels of the owner's own, and the shapes of a ladder. The numbers were computed by hand."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from strategy.config.bid import BidConfig, BidLevel, dump_bid_config, load_bid_config, problems
from strategy.ladders import crowded, geometric, geometric_units, nearest_gaps, whole_root
from tests.strategy.test_sats_mode import market as tokens
from tests.strategy.variants import NO_EQUALS
from tests.worlds import market as m


def levels(*given: tuple[str, int]) -> tuple[BidLevel, ...]:
    return tuple(BidLevel(Decimal(at), count) for at, count in given)


def leveled(*given: tuple[str, int], **more: object) -> BidConfig:
    """A config of these levels between 0.15 and 0.95 of the floor, hard cap 88,000."""
    wide = {"hardcap_sats": 88_000, "bid_percent_high": Decimal("0.95"), "bid_count": sum(n for _, n in given)}
    config = m.ladder_config(**{**wide, "bid_levels": levels(*given), **more})
    assert problems(config) == []
    return config


EXAMPLE = leveled(("0.9", 1), ("0.85", 2), ("0.7", 2))


def labels(config: BidConfig, price: int = 100_000) -> list[tuple[int | None, str]]:
    return [(note.price_sats, note.label) for note in m.plan(config, m.book(price)).rungs]


def test_the_hard_cap_comes_last_and_is_told() -> None:
    assert labels(EXAMPLE) == [
        (88_000, "place (hardcap)"), (85_000, "place"), (85_000, "place"), (70_000, "place"), (70_000, "place"),
    ]  # fmt: skip
    assert m.placed(m.plan(EXAMPLE, m.book(100_000))) == [88_000, 85_000, 85_000, 70_000, 70_000]


def test_levels_may_come_in_any_order_and_are_rounded_down() -> None:
    assert m.placed(m.plan(leveled(("0.7", 1), ("0.8", 1)), m.book(99_999))) == [79_000, 69_000]


def test_the_range_bounds_each_level_and_no_bid_is_above_its_own() -> None:
    config = leveled(("0.9", 1), ("0.5", 1), ("0.1", 1), bid_percent_high=Decimal("0.8"))
    assert labels(config) == [(80_000, "place (high)"), (50_000, "place"), (10_000, "range_empty (low)")]
    ask = leveled(("1.5", 2), hardcap_sats=10**6, bid_percent_high=Decimal(2))
    assert labels(ask) == [(99_000, "place (ask)")] * 2
    least = leveled(("0.5", 1), ("0.09", 1), bid_percent_low=Decimal("0.01"))
    assert labels(least) == [(50_000, "place"), (9_000, "range_empty (low)")]


def test_levels_in_fixed_mode_are_sats() -> None:
    config = leveled(
        ("60000", 1), ("45500", 2), ("9000", 1), bid_mode="fixed", bid_fixed_low=10_000, bid_fixed_high=50_000
    )
    assert labels(config) == [
        (50_000, "place (high)"), (45_000, "place"), (45_000, "place"), (9_000, "range_empty (low)"),
    ]  # fmt: skip


def test_equal_bids_are_merged_where_the_venue_takes_none() -> None:
    assert m.rung_reasons(m.plan(EXAMPLE, m.book(100_000), profile=NO_EQUALS)) == [
        "place", "place", "rungs_merged", "place", "rungs_merged",
    ]  # fmt: skip


def test_a_plan_with_fewer_bids_takes_the_highest() -> None:
    few = m.AMPLE.__class__(**{**{n: getattr(m.AMPLE, n) for n in m.AMPLE.__slots__}, "plan_bids": 2})
    assert m.rung_reasons(m.plan(EXAMPLE, m.book(100_000), limits=few)) == ["place", "place", *["plan_bids"] * 3]


def test_live_bids_hold_their_levels_while_the_market_hardly_moves() -> None:
    own = m.orders(88_000, 85_000, 85_000, 70_000, 70_000)
    still = m.plan(EXAMPLE, m.book(100_000), own)
    assert (m.placed(still), m.cancelled(still)) == ([], [])
    assert [note.label for note in still.rungs] == ["kept (hardcap)", *["kept"] * 4]
    # Of 98,000: 88,200, 83,300 and 68,600. A quarter of the gap of 5,000 is 1,250, of that of 15,000 it is 3,750.
    moved = m.plan(EXAMPLE, m.book(98_000), own)
    assert m.placed(moved) == [83_000, 83_000]
    assert m.cancelled(moved) == [(85_000, False, "surplus")] * 2


def test_outbidding_pays_the_least_that_wins_and_never_more_than_a_level() -> None:
    config = leveled(("0.8", 1), ("0.6", 2), outbid_enabled=True)
    assert m.placed(m.plan(config, m.rivals(m.book(100_000), 70_000))) == [71_000, 60_000, 60_000]
    assert m.placed(m.plan(config, m.rivals(m.book(100_000), 50_000))) == [51_000, 51_000, 51_000]
    # 84,000 could be outbid inside the range, but not at the top level: the next one is.
    assert m.placed(m.plan(config, m.rivals(m.book(100_000), 84_000, 75_000))) == [76_000, 60_000, 60_000]
    assert m.placed(m.plan(config, m.rivals(m.book(100_000), m.bid(80_000)))) == [15_000, 15_000, 15_000]


def test_runes_in_sats_mode_have_levels_of_the_unit_price() -> None:
    config = m.rune_config(
        quantity_mode="sats", sats_per_order=50_000, bid_percent_high=Decimal("0.9"), bid_count=3,
        bid_levels=levels(("0.95", 1), ("0.5", 1), ("0.1", 1)),
    )  # fmt: skip
    result = m.plan(config, tokens("100"))
    assert [(intent.price_sats, intent.quantity) for intent in result.to_place] == [
        (49_999, Decimal("555.55")), (50_000, Decimal(1000)),
    ]  # fmt: skip
    assert [note.label for note in result.rungs] == ["place (high)", "place", "range_empty (low)"]


@pytest.mark.parametrize(
    ("shape", "prices"),
    [
        ("even", [75_000, 60_000, 45_000, 30_000, 15_000]),
        # 75,000 x (1/5)^(i/4): 50,154, 33,541, 22,429.
        ("geometric", [75_000, 50_000, 33_000, 22_000, 15_000]),
        # 75,000 - (i/4)^2 x 60,000: 71,250, 60,000, 41,250.
        ("top", [75_000, 71_000, 60_000, 41_000, 15_000]),
    ],
)
def test_shapes(shape: str, prices: list[int]) -> None:
    assert m.placed(m.plan(m.ladder_config(ladder_shape=shape), m.book(100_000))) == prices


def test_shapes_of_one_bid_and_of_no_width() -> None:
    for shape in ("geometric", "top"):
        assert m.placed(m.plan(m.ladder_config(ladder_shape=shape, bid_count=1), m.book(100_000))) == [75_000]
        narrow = m.ladder_config(ladder_shape=shape, bid_percent_low=Decimal("0.75"), bid_count=3)
        assert m.placed(m.plan(narrow, m.book(100_000))) == [75_000] * 3


def test_shapes_of_runes_in_sats_mode() -> None:
    def units(shape: str) -> list[int]:
        config = m.rune_config(
            quantity_mode="sats", sats_per_order=10**6, bid_count=3, bid_percent_low=Decimal("0.2"),
            bid_percent_high=Decimal("0.8"), ladder_shape=shape,
        )  # fmt: skip
        return [round(each.price_sats / each.quantity) for each in m.plan(config, tokens("1000")).to_place]

    assert units("geometric") == [800, 400, 200]
    assert units("top") == [800, 650, 200]


def test_roots_are_exact() -> None:
    assert [whole_root(n, 3) for n in (1, 7, 8, 26, 27, 999, 1_000)] == [1, 1, 2, 2, 3, 9, 10]
    big = 2_100_000_000_000_000
    assert whole_root(big**99, 99) == big and whole_root(big**99 - 1, 99) == big - 1
    assert [whole_root(n**99 + more, 99) for n in (1, 2, 2**50) for more in (0, 1)] == [1, 1, 2, 2, 2**50, 2**50]
    ends = geometric(10_000, big, 100, 1)
    assert (ends[0], ends[-1]) == (big, 10_000) and ends == sorted(ends, reverse=True)
    assert geometric(1_000, 8_000, 4, 1) == [8_000, 4_000, 2_000, 1_000]
    assert crowded(0, 100, 3, 1) == [100, 75, 0]
    third, high = Fraction(1, 3), Fraction(4, 3)
    assert geometric_units(third, high, 3) == [high, Fraction(2, 3), third]
    assert geometric_units(third, high, 1) == [high]
    assert nearest_gaps([9, 9, 7, 4, 4]) == [0, 0, 2, 3, 3]


def test_levels_are_stored_exactly_and_what_is_no_level_is_refused() -> None:
    assert load_bid_config(dump_bid_config(EXAMPLE)) == EXAMPLE
    stored = dump_bid_config(EXAMPLE)
    for wrong in ('"at": 0.9', '"at": "x"', '"at": "0.9", "cap": 1'):
        with pytest.raises(ValueError, match="stored config"):
            load_bid_config(stored.replace('"at": "0.9"', wrong))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"bid_levels": ()}, "bid_levels"),
        ({"bid_levels": levels(("0", 1)), "bid_count": 1}, "bid_levels"),
        ({"bid_levels": levels(("10.01", 1)), "bid_count": 1}, "bid_levels"),
        ({"bid_levels": levels(("NaN", 1)), "bid_count": 1}, "bid_levels"),
        ({"bid_levels": levels(("0.5", 21)), "bid_count": 21}, "bid_levels"),
        ({"bid_levels": levels(("0.5", 1), ("0.50", 1)), "bid_count": 2}, "bid_levels"),
        ({"bid_levels": levels(("0.5", 2)), "bid_count": 3}, "bid_count"),
        ({"bid_levels": levels(("0.5", 1)), "bid_count": 1, "bid_mode": "fixed"}, "bid_levels"),
        ({"ladder_shape": "round"}, "ladder_shape"),
    ],
)
def test_broken_levels_are_named(changes: dict[str, object], field: str) -> None:
    assert [problem.field for problem in problems(m.ladder_config(**changes))] == [field]


def test_profile_is_the_practice_markets() -> None:
    assert (m.ORDINALS.tick, m.ORDINALS.min_bid) == (1_000, 10_000)
