"""All tasks that are to run, whosever they are: what they ask of one marketplace adds up."""

from __future__ import annotations

from typing import Any

from models.tasks.tables import RUNNING, AutolistTask, BiddingTask
from strategy.config import loads
from strategy.listing.config import loads_config
from strategy.monthly import Bidding, Selling, Task


def running_tasks(default: str, *, but: int | None = None) -> dict[str, list[Task]]:
    """By the venue where they trade, except the bidding task `but`; `default` is where those trade that name none.

    A config that cannot be read is left out: its task cannot run.
    """
    found: dict[str, list[Task]] = {}
    for table, task_of in ((BiddingTask, _bidding), (AutolistTask, _selling)):
        rows: Any = table.select().where(table.desired == RUNNING, table.deleted_ms.is_null())
        for row in rows:
            if table is BiddingTask and row.id == but:
                continue
            try:
                task = task_of(row)
            except ValueError:
                continue
            found.setdefault(row.venue_or(default), []).append(task)
    return found


def _bidding(row: BiddingTask) -> Task:
    config = loads(row.config)
    return Bidding(config, 0 if config.dry_run else config.bid_count, row.user_id)


def _selling(row: AutolistTask) -> Task:
    # Of an item without a collection nobody else reads what it hangs on.
    return Selling(loads_config(row.config), row.collection_id or row.inscription_id, row.user_id)
