"""Variants of the worked examples (tests/strategy/variants.py): ladders, references, budgets and runes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from strategy.decision import Memory
from strategy.guards import measure
from tests.shapes import replace
from tests.strategy import variants
from tests.worlds import market as m

LADDERS = [
    variants.Variant(
        "one bid sits at the high end: 0.6 x 50,000",
        variants.percent("0.3", "0.6", 1),
        m.book(50_000),
        [30_000],
    ),
    variants.Variant(
        "L 50,435 -> 51,000; H 87,115 -> 87,000 (ask cap 90,700 -> 90,000); middle 69,000",
        variants.percent("0.55", "0.95", 3),
        m.book(91_700),
        [87_000, 69_000, 51_000],
    ),
    variants.Variant(
        "H = the floor itself: 91,700 - 1,000 = 90,700 -> 90,000; middle of 90,000 and 51,000 is 70,500 -> 70,000",
        variants.percent("0.55", "1", 3),
        m.book(91_700),
        [90_000, 70_000, 51_000],
    ),
    variants.Variant(
        "an odd ask: 75,999 - 1,000 = 74,999 -> 74,000",
        variants.fixed(10_000, 75_000, 1),
        m.book(75_999),
        [74_000],
    ),
    variants.Variant(
        "one tick below a round ask of 76,000", variants.fixed(10_000, 75_000, 1), m.book(76_000), [75_000]
    ),
    variants.Variant(
        "hard cap under the low end of 50,000",
        variants.percent("0.5", "0.8", 3, hardcap=40_000),
        variants.HUNDRED,
        [],
        ["range_empty (hardcap)"] * 3,
    ),
    variants.Variant(
        "hard cap below the venue's least bid",
        variants.percent("0.01", "0.8", 2, hardcap=9_999),
        variants.HUNDRED,
        [],
        ["range_empty (hardcap)"] * 2,
    ),
    variants.Variant(
        "0.75 of 10,000 is below the least bid",
        variants.percent("0.15", "0.75", 2),
        m.book(10_000),
        [],
        ["range_empty (min_bid)"] * 2,
    ),
    variants.Variant(
        "the whole range is above the ask",
        variants.fixed(90_000, 100_000, 2),
        m.book(85_000),
        [],
        ["range_empty (ask)"] * 2,
    ),
    variants.Variant(
        "10,010 to 10,090 holds no price of the grid: L' 11,000 > H' 10,000",
        variants.percent("0.1001", "0.1009", 1),
        variants.HUNDRED,
        [],
        ["range_empty (tick)"],
    ),
    variants.Variant(
        "hard cap off the grid is rounded down: 77,777 -> 77,000",
        variants.percent("0.5", "0.9", 2, hardcap=77_777),
        variants.HUNDRED,
        [77_000, 50_000],
    ),
    variants.Variant("least bid met exactly", variants.percent("0.1", "0.1", 1), variants.HUNDRED, [10_000]),
    variants.Variant(
        "100 bids over ten prices, cut to the plan's 20: 20,000 - i x 10,000 / 19, floored",
        variants.fixed(10_000, 20_000, 100),
        variants.HUNDRED,
        [k * 1_000 for k in (20, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10)],
        ["place"] * 20 + ["plan_bids"] * 80,
    ),
    variants.Variant(
        "equal rungs stay where the venue takes equal bids: 12,000 - i x 500",
        variants.fixed(10_000, 12_000, 5),
        variants.HUNDRED,
        [12_000, 11_000, 11_000, 10_000, 10_000],
    ),
    variants.Variant(
        "... and are merged where it does not",
        variants.fixed(10_000, 12_000, 5),
        variants.HUNDRED,
        [12_000, 11_000, 10_000],
        ["place", "place", "rungs_merged", "place", "rungs_merged"],
        profile=variants.NO_EQUALS,
    ),
]

REFERENCES = [
    variants.Variant("nothing listed", variants.LADDER, m.book(), [], ["no_reference"] * 5, m.orders(75_000)),
    variants.Variant("an ask of nothing is no floor", variants.LADDER, m.book(0, 100_000), [], ["no_reference"] * 5),
    variants.Variant("a look that failed", variants.LADDER, None, [], ["no_reference"] * 5, m.orders(75_000)),
    variants.Variant(
        "a book of two minutes and a millisecond",
        variants.LADDER,
        m.book(100_000, age_ms=120_001),
        [],
        ["no_reference"] * 5,
    ),
    variants.Variant(
        "a book of exactly two minutes still counts",
        variants.LADDER,
        m.book(100_000, age_ms=120_000),
        [75_000, 60_000, 45_000, 30_000, 15_000],
    ),
    variants.Variant(
        "the grace of five minutes is over",
        variants.LADDER,
        m.book(),
        [],
        own=m.orders(75_000),
        memory=Memory(m.NOW - 300_000),
        cancels=[(75_000, True, "no_reference")],
    ),
    variants.Variant(
        "... a millisecond before", variants.LADDER, m.book(), [], own=m.orders(75_000), memory=Memory(m.NOW - 299_999)
    ),
    variants.Variant(
        "a fixed range goes on without a floor",
        variants.fixed(10_000, 50_000, 2),
        m.book(),
        [50_000, 10_000],
        marks=["no_reference_fixed"],
    ),
    variants.Variant(
        "126,000 is above 1.25 x 100,000: R 125,000; 0.5 -> 62,500 -> 63,000, 0.8 -> 100,000",
        variants.percent("0.5", "0.8", 2),
        m.remembered(m.book(126_000), 100_000),
        [100_000, 63_000],
        marks=["floor_spike"],
    ),
    variants.Variant(
        "125,000 is not above it",
        variants.percent("0.5", "0.8", 2),
        m.remembered(m.book(125_000), 100_000),
        [100_000, 63_000],
        marks=[],
    ),
    variants.Variant(
        "more than twice the median is an alarm too",
        variants.percent("0.5", "0.8", 1),
        m.remembered(m.book(200_001), 100_000),
        [100_000],
        marks=["floor_spike", "floor_alarm"],
    ),
    variants.Variant(
        "nine samples are too few: 0.8 x 200,001 = 160,000.8",
        variants.percent("0.5", "0.8", 1),
        m.remembered(m.book(200_001), 100_000, 9),
        [160_000],
        marks=["cold_start"],
    ),
    variants.Variant(
        "a fall is followed at once: 0.8 x 50,000",
        variants.percent("0.5", "0.8", 1),
        m.remembered(m.book(50_000), 100_000),
        [40_000],
        marks=[],
    ),
    variants.Variant(
        "the trait's own floor of 200,000, not the collection's: 160,000 and 100,000",
        variants.trait(),
        replace(variants.HUNDRED, trait_asks=(m.ask(200_000), m.ask(250_000))),
        [160_000, 100_000],
    ),
    variants.Variant(
        "no ask has the trait: the collection's floor stands in",
        variants.trait(),
        replace(variants.HUNDRED, trait_asks=()),
        [80_000, 50_000],
        marks=["cold_start", "trait_floor_missing"],
    ),
    variants.Variant(
        "a bid on the collection is no trait bid of the same price",
        variants.trait(),
        replace(variants.HUNDRED, trait_asks=(m.ask(200_000),)),
        [160_000],
        own=[m.order(1, 100_000), m.order(2, 100_000, trait=("Hat", "Crown"))],
        cancels=[(100_000, True, "wrong_trait")],
    ),
]

BUDGETS = [
    variants.Variant(
        "75 fits 100; 60, 45, 30 do not; 15 makes 90",
        variants.LADDER,
        variants.HUNDRED,
        [75_000, 15_000],
        limits=m.with_limits(task_total=100_000),
    ),
    variants.Variant(
        "225,000 is hit exactly",
        variants.LADDER,
        variants.HUNDRED,
        [75_000, 60_000, 45_000, 30_000, 15_000],
        limits=m.with_limits(task_total=225_000),
    ),
    variants.Variant(
        "one sat less",
        variants.LADDER,
        variants.HUNDRED,
        [75_000, 60_000, 45_000, 30_000],
        ["place"] * 4 + ["task_total"],
        limits=m.with_limits(task_total=224_999),
    ),
    variants.Variant(
        "134,999 left to the user: 75 + 60 is a sat too much, 75 + 45 is not",
        variants.LADDER,
        variants.HUNDRED,
        [75_000, 45_000],
        ["place", "exposure_limit", "place", "exposure_limit", "exposure_limit"],
        limits=m.with_limits(user_headroom=134_999),
    ),
    variants.Variant(
        "each bid alone: 60,000 + 2,000 of fees = 62,000",
        variants.LADDER,
        variants.HUNDRED,
        [60_000, 45_000, 30_000, 15_000],
        ["insufficient_balance"] + ["place"] * 4,
        limits=m.with_limits(balance_sats=62_000),
    ),
    variants.Variant(
        "all together: 77,000, then 45 + 2 makes 124,000 > 110,000, 30 + 2 makes 109,000",
        variants.LADDER,
        variants.HUNDRED,
        [75_000, 30_000],
        limits=m.with_limits(balance_sats=110_000),
        profile=variants.RESERVED,
    ),
    variants.Variant(
        "without a fee nothing is placed and nothing given up",
        variants.LADDER,
        variants.HUNDRED,
        [],
        ["kept"] + ["fee_unknown"] * 4,
        m.orders(75_000),
        m.with_limits(fee_reserve_sats=None),
    ),
    variants.Variant(
        "two fills left, one bid live: one more",
        variants.LADDER,
        variants.HUNDRED,
        [60_000],
        ["kept", "place", "max_fills", "max_fills", "max_fills"],
        m.orders(75_000),
        m.with_limits(fills_left=2),
    ),
    variants.Variant(
        "100,000 left to spend: 75 and 15",
        variants.LADDER,
        variants.HUNDRED,
        [75_000, 15_000],
        ["place", "spend_cap", "spend_cap", "spend_cap", "place"],
        limits=m.with_limits(spend_left_sats=100_000),
    ),
    variants.Variant(
        "three of the plan's: 75, 45, 15",
        variants.LADDER,
        variants.HUNDRED,
        [75_000, 45_000, 15_000],
        ["place"] * 3 + ["plan_bids"] * 2,
        limits=m.with_limits(plan_bids=3),
    ),
    variants.Variant(
        "80,000 being cancelled and 48,000 count: 38 makes 166, 29 makes 195, 19 and 10 pass 200",
        variants.percent("0.16", "0.8"),
        m.book(60_000),
        [38_000, 29_000],
        ["kept", "place", "place", "task_total", "task_total"],
        [m.order(1, 80_000, "cancelling"), m.order(3, 48_000)],
        m.with_limits(task_total=200_000),
    ),
]

RUNES = [
    variants.Variant(
        "2.5 a token, 1,000 of them: 2,250 / 1,750 / 1,250",
        variants.rune(),
        variants.lots(("5000", "2.5")),
        [2_250, 1_750, 1_250],
    ),
    variants.Variant(
        "fractional units: floor 0.0123, 1,000,000 tokens: 11,070 and 6,150",
        variants.rune(quantity=Decimal(1_000_000), bid_count=2),
        variants.lots(("5000000", "0.0123")),
        [11_070, 6_150],
    ),
    variants.Variant(
        "the total is capped a sat below what the ask would cost: 2,500 - 1",
        variants.rune(bid_percent_high=Decimal("1.2"), bid_count=1),
        variants.lots(("5000", "2.5")),
        [2_499],
    ),
    variants.Variant(
        "1.5 a token of 100 is 1,500 for 1,000; and 10 sats an order",
        variants.rune(outbid_enabled=True, outbid_amount=10, bid_count=1),
        m.rivals(variants.lots(("5000", "2.5")), m.bid(150, "100")),
        [1_510],
    ),
    variants.Variant(
        "1.5004 a token: 1,500.4 + 10 = 1,510.4 -> 1,511",
        variants.rune(outbid_enabled=True, outbid_amount=10, bid_count=1),
        m.rivals(variants.lots(("5000", "2.5")), m.bid(15_004, "10000")),
        [1_511],
    ),
    variants.Variant(
        "499,999 of 1,000,000 is less than half",
        variants.rune(use_vwap=True, depth_sats=1_000_000, bid_count=1),
        variants.lots(("499999", "1")),
        [],
        ["no_reference (thin_book)"],
    ),
    variants.Variant(
        "half is enough",
        variants.rune(use_vwap=True, depth_sats=1_000_000, bid_count=1, quantity=Decimal(10_000)),
        variants.lots(("500000", "1")),
        [9_000],
    ),
    variants.Variant(
        "150,000 sats buy 100,000 at 1 and 25,000 at 2: 1.2; 0.9 of it is 1.08, but the ask at 1.00 caps it",
        variants.rune(use_vwap=True, depth_sats=150_000, bid_count=1, quantity=Decimal(10_000)),
        variants.lots(("100000", "1"), ("100000", "2")),
        [9_999],
    ),
    variants.Variant(
        "10,000 sats at 0.3 buy 33,333.33 (2 decimals) for 9,999.999; at 0.2 buy 50,000",
        variants.sats(10_000),
        variants.lots(("1000000", "0.4"), divisibility=2),
        [9_999, 10_000],
    ),
    variants.Variant(
        "not one token at 300,000; one at 200,000",
        variants.sats(200_000),
        variants.lots(("10", "400000"), divisibility=0),
        [200_000],
        ["below_lot", "place"],
    ),
    variants.Variant(
        "1,000 sats at 300 buy 3 for 900, below the least of 1,000; at 200 buy 5 for 1,000",
        variants.sats(1_000),
        variants.lots(("10", "400"), divisibility=0),
        [1_000],
        ["range_empty (min_bid)", "place"],
    ),
    variants.Variant(
        "an order of 999 sats is below the venue's least",
        variants.sats(999),
        variants.lots(("1000000", "0.4"), divisibility=2),
        [],
        ["range_empty (min_bid)"] * 2,
    ),
    variants.Variant(
        "outbid 0.25 by 100 sats on the order: 9,900 buy 39,600, at 0.25 + 100/39,600 that is 10,000",
        variants.sats(10_000, 1, outbid_enabled=True, outbid_amount=100),
        m.rivals(variants.lots(("1000000", "0.4"), divisibility=0), m.bid(2_500, "10000")),
        [10_000],
    ),
    variants.Variant(
        "decimals not known", variants.sats(10_000), variants.lots(("1000000", "0.4")), [], ["unit_unknown"] * 2
    ),
]


@pytest.mark.parametrize("each", [*LADDERS, *REFERENCES, *BUDGETS, *RUNES], ids=lambda each: each.why[:60])
def test_variant(each: variants.Variant) -> None:
    variants.holds(each)


@pytest.mark.parametrize(
    ("one", "other"), [(("A=B", "c"), ("A", "B=c")), (("A\\", "=b"), ("A\\=", "b")), (("a", "b"), ("a", "c"))]
)
def test_traits_that_look_alike_have_histories_of_their_own(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert measure(variants.trait(trait_type=one[0], trait_value=one[1])) != measure(
        variants.trait(trait_type=other[0], trait_value=other[1])
    )
