"""The record of a task's cycles: observations, plan and actions; the newest are kept."""

from __future__ import annotations

from peewee import BigIntegerField, TextField

from models import outbox
from models.database import base
from models.database.base import Row, Statement, insertion, primary_key, transaction
from models.outbox import CYCLE
from models.tasks import troubles
from models.tasks.samples import Sample, add_sample
from models.tasks.tasks import TROUBLES
from models.tasks.troubles import Coded, Conditions, stored_fault

KEPT = 200  # the newest cycles of each task
NONE_HOLDS: Conditions = {}


class Cycle(Row):
    """One finished cycle; `detail` is JSON."""

    id = primary_key()
    task_id = BigIntegerField(index=True)
    time_ms = BigIntegerField()
    action = TextField()
    error = TextField(null=True)
    detail = TextField()

    class Meta:
        table_name = "cycles"


# Run at every cycle of every task.
_SHOW_CYCLE = Statement(
    """
    UPDATE tasks SET cycles = cycles + 1, memory = :memory, error_cycles = :error_cycles, told = :told,
        last_cycle_ms = :last_cycle_ms, last_cycle_action = :last_cycle_action, last_error = :last_error,
        last_error_code = :last_error_code, last_error_params = :last_error_params
    WHERE id = :id AND token = :token
    """
)
_INSERT = Statement(insertion(Cycle))
_OLDEST_KEPT = Statement("SELECT id FROM cycles WHERE task_id = :task_id ORDER BY id DESC LIMIT 1 OFFSET :newer")
_FORGET = Statement("DELETE FROM cycles WHERE task_id = :task_id AND id < :oldest_kept")


def record_cycle(
    task_id: int,
    token: int,
    *,
    time_ms: int,
    action: str,
    error: str | None,
    detail: str,
    memory: str,
    fault: Coded | None = None,
    sample: Sample | None = None,
    conditions: Conditions = NONE_HOLDS,
) -> None:
    """Writes the cycle, its traces in the task's row and its events; nothing when another worker has taken over.

    `fault` is what the task shows of `error` to programs, `sample` what is kept in numbers, `conditions` those that
    the owner is told of when they begin to hold.
    """
    code, params = stored_fault(error, fault)
    with transaction(alone=False):
        base.lock_task(task_id)
        base.hold_back_events()
        before = TROUBLES.row(id=task_id, token=token)
        if before is None:
            return
        user_id, error_cycles, told = before
        _SHOW_CYCLE.run(
            id=task_id,
            token=token,
            memory=memory,
            error_cycles=troubles.counted(task_id, user_id, error_cycles, error, time_ms),
            told=troubles.with_conditions(task_id, user_id, told, conditions, time_ms),
            last_cycle_ms=time_ms,
            last_cycle_action=action,
            last_error=error,
            last_error_code=code,
            last_error_params=params,
        )
        outbox.tell(CYCLE, user_id, task_id, time_ms, {"action": action, "error": error})
        _INSERT.run(task_id=task_id, time_ms=time_ms, action=action, error=error, detail=detail)
        oldest_kept = _OLDEST_KEPT.row(task_id=task_id, newer=KEPT - 1)
        if oldest_kept is not None:
            _FORGET.run(task_id=task_id, oldest_kept=oldest_kept[0])
        if sample is not None:
            add_sample(task_id, sample, time_ms)


def cycles_of(task_id: int, limit: int = KEPT) -> list[Cycle]:
    """Returns the task's newest cycles, newest first."""
    return list(Cycle.select().where(Cycle.task_id == task_id).order_by(Cycle.id.desc()).limit(limit))
