"""The next step for a task's row and its worker, and the facts behind it; other code carries the step out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from models import base
from models.ledger.closing import stays
from models.tasks import tasks
from models.tasks.table import BIDDING, LISTING, RUNNING, Task
from strategy.bid_config import load_bid_config
from strategy.listing.listing_config import load_listing_config
from workers.context import Kind
from workers.manager.child import Child


class NextStep(Enum):
    """The one thing to do next; then the facts are looked at again."""

    NOTHING = "nothing"
    REST = "rest"  # a start is due, but not before the back-off is over
    START_WORKER = "start worker"  # the task's own: a bidder or a lister
    START_DRAIN = "start drain"
    STOP = "stop"
    TELL = "tell"  # its worker is up, though the row still says that it starts
    SETTLE = "settle"  # nothing runs, though the row says otherwise
    REMOVE = "remove"  # a deleted task without open orders


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """A task's row, its worker (`kind` and the `worker_revision` of the config it reads), its back-off.

    `is_up`: the worker holds its task's lock. `open_orders` are those that must be ended when the task has no worker of
    its own. `resting`: an automatic start has to wait. `given_up`: it crashed, and no client has asked for it since.
    `is_lost`: a file of the database is lost, so that no process can be started in place of another.
    """

    is_wanted: bool
    is_deleted: bool
    observed: str
    revision: int
    open_orders: int
    worker: Kind | None = None
    worker_revision: int = 0
    is_up: bool = False
    resting: bool = False
    given_up: bool = False
    is_lost: bool = False


def next_step(facts: TaskFacts) -> NextStep:
    """Returns the step that makes worker and row agree.

    A wanted task has a worker of its own for the newest revision; an unwanted one has none, and a drain worker as long
    as orders must be ended. A worker of the wrong kind is stopped first: there is never a second one. While a
    file is lost it has no successor, so it keeps running: it still cancels bids above the market.
    """
    worker_due = facts.is_wanted and not facts.is_deleted and not facts.given_up
    if facts.worker == "drain":
        return NextStep.STOP if worker_due and not (facts.resting or facts.is_lost) else NextStep.NOTHING
    if facts.worker is not None:
        if not worker_due or (facts.worker_revision != facts.revision and not facts.is_lost):
            return NextStep.STOP
        return NextStep.TELL if facts.is_up and facts.observed == "starting" else NextStep.NOTHING
    if facts.observed in ("starting", "running", "stopping"):
        return NextStep.SETTLE
    if worker_due:
        return NextStep.REST if facts.resting else NextStep.START_WORKER
    if facts.observed == "backoff" or (facts.observed == "crashed" and not facts.is_wanted):
        # Before its orders: a client that stops a task is not answered while its dead worker's write is on the wire.
        return NextStep.SETTLE
    if facts.open_orders:
        return NextStep.REST if facts.resting else NextStep.START_DRAIN
    return NextStep.REMOVE if facts.is_deleted else NextStep.NOTHING


def is_lost() -> bool:
    """Tells whether a file of the database is known to be lost."""
    found = base.damage()
    return found is not None and found.is_lost


def facts_of(
    row: Task | tasks.Glance, child: Child | None, open_orders: int, *, resting: bool, asked: bool = False
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
    """Returns the key that tasks on the same book share, see workers/cycle.py."""
    return str(row.slug_key or row.collection_id or row.inscription_id)


def leaves_orders(row: Task) -> bool:
    """Tells whether a stop by its user leaves the task's orders at the venue: a listing, or bids until they expire."""
    if row.kind == LISTING:
        return row.deleted_ms is None
    return stays(row)
