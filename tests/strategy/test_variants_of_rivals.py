"""Variants of the worked examples (tests/strategy/variants.py): rivals that are outbid, and bids that live already."""

from __future__ import annotations

import pytest

from strategy.decision import Memory
from strategy.plan_bids import without_places
from strategy.reasons import Reason
from tests.strategy import variants
from tests.worlds import market as m

OUTBIDS = [
    variants.Variant(
        "41,300 + 2,500 = 43,800 -> 44,000, then evenly down to 20,000",
        variants.outbid(20_000, 60_000, 4, outbid_amount=2_500),
        m.rivals(variants.HUNDRED, 41_300),
        [44_000, 36_000, 28_000, 20_000],
    ),
    variants.Variant(
        "5 % above 40,000 is 42,000 exactly",
        variants.outbid(20_000, 60_000, **variants.by_percent("0.05")),
        m.rivals(variants.HUNDRED, 40_000),
        [42_000],
    ),
    variants.Variant(
        "1 % above 40,000 is 40,400: the next tick, 41,000",
        variants.outbid(20_000, 60_000, **variants.by_percent("0.01")),
        m.rivals(variants.HUNDRED, 40_000),
        [41_000],
    ),
    variants.Variant(
        "by nothing is by a tick above 40,500: 41,500 -> 42,000",
        variants.outbid(20_000, 60_000, outbid_amount=0),
        m.rivals(variants.HUNDRED, 40_500),
        [42_000],
    ),
    variants.Variant(
        "nobody bids: all at the low end", variants.outbid(50_000, 60_000, 3), m.rivals(variants.HUNDRED), [50_000] * 3
    ),
    variants.Variant(
        "a rival below the range is beaten by its low end",
        variants.outbid(20_000, 60_000),
        m.rivals(variants.HUNDRED, 5_000),
        [20_000],
    ),
    variants.Variant(
        "80,000 just outbids 79,000", variants.outbid(50_000, 80_000), m.rivals(variants.HUNDRED, 79_000), [80_000]
    ),
    variants.Variant(
        "79,001 cannot be outbid, 60,000 can",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, 79_001, 60_000),
        [61_000],
    ),
    variants.Variant(
        "90,000 is out of reach: 67,000 outbids 66,000; 67, 58.5 -> 58, 50",
        variants.outbid(50_000, 80_000, 3),
        m.rivals(variants.HUNDRED, 90_000, 66_000),
        [67_000, 58_000, 50_000],
    ),
    variants.Variant(
        "our 62,000 is older than the equal rival's: it leads",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, m.bid(62_000, placed_ms=variants.NEW_RIVAL)),
        [],
        ["kept"],
        m.orders(62_000),
    ),
    variants.Variant(
        "an older equal ranks ahead",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, m.bid(62_000, placed_ms=variants.OLD_RIVAL)),
        [63_000],
        own=m.orders(62_000),
        cancels=[(62_000, False, "outbid")],
    ),
    variants.Variant(
        "one whose age is not told is taken for the older",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, m.bid(62_000, placed_ms=None)),
        [63_000],
        own=m.orders(62_000),
        cancels=[(62_000, False, "outbid")],
    ),
    variants.Variant(
        "64,000 is a tick above the 63,000 that is needed: within twice the outbid step",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, 62_000),
        [],
        ["kept"],
        m.orders(64_000),
    ),
    variants.Variant(
        "65,000 is two steps of 1,000 above: within twice the outbid step",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, 62_000),
        [],
        ["kept"],
        m.orders(65_000),
    ),
    variants.Variant(
        "66,000 is more: step down",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, 62_000),
        [63_000],
        own=m.orders(66_000),
        cancels=[(66_000, False, "step_down")],
    ),
    variants.Variant(
        "... but not with updateBidEnabled false",
        variants.outbid(50_000, 80_000, update_bid_enabled=False),
        m.rivals(variants.HUNDRED, 62_000),
        [],
        ["kept"],
        m.orders(66_000),
    ),
    variants.Variant(
        "a raise does not wait for the least age",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, 62_000),
        [63_000],
        own=m.orders(60_000, **variants.YOUNG),
        cancels=[(60_000, False, "outbid")],
    ),
    variants.Variant(
        "a step down does",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, 62_000),
        [],
        ["min_age"],
        m.orders(70_000, **variants.YOUNG),
    ),
    variants.Variant(
        "twenty raises in the hour are enough: what is there stays",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, 62_000),
        [],
        ["raise_limited"],
        m.orders(60_000),
        memory=Memory(raises_ms=tuple(m.NOW - 60_000 * i for i in range(20))),
    ),
    variants.Variant(
        "one of the twenty is an hour old",
        variants.outbid(50_000, 80_000),
        m.rivals(variants.HUNDRED, 62_000),
        [63_000],
        own=m.orders(60_000),
        cancels=[(60_000, False, "outbid")],
        memory=Memory(raises_ms=(m.NOW - 3_600_000, *(m.NOW - 60_000 * i for i in range(1, 20)))),
    ),
    variants.Variant(
        "only if highest: of 50, 45, 40, 35, 30 only 50 is above 45,000",
        variants.fixed(30_000, 50_000, 5, only_bid_if_highest=True),
        m.rivals(variants.HUNDRED, 45_000),
        [50_000],
        ["place"] + ["not_highest"] * 4,
    ),
    variants.Variant(
        "... an own 45,000 older than the rival's is first of the two and stays",
        variants.fixed(30_000, 50_000, 5, only_bid_if_highest=True),
        m.rivals(variants.HUNDRED, m.bid(45_000, placed_ms=variants.NEW_RIVAL)),
        [50_000],
        ["place", "kept"] + ["not_highest"] * 3,
        m.orders(45_000),
    ),
    variants.Variant(
        "only if highest, with outbidding: 63,000 leads, 56,000 and 50,000 would not",
        variants.outbid(50_000, 80_000, 3, only_bid_if_highest=True),
        m.rivals(variants.HUNDRED, 62_000),
        [63_000],
        ["place (raise)", "not_highest", "not_highest"],  # where losing bids go at once, what follows them is a raise
    ),
    variants.Variant(
        "the bids of others could not be read: only what is above the range goes",
        variants.outbid(50_000, 80_000),
        variants.HUNDRED,
        [],
        ["bids_unknown"],
        m.orders(90_000, 60_000),
        cancels=[(90_000, True, "above_range")],
    ),
]

