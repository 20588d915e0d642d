"""The kinds of work that a worker process can be given."""

from __future__ import annotations

from workers.bidder import Bidder
from workers.context import Context, Job
from workers.drain import Drain

KINDS = ("bidder", "drain")


def make_job(kind: str, context: Context) -> Job:
    """The job of this kind, one of KINDS. Raises ValueError for another."""
    if kind == "bidder":
        return Bidder(context)
    if kind == "drain":
        return Drain(context)
    raise ValueError(f"no such kind of worker: {kind}")
