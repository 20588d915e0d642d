"""Tasks: what a user wants kept right (`desired`, written by the API) and what runs (`observed`, by the manager).

Whoever runs tasks knows one of either kind by its number (models/tasks/numbers.py); the API knows it by its id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from peewee import SQL, fn

from models.base import transaction
from models.prepared import Prepared, given, instance
from models.tasks.numbers import AUTOLIST_BASE, is_autolist, row_id
from models.tasks.statements import AUTOLIST, BIDDING, BOTH, TaskStatements, statements
from models.tasks.tables import MOVES, RUNNING, STOPPED, AutolistTask, BiddingTask, Task, is_running
from models.users import User

__all__ = [
    "AUTOLIST_BASE",
    "MOVES",
    "RUNNING",
    "STOPPED",
    "AutolistTask",
    "BiddingTask",
    "Glance",
    "Task",
    "TaskExists",
    "TaskLimitReached",
    "autolist_task",
    "autolist_tasks",
    "bidding_task",
    "bidding_tasks",
    "change_autolist_task",
    "change_bidding_task",
    "count_bidding_tasks",
    "count_by_observed",
    "create_autolist_task",
    "create_bidding_task",
    "forget_workers",
    "glances",
    "is_running",
    "least_token",
    "mark_deleted",
    "observe",
    "raise_token",
    "remove_tombstone",
    "report_error",
    "rows_of_interest",
    "set_desired",
    "set_error",
    "stop_wanting",
    "subject_of",
    "under_token",
    "venue_of",
    "with_owner",
]

MAX_AUTOLIST_TASKS = 500  # of a user: a process each, and no more inscriptions are shown of a wallet


class TaskExists(Exception):
    """The user has such a task already."""


class TaskLimitReached(Exception):
    """The user's plan allows no more tasks; `max_tasks` is its limit."""

    def __init__(self, max_tasks: int) -> None:
        super().__init__(f"the plan allows {max_tasks} tasks")
        self.max_tasks = max_tasks


def _listed(model: type[Task], user_id: int) -> list[Any]:
    query = model.select().where(model.user == user_id, model.deleted_ms.is_null())
    return list(query.order_by(model.id))


def bidding_tasks(user_id: int) -> list[BiddingTask]:
    """The user's bidding tasks, oldest first, without deleted ones."""
    return _listed(BiddingTask, user_id)


def autolist_tasks(user_id: int) -> list[AutolistTask]:
    """The user's auto-list tasks, oldest first, without deleted ones."""
    return _listed(AutolistTask, user_id)


_OF_USER = (BiddingTask.user == given("user"), BiddingTask.deleted_ms.is_null())
_IS_THIS = BiddingTask.id == given("id")
_OWN = Prepared(lambda: BiddingTask.select().where(_IS_THIS, *_OF_USER))


def bidding_task(user_id: int, task_id: int) -> BiddingTask | None:
    """The user's bidding task of this id, unless it is deleted or somebody else's."""
    found = _OWN.row(id=task_id, user=user_id)
    return None if found is None else instance(BiddingTask, found)


def autolist_task(user_id: int, task_id: int) -> AutolistTask | None:
    """The user's auto-list task of this id, unless it is deleted or somebody else's."""
    return AutolistTask.get_or_none(
        AutolistTask.id == task_id, AutolistTask.user == user_id, AutolistTask.deleted_ms.is_null()
    )


_COUNT = Prepared(lambda: BiddingTask.select(fn.COUNT(BiddingTask.id)).where(*_OF_USER))


def count_bidding_tasks(user_id: int) -> int:
    """How many bidding tasks the plan counts."""
    return int(_COUNT.rows(user=user_id)[0][0])


_STORED = [field for field in BiddingTask._meta.sorted_fields if field is not BiddingTask.id]
_INSERT = Prepared(lambda: BiddingTask.insert({field: given(field.name) for field in _STORED}))


def create_bidding_task(
    user_id: int,
    *,
    type: str,
    slug: str,
    slug_key: str,
    config: str,
    max_tasks: int,
    now_ms: int,
    venue: str | None = None,
) -> BiddingTask:
    """A new, stopped task. Raises TaskExists, then TaskLimitReached; neither can be raced past.

    `venue` never changes: bids and listings stay where they were made. None = the installation's default.
    """
    with transaction():
        _refuse_second(user_id, slug_key, but=0)
        if count_bidding_tasks(user_id) >= max_tasks:
            raise TaskLimitReached(max_tasks)
        named = {"type": type, "slug": slug, "slug_key": slug_key, "config": config, "venue": venue}
        task = BiddingTask(user=user_id, **named, created_ms=now_ms)
        task.id = _INSERT.run(**{field.name: task.__data__.get(field.name) for field in _STORED}).lastrowid
        return task