DIFFS = [
    variants.Variant(
        "the floor falls to 60,000: H' 48,000, L' 9,600 -> 10,000; 48, 38.5, 29, 19.5, 10",
        variants.percent("0.16", "0.8"),
        m.book(60_000),
        [38_000, 29_000, 19_000, 10_000],
        own=m.orders(80_000, 64_000, 48_000, 32_000, 16_000),
        cancels=[
            (80_000, True, "above_range"),
            (64_000, True, "above_range"),
            (32_000, False, "surplus"),
            (16_000, False, "surplus"),
        ],
    ),
    variants.Variant(
        "1 % of 400,000 away is kept", variants.fixed(400_000, 400_000, 1), m.book(1_000_000), [], own=m.orders(396_000)
    ),
    variants.Variant(
        "more is not",
        variants.fixed(390_000, 400_000, 1),
        m.book(1_000_000),
        [400_000],
        own=m.orders(395_000),
        cancels=[(395_000, False, "surplus")],
    ),
    variants.Variant(
        "at the ask, by any way, it goes: 75,000 - 1,000",
        variants.fixed(50_000, 80_000, 1),
        m.book(75_000),
        [74_000],
        own=m.orders(75_000),
        cancels=[(75_000, True, "at_ask")],
    ),
    variants.Variant(
        "... even with updateBidEnabled false",
        variants.fixed(50_000, 80_000, 1, update_bid_enabled=False),
        m.book(75_000),
        [74_000],
        own=m.orders(75_000),
        cancels=[(75_000, True, "at_ask")],
    ),
    variants.Variant(
        "a young surplus holds a slot, and the lowest missing rung waits",
        variants.fixed(50_000, 60_000, 2),
        variants.HUNDRED,
        [60_000],
        ["place", "min_age"],
        m.orders(55_000, **variants.YOUNG),
    ),
    variants.Variant(
        "with updates off it holds it for good",
        variants.fixed(50_000, 60_000, 2, update_bid_enabled=False),
        variants.HUNDRED,
        [60_000],
        ["place", "slot_taken"],
        m.orders(55_000),
    ),
    variants.Variant(
        "one too many of the same price",
        variants.fixed(50_000, 50_000, 1),
        variants.HUNDRED,
        [],
        ["kept"],
        m.orders(50_000, 50_000),
        cancels=[(50_000, True, "duplicate")],
    ),
    variants.Variant(
        "16 minutes, 30 s: renewed from 90 s before the end, at the rung's price of now",
        variants.fixed(61_000, 61_000, 1),
        variants.HUNDRED,
        [61_000],
        ["renew"],
        m.orders(60_000, expires_ms=m.NOW + 90_000),
        cancels=[(60_000, False, "renew")],
    ),
    variants.Variant(
        "... not a millisecond earlier",
        variants.fixed(61_000, 61_000, 1),
        variants.HUNDRED,
        [],
        ["kept"],
        m.orders(60_000, expires_ms=m.NOW + 90_001),
    ),
    variants.Variant(
        "with 5 s cycles from a minute before",
        variants.fixed(61_000, 61_000, 1, loop_seconds=5),
        variants.HUNDRED,
        [61_000],
        ["renew"],
        m.orders(61_000, expires_ms=m.NOW + 60_000),
        cancels=[(61_000, False, "renew")],
    ),
    variants.Variant(
        "with 400 s cycles (three are 20 minutes) from a quarter of its life before",
        variants.fixed(61_000, 61_000, 1, loop_seconds=400),
        variants.HUNDRED,
        [],
        ["kept"],
        m.orders(61_000, expires_ms=m.NOW + 240_001),
    ),
    variants.Variant(
        "a bid whose fate is unknown blocks its rung and counts: 75 + 60 + 15",
        variants.LADDER,
        variants.HUNDRED,
        [60_000, 15_000],
        ["in_flight", "place", "task_total", "task_total", "place"],
        [m.order(1, 75_000, "unknown")],
        m.with_limits(task_total=150_000),
    ),
]


