"""The files that a task has beside the database, and their end with the task. Directories are the data directory's."""

from __future__ import annotations

import logging
from pathlib import Path

KEPT = 3  # files of a log: the newest and two older ones

log = logging.getLogger(__name__)


def log_path(data_dir: Path, task_id: int) -> Path:
    """Returns the newest file of a task's log."""
    return data_dir / "logs" / f"task-{task_id}.log"


def journal_path(data_dir: Path, task_id: int) -> Path:
    """Returns the newer file of a task's journal."""
    return data_dir / "journal" / f"task-{task_id}.jsonl"


def older(path: Path, number: int = 1) -> Path:
    """Returns what `path` was renamed to when it grew, `number` times; itself for 0."""
    return path.with_name(f"{path.name}.{number}") if number else path


def remove(data_dir: Path, task_id: int) -> None:
    """Removes log and journal of a task whose worker has ended. A file that stays is logged and holds nothing up."""
    for path in (log_path(data_dir, task_id), journal_path(data_dir, task_id)):
        for number in range(KEPT):
            try:
                older(path, number).unlink(missing_ok=True)
            except OSError as error:
                log.warning("failed to remove %s: %s", older(path, number).name, error.strerror)
