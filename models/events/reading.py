"""The reading side of the outbox: a user's events after a place, and all users' new ones for those who wait.

Nobody is shown an event while one of a lesser number may still come: readers go on from the last one that they saw.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from peewee import fn

from models.database import base
from models.database.base import Statement, database, larger
from models.events.table import EVENTS, PASSING, Event, Forgotten

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


def mark() -> Any:
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
