"""What is noted of a fill, and sales of a part of an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import pytest
from msgspec import structs

from markets.base import OwnBid, Sale, Unavailable
from models.ledger import fills, orders, withdrawals
from models.ledger.fills import Fill, FillTotal, Wanted
from models.ledger.states import Order
from models.tasks import cycles, tasks
from models.tasks.tasks import STOPPED
from strategy.config.bid import dump_bid_config
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, Crash, CrashAt, World, ask
from workers.bidding.bidder import Bidder

ITEM = "ab" * 32 + "i0"
# Of a floor of 100,000 one bid, at 75,000.
ONE = replace(CATS, bid_count=1)


def only_fill(world: World) -> Fill:
    (found,) = fills.newest(int(world.user.id), Wanted(), 10)
    return found


def bought(world: World, *, balance: int, meanwhile: Callable[[], object] = lambda: None) -> Fill:
    """The fill of a bid of 75,000 at a balance of 5,000,000, which the sale brings to `balance`."""
    world.market.balance_sats = 5_000_000
    _, bidder = world.begun(ONE)
    world.later(30, bidder)
    world.clock.advance(10)
    sale = world.market.sell(75_000)
    world.market.sales_[-1] = structs.replace(sale, inscription_id=ITEM)
    world.market.balance_sats = balance
    meanwhile()
    world.later(20, bidder)
    return only_fill(world)


@pytest.mark.parametrize(("balance", "fee"), [(4_924_400, 600), (4_925_000, 0)])
def test_the_worked_example(world: World, balance: int, fee: int) -> None:
    fill = bought(world, balance=balance)
    assert (fill.place.side, fill.price_sats, fill.network_fee_sats, fill.floor_at_fill) == (
        "buy",
        75_000,
        fee,
        100_000,
    )
    assert (fill.inscription_id, fill.quantity, fill.dry_run) == (ITEM, Decimal(1), False)
    assert fill.place.filled_ms == world.market.sales_[0].sold_ms > fill.placed_ms


@pytest.mark.parametrize("balance", [4_924_399 - 2_000, 4_925_001, 5_000_000], ids=["too dear", "a deposit", "late"])
def test_a_fall_that_is_no_fees_is_not_told_as_one(world: World, balance: int) -> None:
    assert bought(world, balance=balance).network_fee_sats is None


def test_of_two_fills_between_two_looks_no_fee_is_known(world: World) -> None:
    world.market.balance_sats = 5_000_000
    _, bidder = world.begun(replace(CATS, bid_mode="fixed", bid_count=2, bid_fixed_low=52_000, bid_fixed_high=52_000))
    world.later(30, bidder)
    for _ in range(2):
        world.clock.advance(5)
        world.market.sell(52_000)
    world.market.balance_sats -= 2 * 52_000 + 1_000
    world.later(20, bidder)
    assert [fill.network_fee_sats for fill in fills.newest(int(world.user.id), Wanted(), 10)] == [None, None]


def test_another_tasks_fill_of_the_same_wallet_is_in_the_way(world: World) -> None:
    def other() -> None:
        mine = Order.get()
        row = mine.__data__ | {"id": 99, "intent": "x", "task_id": 99, "expires_ms": 5, "price_sats": 100}
        row |= {"state": "closed", "close_reason": "filled", "filled_ms": world.clock(), "sale_id": "other"}
        Order.insert(row).execute()

    world.market.balance_sats = 5_000_000
    _, bidder = world.begun(ONE)
    world.later(30, bidder)
    world.clock.advance(10)
    world.market.sell(75_000)
    world.market.balance_sats = 4_924_300
    other()
    world.later(20, bidder)
    assert {fill.network_fee_sats for fill in fills.newest(int(world.user.id), Wanted(), 10)} == {None}


def test_money_on_its_way_out_is_in_the_way(world: World) -> None:
    def withdraw() -> None:
        new = withdrawals.NewWithdrawal("w", int(world.user.id), "bidding", "bc1quser", "{}", ())
        withdrawals.reserve(new, world.clock())

    assert bought(world, balance=4_924_400, meanwhile=withdraw).network_fee_sats is None


def test_a_balance_that_cannot_be_read_again_leaves_the_fee_unknown(world: World) -> None:
    fill = bought(world, balance=4_924_400, meanwhile=lambda: world.market.fail("balance", None, Unavailable("away")))
    assert (fill.network_fee_sats, fill.floor_at_fill) == (None, 100_000)


def test_a_sale_before_the_known_balance_has_no_fee(world: World) -> None:
    """The balance that was read last may have had the sale in it: what was before is not known."""
    world.market.balance_sats = 5_000_000
    _, bidder = world.begun(ONE)
    sale = world.market.sell(75_000)
    world.market.sales_[-1] = structs.replace(sale, sold_ms=sale.sold_ms - 1_500)
    world.market.balance_sats = 4_924_400
    world.later(20, bidder)
    assert only_fill(world).network_fee_sats is None


def test_the_floor_of_another_slug_is_none_of_a_fill_from_before(world: World) -> None:
    task, bidder = world.begun(ONE)
    world.market.sell(75_000)
    config = replace(ONE, slug="dogs")
    tasks.change_bidding_task(
        world.row(task), type="ordinals", slug="dogs", slug_key="dogs", config=dump_bid_config(config)
    )
    world.later(30, bidder)
    assert only_fill(world).floor_at_fill is None


def test_after_201_cycles_the_fill_is_still_told_and_so_is_a_deleted_tasks(world: World) -> None:
    fill = bought(world, balance=4_924_400)
    task = world.row(fill.task_id)
    kept = {"time_ms": 1, "action": "placed 0", "error": None, "detail": "{}", "memory": "{}"}
    for _ in range(201):
        cycles.record_cycle(task.id, task.token, **kept)
    assert not any("filled" in cycle.action for cycle in cycles.cycles_of(task.id))

    assert only_fill(world) == fill
    assert fills.total_of_task(task.id) == FillTotal(1, 75_000, fill.place.filled_ms)
    assert fills.totals_of_tasks(int(world.user.id)) == {task.id: fills.total_of_task(task.id)}
    tasks.mark_deleted(task, world.clock())
    tasks.remove_tombstone(task.id)
    assert only_fill(world) == fill


def test_a_sale_that_explains_one_order_is_one_fill(world: World) -> None:
    _, bidder = world.begun(replace(CATS, bid_mode="fixed", bid_count=2, bid_fixed_low=52_000, bid_fixed_high=52_000))
    world.market.sell(52_000)
    world.market.own_.clear()
    world.later(30, bidder, times=3)
    assert [fill.sale_id for fill in fills.newest(int(world.user.id), Wanted(), 10)] == ["sale-0"]


def test_a_crash_before_the_notes_keeps_the_fill(world: World) -> None:
    task, _ = world.begun(ONE)
    world.market.sell(75_000)
    with pytest.raises(Crash):
        world.later(30, world.bidder(task, CrashAt("after_plan")))
    world.market.asks_ = [ask(90_000)]
    world.later(30, world.bidder(task))
    assert (only_fill(world).price_sats, only_fill(world).floor_at_fill) == (75_000, None)


def test_a_fill_lies_within_its_orders_life_whatever_the_venues_clock_says(world: World) -> None:
    for number, sold_ms in enumerate((1, 10**15)):
        task, _ = world.begun(replace(ONE, slug=("cats", "dogs")[number]))
        (order,) = orders.open_orders(task)
        now_ms = world.clock()
        assert orders.fill(order, now_ms, orders.SoldInto(f"s{number}", sold_ms=sold_ms))
        assert Order.get_by_id(order.id).filled_ms == (order.created_ms, now_ms)[number]


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


def bought_part(world: World) -> Sequence[tuple[int, Decimal]]:
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
    assert bought_part(world) == [(45_000, Decimal(600))]
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
    assert bought_part(world) == [(45_000, Decimal(600))]
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
    assert bought_part(world) == [(75_000, Decimal(1000))]

    world.market.own_ = []
    world.later(30, bidder, times=4)

    assert bought_part(world) == [(6_000, Decimal(100)), (75_000, Decimal(1000))]


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