_CHANGE = Prepared(
    lambda: BiddingTask.update(
        {
            BiddingTask.config: given("config"),
            BiddingTask.revision: SQL("revision + 1"),
            BiddingTask.type: given("type"),
            BiddingTask.slug: given("slug"),
            BiddingTask.slug_key: given("slug_key"),
        }
    ).where(_IS_THIS)
)
_REVISION = Prepared(lambda: BiddingTask.select(BiddingTask.revision).where(_IS_THIS))
_SAME_SLUG = Prepared(
    lambda: BiddingTask.select(BiddingTask.id).where(
        *_OF_USER, BiddingTask.slug_key == given("slug_key"), BiddingTask.id != given("but")
    )
)


def change_bidding_task(task: BiddingTask, *, type: str, slug: str, slug_key: str, config: str) -> int:
    """Writes a new config and returns its revision. Raises TaskExists when the new slug is another task's."""
    with transaction():
        _refuse_second(task.user_id, slug_key, but=task.id)
        _CHANGE.run(id=task.id, config=config, type=type, slug=slug, slug_key=slug_key)
        return int(_REVISION.rows(id=task.id)[0][0])


def _refuse_second(user_id: int, slug_key: str, *, but: int) -> None:
    if _SAME_SLUG.row(user=user_id, slug_key=slug_key, but=but) is not None:
        raise TaskExists(slug_key)


def create_autolist_task(
    user_id: int,
    *,
    inscription_id: str,
    collection_id: str | None,
    config: str,
    now_ms: int,
    venue: str | None = None,
) -> AutolistTask:
    """A new, stopped auto-list task. Raises TaskExists, then TaskLimitReached. `venue` is as a bidding task's."""
    with transaction():
        same = AutolistTask.select().where(
            AutolistTask.user == user_id,
            AutolistTask.inscription_id == inscription_id,
            AutolistTask.deleted_ms.is_null(),
        )
        if same.exists():
            raise TaskExists(inscription_id)
        own = AutolistTask.select().where(AutolistTask.user == user_id, AutolistTask.deleted_ms.is_null())
        if own.count() >= MAX_AUTOLIST_TASKS:
            raise TaskLimitReached(MAX_AUTOLIST_TASKS)
        return AutolistTask.create(
            user=user_id,
            inscription_id=inscription_id,
            collection_id=collection_id,
            config=config,
            created_ms=now_ms,
            venue=venue,
        )


def change_autolist_task(task: AutolistTask, *, collection_id: str | None, config: str) -> int:
    """Writes a new config and returns its revision."""
    changed = AutolistTask.update(collection_id=collection_id, config=config, revision=AutolistTask.revision + 1)
    with transaction():
        changed.where(AutolistTask.id == task.id).execute()
        return int(AutolistTask.select(AutolistTask.revision).where(AutolistTask.id == task.id).scalar())


def set_desired(task: Task, desired: str) -> None:
    """What the user wants; asking for a start also clears what the last worker left as an error."""
    changes: dict[str, object] = {"desired": desired}
    if desired == RUNNING:
        changes["last_error"] = None
    model = type(task)
    model.update(**changes).where(model.id == task.id).execute()


def set_error(task: Task, text: str | None) -> None:
    """What keeps the task from doing its job, in words for its owner; None when nothing does."""
    model = type(task)
    model.update(last_error=text).where(model.id == task.id).execute()


def mark_deleted(task: Task, now_ms: int) -> None:
    """Hides the task and stops wanting it; its row goes once its orders are closed (`remove_tombstone`)."""
    model = type(task)
    model.update(deleted_ms=now_ms, desired=STOPPED).where(model.id == task.id).execute()


def remove_tombstone(number: int) -> None:
    """Removes a deleted task for good."""
    table = statements(number).table
    table.delete().where(table.id == row_id(number), table.deleted_ms.is_null(False)).execute()


def raise_token(number: int) -> int:
    """The task's next token; whoever holds an older one has lost the right to act."""
    of_table = statements(number)
    with transaction(durable=True):
        of_table.raise_token.run(id=row_id(number))
        return int(of_table.token.rows(id=row_id(number))[0][0])


