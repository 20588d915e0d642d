"""Variants of the worked examples with numbers that were computed by hand from the rules, before they were run.

Each row says how its numbers come about. Unless it says otherwise: tick 1,000, least bid 10,000, balance ample, bids
that live older than the least age, outbidding off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from strategy.bidding.plan_bids import measure, without_places
from strategy.book import Profile, Snapshot
from strategy.config import BidConfig, problems
from strategy.intents import Limits, Memory, OwnOrder
from strategy.reasons import Reason
from tests.strategy.market import (
    AMPLE,
    NOW,
    ORDINALS,
    ask,
    bid,
    book,
    cancelled,
    ladder_config,
    order,
    orders,
    placed,
    plan,
    remembered,
    rivals,
    rune_ask,
    rune_config,
    with_limits,
)

YOUNG = {"created_ms": NOW - 59_999}
OLD_RIVAL, NEW_RIVAL = NOW - 3_600_000, NOW - 1_000
RESERVED = replace(ORDINALS, balance_model="reserved")
NO_EQUALS = replace(ORDINALS, equal_bids_allowed=False)


@dataclass(frozen=True)
class Variant:
    """`rungs` are the labels of all rungs, `cancels` are (price, hard, reason); None is not looked at."""

    why: str
    config: BidConfig
    market: Snapshot | None
    places: list[int]
    rungs: list[str] | None = None
    own: Sequence[OwnOrder] = ()
    limits: Limits = AMPLE
    cancels: Sequence[tuple[int, bool, str]] = ()
    profile: Profile | None = None
    memory: Memory = Memory()  # noqa: RUF009 - frozen
    marks: list[str] | None = None


def percent(low: str, high: str, count: int = 5, hardcap: int = 1_000_000, **more: Any) -> BidConfig:
    return ladder_config(
        bid_percent_low=Decimal(low), bid_percent_high=Decimal(high), bid_count=count, hardcap_sats=hardcap, **more
    )


def fixed(low: int, high: int, count: int = 5, **more: Any) -> BidConfig:
    limits = {"bid_mode": "fixed", "bid_fixed_low": low, "bid_fixed_high": high, "bid_count": count}
    return ladder_config(**{"hardcap_sats": 0, **limits, **more})


def outbid(low: int, high: int, count: int = 1, **more: Any) -> BidConfig:
    return fixed(low, high, count, outbid_enabled=True, **more)


def by_percent(share: str) -> dict[str, Any]:
    return {"outbid_mode": "percent", "outbid_percent": Decimal(share)}


def rune(**more: Any) -> BidConfig:
    percents = {"bid_percent_low": Decimal("0.5"), "bid_percent_high": Decimal("0.9")}
    return rune_config(**{**percents, "quantity": Decimal(1000), "bid_count": 3, **more})


def sats(per_order: int, count: int = 2, low: str = "0.5", high: str = "0.75", **more: Any) -> BidConfig:
    ends = {"bid_percent_low": Decimal(low), "bid_percent_high": Decimal(high), "bid_count": count}
    return rune_config(quantity_mode="sats", sats_per_order=per_order, **ends, **more)


def lots(*asks: tuple[str, str], **more: Any) -> Snapshot:
    return Snapshot(NOW, tuple(rune_ask(*each) for each in asks), **more)


def trait(low: str = "0.5", high: str = "0.8", count: int = 2, **more: Any) -> BidConfig:
    return percent(low, high, count, **{"bid_type": "trait", "trait_type": "Hat", "trait_value": "Crown", **more})


LADDER = ladder_config()
HUNDRED = book(100_000)

LADDERS = [
    Variant(
        "one bid sits at the high end: 0.6 x 50,000",
        percent("0.3", "0.6", 1),
        book(50_000),
        [30_000],
    ),
    Variant(
        "L 50,435 -> 51,000; H 87,115 -> 87,000 (ask cap 90,700 -> 90,000); middle 69,000",
        percent("0.55", "0.95", 3),
        book(91_700),
        [87_000, 69_000, 51_000],
    ),
    Variant(
        "H = the floor itself: 91,700 - 1,000 = 90,700 -> 90,000; middle of 90,000 and 51,000 is 70,500 -> 70,000",
        percent("0.55", "1", 3),
        book(91_700),
        [90_000, 70_000, 51_000],
    ),
    Variant(
        "an odd ask: 75,999 - 1,000 = 74,999 -> 74,000",
        fixed(10_000, 75_000, 1),
        book(75_999),
        [74_000],
    ),
    Variant("one tick below a round ask of 76,000", fixed(10_000, 75_000, 1), book(76_000), [75_000]),
    Variant(
        "hard cap under the low end of 50,000",
        percent("0.5", "0.8", 3, hardcap=40_000),
        HUNDRED,
        [],
        ["range_empty (hardcap)"] * 3,
    ),
    Variant(
        "hard cap below the venue's least bid",
        percent("0.01", "0.8", 2, hardcap=9_999),
        HUNDRED,
        [],
        ["range_empty (hardcap)"] * 2,
    ),
    Variant(
        "0.75 of 10,000 is below the least bid",
        percent("0.15", "0.75", 2),
        book(10_000),
        [],
        ["range_empty (min_bid)"] * 2,
    ),
    Variant(
        "the whole range is above the ask",
        fixed(90_000, 100_000, 2),
        book(85_000),
        [],
        ["range_empty (ask)"] * 2,
    ),
    Variant(
        "10,010 to 10,090 holds no price of the grid: L' 11,000 > H' 10,000",
        percent("0.1001", "0.1009", 1),
        HUNDRED,
        [],
        ["range_empty (tick)"],
    ),
    Variant(
        "hard cap off the grid is rounded down: 77,777 -> 77,000",
        percent("0.5", "0.9", 2, hardcap=77_777),
        HUNDRED,
        [77_000, 50_000],
    ),
    Variant("least bid met exactly", percent("0.1", "0.1", 1), HUNDRED, [10_000]),
    Variant(
        "100 bids over ten prices, cut to the plan's 20: 20,000 - i x 10,000 / 19, floored",
        fixed(10_000, 20_000, 100),
        HUNDRED,
        [k * 1_000 for k in (20, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10)],
        ["place"] * 20 + ["plan_bids"] * 80,
    ),
    Variant(
        "equal rungs stay where the venue takes equal bids: 12,000 - i x 500",
        fixed(10_000, 12_000, 5),
        HUNDRED,
        [12_000, 11_000, 11_000, 10_000, 10_000],
    ),
    Variant(
        "... and are merged where it does not",
        fixed(10_000, 12_000, 5),
        HUNDRED,
        [12_000, 11_000, 10_000],
        ["place", "place", "rungs_merged", "place", "rungs_merged"],
        profile=NO_EQUALS,
    ),
]

REFERENCES = [
    Variant("nothing listed", LADDER, book(), [], ["no_reference"] * 5, orders(75_000)),
    Variant("an ask of nothing is no floor", LADDER, book(0, 100_000), [], ["no_reference"] * 5),
    Variant("a look that failed", LADDER, None, [], ["no_reference"] * 5, orders(75_000)),
    Variant("a book of two minutes and a millisecond", LADDER, book(100_000, age_ms=120_001), [], ["no_reference"] * 5),
    Variant(
        "a book of exactly two minutes still counts",
        LADDER,
        book(100_000, age_ms=120_000),
        [75_000, 60_000, 45_000, 30_000, 15_000],
    ),
    Variant(
        "the grace of five minutes is over",
        LADDER,
        book(),
        [],
        own=orders(75_000),
        memory=Memory(NOW - 300_000),
        cancels=[(75_000, True, "no_reference")],
    ),
    Variant("... a millisecond before", LADDER, book(), [], own=orders(75_000), memory=Memory(NOW - 299_999)),
    Variant(
        "a fixed range goes on without a floor",
        fixed(10_000, 50_000, 2),
        book(),
        [50_000, 10_000],
        marks=["no_reference_fixed"],
    ),
    Variant(
        "126,000 is above 1.25 x 100,000: R 125,000; 0.5 -> 62,500 -> 63,000, 0.8 -> 100,000",
        percent("0.5", "0.8", 2),
        remembered(book(126_000), 100_000),
        [100_000, 63_000],
        marks=["floor_spike"],
    ),
    Variant(
        "125,000 is not above it",
        percent("0.5", "0.8", 2),
        remembered(book(125_000), 100_000),
        [100_000, 63_000],
        marks=[],
    ),
    Variant(
        "more than twice the median is an alarm too",
        percent("0.5", "0.8", 1),
        remembered(book(200_001), 100_000),
        [100_000],
        marks=["floor_spike", "floor_alarm"],
    ),
    Variant(
        "nine samples are too few: 0.8 x 200,001 = 160,000.8",
        percent("0.5", "0.8", 1),
        remembered(book(200_001), 100_000, 9),
        [160_000],
        marks=["cold_start"],
    ),
    Variant(
        "a fall is followed at once: 0.8 x 50,000",
        percent("0.5", "0.8", 1),
        remembered(book(50_000), 100_000),
        [40_000],
        marks=[],
    ),
    Variant(
        "the trait's own floor of 200,000, not the collection's: 160,000 and 100,000",
        trait(),
        replace(HUNDRED, trait_asks=(ask(200_000), ask(250_000))),
        [160_000, 100_000],
    ),
    Variant(
        "no ask has the trait: the collection's floor stands in",
        trait(),
        replace(HUNDRED, trait_asks=()),
        [80_000, 50_000],
        marks=["cold_start", "trait_floor_missing"],
    ),
    Variant(
        "a bid on the collection is no trait bid of the same price",
        trait(),
        replace(HUNDRED, trait_asks=(ask(200_000),)),
        [160_000],
        own=[order(1, 100_000), order(2, 100_000, trait=("Hat", "Crown"))],
        cancels=[(100_000, True, "wrong_trait")],
    ),
]

BUDGETS = [
    Variant(
        "75 fits 100; 60, 45, 30 do not; 15 makes 90",
        LADDER,
        HUNDRED,
        [75_000, 15_000],
        limits=with_limits(task_total=100_000),
    ),
    Variant(
        "225,000 is hit exactly",
        LADDER,
        HUNDRED,
        [75_000, 60_000, 45_000, 30_000, 15_000],
        limits=with_limits(task_total=225_000),
    ),
    Variant(
        "one sat less",
        LADDER,
        HUNDRED,
        [75_000, 60_000, 45_000, 30_000],
        ["place"] * 4 + ["task_total"],
        limits=with_limits(task_total=224_999),
    ),
    Variant(
        "134,999 left to the user: 75 + 60 is a sat too much, 75 + 45 is not",
        LADDER,
        HUNDRED,
        [75_000, 45_000],
        ["place", "exposure_limit", "place", "exposure_limit", "exposure_limit"],
        limits=with_limits(user_headroom=134_999),
    ),
    Variant(
        "each bid alone: 60,000 + 2,000 of fees = 62,000",
        LADDER,
        HUNDRED,
        [60_000, 45_000, 30_000, 15_000],
        ["insufficient_balance"] + ["place"] * 4,
        limits=with_limits(balance_sats=62_000),
    ),
    Variant(
        "all together: 77,000, then 45 + 2 makes 124,000 > 110,000, 30 + 2 makes 109,000",
        LADDER,
        HUNDRED,
        [75_000, 30_000],
        limits=with_limits(balance_sats=110_000),
        profile=RESERVED,
    ),
    Variant(
        "without a fee nothing is placed and nothing given up",
        LADDER,
        HUNDRED,
        [],
        ["kept"] + ["fee_unknown"] * 4,
        orders(75_000),
        with_limits(fee_reserve_sats=None),
    ),
    Variant(
        "two fills left, one bid live: one more",
        LADDER,
        HUNDRED,
        [60_000],
        ["kept", "place", "max_fills", "max_fills", "max_fills"],
        orders(75_000),
        with_limits(fills_left=2),
    ),
    Variant(
        "100,000 left to spend: 75 and 15",
        LADDER,
        HUNDRED,
        [75_000, 15_000],
        ["place", "spend_cap", "spend_cap", "spend_cap", "place"],
        limits=with_limits(spend_left_sats=100_000),
    ),
    Variant(
        "three of the plan's: 75, 45, 15",
        LADDER,
        HUNDRED,
        [75_000, 45_000, 15_000],
        ["place"] * 3 + ["plan_bids"] * 2,
        limits=with_limits(plan_bids=3),
    ),
    Variant(
        "80,000 being cancelled and 48,000 count: 38 makes 166, 29 makes 195, 19 and 10 pass 200",
        percent("0.16", "0.8"),
        book(60_000),
        [38_000, 29_000],
        ["kept", "place", "place", "task_total", "task_total"],
        [order(1, 80_000, "cancelling"), order(3, 48_000)],
        with_limits(task_total=200_000),
    ),
]

OUTBIDS = [
    Variant(
        "41,300 + 2,500 = 43,800 -> 44,000, then evenly down to 20,000",
        outbid(20_000, 60_000, 4, outbid_amount=2_500),
        rivals(HUNDRED, 41_300),
        [44_000, 36_000, 28_000, 20_000],
    ),
    Variant(
        "5 % above 40,000 is 42,000 exactly",
        outbid(20_000, 60_000, **by_percent("0.05")),
        rivals(HUNDRED, 40_000),
        [42_000],
    ),
    Variant(
        "1 % above 40,000 is 40,400: the next tick, 41,000",
        outbid(20_000, 60_000, **by_percent("0.01")),
        rivals(HUNDRED, 40_000),
        [41_000],
    ),
    Variant(
        "by nothing is by a tick above 40,500: 41,500 -> 42,000",
        outbid(20_000, 60_000, outbid_amount=0),
        rivals(HUNDRED, 40_500),
        [42_000],
    ),
    Variant("nobody bids: all at the low end", outbid(50_000, 60_000, 3), rivals(HUNDRED), [50_000] * 3),
    Variant(
        "a rival below the range is beaten by its low end", outbid(20_000, 60_000), rivals(HUNDRED, 5_000), [20_000]
    ),
    Variant("80,000 just outbids 79,000", outbid(50_000, 80_000), rivals(HUNDRED, 79_000), [80_000]),
    Variant(
        "79,001 cannot be outbid, 60,000 can",
        outbid(50_000, 80_000),
        rivals(HUNDRED, 79_001, 60_000),
        [61_000],
    ),
    Variant(
        "90,000 is out of reach: 67,000 outbids 66,000; 67, 58.5 -> 58, 50",
        outbid(50_000, 80_000, 3),
        rivals(HUNDRED, 90_000, 66_000),
        [67_000, 58_000, 50_000],
    ),
    Variant(
        "our 62,000 is older than the equal rival's: it leads",
        outbid(50_000, 80_000),
        rivals(HUNDRED, bid(62_000, placed_ms=NEW_RIVAL)),
        [],
        ["kept"],
        orders(62_000),
    ),
    Variant(
        "an older equal ranks ahead",
        outbid(50_000, 80_000),
        rivals(HUNDRED, bid(62_000, placed_ms=OLD_RIVAL)),
        [63_000],
        own=orders(62_000),
        cancels=[(62_000, False, "outbid")],
    ),
    Variant(
        "one whose age is not told is taken for the older",
        outbid(50_000, 80_000),
        rivals(HUNDRED, bid(62_000, placed_ms=None)),
        [63_000],
        own=orders(62_000),
        cancels=[(62_000, False, "outbid")],
    ),
    Variant(
        "64,000 is a tick above the 63,000 that is needed: within twice the outbid step",
        outbid(50_000, 80_000),
        rivals(HUNDRED, 62_000),
        [],
        ["kept"],
        orders(64_000),
    ),
    Variant(
        "65,000 is two steps of 1,000 above: within twice the outbid step",
        outbid(50_000, 80_000),
        rivals(HUNDRED, 62_000),
        [],
        ["kept"],
        orders(65_000),
    ),
    Variant(
        "66,000 is more: step down",
        outbid(50_000, 80_000),
        rivals(HUNDRED, 62_000),
        [63_000],
        own=orders(66_000),
        cancels=[(66_000, False, "step_down")],
    ),
    Variant(
        "... but not with updateBidEnabled false",
        outbid(50_000, 80_000, update_bid_enabled=False),
        rivals(HUNDRED, 62_000),
        [],
        ["kept"],
        orders(66_000),
    ),
    Variant(
        "a raise does not wait for the least age",
        outbid(50_000, 80_000),
        rivals(HUNDRED, 62_000),
        [63_000],
        own=orders(60_000, **YOUNG),
        cancels=[(60_000, False, "outbid")],
    ),
    Variant(
        "a step down does",
        outbid(50_000, 80_000),
        rivals(HUNDRED, 62_000),
        [],
        ["min_age"],
        orders(70_000, **YOUNG),
    ),
    Variant(
        "twenty raises in the hour are enough: what is there stays",
        outbid(50_000, 80_000),
        rivals(HUNDRED, 62_000),
        [],
        ["raise_limited"],
        orders(60_000),
        memory=Memory(raises_ms=tuple(NOW - 60_000 * i for i in range(20))),
    ),
    Variant(
        "one of the twenty is an hour old",
        outbid(50_000, 80_000),
        rivals(HUNDRED, 62_000),
        [63_000],
        own=orders(60_000),
        cancels=[(60_000, False, "outbid")],
        memory=Memory(raises_ms=(NOW - 3_600_000, *(NOW - 60_000 * i for i in range(1, 20)))),
    ),
    Variant(
        "only if highest: of 50, 45, 40, 35, 30 only 50 is above 45,000",
        fixed(30_000, 50_000, 5, only_bid_if_highest=True),
        rivals(HUNDRED, 45_000),
        [50_000],
        ["place"] + ["not_highest"] * 4,
    ),
    Variant(
        "... an own 45,000 older than the rival's is first of the two and stays",
        fixed(30_000, 50_000, 5, only_bid_if_highest=True),
        rivals(HUNDRED, bid(45_000, placed_ms=NEW_RIVAL)),
        [50_000],
        ["place", "kept"] + ["not_highest"] * 3,
        orders(45_000),
    ),
    Variant(
        "only if highest, with outbidding: 63,000 leads, 56,000 and 50,000 would not",
        outbid(50_000, 80_000, 3, only_bid_if_highest=True),
        rivals(HUNDRED, 62_000),
        [63_000],
        ["place (raise)", "not_highest", "not_highest"],  # where losing bids go at once, what follows them is a raise
    ),
    Variant(
        "the bids of others could not be read: only what is above the range goes",
        outbid(50_000, 80_000),
        HUNDRED,
        [],
        ["bids_unknown"],
        orders(90_000, 60_000),
        cancels=[(90_000, True, "above_range")],
    ),
]

DIFFS = [
    Variant(
        "the floor falls to 60,000: H' 48,000, L' 9,600 -> 10,000; 48, 38.5, 29, 19.5, 10",
        percent("0.16", "0.8"),
        book(60_000),
        [38_000, 29_000, 19_000, 10_000],
        own=orders(80_000, 64_000, 48_000, 32_000, 16_000),
        cancels=[
            (80_000, True, "above_range"),
            (64_000, True, "above_range"),
            (32_000, False, "surplus"),
            (16_000, False, "surplus"),
        ],
    ),
    Variant("1 % of 400,000 away is kept", fixed(400_000, 400_000, 1), book(1_000_000), [], own=orders(396_000)),
    Variant(
        "more is not",
        fixed(390_000, 400_000, 1),
        book(1_000_000),
        [400_000],
        own=orders(395_000),
        cancels=[(395_000, False, "surplus")],
    ),
    Variant(
        "at the ask, by any way, it goes: 75,000 - 1,000",
        fixed(50_000, 80_000, 1),
        book(75_000),
        [74_000],
        own=orders(75_000),
        cancels=[(75_000, True, "at_ask")],
    ),
    Variant(
        "... even with updateBidEnabled false",
        fixed(50_000, 80_000, 1, update_bid_enabled=False),
        book(75_000),
        [74_000],
        own=orders(75_000),
        cancels=[(75_000, True, "at_ask")],
    ),
    Variant(
        "a young surplus holds a slot, and the lowest missing rung waits",
        fixed(50_000, 60_000, 2),
        HUNDRED,
        [60_000],
        ["place", "min_age"],
        orders(55_000, **YOUNG),
    ),
    Variant(
        "with updates off it holds it for good",
        fixed(50_000, 60_000, 2, update_bid_enabled=False),
        HUNDRED,
        [60_000],
        ["place", "slot_taken"],
        orders(55_000),
    ),
    Variant(
        "one too many of the same price",
        fixed(50_000, 50_000, 1),
        HUNDRED,
        [],
        ["kept"],
        orders(50_000, 50_000),
        cancels=[(50_000, True, "duplicate")],
    ),
    Variant(
        "16 minutes, 30 s: renewed from 90 s before the end, at the rung's price of now",
        fixed(61_000, 61_000, 1),
        HUNDRED,
        [61_000],
        ["renew"],
        orders(60_000, expires_ms=NOW + 90_000),
        cancels=[(60_000, False, "renew")],
    ),
    Variant(
        "... not a millisecond earlier",
        fixed(61_000, 61_000, 1),
        HUNDRED,
        [],
        ["kept"],
        orders(60_000, expires_ms=NOW + 90_001),
    ),
    Variant(
        "with 5 s cycles from a minute before",
        fixed(61_000, 61_000, 1, loop_seconds=5),
        HUNDRED,
        [61_000],
        ["renew"],
        orders(61_000, expires_ms=NOW + 60_000),
        cancels=[(61_000, False, "renew")],
    ),
    Variant(
        "with 400 s cycles (three are 20 minutes) from a quarter of its life before",
        fixed(61_000, 61_000, 1, loop_seconds=400),
        HUNDRED,
        [],
        ["kept"],
        orders(61_000, expires_ms=NOW + 240_001),
    ),
    Variant(
        "a bid whose fate is unknown blocks its rung and counts: 75 + 60 + 15",
        LADDER,
        HUNDRED,
        [60_000, 15_000],
        ["in_flight", "place", "task_total", "task_total", "place"],
        [order(1, 75_000, "unknown")],
        with_limits(task_total=150_000),
    ),
]

RUNES = [
    Variant(
        "2.5 a token, 1,000 of them: 2,250 / 1,750 / 1,250",
        rune(),
        lots(("5000", "2.5")),
        [2_250, 1_750, 1_250],
    ),
    Variant(
        "fractional units: floor 0.0123, 1,000,000 tokens: 11,070 and 6,150",
        rune(quantity=Decimal(1_000_000), bid_count=2),
        lots(("5000000", "0.0123")),
        [11_070, 6_150],
    ),
    Variant(
        "the total is capped a sat below what the ask would cost: 2,500 - 1",
        rune(bid_percent_high=Decimal("1.2"), bid_count=1),
        lots(("5000", "2.5")),
        [2_499],
    ),
    Variant(
        "1.5 a token of 100 is 1,500 for 1,000; and 10 sats an order",
        rune(outbid_enabled=True, outbid_amount=10, bid_count=1),
        rivals(lots(("5000", "2.5")), bid(150, "100")),
        [1_510],
    ),
    Variant(
        "1.5004 a token: 1,500.4 + 10 = 1,510.4 -> 1,511",
        rune(outbid_enabled=True, outbid_amount=10, bid_count=1),
        rivals(lots(("5000", "2.5")), bid(15_004, "10000")),
        [1_511],
    ),
    Variant(
        "499,999 of 1,000,000 is less than half",
        rune(use_vwap=True, depth_sats=1_000_000, bid_count=1),
        lots(("499999", "1")),
        [],
        ["no_reference (thin_book)"],
    ),
    Variant(
        "half is enough",
        rune(use_vwap=True, depth_sats=1_000_000, bid_count=1, quantity=Decimal(10_000)),
        lots(("500000", "1")),
        [9_000],
    ),
    Variant(
        "150,000 sats buy 100,000 at 1 and 25,000 at 2: 1.2; 0.9 of it is 1.08, but the ask at 1.00 caps it",
        rune(use_vwap=True, depth_sats=150_000, bid_count=1, quantity=Decimal(10_000)),
        lots(("100000", "1"), ("100000", "2")),
        [9_999],
    ),
    Variant(
        "10,000 sats at 0.3 buy 33,333.33 (2 decimals) for 9,999.999; at 0.2 buy 50,000",
        sats(10_000),
        lots(("1000000", "0.4"), divisibility=2),
        [9_999, 10_000],
    ),
    Variant(
        "not one token at 300,000; one at 200,000",
        sats(200_000),
        lots(("10", "400000"), divisibility=0),
        [200_000],
        ["below_lot", "place"],
    ),
    Variant(
        "1,000 sats at 300 buy 3 for 900, below the least of 1,000; at 200 buy 5 for 1,000",
        sats(1_000),
        lots(("10", "400"), divisibility=0),
        [1_000],
        ["range_empty (min_bid)", "place"],
    ),
    Variant(
        "an order of 999 sats is below the venue's least",
        sats(999),
        lots(("1000000", "0.4"), divisibility=2),
        [],
        ["range_empty (min_bid)"] * 2,
    ),
    Variant(
        "outbid 0.25 by 100 sats on the order: 9,900 buy 39,600, at 0.25 + 100/39,600 that is 10,000",
        sats(10_000, 1, outbid_enabled=True, outbid_amount=100),
        rivals(lots(("1000000", "0.4"), divisibility=0), bid(2_500, "10000")),
        [10_000],
    ),
    Variant("decimals not known", sats(10_000), lots(("1000000", "0.4")), [], ["unit_unknown"] * 2),
]

ALL = [*LADDERS, *REFERENCES, *BUDGETS, *OUTBIDS, *DIFFS, *RUNES]


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.why[:60])
def test_variant(each: Variant) -> None:
    assert problems(each.config) == []

    result = plan(each.config, each.market, each.own, each.limits, profile=each.profile, memory=each.memory)

    assert placed(result) == each.places
    assert cancelled(result) == list(each.cancels)
    if each.rungs is not None:
        assert [note.label for note in result.rungs] == each.rungs
    if each.marks is not None:
        assert [str(mark) for mark in result.marks] == each.marks


def test_reduce_cancels_and_neither_places_nor_renews() -> None:
    """Live 80, 64, 48, 32, 16 under a floor of 60,000, the 48,000 due for renewal: four cancels, nothing new."""
    own = [*orders(80_000, 64_000), order(3, 48_000, expires_ms=NOW + 60_000), order(4, 32_000), order(5, 16_000)]
    full = plan(percent("0.16", "0.8"), book(60_000), own)
    assert placed(full) == [48_000, 38_000, 29_000, 19_000, 10_000]

    reduced = without_places(full, Reason.REDUCE, soft_cancels=True)

    assert [price for price, _, _ in cancelled(reduced)] == [80_000, 64_000, 32_000, 16_000]
    assert placed(reduced) == []


def test_reduce_does_not_count_the_raise_it_forbids() -> None:
    before = Memory(raises_ms=(NOW - 5_000,))
    full = plan(outbid(50_000, 80_000), rivals(HUNDRED, 62_000), orders(60_000), memory=before)
    assert full.memory.raises_ms == (NOW - 5_000, NOW)

    assert without_places(full, Reason.REDUCE, soft_cancels=True).memory == before


@pytest.mark.parametrize(
    ("one", "other"), [(("A=B", "c"), ("A", "B=c")), (("A\\", "=b"), ("A\\=", "b")), (("a", "b"), ("a", "c"))]
)
def test_traits_that_look_alike_have_histories_of_their_own(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert measure(trait(trait_type=one[0], trait_value=one[1])) != measure(
        trait(trait_type=other[0], trait_value=other[1])
    )
