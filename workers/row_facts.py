"""What the manager needs to know of a bidding task's row beyond its columns."""

from __future__ import annotations

from models import tasks
from models.tasks import BiddingTask
from strategy.config import loads


def has_changed(row: BiddingTask) -> bool:
    """Whether the row asks for something else by now than when it was read."""
    now = tasks.with_owner(row.id)
    return now is None or (now.desired, now.revision, now.deleted_ms) != (row.desired, row.revision, row.deleted_ms)


def loop_s(row: BiddingTask) -> float:
    """Seconds between cycles; 0 when the config cannot be read, which the worker will complain of."""
    try:
        return loads(row.config).loop_s
    except ValueError:
        return 0.0


def leaves_bids(row: BiddingTask) -> bool:
    """Whether a stop by its user leaves the task's bids at the venue until they expire."""
    if row.deleted_ms is not None:
        return False
    try:
        return not loads(row.config).cancel_on_stop
    except ValueError:
        return False