def least_token(number: int) -> int:
    """The token below which nobody may act for the task; beyond all tokens when there is no such task."""
    found = statements(number).token.row(id=row_id(number))
    return 2**62 if found is None else int(found[0])


def subject_of(number: int) -> str | None:
    """What the task is about (a slug or an inscription's id); None when there is no such task."""
    found = statements(number).subject.row(id=row_id(number))
    return None if found is None else str(found[0])


def venue_of(number: int) -> str | None:
    """The venue that the task names; None when it names none, or when there is no such task."""
    found = statements(number).venue.row(id=row_id(number))
    return None if found is None or found[0] is None else str(found[0])


def under_token(number: int, token: int) -> Task | None:
    """The task with its user, as the worker with `token` may see it; None once it is gone or another's to act for."""
    of_table = statements(number)
    return of_table.as_task(of_table.under_token.row(id=row_id(number), token=token))


def observe(number: int, observed: str, **facts: object) -> None:
    """Writes what the manager sees (`facts`: pid, started_ms, exit_status, restarts, last_error).

    Raises ValueError for a move that is not in MOVES.
    """
    of_table, task_id = statements(number), row_id(number)
    found = of_table.observed.row(id=task_id)
    if found is None:
        return
    if observed != found[0] and observed not in MOVES[found[0]]:
        raise ValueError(f"task {number} cannot go from {found[0]} to {observed}")
    of_table.observing(tuple(facts)).run(id=task_id, observed=observed, **facts)


def forget_workers() -> None:
    """At the manager's start: whatever ran under the last one has ended with it (or is ended before its successor)."""
    for table in (each.table for each in BOTH):
        table.update(observed=STOPPED, pid=None).where(table.observed != "crashed").execute()


def report_error(number: int, token: int, text: str) -> None:
    """A worker's own `set_error`: nothing is written when another worker has taken over."""
    table = statements(number).table
    table.update(last_error=text).where(table.id == row_id(number), table.token == token).execute()


def stop_wanting(number: int, reason: str | None) -> None:
    """The service, not the user, wants the task stopped; `reason` is for its owner, None when nothing is wrong."""
    table = statements(number).table
    table.update(desired=STOPPED, last_error=reason).where(
        table.id == row_id(number), table.desired == RUNNING
    ).execute()


def with_owner(number: int) -> Task | None:
    """The task of this number, deleted or not, with its user; for the manager only. None when there is none."""
    of_table = statements(number)
    return of_table.as_task(of_table.with_owner.row(id=row_id(number)))


def count_by_observed() -> dict[str, int]:
    """How many tasks of both kinds are observed in which state."""
    found: dict[str, int] = {}
    for table in (each.table for each in BOTH):
        rows: Any = table.select(table.observed, fn.COUNT(table.id)).group_by(table.observed)
        for observed, count in rows.tuples():
            found[observed] = found.get(observed, 0) + count
    return found


class Glance(NamedTuple):
    """The little of a row by which a manager sees whether anything is to be done."""

    number: int
    desired: str
    observed: str
    revision: int
    deleted_ms: int | None


def glances(owing: Iterable[int]) -> list[Glance]:
    """The rows of `rows_of_interest`, but cheap: this is asked every second."""
    found = []
    for of_table, base, ids in _by_table(owing):
        table = of_table.table
        columns = table.id, table.desired, table.observed, table.revision, table.deleted_ms
        rows: Any = table.select(*columns).where(of_table.of_interest(ids)).order_by(SQL("1")).tuples()
        found += [Glance(base + row[0], *row[1:]) for row in rows]
    return found


def rows_of_interest(owing: Iterable[int]) -> list[Task]:
    """The rows a manager must look at, with their users: wanted, observed as something else than stopped, deleted, or
    `owing` (numbers), which are those with orders that are to be closed.
    """
    found: list[Task] = []
    for of_table, _, ids in _by_table(owing):
        wanted = of_table.of_interest(ids)
        # Not `+=`, by which peewee would make one query of both.
        found.extend(of_table.table.select(of_table.table, User).join(User).where(wanted).order_by(SQL("1")))
    return found


def _by_table(owing: Iterable[int]) -> list[tuple[TaskStatements, int, list[int]]]:
    """Each table's statements, what its ids differ from numbers by, and which of its ids are owing."""
    listing: list[int] = []
    bidding: list[int] = []
    for number in owing:
        (listing if is_autolist(number) else bidding).append(row_id(number))
    return [(BIDDING, 0, bidding), (AUTOLIST, AUTOLIST_BASE, listing)]
