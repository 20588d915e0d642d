"""Budgets of several tasks: their sums, and the ledger's word on every reservation."""

from __future__ import annotations

from typing import Any

import pytest

from models import budgets
from models.budgets import Budget, BudgetInUse
from models.ledger import orders
from models.ledger.orders import (
    DAY_MS,
    BudgetUse,
    ExposureLimits,
    LimitReached,
    SoldInto,
    change_bidding_task,
    left,
    room_of,
    use_of,
)
from models.ledger.states import LIVE, Order
from models.tasks import tasks
from models.tasks.tasks import NoSuchBudget, Task, TaskExists
from models.users import User
from strategy.decision import BudgetRoom
from tests import postgresql
from tests.models.test_orders import new, running_task

AMPLE = ExposureLimits(0, 10**12, 0)


@pytest.mark.parametrize(
    ("limits", "use", "sats", "fills"),
    [
        ({"max_open_sats": 150_000}, BudgetUse(135_000, 2, 0, 0, 0), 15_000, None),
        ({"max_open_sats": 150_000}, BudgetUse(0, 0, 9, 10**9, 10**9), 150_000, None),  # fills are not open
        ({"spend_cap_sats": 100_000}, BudgetUse(0, 0, 1, 75_000, 75_000), 25_000, None),
        ({"spend_cap_sats": 100_000}, BudgetUse(25_000, 1, 1, 75_000, 0), 0, None),
        ({"spend_cap_per_day_sats": 80_000}, BudgetUse(10_000, 1, 3, 300_000, 30_000), 40_000, None),
        ({"max_open_sats": 90_000, "spend_cap_sats": 100_000}, BudgetUse(10_000, 1, 1, 20_000, 0), 70_000, None),
        ({"max_fills": 5}, BudgetUse(10_000, 2, 1, 20_000, 0), None, 2),
        ({"max_fills": 2, "max_open_sats": 5}, BudgetUse(10, 2, 1, 20_000, 0), 0, 0),  # both were lowered
        ({}, BudgetUse(10**15, 99, 99, 10**15, 10**15), None, None),
    ],
)
def test_the_room_is_the_least_that_a_limit_leaves(
    limits: dict[str, int], use: BudgetUse, sats: int | None, fills: int | None
) -> None:
    assert left(Budget(id=7, name="both", **limits), use) == BudgetRoom(7, "both", sats, fills)


def sharing(**limits: int) -> tuple[Budget, Task, Task]:
    """A budget with these limits, and two tasks that name it."""
    first, second = running_task("cats"), running_task("dogs")
    budget = budgets.create(first.user_id, 1, name="both", **limits)
    return budget, *(joined(task, budget.id) for task in (first, second))  # type: ignore[return-value]


def joined(task: Task, budget_id: int | None) -> Task:
    change_bidding_task(task, **config_of(task), budget_id=budget_id)
    return Task.get_by_id(task.id)


def config_of(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in ("type", "slug", "slug_key", "config")}


def placed(task: Task, price: int, now_ms: int = 1, **what: Any) -> Order:
    order = orders.reserve(new(task, price, **what), AMPLE, now_ms)
    Order.update(state=LIVE).where(Order.id == order.id).execute()
    return Order.get_by_id(order.id)


def refused(task: Task, price: int, now_ms: int = 1, **what: Any) -> int:
    """Returns the room that the budget's refusal names."""
    with pytest.raises(LimitReached) as reached:
        orders.reserve(new(task, price, **what), AMPLE, now_ms)
    assert reached.value.limit == "budget"
    return reached.value.room


def test_the_worked_example(database: str) -> None:
    budget, first, second = sharing(max_open_sats=150_000)
    placed(first, 75_000)
    placed(first, 60_000)
    assert refused(second, 45_000) == 15_000
    assert refused(second, 15_001) == 15_000
    placed(second, 15_000)
    assert refused(first, 1) == 0
    assert use_of(budget.id, 1) == BudgetUse(150_000, 3, 0, 0, 0)


def test_the_worked_example_of_a_fill(database: str) -> None:
    _, first, second = sharing(spend_cap_sats=100_000)
    assert orders.fill(placed(first, 75_000), 2, SoldInto("sale"))
    assert refused(second, 25_001) == 25_000
    placed(second, 20_000)
    assert refused(first, 5_001) == 5_000
    placed(first, 5_000)


