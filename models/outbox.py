"""The outbox: one row for each fact that its owner is told, written in the transaction of the fact itself.

Both are on disk, or neither is. Rows are bounded by number for each user, and by age; the end of what was removed is
remembered. Readers go on from the last event that they saw, so none is shown while one of a lesser number may come.

Errors are counted in cycles, and in tries to start a worker, in a row: one bad cycle is no news. A condition is told
when it begins to hold, and at most once an hour. All of it is in the task's row, so restarts tell nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from peewee import BigIntegerField, BooleanField, CharField, TextField, fn

from models.database import base
from models.database.base import (
    NO,
    YES,
    Row,
    Statement,
    add_indexes,
    database,
    insertion,
    larger,
    primary_key,
    transaction,
)
from strategy.reasons import FaultCode

# Facts that people want to be told of; hooks tell no others.
FILL = "fill"
SOLD = "sold"
LISTED = "listed"
OUTBID_LIMITED = "outbid_limited"
ERROR = "error"
RECOVERED = "recovered"
HALTED = "halted"
QUOTA = "quota"
PLAN_EXPIRING = "plan_expiring"
WORKER_DEAD = "worker_dead"
DAILY = "daily"
LASTING = (FILL, SOLD, LISTED, OUTBID_LIMITED, ERROR, RECOVERED, HALTED, QUOTA, PLAN_EXPIRING, WORKER_DEAD, DAILY)

# Changes for a page that shows them as they come: many, and soon of no use.
CYCLE = "cycle"
TASK = "task"
ORDER = "order"
LISTING = "listing"
WALLET = "wallet"
CONTROL = "control"
PASSING = (CYCLE, TASK, ORDER, LISTING, WALLET, CONTROL)

EVENTS = (*LASTING, *PASSING)


class Event(Row):
    """One fact about a user's matters, and the task in it, if any.

    `data` is a JSON object by the columns' names, with nothing in it that the user may not see. `fact` names a fact
    that is told once, however many processes notice it.
    """

    id = primary_key()
    user_id = BigIntegerField()  # nothing is checked here: no fact may fail for its event
    task_id = BigIntegerField(null=True)
    event = CharField(max_length=20)
    at_ms = BigIntegerField()
    is_passing = BooleanField()
    fact = CharField(max_length=80, null=True)
    data = TextField()


class Forgotten(Row):
    """The newest id of a user's events that are no longer kept, of either kind: older places cannot be gone on from."""

    user_id = BigIntegerField(primary_key=True)
    lasting_id = BigIntegerField(default=0)
    passing_id = BigIntegerField(default=0)

    class Meta:
        table_name = "forgotten_events"


# Literals, as in the indexes: SQLite sees at once which index to use.
IS_PASSING = Event.is_passing == YES
IS_LASTING = Event.is_passing == NO
# What was told once must not be told again because its row was let go early: such rows go by age alone.
GOES_BY_NUMBER = IS_LASTING & Event.fact.is_null()
add_indexes(
    ("events_user", (Event.user_id, Event.id), None, False),
    ("events_passing", (Event.user_id, Event.id), IS_PASSING, False),
    ("events_lasting", (Event.user_id, Event.id), GOES_BY_NUMBER, False),
    ("events_fact", (Event.user_id, Event.fact), Event.fact.is_null(False), True),
)

KEPT_LASTING = 10_000  # for each user
KEPT_PASSING = 1_000
KEPT_MS = 35 * 86_400_000  # longer than a month, whose facts are told once
_EVERY = 64  # rows; so a user may have some more than is kept, for a while
_NTH_NEWEST = "SELECT id FROM events WHERE user_id = :user AND {} ORDER BY id DESC LIMIT 1 OFFSET :newer"
_OLDEST_LASTING = Statement(_NTH_NEWEST.format("is_passing = $no AND fact IS NULL"))
_OLDEST_PASSING = Statement(_NTH_NEWEST.format("is_passing = $yes"))


def make_room(user_id: int, new_id: int) -> None:
    """Lets go of what is too much for the user, at every 64th event of the installation, unless another does so."""
    if new_id % _EVERY == 0 and database.obj.may_tidy():
        _bound(user_id)


