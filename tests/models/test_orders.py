from __future__ import annotations

import itertools

import pytest

from core.plans import DEFAULT_PLANS
from models import orders, tasks, users
from models.base import transaction
from models.orders import CLOSED, MOVES, Ceilings, IllegalMove, LimitReached, NewOrder, NotAllowedToPlace, Order

intents = (f"{number:032x}" for number in itertools.count())


def running_task(slug: str = "cats", address: str = "bc1qa") -> tasks.BiddingTask:
    user = users.find_or_create(address, DEFAULT_PLANS, 1)
    task = tasks.create_bidding_task(
        user.id, type="ordinals", slug=slug, slug_key=slug, config="{}", max_tasks=20, now_ms=1
    )
    tasks.set_desired(task, tasks.RUNNING)
    tasks.raise_token(task.id)
    return tasks.BiddingTask.get_by_id(task.id)


def new(task: tasks.BiddingTask, price: int, *, expires_ms: int = 1000, token: int | None = None) -> NewOrder:
    return NewOrder(
        intent=next(intents),
        kind="bid",
        task_id=task.id,
        user_id=task.user.id,
        venue="simulator",
        wallet="bc1qpay",
        slug=task.slug,
        price_sats=price,
        quantity="1",
        expires_ms=expires_ms,
        token=task.token if token is None else token,
    )


def test_limits_are_inclusive(database: str) -> None:
    task = running_task()
    orders.reserve(new(task, 60), Ceilings(task=100, user=1000, installation=0), 1)
    orders.reserve(new(task, 40), Ceilings(task=100, user=1000, installation=0), 1)
    with pytest.raises(LimitReached) as caught:
        orders.reserve(new(task, 1), Ceilings(task=100, user=1000, installation=0), 1)
    assert (caught.value.limit, caught.value.room) == ("task_total", 0)
    assert orders.task_exposure(task.id) == 100


def test_two_tasks_share_their_users_limit(database: str) -> None:
    """Worked example: reserved 180,000 of 300,000; 75,000 fits, 60,000 then not, 45,000 gives exactly the limit."""
    first, second = running_task("cats"), running_task("dogs")
    ceilings = Ceilings(task=0, user=300_000, installation=0)
    orders.reserve(new(first, 180_000), ceilings, 1)
    orders.reserve(new(first, 75_000), ceilings, 1)
    with pytest.raises(LimitReached) as caught:
        orders.reserve(new(second, 60_000), ceilings, 1)
    assert caught.value.limit == "exposure_limit"
    orders.reserve(new(second, 45_000), ceilings, 1)
    assert orders.exposure(first.user.id) == 300_000


def test_a_user_limit_of_zero_lets_nothing_through(database: str) -> None:
    task = running_task()
    with pytest.raises(LimitReached):
        orders.reserve(new(task, 1), Ceilings(task=0, user=0, installation=0), 1)


def test_the_installation_limit_counts_every_user(database: str) -> None:
    mine, theirs = running_task("cats", "bc1qa"), running_task("cats", "bc1qb")
    ceilings = Ceilings(task=0, user=1000, installation=150)
    orders.reserve(new(mine, 100), ceilings, 1)
    with pytest.raises(LimitReached) as caught:
        orders.reserve(new(theirs, 51), ceilings, 1)
    assert caught.value.limit == "installation_limit"


def test_closed_orders_do_not_count(database: str) -> None:
    task = running_task()
    order = orders.reserve(new(task, 100), Ceilings(task=100, user=100, installation=100), 1)
    orders.move(order, CLOSED, 2, reason="refused")
    orders.reserve(new(task, 100), Ceilings(task=100, user=100, installation=100), 3)
    assert orders.exposure(task.user.id) == 100


def test_expiries_of_one_wallet_are_unique(database: str) -> None:
    task = running_task()
    found = [orders.reserve(new(task, 1), Ceilings(0, 1000, 0), 1).expires_ms for _ in range(4)]
    assert found == [1000, 1001, 1002, 1003]


@pytest.mark.parametrize("change", ["stopped", "deleted", "overtaken"])
def test_nothing_is_reserved_without_the_right_to_place(database: str, change: str) -> None:
    task = running_task()
    if change == "stopped":
        tasks.set_desired(task, tasks.STOPPED)
    elif change == "deleted":
        tasks.mark_deleted(task, 2)
    else:
        tasks.raise_token(task.id)
    with pytest.raises(NotAllowedToPlace):
        orders.reserve(new(task, 1), Ceilings(0, 1000, 0), 1)
    assert Order.select().count() == 0


@pytest.mark.parametrize(("start", "end"), [(a, b) for a in MOVES for b in MOVES if b not in MOVES[a]])
def test_an_order_goes_only_where_the_table_says(database: str, start: str, end: str) -> None:
    task = running_task()
    order = orders.reserve(new(task, 1), Ceilings(0, 1000, 0), 1)
    Order.update(state=start).where(Order.id == order.id).execute()
    order.state = start
    with pytest.raises(IllegalMove):
        orders.move(order, end, 2, reason="lost" if end == CLOSED else None)
    assert Order.get_by_id(order.id).state == start


def test_a_move_from_a_state_it_is_no_longer_in_is_refused(database: str) -> None:
    task = running_task()
    order = orders.reserve(new(task, 1), Ceilings(0, 1000, 0), 1)
    stale = Order.get_by_id(order.id)
    orders.move(order, "signed", 2)
    with pytest.raises(IllegalMove):
        orders.move(stale, "signed", 3)


def test_closing_needs_a_reason_and_only_closing_has_one(database: str) -> None:
    task = running_task()
    order = orders.reserve(new(task, 1), Ceilings(0, 1000, 0), 1)
    with pytest.raises(IllegalMove):
        orders.move(order, CLOSED, 2)
    with pytest.raises(IllegalMove):
        orders.move(order, "signed", 2, reason="lost")


def test_a_nested_writing_transaction_is_an_error(database: str) -> None:
    with transaction(), pytest.raises(RuntimeError), transaction():
        pass
