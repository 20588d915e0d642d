"""What a task, known by its number, still has at the venue, and what of that somebody must see to the end of."""

from __future__ import annotations

from models.ledger import listings, orders
from models.tasks.numbers import is_autolist
from models.tasks.tables import Task


def count_open(number: int) -> int:
    """How many orders of the task are open: bids, or the listing."""
    return listings.count_open(number) if is_autolist(number) else orders.count_open(number)


def to_be_ended(task: Task) -> int:
    """How many orders have to be ended when the task has no worker of its own. A listing stays until it is deleted."""
    if is_autolist(task.number) and task.deleted_ms is None:
        return 0
    return count_open(task.number)


def tasks_owing() -> list[int]:
    """Numbers of the tasks for which that may be more than none."""
    return [*orders.tasks_with_open_orders(), *listings.tasks_to_delist()]
