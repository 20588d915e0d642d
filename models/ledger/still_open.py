"""What a task still has at the venue, and what of that somebody must see to the end of."""

from __future__ import annotations

from models.ledger import listings, orders
from models.tasks.table import LISTING, Task


def count_open(task_id: int) -> int:
    """How many orders of the task are open: bids, or the listing."""
    return orders.count_open(task_id) + listings.count_open(task_id)


def to_be_ended(task: Task) -> int:
    """How many orders have to be ended when the task has no worker of its own. A listing stays until it is deleted."""
    if task.kind == LISTING and task.deleted_ms is None:
        return 0
    return count_open(task.id)


def tasks_to_end() -> list[int]:
    """Ids of the tasks for which that may be more than none."""
    return [*orders.tasks_with_open_orders(), *listings.tasks_to_delist()]
