from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import fields

from core.subscription_plans import DEFAULT_PLANS
from models import users
from models.database.base import database as database_proxy
from models.database.base import transaction
from models.ledger import closing, fills, orders
from models.ledger.orders import ExposureLimits, Fills, LimitReached, NewOrder, NotAllowedToPlace, SoldInto
from models.ledger.states import CLOSED, ORDER_ENDS, ORDER_LIFE, IllegalMove, Order
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED, Task
from tests import postgresql

intents = (f"{number:032x}" for number in itertools.count())


def running_task(slug: str = "cats", address: str = "bc1qa") -> Task:
    user = users.find_or_create(address, DEFAULT_PLANS, 1)
    task = tasks.create_bidding_task(
        user.id, type="ordinals", slug=slug, slug_key=slug, config="{}", venue="simulator", max_tasks=20, now_ms=1
    )
    tasks.set_desired(task, RUNNING)
    tasks.raise_token(task.id)
    return Task.get_by_id(task.id)


def new(
    task: Task,
    price: int,
    *,
    expires_ms: int = 1000,
    token: int | None = None,
    trait: tuple[str, str] | None = None,
    dry_run: bool = False,
) -> NewOrder:
    return NewOrder(
        intent=next(intents),
        task_id=task.id,
        user_id=task.user.id,
        venue="simulator",
        wallet="bc1qpay",
        slug=task.slug,
        price_sats=price,
        quantity="1",
        expires_ms=expires_ms,
        token=task.token if token is None else token,
        trait=trait,
        dry_run=dry_run,
    )


def reserved(task: Task, price: int = 1, *, state: str = "", **what: Any) -> Order:
    """Returns an order within no limits, in `state`."""
    order = orders.reserve(new(task, price, **what), ExposureLimits(0, 10**12, 0), 1)
    if state:
        Order.update(state=state).where(Order.id == order.id).execute()
    return Order.get_by_id(order.id)


def test_limits_are_inclusive(database: str) -> None:
    task = running_task()
    orders.reserve(new(task, 60), ExposureLimits(task=100, user=1000, installation=0), 1)
    orders.reserve(new(task, 40), ExposureLimits(task=100, user=1000, installation=0), 1)
    with pytest.raises(LimitReached) as caught:
        orders.reserve(new(task, 1), ExposureLimits(task=100, user=1000, installation=0), 1)
    assert (caught.value.limit, caught.value.room) == ("task_total", 0)
    assert orders.task_exposure(task.id) == 100


def test_two_tasks_share_their_users_limit(database: str) -> None:
    """Worked example: reserved 180,000 of 300,000; 75,000 fits, 60,000 then not, 45,000 gives exactly the limit."""
    first, second = running_task("cats"), running_task("dogs")
    exposure_limits = ExposureLimits(task=0, user=300_000, installation=0)
    orders.reserve(new(first, 180_000), exposure_limits, 1)
    orders.reserve(new(first, 75_000), exposure_limits, 1)
    with pytest.raises(LimitReached) as caught:
        orders.reserve(new(second, 60_000), exposure_limits, 1)
    assert caught.value.limit == "exposure_limit"
    orders.reserve(new(second, 45_000), exposure_limits, 1)
    assert orders.exposure(first.user.id) == 300_000
    assert orders.open_count(first.user.id) == 3


def test_a_user_limit_of_zero_lets_nothing_through(database: str) -> None:
    task = running_task()
    with pytest.raises(LimitReached):
        orders.reserve(new(task, 1), ExposureLimits(task=0, user=0, installation=0), 1)


def test_the_installation_limit_counts_every_user(database: str) -> None:
    mine, theirs = running_task("cats", "bc1qa"), running_task("cats", "bc1qb")
    exposure_limits = ExposureLimits(task=0, user=1000, installation=150)
    orders.reserve(new(mine, 100), exposure_limits, 1)
    with pytest.raises(LimitReached) as caught:
        orders.reserve(new(theirs, 51), exposure_limits, 1)
    assert caught.value.limit == "installation_limit"


