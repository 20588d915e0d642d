"""What each cycle of a task saw, planned and did; the newest ones are kept."""

from __future__ import annotations

from peewee import SQL, BigIntegerField, IntegerField, TextField

from models.base import Row, primary_key, transaction
from models.prepared import Prepared
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


# Run at every cycle of every task.
_SHOW = Prepared(
    lambda: BiddingTask.update(
        {
            BiddingTask.cycles: SQL("cycles + 1"),
            BiddingTask.memory: "",
            BiddingTask.last_cycle_ms: 0,
            BiddingTask.last_cycle_action: "",
            BiddingTask.last_error: "",
        }
    ).where(BiddingTask.id == 0, BiddingTask.token == 0)
)
_WRITTEN = ("task_id", "time_ms", "action", "error", "detail")
_INSERT = Prepared(lambda: Cycle.insert({getattr(Cycle, name): 0 for name in _WRITTEN}))
_OLDEST_KEPT = Prepared(
    lambda: Cycle.select(Cycle.id).where(Cycle.task_id == 0).order_by(Cycle.id.desc()).limit(SQL("1")).offset(1)
)
_FORGET = Prepared(lambda: Cycle.delete().where(Cycle.task_id == 0, Cycle.id < 0))


def record_cycle(
    task_id: int, token: int, *, time_ms: int, action: str, error: str | None, detail: str, memory: str
) -> None:
    """Writes the cycle and what the task shows of it. Nothing is written when another worker has taken over."""
    with transaction():
        if _SHOW.run(memory, time_ms, action, error, task_id, token).rowcount != 1:
            return
        _INSERT.run(task_id, time_ms, action, error, detail)
        oldest_kept = _OLDEST_KEPT.row(task_id, KEPT - 1)
        if oldest_kept is not None:
            _FORGET.run(task_id, *oldest_kept)


def cycles_of(task_id: int, limit: int = KEPT) -> list[Cycle]:
    """The task's newest cycles, newest first."""
    return list(Cycle.select().where(Cycle.task_id == task_id).order_by(Cycle.id.desc()).limit(limit))
