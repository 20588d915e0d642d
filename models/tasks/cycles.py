"""A task's history in cycles and samples, and the reference prices of the last day, shared by all tasks on a slug.

One sample a minute is kept for a day, one an hour for a year; a task's samples are deleted with it. The reference
prices, one a minute, show a sudden rise or fall. They are kept when tasks are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from decimal import Context, Decimal
from functools import cache
from typing import NamedTuple

from peewee import BigIntegerField, CharField, CompositeKey, ForeignKeyField, IntegerField, TextField

from models import outbox
from models.database import base
from models.database.base import Row, Statement, each, insertion, listed, primary_key, transaction
from models.outbox import CYCLE, Coded, Conditions, stored_fault
from models.tasks.tasks import TROUBLES, Task
from strategy import guards
from strategy.book import NO_HISTORY, History
from strategy.config.bid import BidConfig
from strategy.guards import WINDOW_MINUTES, MinuteSample, guarded, minutes_wanted

MINUTE, HOUR = 1, 60
# How many minutes of each step are kept: a day by minutes, a year by hours.
KEPT_MINUTES = {MINUTE: 1_440, HOUR: 366 * 1_440}
_MINUTE_MS = 60_000


class Sample(NamedTuple):
    """The numbers of one moment, prices in sats per item or token; None = unknown or not applicable.

    `floor` is the lowest ask of others, `reference` the range's reference price, `best_bid` the highest bid of others.
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

    A new minute or hour also deletes samples that are too old.
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


@cache
def _parts(tasks: int) -> Statement:
    """Prepares the floors of this number of tasks, joined as in `_JOINED`, each with the number of its part."""
    return Statement(
        f"""
        SELECT task_id, $joined(CAST((minute - :first) / :minutes AS TEXT), ','), $joined(floor, ',') FROM task_samples
        WHERE task_id IN ({listed("task", tasks)}) AND step = :step AND minute >= :first AND floor IS NOT NULL
        GROUP BY task_id
        """
    )


