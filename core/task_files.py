"""The files that a task has beside the database, and their end with the task. Directories are the data directory's."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from core.logs import as_text, mask

MOST_LOG_BYTES = 256 * 1024  # that are shown of a log
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


def end_of_log(path: Path, most: int) -> list[str]:
    """Returns the last `most` lines within the last MOST_LOG_BYTES of the file, as text without secrets.

    Without a file there are none.

    Raises OSError.
    """
    try:
        with path.open("rb") as file:
            start = max(0, os.fstat(file.fileno()).st_size - MOST_LOG_BYTES)
            file.seek(start)
            found = file.read(MOST_LOG_BYTES)
    except FileNotFoundError:
        return []
    if start:
        # The first line may be cut, in the middle of a secret that then does not look like one.
        found = found.partition(b"\n")[2]
    lines = found.decode("utf-8", "replace").removesuffix("\n").split("\n")
    # One line more is masked than shown: a secret that begins there may end on the next.
    shown = mask("\n".join(map(as_text, lines[-most - 1 :]))).split("\n")[-most:]
    return shown if found else []
