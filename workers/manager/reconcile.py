"""The next step for a task's row and its worker. Pure: other code gathers the facts and carries the step out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from workers.context import Kind


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