def test_closed_orders_do_not_count(database: str) -> None:
    task = running_task()
    order = orders.reserve(new(task, 100), ExposureLimits(task=100, user=100, installation=100), 1)
    orders.move(order, CLOSED, 2, reason="refused")
    orders.reserve(new(task, 100), ExposureLimits(task=100, user=100, installation=100), 3)
    assert orders.exposure(task.user.id) == 100


def test_expiries_of_one_wallet_are_unique(database: str) -> None:
    task = running_task()
    found = [orders.reserve(new(task, 1), ExposureLimits(0, 1000, 0), 1).expires_ms for _ in range(4)]
    assert found == [1000, 1001, 1002, 1003]


def test_an_expiry_moves_to_the_first_free_millisecond_of_its_wallet(database: str) -> None:
    task = running_task()
    for taken in (1000, 1001, 1003, 1004):
        reserved(task, expires_ms=taken)
    closed = reserved(task, expires_ms=1006)
    orders.move(closed, CLOSED, 2, reason="refused")
    assert [reserved(task, expires_ms=1000).expires_ms for _ in range(3)] == [1002, 1005, 1007]


@pytest.mark.parametrize("trait", [None, ("Hat", "Crown: gold")])
def test_what_is_reserved_is_what_was_asked_for(database: str, trait: tuple[str, str] | None) -> None:
    asked = new(running_task(), 60, trait=trait, dry_run=trait is not None)
    given = orders.reserve(asked, ExposureLimits(100, 1000, 1000, 1), 7)
    stored = Order.get_by_id(given.id)
    for order in (given, stored):
        assert {field.name: getattr(order, field.name) for field in fields(asked)} == {
            field.name: getattr(asked, field.name) for field in fields(asked)
        }
        assert (order.state, order.misses, order.created_ms, order.updated_ms) == ("reserved", 0, 7, 7)
        assert (order.close_reason, order.venue_id, order.closed_ms, order.sale_id) == (None, None, None, None)


@pytest.mark.parametrize("dry_run", [False, True])
def test_dry_runs_and_real_orders_are_counted_apart(database: str, dry_run: bool) -> None:
    task = running_task()
    exposure_limits = ExposureLimits(task=100, user=100, installation=100, count=1)
    other = orders.reserve(new(task, 100, dry_run=not dry_run), exposure_limits, 1)
    own = orders.reserve(new(task, 90, dry_run=dry_run), exposure_limits, 1)
    with pytest.raises(LimitReached):
        orders.reserve(new(task, 1, dry_run=dry_run), exposure_limits, 1)
    assert orders.exposure(task.user.id, dry_run=dry_run) == orders.task_exposure(task.id, dry_run=dry_run) == 90
    assert orders.exposure(task.user.id) == orders.task_exposure(task.id) == (100 if dry_run else 90)
    assert [(order.id, order.dry_run) for order in orders.open_orders(task.id)] == [
        (other.id, not dry_run),
        (own.id, dry_run),
    ]
    assert orders.count_open(task.id) == 2


@pytest.mark.parametrize("limit", ["task_total", "exposure_limit", "installation_limit", "bid_count"])
def test_a_dry_run_has_every_limit_against_itself(database: str, limit: str) -> None:
    task = running_task()
    exposure_limits = {
        "task_total": ExposureLimits(150, 1000, 0),
        "exposure_limit": ExposureLimits(0, 150, 0),
        "installation_limit": ExposureLimits(0, 1000, 150),
        "bid_count": ExposureLimits(0, 1000, 0, 1),
    }[limit]
    orders.reserve(new(task, 100, dry_run=True), exposure_limits, 1)
    with pytest.raises(LimitReached) as caught:
        orders.reserve(new(task, 51, dry_run=True), exposure_limits, 1)
    assert caught.value.limit == limit


def test_a_dry_run_never_explains_a_bid_at_the_venue(database: str) -> None:
    task = running_task()
    dry = reserved(task, expires_ms=1000, dry_run=True, state="live")
    real = reserved(task, expires_ms=1000, state="live")
    assert (dry.expires_ms, real.expires_ms) == (1000, 1001)
    assert orders.orders_by_expiry("bc1qpay", [1000, 1001]) == {1001: real}
    assert orders.wallet_orders("bc1qpay") == [real]
    orders.move(real, CLOSED, 2, reason="expired")
    assert not orders.has_open_orders(task.user.id)
    assert orders.tasks_with_open_orders() == [task.id]