def test_a_day_ends_24_hours_after_the_fill(database: str) -> None:
    _, first, second = sharing(spend_cap_per_day_sats=100_000)
    assert orders.fill(placed(first, 75_000), 1_000, SoldInto("sale"))
    assert refused(second, 25_001, DAY_MS + 999) == 25_000
    placed(second, 100_000, DAY_MS + 1_000)


def test_fills_count_with_what_may_be_filled(database: str) -> None:
    _, first, second = sharing(max_fills=3)
    assert orders.fill(placed(first, 5), 2, SoldInto("sale"))
    placed(first, 5)
    placed(second, 5)
    assert refused(second, 5) == 0


def test_dry_runs_are_counted_apart(database: str) -> None:
    _, first, second = sharing(max_open_sats=100)
    placed(first, 100)
    placed(second, 60, dry_run=True)
    assert refused(first, 41, dry_run=True) == 40


def test_a_task_without_the_budget_neither_counts_nor_is_bound(database: str) -> None:
    budget, first, second = sharing(max_open_sats=100)
    alone = running_task("birds")
    placed(alone, 1_000)
    placed(first, 100)
    joined(second, None)
    placed(Task.get_by_id(second.id), 1_000)
    assert use_of(budget.id, 1).open_sats == 100


def test_a_limit_below_what_stands_refuses_all_that_is_new(database: str) -> None:
    budget, first, second = sharing(max_open_sats=100)
    order = placed(first, 100)
    assert budgets.change(first.user_id, budget.id, max_open_sats=60)
    assert (refused(second, 1), order.state) == (0, LIVE)
    orders.move(order, "closed", 2, reason="cancelled")
    assert refused(second, 61) == 60
    placed(second, 60)


def test_a_tasks_open_orders_go_along_to_another_budget_and_its_fills_stay(database: str) -> None:
    budget, first, _ = sharing(spend_cap_sats=1_000)
    other = budgets.create(first.user_id, 1, name="other", spend_cap_sats=500)
    assert orders.fill(placed(first, 300), 2, SoldInto("sale"))
    placed(first, 200)
    first = joined(first, other.id)
    assert use_of(budget.id, 2) == BudgetUse(0, 0, 1, 300, 300)
    assert use_of(other.id, 2) == BudgetUse(200, 1, 0, 0, 0)
    assert refused(first, 301) == 300
    with pytest.raises(TaskExists):
        change_bidding_task(first, **config_of(first) | {"slug_key": "dogs"}, budget_id=budget.id)
    assert use_of(other.id, 2).open_sats == 200, "what was not written took nothing along"


def test_the_room_for_a_task_has_its_own_orders_in_it(database: str) -> None:
    budget, first, second = sharing(max_open_sats=150, max_fills=4)
    placed(first, 75)
    placed(second, 60)
    user = first.user_id
    assert room_of(user, budget.id, first.id, 1, dry_run=False) == BudgetRoom(budget.id, "both", 90, 3)
    assert room_of(user, budget.id, None, 1, dry_run=False) == BudgetRoom(budget.id, "both", 15, 2)
    assert room_of(user + 1, budget.id, first.id, 1, dry_run=False) == BudgetRoom(budget.id, "", 0, 0)


def test_a_budget_goes_once_no_task_names_it_and_a_deleted_task_names_none(database: str) -> None:
    budget, first, second = sharing(max_open_sats=100)
    order = placed(first, 100)
    tasks.mark_deleted(first, 2)
    assert refused(second, 1) == 0, "its open orders count to their end"
    with pytest.raises(BudgetInUse):
        budgets.remove(first.user_id, budget.id)
    joined(second, None)
    assert not budgets.remove(first.user_id + 1, budget.id)
    assert budgets.remove(first.user_id, budget.id)
    with pytest.raises(NoSuchBudget):
        joined(second, budget.id)
    orders.move(order, "closed", 2, reason="cancelled")


@postgresql.left_out("no row can name a budget that is not there")
def test_a_budget_that_is_not_there_has_no_room(database: str) -> None:
    """No task can name such a one; should one, it is not free to bid."""
    _, first, _ = sharing()
    Task._meta.database.execute_sql("PRAGMA foreign_keys=OFF")
    Task.update(budget=99).where(Task.id == first.id).execute()
    assert refused(first, 1) == 0


def test_a_user_goes_with_budgets_and_tasks(database: str) -> None:
    _, first, _ = sharing()
    User.delete().where(User.id == first.user_id).execute()
    assert (Budget.select().count(), Task.select().count()) == (0, 0)
