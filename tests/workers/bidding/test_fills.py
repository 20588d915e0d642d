"""Fills: when a bid that disappeared counts as sold, and sales that are reported late."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from markets.base import NotFound, NotSupported, RateLimited, Sale, Unavailable, VenueError
from models.ledger import fills, orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, LADDER, ONE, World, ask, seconds

TWO = replace(ONE, bid_count=2, bid_fixed_low=52_000)


def state(price: int) -> str:
    """Of the newest order of this price."""
    order = Order.select().where(Order.price_sats == price).order_by(Order.id.desc()).get()
    return f"{order.state} {order.close_reason}" if order.state == "closed" else str(order.state)


@pytest.mark.parametrize("buyer", [KEYS.payment, "bc1quser"])
@pytest.mark.parametrize("tells_bid", [True, False])
def test_a_bid_that_was_sold_into_is_filled_at_the_first_look(world: World, buyer: str, tells_bid: bool) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    sale = world.market.sell(52_000, buyer=buyer, tells_bid=tells_bid)
    world.later(30, bidder)
    assert world.closed() == [(52_000, "filled")]
    assert orders.fills(task).sats == 52_000
    assert Order.get().sale_id == sale.sale_id
    assert world.action(task).startswith("filled 1, placed 0")
    assert world.detail(task)["filled"] == [{"order": 1, "sale_id": sale.sale_id}]


def test_after_a_fill_the_task_waits_a_minute_and_looks_again(world: World) -> None:
    task, bidder = world.begun(ONE)
    world.market.sell(52_000)
    for _ in range(2):
        world.later(29, bidder)
        assert "skipped 1 fill_pause" in world.action(task)
    assert world.market.prices == []
    world.later(40, bidder)
    assert world.market.prices == [52_000]


@pytest.mark.parametrize(
    "change",
    [
        {"buyer": "bc1qstranger"},
        {"price": 51_000},
        {"sold_ms": 1},
        {"bid_id": "another-bid"},
        {"slug": "dogs"},
        {"is_of_listing": True},
    ],
)
def test_a_sale_of_something_else_explains_nothing(world: World, change: dict[str, object]) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.sell(52_000)
    world.market.sales_ = [structs.replace(sale, **change) for sale in world.market.sales_]  # type: ignore[arg-type]
    world.later(6, bidder, times=8)
    assert world.open(task) == {52_000: "unknown"}
    assert orders.fills(task).count == 0
    world.later(17 * 60, bidder)
    assert state(52_000) != "unknown"
    assert world.closed()[0] == (52_000, "lost")


@pytest.mark.parametrize(
    ("behind_s", "tells_bid", "end"), [(30, True, "filled"), (30, False, "filled"), (46, False, "lost")]
)
def test_a_bid_sold_soon_after_it_was_placed_is_filled_by_a_clock_that_is_behind(
    world: World, behind_s: int, tells_bid: bool, end: str
) -> None:
    """So far behind as the market's clock may be, or further: such a sale was before the bid."""
    task, bidder = world.begun(replace(ONE, max_fills=1))
    world.clock.advance(6)
    sale = world.market.sell(52_000, tells_bid=tells_bid)
    world.market.sales_[0] = structs.replace(sale, sold_ms=sale.sold_ms - behind_s * 1_000)
    world.later(30, bidder, times=40)
    assert world.closed()[0] == (52_000, end)
    assert orders.fills(task).count == (end == "filled")
    assert len(world.market.placed) == (1 if end == "filled" else 2)


def test_one_sale_explains_one_order(world: World) -> None:
    task, bidder = world.begun(TWO)
    assert world.market.prices == [52_000, 52_000]
    world.market.sell(52_000)
    world.market.own_.clear()
    world.later(6, bidder, times=3)
    assert orders.fills(task).count == 1
    assert list(world.open(task).values()) == ["unknown"]
    world.market.sales_.append(structs.replace(world.market.sales_[0], sale_id="another"))
    bidder.cycle()
    assert orders.fills(task).count == 2