def _bound(user_id: int) -> None:
    for oldest, kept, is_kind, mark in (
        (_OLDEST_PASSING, KEPT_PASSING, IS_PASSING, Forgotten.passing_id),
        (_OLDEST_LASTING, KEPT_LASTING, GOES_BY_NUMBER, Forgotten.lasting_id),
    ):
        found = oldest.row(user=user_id, newer=kept)
        if found is not None:
            last = int(found[0])
            Event.delete().where(Event.user_id == user_id, is_kind, Event.id <= last).execute()
            _remember(user_id, mark, last)


def forget_old(now_ms: int) -> None:
    """Lets go of all users' events that are too old or too many."""
    is_old = Event.at_ms <= now_ms - KEPT_MS
    for is_kind, mark in ((IS_PASSING, Forgotten.passing_id), (IS_LASTING, Forgotten.lasting_id)):
        # One user after the other: nobody's bid waits for long.
        ends: Any = (
            Event.select(Event.user_id, fn.MAX(Event.id)).where(is_old, is_kind).group_by(Event.user_id).tuples()
        )
        for user_id, last in list(ends):
            with transaction():
                Event.delete().where(Event.user_id == user_id, is_kind, Event.id <= last, is_old).execute()
                _remember(user_id, mark, last)
    users: Any = Event.select(Event.user_id).distinct().tuples()
    for (user_id,) in list(users):
        with transaction():
            _bound(user_id)


def _remember(user_id: int, mark: Any, last: int) -> None:
    new = Forgotten.insert({Forgotten.user_id: user_id, mark: last})
    new.on_conflict(conflict_target=[Forgotten.user_id], update={mark: larger(mark, last)}).execute()


_INSERT = Statement(f"{insertion(Event)} $returning_id")
_INSERT_ONCE = Statement(f"{insertion(Event)} ON CONFLICT DO NOTHING $returning_id")


def tell(
    event: str, user_id: int, task_id: int | None, at_ms: int, data: Mapping[str, Any], *, fact: str | None = None
) -> None:
    """Writes one event, and lets go of the user's oldest ones now and then.

    Of several with the same `fact` the first is written. Raises RuntimeError outside of a transaction.
    """
    if not database.in_transaction():
        raise RuntimeError("an event belongs in the transaction of its fact")
    base.hold_back_events()
    new_id = (_INSERT if fact is None else _INSERT_ONCE).insert(
        user_id=user_id,
        task_id=task_id,
        event=event,
        at_ms=at_ms,
        is_passing=event in PASSING,
        fact=fact,
        data=json.dumps(data, separators=(",", ":")),
    )
    if new_id is not None:
        make_room(user_id, new_id)


_LIMIT = 500


class Told(NamedTuple):
    """An event as it is read."""

    id: int
    user_id: int
    task_id: int | None
    event: str
    at_ms: int
    data: str


_SHOWN = tuple(getattr(Event, name) for name in Told._fields)
_NEWEST_ID = Statement("SELECT MAX(id) FROM events")
_AFTER = Statement(
    f"""
    SELECT {", ".join(Told._fields)} FROM events WHERE id > :after AND id <= :until ORDER BY id LIMIT {_LIMIT}
    """
)


def newest_mark() -> Any:
    """Returns a value that differs from a former one if there may be more to read; take it before reading."""
    return base.commit_mark(), database.obj.settled_event()


def newest_id() -> int:
    """Returns the id of the newest event that can be read, or 0; it may be gone since, or another user's."""
    return min(database.obj.settled_event(), _newest_written())


def _newest_written() -> int:
    return max(
        _NEWEST_ID.value() or 0,
        Forgotten.select(fn.MAX(larger(Forgotten.lasting_id, Forgotten.passing_id))).scalar() or 0,
    )


def of_all_after(after: int) -> list[Told]:
    """Returns the next events of all users, oldest first, at most 500."""
    return [Told._make(row) for row in _AFTER.rows(after=after, until=database.obj.settled_event())]


def of_user_after(user_id: int, after: int, most: int, events: Collection[str] = EVENTS) -> list[Told]:
    """Returns the user's next events of these names, oldest first."""
    mine = _mine(user_id, events).where(Event.id > after).order_by(Event.id).limit(most)
    return [Told._make(row) for row in mine.tuples()]


def missed(user_id: int, after: int, until: int, most: int, events: Collection[str] = EVENTS) -> int:
    """Counts the user's events of these names between two ids, `most` at most."""
    found = _mine(user_id, events).where(Event.id > after, Event.id <= until).limit(most)
    return int(found.count())


