"""The outbox: one row for each event to report to a user, written in the transaction of the event's cause.

So both are stored or neither. Rows are limited by number per user and by age; the last removed id is kept. Readers
continue from the last event that they saw, so an event is hidden while one with a lower id may still be committed.

An error is reported after three cycles (or starts of a worker) in a row with errors. A condition is reported when it
begins to hold, at most once an hour. The counts are in the task's row, so that a restart reports nothing twice.
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

# Events that people want to know of; hooks deliver only these.
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

# Changes for a live page: many, and soon outdated.
CYCLE = "cycle"
TASK = "task"
ORDER = "order"
LISTING = "listing"
WALLET = "wallet"
CONTROL = "control"
PASSING = (CYCLE, TASK, ORDER, LISTING, WALLET, CONTROL)

EVENTS = (*LASTING, *PASSING)


class Event(Row):
    """One event of a user, and its task, if any.

    `data` is a JSON object with column names as keys; the user may see all of it. `fact` is a unique key for an event
    that must be written only once even if several processes notice it.
    """

    id = primary_key()
    user_id = BigIntegerField()  # no foreign key, so that an event never makes its transaction fail
    task_id = BigIntegerField(null=True)
    event = CharField(max_length=20)
    at_ms = BigIntegerField()
    is_passing = BooleanField()
    fact = CharField(max_length=80, null=True)
    data = TextField()


class Forgotten(Row):
    """The newest deleted event ids of a user, by kind; a reader at an older id has missed events."""

    user_id = BigIntegerField(primary_key=True)
    lasting_id = BigIntegerField(default=0)
    passing_id = BigIntegerField(default=0)

    class Meta:
        table_name = "forgotten_events"


# Literals, as in the indexes, because SQLite chooses an index by them.
IS_PASSING = Event.is_passing == YES
IS_LASTING = Event.is_passing == NO
# Events with a `fact` are deleted by age only, because an early deletion would allow them to be written again.
GOES_BY_NUMBER = IS_LASTING & Event.fact.is_null()
add_indexes(
    ("events_user", (Event.user_id, Event.id), None, False),
    ("events_passing", (Event.user_id, Event.id), IS_PASSING, False),
    ("events_lasting", (Event.user_id, Event.id), GOES_BY_NUMBER, False),
    ("events_fact", (Event.user_id, Event.fact), Event.fact.is_null(False), True),
)

KEPT_LASTING = 10_000  # for each user
KEPT_PASSING = 1_000
KEPT_MS = 35 * 86_400_000  # over a month, because some facts are reported once a month
_EVERY = 64  # rows between deletions, so a user may temporarily have some more
_NTH_NEWEST = "SELECT id FROM events WHERE user_id = :user AND {} ORDER BY id DESC LIMIT 1 OFFSET :newer"
_OLDEST_LASTING = Statement(_NTH_NEWEST.format("is_passing = $no AND fact IS NULL"))
_OLDEST_PASSING = Statement(_NTH_NEWEST.format("is_passing = $yes"))


def make_room(user_id: int, new_id: int) -> None:
    """Deletes the user's surplus events at every 64th event, unless another transaction is doing so."""
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
    """Deletes all users' events that are too old or too many."""
    is_old = Event.at_ms <= now_ms - KEPT_MS
    for is_kind, mark in ((IS_PASSING, Forgotten.passing_id), (IS_LASTING, Forgotten.lasting_id)):
        # One transaction per user, so that no bid waits long for the lock.
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
    """Writes one event, and now and then deletes the user's oldest ones.

    Does nothing if the user has an event with this `fact`. Raises RuntimeError outside of a transaction.
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
    """Returns a value that changes when there may be more to read; take it before reading."""
    return base.commit_mark(), database.obj.settled_event()


def newest_id() -> int:
    """Returns the id of the newest readable event of any user, or 0; the event may have been deleted."""
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
    """Counts the user's events of these names after one id up to another, at most `most`."""
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
    """Returns whether no event of these names was deleted after the id `after`."""
    if after > _newest_written():
        return False  # because the id is from another database, such as before a backup was restored
    gone = Forgotten.get_or_none(Forgotten.user_id == user_id)
    if gone is None:
        return True
    wants_passing, wants_lasting = not set(events).isdisjoint(PASSING), not set(events) <= set(PASSING)
    return not (wants_passing and after < gone.passing_id) and not (wants_lasting and after < gone.lasting_id)


Coded = tuple[str, Mapping[str, Any]]  # a code of FaultCode, and the values for its text
START_REFUSED: Coded = (FaultCode.START_REFUSED, {})
START_FAILED: Coded = (FaultCode.START_FAILED, {})
NOT_ENTITLED: Coded = (FaultCode.NOT_ENTITLED, {})
DATABASE_DAMAGED: Coded = (FaultCode.DATABASE_DAMAGED, {})
CANNOT_CANCEL: Coded = (FaultCode.CANNOT_CANCEL, {})
WORKER_ENDED: Coded = (FaultCode.WORKER_ENDED, {})
GIVEN_UP: Coded = (FaultCode.GIVEN_UP, {})


def stored_fault(text: str | None, fault: Coded | None) -> tuple[str | None, str | None]:
    """Returns the columns (code, params) of an error; the code is `other` without `fault`, both None without `text`.

    Raises ValueError for an unknown code.
    """
    if text is None:
        return None, None
    code, params = fault or (FaultCode.OTHER, {})
    return FaultCode(code).value, json.dumps(params, separators=(",", ":"))


def error_columns(text: str | None, fault: Coded | None = None) -> dict[str, str | None]:
    """Returns all columns of an error, by name."""
    code, params = stored_fault(text, fault)
    return {"last_error": text, "last_error_code": code, "last_error_params": params}


TOLD_AFTER = 3  # cycles in a row
AGAIN_MS = 3_600_000
_DAY_MS = 86_400_000

Conditions = Mapping[str, Mapping[str, Any]]  # name of each condition that holds now: data of its event


def counted(task_id: int, user_id: int, before: int, error: str | None, now_ms: int) -> int:
    """Returns the number of cycles in a row with errors after this cycle; writes the events ERROR and RECOVERED."""
    if error is None:
        if before >= TOLD_AFTER:
            tell(RECOVERED, user_id, task_id, now_ms, {"cycles": before})
        return 0
    if before + 1 == TOLD_AFTER:
        tell(ERROR, user_id, task_id, now_ms, {"error": error, "cycles": TOLD_AFTER})
    return before + 1


def with_conditions(task_id: int, user_id: int, told: str, conditions: Conditions, now_ms: int) -> str:
    """Writes events for conditions that begin to hold, and returns the new text for the row's column `told`."""
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
                if name == QUOTA:  # once a day for all of the user's tasks, because the quota is the key's
                    tell(name, user_id, None, now_ms, data, fact=f"quota:{data['venue']}:{now_ms // _DAY_MS}")
                else:
                    tell(name, user_id, task_id, now_ms, data)
            after.append(f"{name}:+:{told_ms}")
        elif is_recent:
            after.append(f"{name}:-:{told_ms}")
    return " ".join(after)