@pytest.mark.parametrize("change", ["stopped", "deleted", "overtaken"])
def test_nothing_is_reserved_without_the_right_to_place(database: str, change: str) -> None:
    task = running_task()
    if change == "stopped":
        tasks.set_desired(task, STOPPED)
    elif change == "deleted":
        tasks.mark_deleted(task, 2)
    else:
        tasks.raise_token(task.id)
    with pytest.raises(NotAllowedToPlace):
        orders.reserve(new(task, 1), ExposureLimits(0, 1000, 0), 1)
    assert Order.select().count() == 0


@pytest.mark.parametrize(
    ("start", "end"),
    [(a, b) for a in ORDER_LIFE.states for b in ORDER_LIFE.states if b not in ORDER_LIFE.moves.get(a, ())],
)
def test_an_order_goes_only_where_the_table_says(database: str, start: str, end: str) -> None:
    task = running_task()
    order = orders.reserve(new(task, 1), ExposureLimits(0, 1000, 0), 1)
    Order.update(state=start).where(Order.id == order.id).execute()
    order.state = start
    with pytest.raises(IllegalMove):
        orders.move(order, end, 2, reason="lost" if end == CLOSED else None)
    assert Order.get_by_id(order.id).state == start


def test_a_move_from_a_state_it_is_no_longer_in_is_refused(database: str) -> None:
    task = running_task()
    order = orders.reserve(new(task, 1), ExposureLimits(0, 1000, 0), 1)
    stale = Order.get_by_id(order.id)
    orders.move(order, "signed", 2)
    with pytest.raises(IllegalMove):
        orders.move(stale, "signed", 3)


def test_closing_needs_a_reason_and_only_closing_has_one(database: str) -> None:
    task = running_task()
    order = orders.reserve(new(task, 1), ExposureLimits(0, 1000, 0), 1)
    with pytest.raises(IllegalMove):
        orders.move(order, CLOSED, 2)
    with pytest.raises(IllegalMove):
        orders.move(order, "signed", 2, reason="lost")


@pytest.mark.parametrize("reason", ORDER_ENDS)
def test_an_order_keeps_its_venue_id_and_says_when_it_closed(database: str, reason: str) -> None:
    order = reserved(running_task(), state="submitted")
    orders.move(order, "live", 2, venue_id="abc")
    assert (order.venue_id, order.closed_ms) == ("abc", None)
    orders.move(order, "unknown", 3)
    assert Order.get_by_id(order.id).closed_ms is None
    orders.move(order, CLOSED, 4, reason=reason)
    stored = Order.get_by_id(order.id)
    assert (stored.venue_id, stored.close_reason, stored.closed_ms, stored.updated_ms) == ("abc", reason, 4, 4)
    assert order.__data__ == stored.__data__


def test_a_task_without_fills_has_none(database: str) -> None:
    task = running_task()
    orders.move(reserved(task, state="live"), CLOSED, 2, reason="expired")
    assert orders.fills(task.id) == Fills()
    assert (Fills().newest_ms, Fills().recent(2)) == (None, 0)


def test_fills_are_counted_by_task_and_apart_from_dry_runs(database: str) -> None:
    task, other = running_task("cats"), running_task("dogs")
    for number, price in enumerate((10, 20, 30)):
        assert orders.fill(reserved(task, price, state="live"), 100 + number, SoldInto(f"sale-{number}"))
    assert orders.fill(reserved(task, 1000, state="live", dry_run=True), 500, SoldInto("sale-x"))
    assert orders.fill(reserved(other, 7, state="unknown"), 600, SoldInto("sale-y"))
    found = orders.fills(task.id)
    assert (found.count, found.sats, found.newest_ms) == (3, 60, 102)
    assert orders.fills(task.id, dry_run=True) == Fills(1, 1000, (500,))
    assert orders.fills(other.id) == Fills(1, 7, (600,))