def newest_of_user(user_id: int, most: int, events: Collection[str] = EVENTS) -> list[Told]:
    """Returns the user's newest events of these names, oldest first."""
    mine = _mine(user_id, events).order_by(Event.id.desc()).limit(most)
    return [Told._make(row) for row in mine.tuples()][::-1]


def _mine(user_id: int, events: Collection[str]):  # type: ignore[no-untyped-def]  # peewee's queries have no type
    mine = Event.select(*_SHOWN).where(Event.user_id == user_id, Event.id <= database.obj.settled_event())
    return mine if len(events) == len(EVENTS) else mine.where(Event.event.in_(list(events)))


def can_go_on(user_id: int, after: int, events: Collection[str] = EVENTS) -> bool:
    """Tells whether nothing of these names is missing between `after` and the oldest event that is kept."""
    if after > _newest_written():
        return False  # an id of another database: this one was restored from a backup
    gone = Forgotten.get_or_none(Forgotten.user_id == user_id)
    if gone is None:
        return True
    wants_passing, wants_lasting = not set(events).isdisjoint(PASSING), not set(events) <= set(PASSING)
    return not (wants_passing and after < gone.passing_id) and not (wants_lasting and after < gone.lasting_id)


Coded = tuple[str, Mapping[str, Any]]  # a code of FaultCode, and the values in its words
START_REFUSED: Coded = (FaultCode.START_REFUSED, {})
START_FAILED: Coded = (FaultCode.START_FAILED, {})
NOT_ENTITLED: Coded = (FaultCode.NOT_ENTITLED, {})
DATABASE_DAMAGED: Coded = (FaultCode.DATABASE_DAMAGED, {})
CANNOT_CANCEL: Coded = (FaultCode.CANNOT_CANCEL, {})
WORKER_ENDED: Coded = (FaultCode.WORKER_ENDED, {})
GIVEN_UP: Coded = (FaultCode.GIVEN_UP, {})


def stored_fault(text: str | None, fault: Coded | None) -> tuple[str | None, str | None]:
    """Returns the columns of an error: `other` for words without a code, nothing without words.

    Raises ValueError for a code that is not in the list.
    """
    if text is None:
        return None, None
    code, params = fault or (FaultCode.OTHER, {})
    return FaultCode(code).value, json.dumps(params, separators=(",", ":"))


def error_columns(text: str | None, fault: Coded | None = None) -> dict[str, str | None]:
    """Returns all columns of an error by their names."""
    code, params = stored_fault(text, fault)
    return {"last_error": text, "last_error_code": code, "last_error_params": params}


TOLD_AFTER = 3  # cycles in a row
AGAIN_MS = 3_600_000
_DAY_MS = 86_400_000

Conditions = Mapping[str, Mapping[str, Any]]  # those that hold now, with the data of their events


def counted(task_id: int, user_id: int, before: int, error: str | None, now_ms: int) -> int:
    """Counts one more cycle with or without an error, tells what that means, and returns the new count."""
    if error is None:
        if before >= TOLD_AFTER:
            tell(RECOVERED, user_id, task_id, now_ms, {"cycles": before})
        return 0
    if before + 1 == TOLD_AFTER:
        tell(ERROR, user_id, task_id, now_ms, {"error": error, "cycles": TOLD_AFTER})
    return before + 1


def with_conditions(task_id: int, user_id: int, told: str, conditions: Conditions, now_ms: int) -> str:
    """Tells the conditions that begin to hold, and returns the new text of the row's `told`."""
    if not told and not conditions:
        return told
    before = {name: (stands == "+", int(ms)) for name, stands, ms in (each.split(":") for each in told.split())}
    after = []
    for name in sorted({*before, *conditions}):
        stood, told_ms = before.get(name, (False, -AGAIN_MS))
        is_recent = 0 <= now_ms - told_ms < AGAIN_MS
        if name in conditions:
            if not stood and not is_recent:
                told_ms, data = now_ms, conditions[name]
                if name == QUOTA:  # the key's matter, not the task's: once a day for all of the user's tasks
                    tell(name, user_id, None, now_ms, data, fact=f"quota:{data['venue']}:{now_ms // _DAY_MS}")
                else:
                    tell(name, user_id, task_id, now_ms, data)
            after.append(f"{name}:+:{told_ms}")
        elif is_recent:
            after.append(f"{name}:-:{told_ms}")
    return " ".join(after)
