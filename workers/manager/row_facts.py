"""Facts of a task's row beyond its columns, for the manager."""

from __future__ import annotations

from models import summaries
from models.database import base
from models.ledger.closing import stays
from models.tasks import tasks
from models.tasks.tasks import BIDDING, LISTING, RUNNING, Task
from strategy.bid_config import load_bid_config
from strategy.listing.listing_config import load_listing_config
from workers.manager.child import Child
from workers.manager.reconcile import TaskFacts


def is_lost() -> bool:
    """Tells whether a file of the database is known to be lost."""
    found = base.damage()
    return found is not None and found.is_lost


def facts_of(
    row: Task | summaries.Glance, child: Child | None, open_orders: int, *, resting: bool, asked: bool = False
) -> TaskFacts:
    """Returns the facts of a task's row and its worker. A waiting client (`asked`) is refused."""
    return TaskFacts(
        is_wanted=row.desired == RUNNING,
        is_deleted=row.deleted_ms is not None,
        observed=row.observed,
        revision=row.revision,
        open_orders=open_orders,
        worker=child.kind if child else None,
        worker_revision=child.revision if child else 0,
        is_up=child is not None and child.has_lock,
        resting=resting,
        given_up=not asked and row.observed == "crashed",
        is_lost=not asked and child is not None and is_lost(),
    )


def has_changed(row: Task) -> bool:
    """Tells whether the row has changed since it was read."""
    now = tasks.with_owner(row.id)
    return now is None or (now.desired, now.revision, now.deleted_ms) != (row.desired, row.revision, row.deleted_ms)


def loop_s(row: Task) -> float:
    """Returns the seconds between cycles; 0 when the config cannot be read, which the worker will report."""
    try:
        return load_bid_config(row.config).loop_s if row.kind == BIDDING else load_listing_config(row.config).loop_s
    except ValueError:
        return 0.0


def place_key(row: Task) -> str:
    """Returns the key that tasks on the same book share, see workers/pace.py."""
    return str(row.slug_key or row.collection_id or row.inscription_id)


def leaves_orders(row: Task) -> bool:
    """Tells whether a stop by its user leaves the task's orders at the venue: a listing, or bids until they expire."""
    if row.kind == LISTING:
        return row.deleted_ms is None
    return stays(row)
