"""The entry of a worker process: `python -m workers.process.main KIND TASK_ID TOKEN PARENT_PID STATUS_FD`.

Its environment is the manager's and has BIDKEEPER_DATA_DIR. The first line of its stdin is `{"secret": ..., "wait_s":
0}`; then stdin stays open as long as the manager lives. It writes "locked" to STATUS_FD once it holds its task's lock;
then it waits `wait_s` before its first cycle.

Stdout and stderr go to its log file, so that the file has import errors and crashes of C code, too. Exit codes are in
`workers/kernel.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.layout import journal_path, log_path
from workers import kernel
from workers.kernel import OwnLog

if TYPE_CHECKING:
    from core.settings import Settings
    from workers.context import Context, Job

MakeJob = Callable[[str, "Context"], "Job"]


def make_job(kind: str, context: Context, until_cycle: Callable[[str, float, float], float] | None = None) -> Job:
    """Returns the job of this kind: bidder, lister or drain. Raises ValueError for any other."""
    from models.tasks import tasks
    from workers import cycle, drains
    from workers.bidding.bidder import Bidder
    from workers.bidding.moment import Journal
    from workers.listing.lister import Lister

    if kind == "bidder":
        journal = Journal(journal_path(context.settings.data_dir, context.task_id))
        return Bidder(context, journal=journal, until_cycle=until_cycle or cycle.until_cycle)
    if kind == "lister":
        return Lister(context, until_cycle=until_cycle or cycle.until_cycle)
    if kind == "drain":
        outline = tasks.outline(context.task_id)
        is_listing = outline is not None and outline.kind == tasks.LISTING
        return drains.ListingDrain(context) if is_listing else drains.BiddingDrain(context)
    raise ValueError(f"no such kind of worker: {kind}")


def run(argv: Sequence[str], make_job: MakeJob = make_job, settings: Settings | None = None) -> int:
    """Works until a stop is requested, and returns the exit code.

    `settings` are those of the process that it was forked from; None makes it read its own.
    """
    kind, task_id, token, parent, status_fd = argv[0], *map(int, argv[1:])
    own_log = OwnLog(log_path(Path(os.environ["BIDKEEPER_DATA_DIR"]), task_id))

    # Imported only now, so that a failed import is logged in the task's log. An earlier signal ends the process anyway.
    from workers.process.worker import LifeLine, StopAsked, Worker

    try:
        return Worker(kind, task_id, token, LifeLine(parent), own_log.rotate, settings).run(make_job, status_fd)
    except StopAsked:
        return kernel.EXIT_STOPPED


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
