"""Bids that are gone before their sale is told, or while the sales cannot be read."""

from __future__ import annotations

import pytest

from markets.base import NotFound, RateLimited, Sale, Unavailable, VenueError
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.shapes import replace
from tests.workers.bidding.test_fills import ONE, state
from tests.worlds.worker import World, ask, seconds


@pytest.mark.parametrize("is_known", [True, False])
def test_a_bid_sold_before_its_cancel_is_filled_though_the_sale_is_told_later(world: World, is_known: bool) -> None:
    task, bidder = world.begun(replace(ONE, max_fills=1))
    bidder.cycle()
    world.clock.advance(61)
    world.market.asks_ = [ask(40_000)]
    told: list[Sale] = []

    def sell_first(*args: object, **fields: object) -> bool:
        if not told:
            told.append(world.market.sell(52_000))
            world.market.sales_.clear()
        if is_known:
            return False
        raise NotFound("no such bid")

    world.market.cancel = sell_first  # type: ignore[method-assign,assignment]
    bidder.cycle()
    assert state(52_000) == "cancelling"
    world.market.sales_ += told
    world.later(2, bidder)
    assert state(52_000) == "closed filled"
    assert orders.fills(task).count == 1 and world.market.prices == []


def test_a_bid_sold_in_its_last_second_is_filled_though_the_sale_is_told_later(world: World) -> None:
    task, bidder = world.begun(replace(ONE, max_fills=1))
    bidder.cycle()
    world.clock.now_ms = Order.get().expires_ms - 1_000
    sale = world.market.sell(52_000)
    world.market.sales_.clear()
    world.later(2, bidder)
    world.market.sales_.append(sale)
    world.later(4, bidder, times=3)
    assert state(52_000) == "closed filled"
    assert orders.fills(task).count == 1 and world.market.prices == []


def test_what_became_of_a_bid_does_not_wait_for_a_long_loop(world: World) -> None:
    _, bidder = world.begun(replace(ONE, loop_seconds=3_600, bid_expiry_minutes=180))
    bidder.cycle()
    world.clock.now_ms = Order.get().expires_ms + 1_000
    world.market.own_.clear()
    for _ in range(3):
        world.clock.advance(seconds(bidder.cycle()))
    assert world.closed() == [(52_000, "expired")]
    assert world.market.prices == [52_000], "and another one stands"


def test_what_ended_during_an_outage_is_not_cancelled(world: World) -> None:
    _, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.own_.clear()
    world.clock.advance(30 * 60)
    world.market.done.clear()
    world.later(6, bidder, times=3)
    assert world.closed() == [(52_000, "expired")]
    assert [kind for kind, _ in world.market.done] == ["place"]


@pytest.mark.parametrize("fault", [Unavailable("down"), RateLimited(1.0)])
@pytest.mark.parametrize("was", ["live", "unknown"])
def test_after_an_outage_a_failed_read_of_the_sales_loses_no_fill(world: World, was: str, fault: VenueError) -> None:
    task, bidder = world.begun(replace(ONE, max_fills=1))
    bidder.cycle()
    Order.update(state=was).execute()
    world.market.sell(52_000)
    world.clock.advance(30 * 60)
    world.market.fail("sales", *[fault] * 5)
    bidder = world.bidder(task)
    world.later(6, bidder, times=5)
    assert state(52_000) == "unknown"
    world.later(30, bidder, times=2)
    assert state(52_000) == "closed filled"
    assert orders.fills(task).count == 1 and world.market.prices == []


def test_a_drain_after_an_outage_waits_for_the_sales(world: World) -> None:
    task, bidder = world.begun(replace(ONE, cancel_on_stop=False))
    bidder.cycle()
    tasks.set_desired(world.row(task), STOPPED)
    world.market.sell(52_000)
    world.clock.advance(20 * 60)
    world.market.fail("sales", Unavailable("down"))
    drain = world.drain(task)
    assert seconds(drain.cycle()) > 0
    world.clock.advance(6)
    assert drain.cycle() is None
    assert world.closed() == [(52_000, "filled")]
