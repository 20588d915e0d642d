"""A task's past: its newest cycles with observations, plan and actions, and samples in numbers for a year.

A sample a minute is kept for a day, and one an hour for a year. Apart from the reference prices that guards go by
(models/market_memory.py), which are of a slug and outlive a task, these are one task's own and go with it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from peewee import BigIntegerField, CompositeKey, ForeignKeyField, IntegerField, TextField

from models import outbox
from models.database import base
from models.database.base import Row, Statement, insertion, primary_key, transaction
from models.outbox import CYCLE, Coded, Conditions, stored_fault
from models.tasks.tasks import TROUBLES, Task

MINUTE, HOUR = 1, 60
# How many minutes of each step are kept: a day by minutes, a year by hours.
KEPT_MINUTES = {MINUTE: 1_440, HOUR: 366 * 1_440}
_MINUTE_MS = 60_000


class Sample(NamedTuple):
    """The numbers of one moment, prices in sats an item or token; None is unknown, or not there.

    `floor` is the lowest ask of others, `reference` what the range hangs on, `best_bid` the highest bid of others.
    `own_top` and `own_low` are our highest and lowest open bid (of a listing both its price), `open_count` and
    `exposure_sats` what is open, and `guard_sats` the price that a listing is never below.
    """

    floor: Decimal | None = None
    reference: Decimal | None = None
    best_bid: Decimal | None = None
    own_top: Decimal | None = None
    own_low: Decimal | None = None
    guard_sats: int | None = None
    open_count: int = 0
    exposure_sats: int = 0


class TaskSample(Row):
    """The sample of a minute, or of an hour (`step` in minutes); `minute` is its first, since 1970.

    Of several cycles within it the market's numbers are the last known, ours the widest: the highest top, the lowest
    low, the most open. Prices are a decimal's text, without exponent.
    """

    task = ForeignKeyField(Task, on_delete="CASCADE", index=False)
    step = IntegerField()
    minute = IntegerField()
    floor = TextField(null=True)
    reference = TextField(null=True)
    best_bid = TextField(null=True)
    own_top = TextField(null=True)
    own_low = TextField(null=True)
    guard_sats = BigIntegerField(null=True)
    open_count = IntegerField()
    exposure_sats = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("task", "step", "minute")
        without_rowid = True


_COLUMNS = ", ".join(Sample._fields)
_OF_STEP = "task_id = :task_id AND step = :step"
_ONE = Statement(f"SELECT {_COLUMNS} FROM task_samples WHERE {_OF_STEP} AND minute = :minute")
_WRITE = Statement(
    f"""
    {insertion(TaskSample)} ON CONFLICT (task_id, step, minute)
    DO UPDATE SET {", ".join(f"{name} = EXCLUDED.{name}" for name in Sample._fields)}
    """
)
_FORGET_SAMPLES = Statement(f"DELETE FROM task_samples WHERE {_OF_STEP} AND minute <= :last")
_WITHIN = f"{_OF_STEP} AND minute >= :first AND minute < :end"
_ROWS = f"SELECT minute, {_COLUMNS} FROM task_samples WHERE {_WITHIN} ORDER BY minute"
_BETWEEN = Statement(_ROWS)
# The rows are in order where they are joined, since nothing else is done with them.
_JOINED_COLUMNS = (f"$joined(COALESCE(CAST({of} AS TEXT), 'null'), ',')" for of in ("60 * minute", *Sample._fields))
_JOINED = Statement(f"SELECT {', '.join(_JOINED_COLUMNS)} FROM ({_ROWS}) AS found")


def add_sample(task_id: int, sample: Sample, now_ms: int) -> None:
    """Adds the numbers of this moment to its minute and its hour, within the transaction of the cycle.

    With a new minute or hour, those that are too old go.
    """
    now = now_ms // _MINUTE_MS
    for step, kept in KEPT_MINUTES.items():
        minute = now - now % step
        found = _ONE.row(task_id=task_id, step=step, minute=minute)
        known = None if found is None else _read(found)
        merged = sample if known is None else _merged(known, sample)
        if merged == known:
            continue
        _WRITE.run(task_id=task_id, step=step, minute=minute, **_stored(merged))
        if known is None:
            _FORGET_SAMPLES.run(task_id=task_id, step=step, last=now - kept)


def samples_between(task_id: int, step: int, from_ms: int, to_ms: int) -> list[tuple[object, ...]]:
    """Returns the samples that begin within [from, to), oldest first: minute since 1970, then the values of `Sample`.

    Prices are text in digits, as they are stored: a year has too many to make numbers of them.
    """
    first, end = -(-from_ms // _MINUTE_MS), -(-to_ms // _MINUTE_MS)
    return _BETWEEN.rows(task_id=task_id, step=step, first=first, end=end)


def joined_columns(task_id: int, step: int, from_ms: int, to_ms: int) -> list[str]:
    """Returns the samples as `samples_between`, each column as one text: Unix seconds, then the values of `Sample`.

    The values stand in digits with commas between them, or as null. The database joins them in a fifth of the time.
    """
    first, end = -(-from_ms // _MINUTE_MS), -(-to_ms // _MINUTE_MS)
    found = _JOINED.row(task_id=task_id, step=step, first=first, end=end)
    return [text or "" for text in found or ()]


def _merged(known: Sample, now: Sample) -> Sample:
    return Sample(
        floor=known.floor if now.floor is None else now.floor,
        reference=known.reference if now.reference is None else now.reference,
        best_bid=known.best_bid if now.best_bid is None else now.best_bid,
        own_top=max((each for each in (known.own_top, now.own_top) if each is not None), default=None),
        own_low=min((each for each in (known.own_low, now.own_low) if each is not None), default=None),
        guard_sats=known.guard_sats if now.guard_sats is None else now.guard_sats,
        open_count=max(known.open_count, now.open_count),
        exposure_sats=max(known.exposure_sats, now.exposure_sats),
    )


def _read(row: tuple[object, ...]) -> Sample:
    prices = [None if price is None else Decimal(str(price)) for price in row[:5]]
    return Sample(*prices, *row[5:])  # type: ignore[arg-type]  # whole numbers, as stored


def _stored(sample: Sample) -> dict[str, object]:
    return {
        name: format(value, "f") if isinstance(value, Decimal) else value for name, value in sample._asdict().items()
    }


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
            error_cycles=outbox.counted(task_id, user_id, error_cycles, error, time_ms),
            told=outbox.with_conditions(task_id, user_id, told, conditions, time_ms),
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
