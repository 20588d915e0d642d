"""The errors of a running task that its row cannot hold: they are derived where a task is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from models.database import base
from models.database.base import Statement
from models.tasks.table import RUNNING, Task
from models.tasks.task_list import ListedTask
from strategy.fault_codes import FaultCode

LOOPS = 3
# Beyond that: a worker that starts waits for its turn, and one with faults backs off for a minute.
_GRACE_MS = 75_000
_LEAST_LOOP_MS = 5_000

_NO_WORKER = "; its worker does not run, so its bids are cancelled"

_LAST_MOVE = Statement(
    "SELECT MAX(at_ms) FROM events WHERE user_id = :user AND is_passing = $yes AND event = 'task' AND task_id = :task"
)


def shown_running(task: Task | ListedTask) -> bool:
    """Tells whether callers see the task as running: over a damaged database only while it has a worker."""
    return task.is_running and (task.observed == RUNNING or base.damage() is None)


class ShownError(NamedTuple):
    """A task's `last_error` with its code, and its values as JSON."""

    text: str | None
    code: str | None
    params: str | None


def shown_error(task: Task | ListedTask, user_id: int, slowest_s: Callable[[], int], now_ms: int) -> ShownError:
    """Returns the stored error; that of a damaged database, or of silence for LOOPS loops, of a task that runs.

    `slowest_s` gives the longest time that is meant to be between two cycles; it is called only if it may matter.
    """
    is_running = task.is_running
    if is_running and (damage := base.damage()) is not None:
        words = damage.for_owners + ("" if shown_running(task) else _NO_WORKER)
        return ShownError(words, FaultCode.DATABASE_DAMAGED, "{}")
    stored = ShownError(task.last_error, task.last_error_code, task.last_error_params)
    if task.last_error is not None or not is_running or task.last_cycle_ms is None:
        return stored
    if now_ms - task.last_cycle_ms <= LOOPS * _LEAST_LOOP_MS + _GRACE_MS:
        return stored
    most_ms = LOOPS * 1_000 * slowest_s() + _GRACE_MS
    if now_ms - task.last_cycle_ms <= most_ms:
        return stored
    # It may have been started a moment ago, long after its last cycle.
    [(moved_ms,)] = _LAST_MOVE.rows(user=user_id, task=task.id)
    silent_ms = now_ms - max(task.last_cycle_ms, moved_ms or 0)
    if silent_ms <= most_ms:
        return stored
    seconds = silent_ms // 1_000
    text = f"no cycle was recorded for {seconds // 60} min: its worker hangs, or its records cannot be stored"
    return ShownError(text, FaultCode.NO_CYCLE, json.dumps({"silentSeconds": seconds}))