@pytest.mark.parametrize("each", [*OUTBIDS, *DIFFS], ids=lambda each: each.why[:60])
def test_variant(each: variants.Variant) -> None:
    variants.holds(each)


def test_reduce_cancels_and_neither_places_nor_renews() -> None:
    """Live 80, 64, 48, 32, 16 under a floor of 60,000, the 48,000 due for renewal: four cancels, nothing new."""
    own = [
        *m.orders(80_000, 64_000),
        m.order(3, 48_000, expires_ms=m.NOW + 60_000),
        m.order(4, 32_000),
        m.order(5, 16_000),
    ]
    full = m.plan(variants.percent("0.16", "0.8"), m.book(60_000), own)
    assert m.placed(full) == [48_000, 38_000, 29_000, 19_000, 10_000]

    reduced = without_places(full, Reason.REDUCE, soft_cancels=True)

    assert [price for price, _, _ in m.cancelled(reduced)] == [80_000, 64_000, 32_000, 16_000]
    assert m.placed(reduced) == []


def test_reduce_does_not_count_the_raise_it_forbids() -> None:
    before = Memory(raises_ms=(m.NOW - 5_000,))
    full = m.plan(variants.outbid(50_000, 80_000), m.rivals(variants.HUNDRED, 62_000), m.orders(60_000), memory=before)
    assert full.memory.raises_ms == (m.NOW - 5_000, m.NOW)

    assert without_places(full, Reason.REDUCE, soft_cancels=True).memory == before
