"""The room in a budget that several tasks share: it refuses new bids, from the top, and takes none away."""

from __future__ import annotations

from typing import Any

import pytest

from strategy.decision import BidPlan, BudgetRoom, OwnOrder
from tests.worlds.market import NOW, book, cancelled, ladder_config, orders, placed, plan, rung_reasons, with_limits


def fixed(
    high: int, low: int, own: list[OwnOrder], *, sats: int | None = None, fills: int | None = None, count: int = 2
) -> BidPlan:
    config = ladder_config(bid_mode="fixed", bid_fixed_low=low, bid_fixed_high=high, bid_count=count)
    return plan(config, book(100_000), own, with_limits(budget=BudgetRoom(1, "both", sats, fills)))


@pytest.mark.parametrize(
    ("room", "prices", "reasons"),
    [
        # Of 150,000, the other task holds 75,000 and 60,000.
        ({"sats": 15_000}, (45_000, 15_000), ["budget", "place"]),
        ({"sats": 14_999}, (45_000, 15_000), ["budget", "budget"]),
        # Of 100,000 to be spent, 75,000 are.
        ({"sats": 25_000}, (26_000, 25_000), ["budget", "place"]),
        ({"fills": 1}, (45_000, 15_000), ["place", "budget"]),
        ({}, (45_000, 15_000), ["place", "place"]),
    ],
)
def test_rungs_are_walked_from_the_top_and_limits_are_inclusive(
    room: dict[str, Any], prices: tuple[int, int], reasons: list[str]
) -> None:
    assert rung_reasons(fixed(*prices, [], **room)) == reasons


@pytest.mark.parametrize("room", [{"sats": 100_000}, {"sats": 0}, {"fills": 1}, {"fills": 0}])
def test_a_limit_that_was_lowered_takes_no_bid_away(room: dict[str, Any]) -> None:
    result = fixed(75_000, 60_000, orders(75_000, 60_000), **room)
    assert (cancelled(result), placed(result), rung_reasons(result)) == ([], [], ["kept", "kept"])


def test_a_bid_that_could_not_be_renewed_stays_to_its_end() -> None:
    due = orders(75_000, 60_000, expires_ms=NOW + 60_000)
    lowered = fixed(75_000, 60_000, due, sats=134_999)
    assert (cancelled(lowered), placed(lowered)) == ([], [])
    enough = fixed(75_000, 60_000, due, sats=135_000)
    assert (placed(enough), rung_reasons(enough)) == ([75_000], ["renew", "renew_waits"])


def test_old_and_new_bids_stand_side_by_side_only_where_both_fit() -> None:
    moved = orders(75_000, 50_000)
    beside = fixed(75_000, 60_000, moved, sats=185_000)
    assert [cancel.after_rung for cancel in beside.to_cancel] == [1]
    before = fixed(75_000, 60_000, moved, sats=184_999)
    assert [cancel.after_rung for cancel in before.to_cancel] == [None] and placed(before) == [60_000]


@pytest.mark.parametrize(
    ("high", "low", "count", "sats", "gone", "reasons"),
    [
        (60_000, 40_000, 1, 59_999, [], ["budget"]),
        (60_000, 40_000, 1, 60_000, ["surplus"], ["place"]),
        (60_000, 55_000, 1, 59_999, ["below_range"], ["budget"]),
        (60_000, 40_000, 2, 59_999, ["surplus"], ["budget", "place"]),  # it makes way for the lower rung
    ],
)
def test_a_bid_whose_rung_has_moved_to_where_there_is_no_room_stays_within_its_range(
    high: int, low: int, count: int, sats: int, gone: list[str], reasons: list[str]
) -> None:
    result = fixed(high, low, orders(50_000), sats=sats, count=count)
    assert ([str(cancel.reason) for cancel in result.to_cancel], rung_reasons(result)) == (gone, reasons)