def test_a_bid_the_wallet_no_longer_covers_was_cancelled_by_the_venue(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.own_.clear()
    world.market.balance_sats = 52_400
    world.later(6, bidder, times=6)
    assert world.closed() == [(52_000, "cancelled")]
    assert orders.fills(task).count == 0


def test_a_sale_that_is_told_late_still_counts(world: World) -> None:
    """The balance falls with the sale, so a short one explains nothing before the sales had time to show it."""
    _, bidder = world.begun(ONE)
    bidder.cycle()
    sale = world.market.sell(52_000)
    world.market.sales_.clear()
    world.market.balance_sats = 10_000
    world.later(6, bidder, times=3)
    world.market.sales_.append(sale)
    bidder.cycle()
    assert world.closed() == [(52_000, "filled")]


def test_sales_that_cannot_be_read_leave_the_bid_in_doubt(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.sell(52_000)
    world.market.balance_sats = 10_000
    world.market.fail("sales", *[Unavailable("down")] * 8)
    world.later(6, bidder, times=4)
    assert state(52_000) == "unknown"
    assert "down" in str(world.row(task).last_error)
    world.market.script["sales"].clear()
    bidder.cycle()
    assert world.closed() == [(52_000, "filled")]


def test_a_venue_without_sales_is_judged_without_them(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.own_.clear()
    world.market.balance_sats = 10_000
    world.market.fail("sales", *[NotSupported("no sales")] * 20)
    world.later(6, bidder, times=6)
    assert world.closed() == [(52_000, "cancelled")]
    assert world.row(task).last_error is None


def test_a_bid_that_was_sold_before_its_cancel_came_is_filled_and_nothing_takes_its_place(world: World) -> None:
    task, bidder = world.begun()
    bidder.cycle()
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]
    cancel = world.market.cancel

    def sell_first(wallet: str, venue_ids: list[str], *args: object, **fields: object) -> bool:
        if any(bid.price == 75_000 and bid.venue_id in venue_ids for bid in world.market.own_):
            world.market.sell(75_000)
            raise NotFound("no such bid")
        return cancel(wallet, venue_ids, *args, **fields)  # type: ignore[arg-type]

    world.market.cancel = sell_first  # type: ignore[method-assign,assignment]
    bidder.cycle()
    assert orders.fills(task).count == 1
    assert state(75_000) == "closed filled"
    assert world.market.prices == [45_000, 30_000, 15_000], "a fill ends placing for a minute: nothing is replaced"
    assert world.action(task).startswith("filled 1, placed 0, kept 1, left 2, cancelled 1")


def test_that_a_sold_bid_could_not_be_cancelled_is_no_fault(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    world.clock.advance(61)
    world.market.asks_ = [ask(40_000)]

    def sell_first(*args: object, **fields: object) -> bool:
        world.market.sell(52_000)
        return False

    world.market.cancel = sell_first  # type: ignore[method-assign,assignment]
    bidder.cycle()
    assert state(52_000) == "closed filled"
    assert world.row(task).last_error is None


def test_a_bid_that_expired_may_have_been_sold_in_its_last_moment(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.sell(52_000)
    world.clock.advance(16 * 60 + 5)
    world.market.fail("sales", Unavailable("down"))
    bidder.cycle()
    assert world.open(task)[52_000] == "live", "neither expired nor sold before that is known"
    bidder.cycle()
    assert world.closed()[0] == (52_000, "filled")


def test_a_burst_of_fills_holds_the_task_and_alarms(world: World) -> None:
    task, bidder = world.begun()
    bidder.cycle()
    for price in LADDER[:3]:
        world.market.sell(price)
    world.later(6, bidder)
    assert orders.fills(task).count == 3
    placed = len(world.market.placed)
    for _ in range(5):
        world.clock.advance(60)
        assert seconds(bidder.cycle()) > 20
        assert "fill_burst" in world.action(task)
        assert "filled within ten minutes" in str(world.row(task).last_error)
    assert len(world.market.placed) == placed
    assert world.market.prices == [30_000, 15_000], "what is there stays"
    world.bidder(task).cycle()
    assert "fill_burst" in world.action(task), "a restart does not shorten it"
    world.clock.advance(301)
    for _ in range(2):
        bidder = world.bidder(task)
        bidder.cycle()
    assert world.market.prices == LADDER
    assert world.row(task).last_error is None


def test_max_fills_counts_over_the_life_of_a_task_and_says_so(world: World) -> None:
    task, bidder = world.begun(replace(CATS, max_fills=2))
    assert world.market.prices == [75_000, 60_000], "more open bids than fills left could fill too often"
    assert "skipped 3 max_fills" in world.action(task)
    bidder.cycle()
    world.market.sell(75_000)
    world.later(6, bidder)
    world.clock.advance(61)
    bidder = world.bidder(task)
    bidder.cycle()
    assert len(world.market.prices) == 1, "one more fill is allowed"
    world.market.sell(world.market.prices[0])
    world.later(6, bidder)
    world.later(61, bidder, times=3)
    assert world.market.prices == []
    assert "maxFills (2)" in str(world.row(task).last_error)
    assert "skipped 5 max_fills" in world.action(task)


def test_the_spend_cap_counts_what_was_spent_and_says_so(world: World) -> None:
    task, bidder = world.begun(replace(CATS, spend_cap_sats=100_000))
    assert world.market.prices == [75_000, 15_000]
    assert "skipped 3 spend_cap" in world.action(task)
    bidder.cycle()
    world.market.sell(75_000)
    world.clock.advance(70)
    for _ in range(2):
        bidder.cycle()
        world.clock.advance(61)
    assert sum(world.market.prices) <= 25_000
    world.market.sales_.clear()
    Order.update(price_sats=100_000).where(Order.close_reason == "filled").execute()
    bidder.cycle()
    assert world.market.prices == []
    assert "spendCapSats (100000) is spent" in str(world.row(task).last_error)


def test_a_part_that_was_sold_is_shown_and_makes_no_second_bid(world: World) -> None:
    config = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity=Decimal(1000), bid_count=1)
    world.market.asks_ = [ask(20_000, quantity=200)]
    task, bidder = world.begun(config)
    bidder.cycle()
    [whole] = world.market.own_
    world.market.own_ = [structs.replace(whole, quantity=Decimal(400))]
    part = Sale("part", whole.slug, 45_000, Decimal(600), KEYS.payment, None, None, world.clock())
    world.market.sales_ = [part]
    world.later(30, bidder, times=3)
    assert len(world.market.placed) == 1
    assert world.detail(task)["bids"][0]["quantity_left"] == "400"
    assert orders.fills(task).count == 0

    world.market.asks_ = [ask(2_000, quantity=200)]
    bidder.cycle()
    assert orders.fills(task).count == 1, "cancelled is only what was left of it"
    (fill,) = fills.newest(int(world.user.id), fills.Wanted(), 2)
    assert (fill.price_sats, fill.quantity) == (45_000, Decimal(600))
    assert fills.total_of_task(task).sats == 45_000
    assert orders.fills(task).sats == whole.price, "the limits count all of it"


@pytest.mark.parametrize(
    ("told", "sold"),
    [
        ([(45_000, "600")], (45_000, 600)),
        ([(30_000, "400"), (15_000, "200")], (45_000, 600)),
        ([(45_000, None)], (45_000, 600)),
        ([(30_000, "400"), (45_000, "600")], (75_000, 1_000)),
        ([(74_000, "1000")], (75_000, 1_000)),  # less is what the seller got
    ],
)
def test_of_a_bid_that_was_sold_in_parts_those_are_recorded_that_were_told(
    world: World, told: list[tuple[int, str | None]], sold: tuple[int, int]
) -> None:
    config = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity=Decimal(1000), bid_count=1)
    config = replace(config, bid_mode="fixed", bid_fixed_low=75_000, bid_fixed_high=75_000)
    world.market.asks_ = [ask(20_000, quantity=200)]
    task, bidder = world.begun(config)
    bidder.cycle()
    [whole] = world.market.own_
    world.market.own_ = []
    part = Sale("part", whole.slug, 0, None, KEYS.payment, whole.venue_id, None, world.clock())
    world.market.sales_ = [
        structs.replace(part, sale_id=f"part-{number}", price=sats, quantity=Decimal(tokens) if tokens else None)
        for number, (sats, tokens) in enumerate(told)
    ]
    world.later(30, bidder)
    (fill,) = fills.newest(int(world.user.id), fills.Wanted(), 2)
    assert (fill.price_sats, fill.quantity) == sold
    assert orders.fills(task).sats == 75_000


def test_a_bid_sold_while_its_task_is_drained_is_filled(world: World) -> None:
    task, _ = world.begun(ONE)
    world.market.sell(52_000)
    tasks.set_desired(world.row(task), STOPPED)
    assert world.drain(task).cycle() is None
    assert world.closed() == [(52_000, "filled")]


@pytest.mark.parametrize(("blind_s", "end"), [(300, "filled"), (660, "lost")])
def test_a_doubtful_bid_is_not_lost_for_minutes_while_sales_cannot_be_read(
    world: World, blind_s: int, end: str
) -> None:
    _, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.sell(52_000)
    world.market.fail("sales", *[Unavailable("down")] * 1_000)
    world.clock.advance(12 * 60)
    world.later(60, bidder, times=4)
    assert state(52_000) == "unknown"
    world.later(60, bidder, times=blind_s // 60)
    world.market.script["sales"].clear()
    world.later(60, bidder)
    assert world.closed()[0] == (52_000, end)


def test_a_sale_of_the_other_bid_of_one_price_is_not_that_of_the_bid_without_an_id(world: World) -> None:
    _, bidder = world.begun(TWO)
    bidder.cycle()
    first, second = Order.select().order_by(Order.id)
    Order.update(state="unknown", venue_id=None).where(Order.id == first.id).execute()
    world.market.sell(52_000)
    del world.market.own_[:]
    world.market.sales_[0] = structs.replace(world.market.sales_[0], bid_id=second.venue_id)
    world.later(6, bidder, times=2)
    assert (Order.get_by_id(first.id).state, Order.get_by_id(second.id).close_reason) == ("unknown", "filled")


def test_a_sale_by_a_clock_that_is_behind_is_that_of_the_bid_that_is_gone_not_of_its_twin(
    world: World,
) -> None:
    _, bidder = world.begun(TWO)
    bidder.cycle()
    older, newer = Order.select().order_by(Order.id)
    world.market.own_ = [bid for bid in world.market.own_ if bid.venue_id == older.venue_id]
    sold_ms = newer.created_ms - 1_000
    world.market.sales_.append(Sale("sale", "cats", 52_000, Decimal(1), KEYS.payment, None, None, sold_ms))
    world.later(30, bidder)
    assert (Order.get_by_id(older.id).state, Order.get_by_id(newer.id).close_reason) == ("live", "filled")


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


def test_a_bid_sold_a_moment_before_its_confirmed_cancel_is_filled(world: World) -> None:
    task, bidder = world.begun(replace(ONE, max_fills=1))
    bidder.cycle()
    world.clock.advance(61)
    world.market.asks_ = [ask(40_000)]

    def confirm_what_was_sold(*args: object, **fields: object) -> bool:
        world.market.sell(52_000)
        return True

    world.market.cancel = confirm_what_was_sold  # type: ignore[method-assign,assignment]
    bidder.cycle()
    assert state(52_000) == "closed filled"
    assert orders.fills(task).count == 1 and world.market.prices == []


@pytest.mark.parametrize("fault", [Unavailable("down"), RateLimited(45.0)])
def test_confirmed_cancels_wait_for_no_sales_that_cannot_be_read(world: World, fault: VenueError) -> None:
    task, bidder = world.begun(CATS)
    bidder.cycle()
    world.clock.advance(61)
    world.market.asks_ = [ask(90_000)]
    world.market.fail("sales", *[fault] * 5)
    wait_s = seconds(bidder.cycle())
    assert len(world.market.prices) == CATS.bid_count and max(world.market.prices) <= 67_500
    assert world.row(task).last_error is None and wait_s > 20


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_sale_that_names_no_bid_is_one_into_the_bid_that_was_not_cancelled(world: World, is_shown: bool) -> None:
    _, bidder = world.begun(ONE)
    older = Order.get()
    world.clock.now_ms = older.expires_ms - 60_000
    cancel = world.market.cancel

    def sell_the_newer_after(*args: Any, **fields: Any) -> bool:
        is_done = cancel(*args, **fields)
        before = list(world.market.own_)
        world.market.sell(52_000, tells_bid=False)
        if is_shown:  # by a read that began before the sale
            world.market.own_[:] = before
        return is_done

    world.market.cancel = sell_the_newer_after  # type: ignore[method-assign,assignment]
    bidder.cycle()
    newer = Order.select().order_by(Order.id.desc()).get()
    world.market.own_.clear()
    world.later(6, bidder)
    ends = [Order.get_by_id(order.id).close_reason for order in (older, newer)]
    assert older.id != newer.id and ends == ["cancelled", "filled"]


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
