"""The room in a budget that several tasks share: what its orders hold and have spent, and what that leaves.

An order counts in the budget that its task named when it was reserved. A task that names another one takes its open
orders along (`change_bidding_task`); its fills stay where they were made, also when it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from models import budgets
from models.budgets import Budget
from models.database.base import Statement
from models.tasks import tasks
from models.tasks.tasks import Task
from strategy.decision import BudgetRoom

DAY_MS = 86_400_000

_USE = """
    SELECT COALESCE(SUM(price_sats), 0), COUNT(1) FROM orders
    WHERE budget_id = :budget_id AND dry_run = :dry_run AND
"""
_OPEN = Statement(f"{_USE} state != 'closed'")
_OPEN_OF_OTHERS = Statement(f"{_USE} state != 'closed' AND task_id != :task_id")
_FILLED = Statement(f"{_USE} close_reason = 'filled'")
_FILLED_SINCE = Statement(f"{_USE} close_reason = 'filled' AND closed_ms > :after_ms")
_TAKE_ALONG = Statement("UPDATE orders SET budget_id = :budget_id WHERE task_id = :task_id AND state != 'closed'")


class BudgetUse(Struct, frozen=True):
    """The use of a budget: its tasks' open orders, their fills, and the sats of those of the last 24 hours."""

    open_sats: int
    open_count: int
    fills: int
    spent_sats: int
    spent_today_sats: int


def use_of(budget_id: int, now_ms: int, *, dry_run: bool = False, but: int | None = None) -> BudgetUse:
    """Returns the use by real orders, or by those of dry runs; `but` leaves out this task's open ones."""
    which: dict[str, Any] = {"budget_id": budget_id, "dry_run": dry_run}
    [(open_sats, count)] = _OPEN.rows(**which) if but is None else _OPEN_OF_OTHERS.rows(**which, task_id=but)
    [(spent, fills)] = _FILLED.rows(**which)
    # One in the future, after a clock was set back, is among those of today.
    [(today, _)] = _FILLED_SINCE.rows(**which, after_ms=now_ms - DAY_MS) if fills else [(0, 0)]
    return BudgetUse(open_sats, count, fills, spent, today)


def left(budget: Budget, use: BudgetUse) -> BudgetRoom:
    """Returns the room beside these orders and fills: none where a limit was lowered below them."""
    fills_left = max(0, budget.max_fills - use.fills - use.open_count) if budget.max_fills else None
    return BudgetRoom(budget.id, budget.name, min(_sats_left(budget, use), default=None), fills_left)


def _sats_left(budget: Budget, use: BudgetUse) -> Iterator[int]:
    for most, gone in (
        (budget.max_open_sats, 0),
        (budget.spend_cap_sats, use.spent_sats),
        (budget.spend_cap_per_day_sats, use.spent_today_sats),
    ):
        if most:
            yield max(0, most - gone - use.open_sats)


def room_of(user_id: int, budget_id: int, task_id: int | None, now_ms: int, *, dry_run: bool) -> BudgetRoom:
    """Returns the room for the task's orders, its own open ones included; none in a budget that is not the user's."""
    budget = budgets.own(user_id, budget_id)
    if budget is None:
        return BudgetRoom(budget_id, "", 0, 0)
    return left(budget, use_of(budget_id, now_ms, dry_run=dry_run, but=task_id))


def room_now(budget_id: int, now_ms: int, *, dry_run: bool) -> BudgetRoom:
    """Returns the room for one more order, for a reservation that holds the write lock."""
    budget = budgets.named_by_a_task(budget_id)
    if budget is None:
        return BudgetRoom(budget_id, "", 0, 0)
    return left(budget, use_of(budget_id, now_ms, dry_run=dry_run))


def change_bidding_task(task: Task, **columns: Any) -> int:
    """Writes a task's config as `tasks.change_bidding_task`, in one step with the budget of its open orders."""

    def take_along() -> None:
        _TAKE_ALONG.run(task_id=task.id, budget_id=columns["budget_id"])

    return tasks.change_bidding_task(task, **columns, beside=take_along)
