"""Rune bids sold in part, where sales name no bid: they are told by the price of a token, or were seen sold in part."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from msgspec import structs

from markets.base import OwnBid, Sale, Unavailable
from models.ledger import fills, orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, World, ask
from workers.bidding.bidder import Bidder

RUNES = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity=Decimal(1000), bid_count=1, max_fills=1)
FIXED = replace(RUNES, bid_mode="fixed", bid_fixed_low=60_000, bid_fixed_high=75_000)


def bid_on_runes(world: World, config: object = RUNES) -> tuple[int, Bidder]:
    world.market.asks_ = [ask(20_000, quantity=200)]
    return world.begun(config)  # type: ignore[arg-type]


def sell_part(world: World, bid: OwnBid, sats: int, tokens: str | None, *, left: int, sale_id: str = "part") -> None:
    rest = structs.replace(bid, quantity=Decimal(left))
    world.market.own_ = [rest if each.venue_id == bid.venue_id else each for each in world.market.own_]
    quantity = None if tokens is None else Decimal(tokens)
    world.market.sales_.append(Sale(sale_id, bid.slug, sats, quantity, KEYS.payment, None, None, world.clock()))


def bought(world: World) -> Sequence[tuple[int, Decimal]]:
    found = fills.newest(int(world.user.id), fills.Wanted(), 5)
    return sorted((fill.price_sats, fill.quantity) for fill in found)


@pytest.mark.parametrize("tokens", ["600", None])
def test_the_sold_part_counts_though_the_sales_cannot_be_read_when_the_rest_is_cancelled(
    world: World, tokens: str | None
) -> None:
    task, bidder = bid_on_runes(world)
    sell_part(world, world.market.own_[0], 45_000, tokens, left=400)
    world.later(30, bidder, times=3)
    world.market.fail("sales", Unavailable("down"))
    world.market.asks_ = [ask(2_000, quantity=200)]
    bidder.cycle()
    assert list(world.open(task).values()) == ["cancelling"]

    world.later(30, bidder, times=3)

    assert world.closed() == [(75_000, "filled")]
    assert bought(world) == [(45_000, Decimal(600))]
    assert len(world.market.placed) == 1, "maxFills is 1"


@pytest.mark.parametrize("tokens", ["600", None])
def test_the_sold_part_counts_though_the_sales_cannot_be_read_while_the_task_is_drained(
    world: World, tokens: str | None
) -> None:
    task, _ = bid_on_runes(world)
    sell_part(world, world.market.own_[0], 45_000, tokens, left=400)
    tasks.set_desired(world.row(task), STOPPED)
    world.market.fail("sales", Unavailable("down"))
    drain = world.drain(task)
    assert drain.cycle() is not None
    assert list(world.open(task).values()) == ["cancelling"]

    assert world.later(8, drain) is None

    assert world.closed() == [(75_000, "filled")]
    assert orders.fills(task).count == 1


def test_the_sold_part_counts_though_the_bid_expires_while_no_worker_is_there(world: World) -> None:
    task, bidder = bid_on_runes(world)
    sell_part(world, world.market.own_[0], 45_000, "600", left=400)
    world.later(30, bidder)
    world.clock.advance(17 * 60)

    world.later(30, world.bidder(task), times=4)

    assert world.closed() == [(75_000, "filled")]
    assert bought(world) == [(45_000, Decimal(600))]
    assert len(world.market.placed) == 1, "maxFills is 1"


def test_of_two_bids_sold_in_part_each_has_its_own_parts(world: World) -> None:
    _, bidder = bid_on_runes(world, replace(FIXED, bid_count=2, max_fills=0))
    high, low = sorted(world.market.own_, key=lambda bid: -bid.price)
    assert (high.price, low.price) == (75_000, 60_000)
    sell_part(world, high, 45_000, "600", left=400, sale_id="high-1")
    sell_part(world, low, 6_000, "100", left=900, sale_id="low-1")
    world.later(30, bidder, times=2)
    sell_part(world, high, 30_000, "400", left=0, sale_id="high-2")
    world.market.own_ = [bid for bid in world.market.own_ if bid.price == low.price]
    world.later(30, bidder)
    assert bought(world) == [(75_000, Decimal(1000))]

    world.market.own_ = []
    world.later(30, bidder, times=4)

    assert bought(world) == [(6_000, Decimal(100)), (75_000, Decimal(1000))]


@pytest.mark.parametrize(
    ("sats", "tokens", "is_part"),
    [
        (45_000, "600", True),
        (45_045, "600", True),  # a thousandth, as unit prices are printed
        (44_955, "600", True),
        (45_046, "600", False),
        (44_954, "600", False),
        (76, "1", True),  # a sat, as sums are rounded
        (77, "1", False),
        (38, "0.5", True),
        (45_000, "500", False),
        (45_000, None, False),  # and it was never seen sold in part
    ],
)
def test_a_part_is_sold_at_the_bids_own_price_of_a_token(
    world: World, sats: int, tokens: str | None, is_part: bool
) -> None:
    _, bidder = bid_on_runes(world, replace(FIXED, bid_fixed_low=75_000))
    sell_part(world, world.market.own_[0], sats, tokens, left=400)
    world.clock.advance(17 * 60)

    world.later(30, bidder, times=4)

    assert Order.get_by_id(1).close_reason == ("filled" if is_part else "expired")


def test_a_bid_that_is_shown_whole_again_is_not_sold_in_part(world: World) -> None:
    task, bidder = bid_on_runes(world)
    [whole] = world.market.own_
    sell_part(world, whole, 45_000, None, left=400)
    world.later(30, bidder)
    assert world.detail(task)["bids"][0]["quantity_left"] == "400"
    world.market.own_ = [whole]
    world.later(30, bidder)
    world.market.own_ = []
    world.later(6, bidder, times=2)
    assert world.open(task) == {75_000: "unknown"}


def test_a_sale_at_just_the_price_of_one_bid_is_no_part_of_another(world: World) -> None:
    _, bidder = bid_on_runes(world, replace(FIXED, bid_count=2, max_fills=0))
    large, small = Order.select().order_by(Order.id)
    assert large.price_sats == 75_000
    # As before the task's quantity was raised.
    Order.update(price_sats=37_500, quantity="500").where(Order.id == small.id).execute()
    world.market.own_ = []
    sale = Sale("whole", large.slug, 37_500, Decimal(500), KEYS.payment, None, None, world.clock())
    world.market.sales_.append(sale)
    world.later(30, bidder)
    assert (Order.get_by_id(large.id).close_reason, Order.get_by_id(small.id).close_reason) == (None, "filled")
