"""Clocks that jump, and clocks that differ from the venue's."""

from __future__ import annotations

import pytest

from markets.base import Refused
from models.ledger import orders
from models.ledger.states import CLOSED, UNKNOWN, Order
from tests.worlds.worker import LADDER, World, ask

HOUR_S = 3600


@pytest.mark.parametrize("jump_s", [1, -1, 30, -30, HOUR_S, -HOUR_S, 24 * HOUR_S, -24 * HOUR_S, 300 * 24 * HOUR_S])
def test_after_a_jump_there_is_one_ladder_and_no_second(world: World, jump_s: int) -> None:
    task, bidder = world.begun()

    world.clock.advance(jump_s)
    for _ in range(4):
        bidder.cycle()
        assert len(set(world.market.prices)) == len(world.market.prices)
        assert orders.task_exposure(task) <= 2 * sum(LADDER)
        world.clock.advance(31)

    assert sorted(world.market.prices, reverse=True) == LADDER
    assert world.market.peak_sats == sum(LADDER)


def test_no_life_is_longer_than_asked_for_after_a_backward_jump(world: World) -> None:
    task, bidder = world.begun()
    before = {order.id: order.expires_ms for order in orders.open_orders(task)}

    world.later(-HOUR_S, bidder)

    assert {order.id: order.expires_ms for order in orders.open_orders(task)} == before


@pytest.mark.parametrize("is_sold", [False, True])
def test_a_vanished_bid_is_noticed_although_the_clock_was_ahead_at_its_last_change(world: World, is_sold: bool) -> None:
    task, bidder = world.begun()
    Order.update(updated_ms=world.clock() + 1000 * HOUR_S).execute()
    if is_sold:
        world.market.sell(LADDER[0])
    else:
        world.market.own_ = [bid for bid in world.market.own_ if bid.price != LADDER[0]]
    world.later(31, bidder, times=3)
    gone = Order.get(Order.task_id == task, Order.price_sats == LADDER[0])
    assert gone.state == (CLOSED if is_sold else UNKNOWN)


def test_a_live_bid_of_an_order_that_a_clock_ahead_closed_is_cancelled(world: World) -> None:
    task, bidder = world.begun()
    order = orders.open_orders(task)[0]
    orders.move(order, CLOSED, world.clock() + 1000 * HOUR_S, reason="cancelled")
    assert order.price_sats in world.market.prices
    world.later(31, bidder, times=2)
    assert ("cancel", order.price_sats) in world.market.done


def test_nothing_is_signed_and_the_owner_reads_why(world: World) -> None:
    task = world.task()
    world.market.skew_s = 61.0

    world.bidder(task).cycle()

    assert world.market.placed == []
    assert world.open(task) == {} and world.closed() == []
    assert world.action(task) == "placed 0, kept 0, cancelled 0; skipped 5 clock_skew"
    assert world.row(task).last_error == (
        "failed to place: this machine's clock is 61 s ahead of the marketplace's; set it right"
    )


def test_live_bids_are_not_renewed_and_what_must_go_goes(world: World) -> None:
    task, bidder = world.begun()
    before = world.market.prices
    world.market.skew_s = -61.0
    world.clock.now_ms += 15 * 60_000  # a minute before they expire
    world.market.done.clear()

    bidder.cycle()

    assert world.market.prices == before
    assert world.market.done == []
    assert "61 s behind" in str(world.row(task).last_error)

    world.market.asks_ = [ask(50_000)]
    bidder.cycle()

    assert max(world.market.prices) < 50_000 <= max(before), "cancels go on"


def test_it_goes_on_when_the_clock_is_right_again(world: World) -> None:
    task = world.task()
    bidder = world.bidder(task)
    world.market.skew_s = 61.0
    bidder.cycle()
    world.market.skew_s = 0.0
    bidder.cycle()
    assert len(world.market.prices) == 5
    assert world.row(task).last_error is None


def test_what_the_gateway_refuses_is_closed_and_ends_placing(world: World) -> None:
    """The clock was set between the last read and the bid."""
    task = world.task()
    world.market.fail("place", Refused("clock_skew", "this machine's clock is 61 s ahead of the marketplace's"))

    world.bidder(task).cycle()

    assert world.market.prices == []
    assert world.open(task) == {}
    assert world.closed() == [(75_000, "refused")]
    assert world.action(task).startswith("placed 0, kept 0, cancelled 0; skipped 1 clock_skew, 4 put_off")
    assert "61 s ahead" in str(world.row(task).last_error)
