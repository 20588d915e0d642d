"""All users' tasks, for the manager that keeps them, and for the sum of their calls to one marketplace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from peewee import fn

from models.leases.leases import Slot
from models.tasks.tasks import BIDDING, RUNNING, STOPPED, Task
from models.users import User
from strategy import monthly
from strategy.bid_config import load_bid_config
from strategy.listing.listing_config import load_listing_config


def running_tasks(*, but: int | None = None) -> dict[str, list[monthly.Task]]:
    """Returns the wanted tasks by venue, except the task `but`.

    A config that cannot be read is left out: its task cannot run.
    """
    found: dict[str, list[monthly.Task]] = {}
    wanted = Task.select().where(Task.desired == RUNNING, Task.deleted_ms.is_null(), Task.id != (but or 0))
    for row in wanted.order_by(Task.id):
        try:
            task = _bidding(row) if row.kind == BIDDING else _selling(row)
        except ValueError:
            continue
        found.setdefault(row.venue, []).append(task)
    return found


def _bidding(row: Task) -> monthly.Task:
    config = load_bid_config(row.config)
    return monthly.Bidding(config, 0 if config.dry_run else config.bid_count, row.user_id)


def _selling(row: Task) -> monthly.Task:
    # For an item without a collection no other task shares the reads.
    return monthly.Selling(load_listing_config(row.config), row.collection_id or row.inscription_id, row.user_id)


def ids_beside(slot: Slot) -> list[int]:
    """Returns the ids of all tasks that are not the slot's."""
    return [row.id for row in Task.select(Task.id).where(~slot.has(Task.user))]


def count_by_observed(slot: Slot) -> dict[str, int]:
    """Counts the slot's tasks of both kinds by observed state."""
    rows: Any = Task.select(Task.observed, fn.COUNT(Task.id)).where(slot.has(Task.user)).group_by(Task.observed)
    return dict(rows.tuples())


class Glance(NamedTuple):
    """The few columns that show a manager whether anything must be done."""

    id: int
    desired: str
    observed: str
    revision: int
    deleted_ms: int | None


def glances(to_end: Iterable[int], slot: Slot) -> list[Glance]:
    """Returns the rows of `rows_of_interest`, but cheaply: this runs every second."""
    columns = [getattr(Task, name) for name in Glance._fields]
    rows: Any = Task.select(*columns).where(_of_interest(to_end, slot)).order_by(Task.id).tuples()
    return [Glance._make(row) for row in rows]


def rows_of_interest(to_end: Iterable[int], slot: Slot) -> list[Task]:
    """Returns the rows that the slot's manager must look at, with their users.

    Wanted, observed as something else than stopped, deleted, or `to_end` (ids), which have orders to be closed.
    """
    return list(Task.select(Task, User).join(User).where(_of_interest(to_end, slot)).order_by(Task.id))


def _of_interest(to_end: Iterable[int], slot: Slot) -> Any:
    is_busy = (Task.desired == RUNNING) | (Task.observed != STOPPED)
    return slot.has(Task.user) & (is_busy | Task.deleted_ms.is_null(False) | Task.id.in_(list(to_end)))
