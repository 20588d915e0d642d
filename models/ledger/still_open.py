"""Open orders of tasks, and those that must still be ended."""

from __future__ import annotations

from models.database.base import Statement
from models.ledger import listings, orders
from models.tasks.tasks import LISTING, Task

# One question for both kinds: each is a way to the server and back.
_COUNTS = Statement(
    """
    SELECT COUNT(1) FROM orders WHERE task_id = :task AND state != 'closed'
    UNION ALL SELECT COUNT(1) FROM listings WHERE task_id = :task AND state != 'closed'
    """
)


def count_open(task_id: int) -> int:
    """Counts the task's open orders: bids, or the listing."""
    return sum(int(count) for (count,) in _COUNTS.rows(task=task_id))


def to_be_ended(task: Task) -> int:
    """Counts the orders to end when the task has no worker of its own. A listing stays until its task is deleted."""
    if task.kind == LISTING and task.deleted_ms is None:
        return 0
    return count_open(task.id)


def tasks_to_end() -> list[int]:
    """Returns the ids of the tasks that may still have orders to end."""
    return [*orders.tasks_with_open_orders(), *listings.tasks_to_delist()]
