"""All users' running tasks, whose calls to one marketplace add up."""

from __future__ import annotations

from models.tasks.tasks import BIDDING, RUNNING, Task
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