def test_recent_fills_are_those_of_the_last_ten_minutes(database: str) -> None:
    task = running_task()
    for number in range(12):
        orders.move(reserved(task, state="live"), CLOSED, number * 60_000, reason="filled")
    found = orders.fills(task.id)
    assert (found.count, found.newest_ms) == (12, 660_000)
    assert [found.recent(now_ms) for now_ms in (660_000, 900_000, 1_259_999, 1_260_000)] == [10, 6, 1, 0]


def test_a_sale_explains_one_order(database: str) -> None:
    mine, theirs = running_task("cats", "bc1qa"), running_task("cats", "bc1qb")
    first, second = reserved(mine, state="live"), reserved(theirs, state="cancelling")
    assert orders.fill(first, 5, SoldInto("sale"))
    assert (first.state, first.close_reason, first.sale_id, first.closed_ms) == (CLOSED, "filled", "sale", 5)
    assert not orders.fill(second, 6, SoldInto("sale"))
    stored = Order.get_by_id(second.id)
    assert (stored.state, stored.sale_id, stored.updated_ms, second.state) == ("cancelling", None, 1, "cancelling")
    assert orders.fill(second, 6, SoldInto("another sale"))


def test_a_sale_that_filled_a_real_order_fills_each_dry_run_once(database: str) -> None:
    mine, theirs = running_task("cats", "bc1qa"), running_task("cats", "bc1qb")
    assert orders.fill(reserved(mine, state="live"), 5, SoldInto("sale"))
    assert orders.fill(reserved(mine, state="live", dry_run=True), 5, SoldInto("sale"))
    assert orders.fill(reserved(theirs, state="live", dry_run=True), 5, SoldInto("sale"))
    assert not orders.fill(reserved(theirs, state="live", dry_run=True), 5, SoldInto("sale"))


def test_a_closed_order_is_not_filled(database: str) -> None:
    order = reserved(running_task(), state="live")
    stale = Order.get_by_id(order.id)
    orders.move(order, CLOSED, 2, reason="cancelled")
    for believed in (order, stale):
        with pytest.raises(IllegalMove):
            orders.fill(believed, 3, SoldInto("sale"))
    assert Order.get_by_id(order.id).close_reason == "cancelled"


@postgresql.left_out("its plan of a query depends on how many rows there are")
def test_what_every_bid_asks_does_not_slow_down_with_a_tasks_age(database: str) -> None:
    """Closed orders are kept for ever, so sums and lists of open ones go by indexes that hold only those."""
    task = running_task()
    said: list[str] = []

    def explained(sql: str, values: Any = ()) -> Any:
        said.extend(row[3] for row in ask(f"EXPLAIN QUERY PLAN {sql}", values))
        return ask(sql, values)

    ask = database_proxy.execute_sql
    with pytest.MonkeyPatch.context() as spied:
        spied.setattr(database_proxy.obj, "execute_sql", explained)
        spied.setattr(database_proxy.obj, "rows", lambda sql, values: explained(sql, values).fetchall())
        for read in (orders.exposure, orders.task_exposure, orders.open_orders, orders.count_open, orders.fills):
            read(task.id)
        orders.wallet_orders("bc1qpay")
        orders.tasks_with_open_orders()
        orders.orders_by_expiry("bc1qpay", [1, 2])
        fills.total_of_task(task.id)
        fills.newest(task.user_id, fills.Wanted(), 3, fills.Place(5, "buy", 1))
        fills.count_of_wallet(task.user_id, "bc1qpay", 5)
        orders.newest_of_user(task.user_id, 3, before=7)
        orders.newest_of_user(task.user_id, 3, task_id=task.id, before=7)
        closing.closing(task.user_id)
    used = [line.split(" INDEX ")[1].split()[0] for line in said if " INDEX " in line]
    assert used == [
        "orders_open_user",
        *["orders_open_task"] * 3,
        "orders_filled",
        "orders_open_wallet",
        "orders_open_task",
        "orders_wallet_expires_ms",
        "orders_filled",
        "orders_fills",
        "listings_sold",
        "orders_fills",
        "orders_user",
        "orders_user_task",
        "orders_open_user",
    ]
    assert not [line for line in said if line.startswith("SCAN") and "orders_open" not in line]


def test_a_nested_writing_transaction_is_an_error(database: str) -> None:
    with transaction(), pytest.raises(RuntimeError), transaction():
        pass