def floors_of_tasks(
    ids: Collection[int], step: int, parts: int, minutes: int, now_ms: int
) -> dict[int, list[Decimal | None]]:
    """Returns the floors of these tasks by the task's id, oldest first: one of each part of the past.

    Each part is `minutes` long, and the last one is that of now. A task without any floor is left out.
    """
    if not ids:
        return {}
    first = (now_ms // _MINUTE_MS // minutes - parts + 1) * minutes
    rows = _parts(len(ids)).rows(first=first, minutes=minutes, step=step, **each("task", ids))
    found = {}
    for task_id, joined_parts, floors in rows:
        last = dict(zip(joined_parts.split(","), floors.split(","), strict=True))
        found[task_id] = [Decimal(last[part]) if part in last else None for part in map(str, range(parts))]
    return found


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
    """Writes the cycle, its values in the task's row and its events; nothing if another worker has taken over.

    `fault` is the code of `error`, `sample` the cycle's numbers, `conditions` those that are reported to the owner when
    they begin to hold.
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


_NEWEST_DETAILS = Statement(
    """
    SELECT task_id, detail FROM cycles WHERE id IN (
        SELECT (SELECT MAX(id) FROM cycles WHERE task_id = tasks.id) FROM tasks
        WHERE user_id = :user AND kind = 'bidding' AND deleted_ms IS NULL
    )
    """
)


def newest_details(user_id: int) -> dict[int, str]:
    """Returns the details of the newest cycle of each of the user's bidding tasks, by the task's id."""
    return dict(_NEWEST_DETAILS.rows(user=user_id))


def cycles_of(task_id: int, limit: int = KEPT) -> list[Cycle]:
    """Returns the task's newest cycles, newest first."""
    return list(Cycle.select().where(Cycle.task_id == task_id).order_by(Cycle.id.desc()).limit(limit))


_EXACT = Context(prec=1_000)  # more digits than any price has: sums and halves are not rounded


class FloorSample(Row):
    """The reference price of one minute since 1970, in sats a token (ordinals: of one item), as a decimal's text.

    `reference` is the minute's first, `low` its lowest, which was seen at `low_ms`, `high` the highest before it was
    clamped to the history.
    """

    kind = CharField(max_length=10)
    slug_key = CharField(max_length=200)
    measure = TextField()
    minute = IntegerField()
    reference = TextField()
    low = TextField()
    low_ms = BigIntegerField()
    high = TextField()

    class Meta:
        primary_key = CompositeKey("kind", "slug_key", "measure", "minute")
        without_rowid = True
        indexes = ((("minute",), False),)


_KEY = "kind = :kind AND slug_key = :slug_key AND measure = :measure"
_IN_MINUTE = Statement(f"SELECT low, high FROM floor_samples WHERE {_KEY} AND minute = :minute")
_REFERENCES = Statement(f"SELECT reference FROM floor_samples WHERE {_KEY} AND minute > :after AND minute <= :minute")
_ALL_SAMPLES = Statement(
    f"""
    SELECT minute, reference, low, low_ms, high FROM floor_samples
    WHERE {_KEY} AND minute > :after AND minute <= :minute ORDER BY minute
    """
)
_NEWEST = Statement(
    f"SELECT reference FROM floor_samples WHERE {_KEY} AND minute > :after ORDER BY minute DESC LIMIT 1"
)


def record_reference(
    kind: str, slug_key: str, measure: str, reference: Decimal, now_ms: int, raw: Decimal | None = None
) -> None:
    """Writes the minute's first sample of `measure` (see strategy/guards.py); of later ones only extremes.

    `raw` is the reference before it was clamped, if it was. Deletes samples older than a day. Raises ValueError for an
    impossible price.
    """
    if not reference.is_finite() or reference <= 0:
        raise ValueError(f"{reference} is no reference price")
    minute = now_ms // _MINUTE_MS
    # Most cycles find the minute's sample there, and need no write lock to see it.
    key = {"kind": kind, "slug_key": slug_key, "measure": measure, "minute": minute}
    high = reference if raw is None else raw
    known = _IN_MINUTE.row(**key)
    if known is not None and Decimal(known[0]) <= reference and high <= Decimal(known[1]):
        return
    with transaction():
        # Read again under the lock, because another process may have written the sample meanwhile.
        if (known := _IN_MINUTE.row(**key)) is None:
            extremes = {"low": str(reference), "low_ms": now_ms, "high": str(high)}
            FloorSample.insert(**key, reference=str(reference), **extremes).execute()
            FloorSample.delete().where(FloorSample.minute <= minute - guards.KEPT_MINUTES).execute()
            return
        beyond: dict[str, str | int] = {}
        if Decimal(known[0]) > reference:
            beyond |= {"low": str(reference), "low_ms": now_ms}
        if Decimal(known[1]) < high:
            beyond |= {"high": str(high)}
        if beyond:
            its = (getattr(FloorSample, name) == value for name, value in key.items())
            FloorSample.update(**beyond).where(*its).execute()


def samples(kind: str, slug_key: str, measure: str, minutes: int, now_ms: int) -> list[MinuteSample]:
    """Returns the samples of the last `minutes` minutes and the present one, oldest first."""
    minute = now_ms // _MINUTE_MS
    rows = _ALL_SAMPLES.rows(kind=kind, slug_key=slug_key, measure=measure, after=minute - minutes - 1, minute=minute)
    return [
        MinuteSample(at, Decimal(reference), Decimal(low), low_ms, Decimal(high))
        for at, reference, low, low_ms, high in rows
    ]


def history_for(config: BidConfig, key: tuple[str, str, str], now_ms: int) -> History:
    """Returns the history for a task's decisions under this config; NO_HISTORY if it uses none."""
    if not config.wants_history:
        return NO_HISTORY
    found = history(*key, now_ms)
    return guarded(found, config, samples(*key, minutes_wanted(config), now_ms), now_ms) if config.is_guarded else found


def history(kind: str, slug_key: str, measure: str, now_ms: int) -> History:
    """Returns the median and number of the samples of the last 60 minutes, the present one included."""
    minute = now_ms // _MINUTE_MS
    rows = _REFERENCES.rows(kind=kind, slug_key=slug_key, measure=measure, after=minute - WINDOW_MINUTES, minute=minute)
    found = sorted(Decimal(text) for (text,) in rows)
    return History(_median(found) if found else None, len(found))


def newest(kind: str, slug_key: str, measure: str, now_ms: int) -> Decimal | None:
    """Returns the newest sample of the last 60 minutes; None when there is none."""
    after = now_ms // _MINUTE_MS - WINDOW_MINUTES
    found = _NEWEST.row(kind=kind, slug_key=slug_key, measure=measure, after=after)
    return None if found is None else Decimal(found[0])


def history_of_asks(elsewhere: str | None) -> Callable[[str, str, str, int], History]:
    """Returns `history` for a venue that is not the default one, else `_history_of_sellers`."""
    return _history_of_sellers if elsewhere is None else history


def _history_of_sellers(kind: str, slug_key: str, measure: str, now_ms: int) -> History:
    """Returns the sellers' history at the default venue; without one, that of bidders on the same."""
    found = history(kind, slug_key, measure, now_ms)
    if found.samples:
        return found
    rest = measure.removeprefix("ask")
    of_bidders = f"trait{rest}" if rest.startswith(":") else f"floor{rest}"
    return history(kind, slug_key, of_bidders, now_ms)


def _median(ascending: list[Decimal]) -> Decimal:
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return _EXACT.divide(_EXACT.add(ascending[middle - 1], ascending[middle]), Decimal(2))
