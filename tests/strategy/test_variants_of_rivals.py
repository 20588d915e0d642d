"""Variants of the worked examples (tests/strategy/variants.py): rivals that are outbid, and bids that live already."""

from __future__ import annotations

import pytest

from strategy.decision import Memory
from strategy.plan_bids import without_places
from strategy.reasons import Reason
from tests.strategy.market import (
    NOW,
    bid,
    book,
    cancelled,
    order,
    orders,
    placed,
    plan,
    rivals,
    with_limits,
)
from tests.strategy.variants import (
    HUNDRED,
    LADDER,
    NEW_RIVAL,
    OLD_RIVAL,
    YOUNG,
    Variant,
    by_percent,
    fixed,
    holds,
    outbid,
    percent,
)

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


@pytest.mark.parametrize("each", [*OUTBIDS, *DIFFS], ids=lambda each: each.why[:60])
def test_variant(each: Variant) -> None:
    holds(each)


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
