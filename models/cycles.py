"""What each cycle of a task saw, planned and did; the newest ones are kept."""

from __future__ import annotations

from peewee import BigIntegerField, IntegerField, TextField

from models.base import Row, primary_key, transaction
from models.tasks import BiddingTask

KEPT = 200  # newest cycles of each task


class Cycle(Row):
    """One finished cycle; `detail` is JSON."""

    id = primary_key()
    task_id = IntegerField(index=True)
    time_ms = BigIntegerField()
    action = TextField()
    error = TextField(null=True)
    detail = TextField()

    class Meta:
        table_name = "cycles"


def record_cycle(
    task_id: int, token: int, *, time_ms: int, action: str, error: str | None, detail: str, memory: str
) -> None:
    """Writes the cycle and what the task shows of it. Nothing is written when another worker has taken over."""
    with transaction():
        updated = (
            BiddingTask.update(
                cycles=BiddingTask.cycles + 1,
                last_cycle_ms=time_ms,
                last_cycle_action=action,
                last_error=error,
                memory=memory,
            )
            .where(BiddingTask.id == task_id, BiddingTask.token == token)
            .execute()
        )
        if updated != 1:
            return
        Cycle.create(task_id=task_id, time_ms=time_ms, action=action, error=error, detail=detail)
        oldest_kept = (
            Cycle.select(Cycle.id).where(Cycle.task_id == task_id).order_by(Cycle.id.desc()).offset(KEPT - 1).limit(1)
        ).scalar()
        if oldest_kept is not None:
            Cycle.delete().where(Cycle.task_id == task_id, Cycle.id < oldest_kept).execute()


def cycles_of(task_id: int, limit: int = KEPT) -> list[Cycle]:
    """The task's newest cycles, newest first."""
    return list(Cycle.select().where(Cycle.task_id == task_id).order_by(Cycle.id.desc()).limit(limit))
