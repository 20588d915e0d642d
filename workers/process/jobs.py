"""The jobs of a worker process."""

from __future__ import annotations

from collections.abc import Callable

from core.layout import journal_path
from models.tasks import tasks
from models.tasks.tasks import LISTING
from workers.bidding.bidder import Bidder
from workers.bidding.moment import Journal
from workers.context import Context, Job
from workers.cycle import until_cycle
from workers.drains import BiddingDrain, ListingDrain
from workers.listing.lister import Lister


def make_job(
    kind: str,
    context: Context,
    until_cycle: Callable[[str, float, float], float] = until_cycle,
) -> Job:
    """Makes the job of this kind: bidder, lister or drain. Raises ValueError for another."""
    if kind == "bidder":
        return Bidder(context, journal=_journal(context), until_cycle=until_cycle)
    if kind == "lister":
        return Lister(context, until_cycle=until_cycle)
    if kind == "drain":
        outline = tasks.outline(context.task_id)
        is_listing = outline is not None and outline.kind == LISTING
        return ListingDrain(context) if is_listing else BiddingDrain(context)
    raise ValueError(f"no such kind of worker: {kind}")


def _journal(context: Context) -> Journal:
    data_dir = context.settings.data_dir
    # Real settings have an absolute directory; made-up ones, for a zygote's warm-up, must leave no file.
    return Journal(journal_path(data_dir, context.task_id) if data_dir.is_absolute() else None)
