"""The choice of the own order for a rung when several could hold it."""

from __future__ import annotations

from decimal import Decimal

from strategy.decision import OwnOrder
from strategy.rungs import Pairing, Rung, SatsBudget
from tests.worlds.market import NOW, order, with_limits

DUE = {"expires_ms": NOW + 1_000}


def walk(
    prices: list[int], own: list[OwnOrder], tick: int = 1_000, total: int = 0, due: tuple[int, ...] = ()
) -> list[int | str | None]:
    """By rung: the id of the order that stands for it, why it gets none, or None where a bid is missing."""
    reach = [max(tick, price // 100) for price in prices]
    rungs = [Rung(index, price, Decimal(1), price, reach[index], reach[index]) for index, price in enumerate(prices)]
    fixed = frozenset(each.id for each in own if each.state != "live")
    budget = SatsBudget(with_limits(task_total=total), "per_bid", [each for each in own if each.id in fixed])
    Pairing(own, fixed, frozenset(due), budget, lambda order: order.price_sats).walk(rungs)
    return [rung.order.id if rung.order else rung.refused and rung.refused.value for rung in rungs]


def test_the_highest_within_reach_on_either_side() -> None:
    own = [order(1, 29_000), order(2, 31_000), order(3, 31_001)]

    assert walk([30_000], own) == [2]
    assert walk([30_000], own[:1]) == [1]
    assert walk([30_000], own[2:]) == [None]


def test_each_order_stands_for_one_rung_only() -> None:
    assert walk([31_000, 30_000], [order(1, 30_000)]) == [1, None]


def test_of_equal_bids_the_older_is_taken() -> None:
    own = [order(1, 30_000, created_ms=NOW - 1), order(2, 30_000, created_ms=NOW - 2)]

    assert walk([30_000], own) == [2]


def test_of_equal_bids_the_one_that_need_not_be_renewed_is_taken() -> None:
    own = [order(1, 30_000, created_ms=NOW - 2, **DUE), order(2, 30_000, created_ms=NOW - 1)]

    assert walk([30_500], own, due=(1,)) == [2]


def test_nothing_is_renewed_onto_a_bid_that_is_there_already() -> None:
    own = [order(1, 30_500, **DUE), order(2, 30_000), order(3, 29_900)]

    assert walk([30_000], own, due=(1,)) == [2]
    assert walk([30_000], [own[0], own[2]], due=(1,)) == [1]


def test_nor_onto_a_rung_that_a_bid_above_it_would_then_take() -> None:
    assert walk([30_000], [order(1, 30_900, **DUE), order(2, 30_100)], due=(1,)) == [2]


def test_a_bid_that_no_longer_fits_gives_way_to_one_that_does() -> None:
    own = [order(1, 31_000), order(2, 30_000)]

    assert walk([30_000], own, total=30_000) == [2]
    assert walk([30_000], own[:1], total=30_000) == [None]  # a new one at the rung's price would fit


def test_a_due_bid_is_counted_at_the_price_it_will_have() -> None:
    assert walk([30_000], [order(1, 31_000, **DUE)], total=30_000, due=(1,)) == [1]
    assert walk([30_000], [order(1, 29_000, **DUE)], total=29_500, due=(1,)) == ["task_total"]


def test_a_rung_without_room_for_a_new_bid_may_keep_a_cheaper_one() -> None:
    """The market rose by less than a tick's worth: the bid that just fits the total is not given up for that."""
    assert walk([16_000], [order(1, 15_000)], total=15_000) == [1]


def test_a_rung_without_room_does_not_take_what_stands_closer_to_the_next() -> None:
    own = [order(1, 15_000)]

    assert walk([16_000, 15_000], own, total=15_500) == ["task_total", 1]
    assert walk([16_000, 16_000, 15_000], own, total=15_500) == ["task_total", "task_total", 1]
    assert walk([16_000, 14_000], own, total=15_500) == [1, "task_total"]  # as close to both: the upper one


def test_in_flight_costs_nothing_more() -> None:
    assert walk([30_000], [order(1, 30_000, "unknown")], total=30_000) == [1]
