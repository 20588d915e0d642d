"""The entry of a worker process: `python -m workers.process.main KIND TASK_ID TOKEN PARENT_PID STATUS_FD`.

Its environment is the manager's and names BIDKEEPER_DATA_DIR. Its stdin gives `{"secret": ..., "wait_s": 0}` as its
first line and then stays open as long as the manager lives. On STATUS_FD it writes "locked" once it holds its task's
lock; then it waits `wait_s` before its first cycle.
Exit codes are in `workers/kernel.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.task_files import log_path
from workers import kernel
from workers.process.log_file import OwnLog

if TYPE_CHECKING:
    from core.settings import Settings
    from workers.context import Context, Job

MakeJob = Callable[[str, "Context"], "Job"]


def run(argv: Sequence[str], make_job: MakeJob | None = None, settings: Settings | None = None) -> int:
    """Works until asked to stop, and returns the exit code. `make_job` replaces that of `workers/process/jobs.py`.

    `settings` are those of the process that it was forked from; without them it reads its own.
    """
    kind, task_id, token, parent, status_fd = argv[0], *map(int, argv[1:])
    own_log = OwnLog(log_path(Path(os.environ["BIDKEEPER_DATA_DIR"]), task_id))

    # Only now: a failed import then appears in the task's log. A signal before this ends the process by itself.
    from workers.process.life_line import LifeLine, StopAsked
    from workers.process.worker import Worker

    try:
        life_line = LifeLine(parent)
        worker = Worker(kind, task_id, token, life_line, own_log.rotate, settings)
        return worker.run(make_job or _make_job, status_fd)
    except StopAsked:
        return kernel.EXIT_STOPPED


def run_forked(argv: Sequence[str], settings: Settings | None) -> int:
    """Runs the job of `workers/process/jobs.py`, for a zygote."""
    return run(argv, settings=settings)


def _make_job(kind: str, context: Context) -> Job:
    from workers.process.jobs import make_job

    return make_job(kind, context)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
