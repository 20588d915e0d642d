"""The entry of a worker process: `python -m workers.process.main KIND TASK_ID TOKEN PARENT_PID STATUS_FD`.

Its environment is the manager's and names BIDKEEPER_DATA_DIR. Its stdin gives `{"secret": ..., "wait_s": 0}` as its
first line and then stays open as long as the manager lives. On STATUS_FD it writes "locked" once it holds its task's
lock; then it waits `wait_s` before its first cycle.
Stdout and stderr go to its log file, so that it has import errors and crashes of C code, too.
Exit codes are in `workers/kernel.py`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.layout import LOG_FILES, log_path, older
from workers import kernel

if TYPE_CHECKING:
    from core.settings import Settings
    from workers.context import Context, Job

log = logging.getLogger(__name__)

MAX_BYTES = 1 << 20
_STDERR = 2


class OwnLog:
    """The log file `path`, and its older ones `path`.1, `path`.2."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._redirect()
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._redirect()

    def rotate(self) -> None:
        """Begins a new file when this one is full. Between cycles, so that no traceback is torn apart.

        On a full disk it cannot: then the next call tries again.
        """
        if os.fstat(_STDERR).st_size < MAX_BYTES:
            return
        try:
            for number in range(LOG_FILES - 1, 0, -1):
                newer = older(self._path, number - 1)
                if newer.exists():
                    newer.replace(older(self._path, number))
            self._redirect()
        except OSError as error:
            log.warning("failed to begin a new log file: %s", error.strerror)

    def _redirect(self) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for standard in (1, _STDERR):
            os.dup2(fd, standard)
        os.close(fd)


MakeJob = Callable[[str, "Context"], "Job"]


def run(argv: Sequence[str], make_job: MakeJob | None = None, settings: Settings | None = None) -> int:
    """Works until asked to stop, and returns the exit code. `make_job` replaces that of `workers/process/jobs.py`.

    `settings` are those of the process that it was forked from; without them it reads its own.
    """
    kind, task_id, token, parent, status_fd = argv[0], *map(int, argv[1:])
    own_log = OwnLog(log_path(Path(os.environ["BIDKEEPER_DATA_DIR"]), task_id))

    # Only now: a failed import then appears in the task's log. A signal before this ends the process by itself.
    from workers.process.worker import LifeLine, StopAsked, Worker

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
