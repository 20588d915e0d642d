"""The bounds of the outbox: by number for each user, and by age; the end of what was let go is remembered."""

from __future__ import annotations

from typing import Any

from peewee import fn

from models.database import base
from models.database.base import Statement, larger, transaction
from models.events.table import GOES_BY_NUMBER, IS_LASTING, IS_PASSING, Event, Forgotten

KEPT_LASTING = 10_000  # for each user
KEPT_PASSING = 1_000
KEPT_MS = 35 * 86_400_000  # longer than a month, whose facts are told once
_EVERY = 64  # rows; so a user may have some more than is kept, for a while
_NTH_NEWEST = "SELECT id FROM events WHERE user_id = :user AND {} ORDER BY id DESC LIMIT 1 OFFSET :newer"
_OLDEST_LASTING = Statement(_NTH_NEWEST.format("is_passing = $no AND fact IS NULL"))
_OLDEST_PASSING = Statement(_NTH_NEWEST.format("is_passing = $yes"))


def make_room(user_id: int, new_id: int) -> None:
    """Lets go of what is too much for the user, at every 64th event of the installation, unless another does so."""
    if new_id % _EVERY == 0 and base.may_tidy():
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
