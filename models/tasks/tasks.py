"""Tasks: the user's wish (`desired`, written by the API) and the reality (`observed`, by the manager)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, NamedTuple

from peewee import IntegrityError, fn

from core.local_time import is_zone
from models import outbox
from models.database import base
from models.database.base import instance, transaction
from models.leases.leases import keep_while_acting
from models.leases.slot import Slot
from models.outbox import TASK, WORKER_DEAD
from models.tasks import statements, troubles
from models.tasks.table import BIDDING, LISTING, MOVES, RUNNING, STOPPED, Task
from models.tasks.troubles import Coded, error_columns
from models.users import User
from strategy.bid_config import BidConfig, Problem

MAX_AUTOLIST_TASKS = 500  # for each user: a process each, and no more inscriptions are shown of a wallet


class TaskExists(Exception):
    """A refusal: the user has such a task already."""


class TaskChanged(Exception):
    """A refusal: the config was changed since the task was read."""


class NoSuchBudget(Exception):
    """A refusal: there is no such budget, or not any more."""


class TaskLimitReached(Exception):
    """A refusal: the user's plan allows no more tasks; `max_tasks` is its limit."""

    def __init__(self, max_tasks: int) -> None:
        super().__init__(f"the plan allows {max_tasks} tasks")
        self.max_tasks = max_tasks


def of_user(user_id: int, kind: str) -> list[Task]:
    """Returns the user's tasks of this kind, oldest first, without deleted ones."""
    found = Task.select().where(Task.user == user_id, Task.kind == kind, Task.deleted_ms.is_null())
    return list(found.order_by(Task.id))


def own(user_id: int, kind: str, task_id: int) -> Task | None:
    """Returns the user's task of this id, unless it is of another kind, deleted or another user's."""
    found = statements.OWN.row(id=task_id, user=user_id, kind=kind)
    return None if found is None else instance(Task, found)


def naming_budgets(user_id: int) -> dict[int, list[int]]:
    """Returns the ids of the user's tasks by the budget that they name, oldest first, without deleted ones."""
    found: dict[int, list[int]] = {}
    for task in of_user(user_id, BIDDING):
        if task.budget_id is not None:
            found.setdefault(task.budget_id, []).append(task.id)
    return found


def count(user_id: int, kind: str) -> int:
    """Counts the user's tasks of this kind, without deleted ones."""
    return int(statements.COUNT.value(user=user_id, kind=kind))


def create_bidding_task(
    user_id: int,
    *,
    type: str,
    slug: str,
    slug_key: str,
    config: str,
    venue: str,
    max_tasks: int,
    now_ms: int,
    tags: str = "[]",
    budget_id: int | None = None,
) -> Task:
    """Creates a stopped task. Raises TaskExists, NoSuchBudget, then TaskLimitReached, also under races."""
    task = Task(user=user_id, kind=BIDDING, venue=venue, config=config, created_ms=now_ms, tags=tags, budget=budget_id)
    task.type, task.slug, task.slug_key = type, slug, slug_key
    return _created(task, max_tasks)


def create_autolist_task(
    user_id: int,
    *,
    inscription_id: str,
    collection_id: str | None,
    config: str,
    venue: str,
    now_ms: int,
    tags: str = "[]",
    source_order: int | None = None,
    is_wanted: bool = False,
    with_it: Callable[[int], object] = lambda task_id: None,
) -> Task:
    """Creates a task as `create_bidding_task`, with a limit that no plan sets. `is_wanted`: it is to run at once.

    `source_order` is the filled order whose record has the cost. No other task may have it. `with_it` writes more in
    the same commit; when it raises, nothing was written.
    """
    task = Task(user=user_id, kind=LISTING, venue=venue, config=config, created_ms=now_ms, tags=tags)
    task.inscription_id, task.collection_id, task.source_order = inscription_id, collection_id, source_order
    task.desired = RUNNING if is_wanted else STOPPED
    return _created(task, MAX_AUTOLIST_TASKS, with_it)


def _created(task: Task, max_tasks: int, with_it: Callable[[int], object] = lambda task_id: None) -> Task:
    values = {field.column_name: task.__data__.get(field.name) for field in statements.STORED}
    with transaction():
        task.id = _unlike_others(lambda: statements.INSERT.insert(**values))
        if count(task.user_id, task.kind) > max_tasks:
            raise TaskLimitReached(max_tasks)
        outbox.tell(TASK, task.user_id, task.id, task.created_ms, {"kind": task.kind, "change": "created"})
        with_it(task.id)
    return task


def unknown_zone(config: BidConfig) -> list[Problem]:
    """Returns the problem of active hours in a time zone that this system does not know."""
    if config.active_hours is None or is_zone(config.active_hours.tz):
        return []
    return [Problem("active_hours", "tz must be the name of a time zone that this system knows")]


def _unlike_others(write: Callable[[], Any]) -> Any:
    """Returns the result of `write`. Raises TaskExists for a second task of the same slug or inscription."""
    try:
        return write()
    except IntegrityError as error:
        raise NoSuchBudget if "foreign key" in str(error).lower() else TaskExists from error


def change_bidding_task(
    task: Task,
    *,
    type: str,
    slug: str,
    slug_key: str,
    config: str,
    budget_id: int | None = None,
    beside: Callable[[], object] = lambda: None,
) -> int:
    """Writes a new config and returns its revision; `beside` is done in the same transaction.

    Raises TaskChanged, TaskExists when the new slug is another task's, and NoSuchBudget.
    """
    values = {"type": type, "slug": slug, "slug_key": slug_key, "config": config, "budget": budget_id}
    with transaction():
        change = partial(statements.CHANGE_BIDDING.run, id=task.id, revision=task.revision, **values)
        if not _unlike_others(change).rowcount:
            raise TaskChanged
        beside()
    task.revision += 1
    return int(task.revision)


def change_autolist_task(task: Task, *, collection_id: str | None, config: str) -> int:
    """Writes a new config and returns its revision. Raises TaskChanged."""
    values = {"collection_id": collection_id, "config": config, "revision": Task.revision + 1}
    if not Task.update(**values).where(Task.id == task.id, Task.revision == task.revision).execute():
        raise TaskChanged
    task.revision += 1
    return int(task.revision)


def set_tags(task: Task, tags: str) -> None:
    """Writes the owner's words for the task (a JSON list), which no worker needs to know."""
    if tags != task.tags:
        _update(task.id, tags=tags)


def set_desired(task: Task, desired: str) -> None:
    """Writes the user's wish; a wish to start also clears the last worker's error."""
    _update(task.id, desired=desired, **(error_columns(None) if desired == RUNNING else {}))


def set_error(task: Task, text: str | None, fault: Coded | None = None) -> None:
    """Writes why the task cannot do its job, in words for its owner and as a code; None when it can."""
    _update(task.id, **error_columns(text, fault))


def restore_error(task: Task) -> None:
    """Writes the error that `task` was read with."""
    _update(task.id, **{name: getattr(task, name) for name in error_columns(None)})


def note_trouble(task: Task, text: str | None, now_ms: int, fault: Coded | None = None) -> None:
    """Writes a drain's error as `set_error`, and counts it: bids that cannot be cancelled are told of, too."""
    with transaction():
        found = statements.OBSERVED.row(id=task.id)
        if found is not None:
            counted = troubles.counted(task.id, task.user_id, found[4], text, now_ms)
            _update(task.id, error_cycles=counted, **error_columns(text, fault))


def mark_deleted(task: Task, now_ms: int) -> None:
    """Hides the task and stops wanting it; its row goes once its orders are closed (`remove_tombstone`).

    It no longer keeps its budget from being deleted; its open orders count there to their end.
    """
    with transaction():
        _update(task.id, deleted_ms=now_ms, desired=STOPPED, budget=None)
        outbox.tell(TASK, task.user_id, task.id, now_ms, {"kind": task.kind, "change": "deleted"})


def _update(task_id: int, **changes: object) -> None:
    Task.update(**changes).where(Task.id == task_id).execute()


def remove_tombstone(task_id: int) -> None:
    """Removes a deleted task for good, with what is kept of its cycles."""
    with transaction():
        if Task.delete().where(Task.id == task_id, Task.deleted_ms.is_null(False)).execute():
            statements.FORGET_CYCLES.run(task_id=task_id)


def raise_token(task_id: int, above: int = 0) -> int:
    """Raises the task's token, at least above `above`, and returns it; holders of older ones have lost the right to
    act.
    """
    with transaction(durable=True, alone=False):
        token = _raise_token(task_id, above)
        keep_while_acting()
    return token


def begin_start(task_id: int, now_ms: int) -> int:
    """Does what `observe` (that the task is starting) and `raise_token` do, in one commit; returns the token."""
    with transaction(durable=True, alone=False):
        base.lock_task(task_id)
        base.hold_back_events()
        keep_while_acting()
        _observe(task_id, "starting", now_ms)
        return _raise_token(task_id)


def _raise_token(task_id: int, above: int = 0) -> int:
    return int(statements.RAISE_TOKEN.rows(id=task_id, least=above + 1)[0][0])


def overtake(task_id: int, token: int, highest: int) -> int | None:
    """Raises the task's token from `token` to above `highest`, which was seen elsewhere; returns the new one.

    Returns None, with nothing written, when the task has another token by now.
    """
    with transaction(durable=True, alone=False):
        is_raised = statements.OVERTAKE.run(id=task_id, token=token, new=highest + 1).rowcount
        keep_while_acting()
    return highest + 1 if is_raised else None


def least_token(task_id: int) -> int:
    """Returns the lowest token that may act for the task; beyond all tokens when there is no such task."""
    found = statements.TOKEN.row(id=task_id)
    return 2**62 if found is None else int(found[0])


class Outline(NamedTuple):
    """A task's kind, its venue, its subject (a slug or an inscription's id), its user's number, its newest token."""

    kind: str
    venue: str
    subject: str
    user_id: int
    token: int


def outline(task_id: int) -> Outline | None:
    """Returns the task's outline; None when there is no such task."""
    found = statements.OUTLINE.row(id=task_id)
    return None if found is None else Outline(*found)


def may_act(task_id: int, kind: str, token: int) -> bool:
    """Tells whether a task of this kind is wanted, and its newest worker is the one with `token`."""
    found = statements.STANDING.row(id=task_id)
    return found is not None and is_acting(found, kind, token)


def is_acting(standing: tuple[Any, ...], kind: str, token: int) -> bool:
    """Tells the same of a task of this `standing`: its kind, the user's wish, when it was deleted, its token."""
    return standing == (kind, RUNNING, None, token)


def under_token(task_id: int, token: int) -> Task | None:
    """Returns the task with its user, for the worker with `token`; None once it is gone or another worker's."""
    return _with_owner(statements.UNDER_TOKEN.row(id=task_id, token=token))


def with_owner(task_id: int) -> Task | None:
    """Returns the task of this id, deleted or not, with its user; for the manager only. None when there is none."""
    return _with_owner(statements.WITH_OWNER.row(id=task_id))


def _with_owner(found: tuple[Any, ...] | None) -> Task | None:
    if found is None:
        return None
    of_task = len(Task._meta.sorted_field_names)
    task = instance(Task, found[:of_task])
    task.user = instance(User, found[of_task:])
    return task


def observe(task_id: int, observed: str, now_ms: int, **facts: Any) -> None:
    """Writes the manager's observations, and tells of the move.

    `facts`: pid, exit_status, restarts, and those of `error_columns`.
    Raises ValueError for a move that is not in MOVES, and LeaseLost.
    """
    with transaction(alone=False):
        base.lock_task(task_id)
        base.hold_back_events()
        keep_while_acting()
        _observe(task_id, observed, now_ms, **facts)


def _observe(task_id: int, observed: str, now_ms: int, **facts: Any) -> None:
    found = statements.OBSERVED.row(id=task_id)
    if found is None:
        return
    former, user_id, kind, desired, error_cycles, former_error = found
    if observed != former and observed not in MOVES[former]:
        raise ValueError(f"task {task_id} cannot go from {former} to {observed}")
    error = facts.get("last_error", former_error)
    if observed == "backoff" and facts.get("last_error") is not None:
        facts["error_cycles"] = troubles.counted(task_id, user_id, error_cycles, error, now_ms)
    statements.observing(tuple(facts)).run(id=task_id, observed=observed, **facts)
    if observed != former:
        state = {"kind": kind, "desired": desired, "observed": observed}
        outbox.tell(TASK, user_id, task_id, now_ms, state)
        if observed == "crashed":
            outbox.tell(WORKER_DEAD, user_id, task_id, now_ms, {"error": error})


def forget_workers(slot: Slot) -> None:
    """Marks the slot's tasks stopped at its manager's start: the last one's workers have ended, or soon will.

    Raises LeaseLost.
    """
    with transaction(alone=False):
        Task.update(observed=STOPPED, pid=None).where(Task.observed != "crashed", slot.has(Task.user)).execute()
        keep_while_acting()


def ids_beside(slot: Slot) -> list[int]:
    """Returns the ids of all tasks that are not the slot's."""
    return [row.id for row in Task.select(Task.id).where(~slot.has(Task.user))]


def raise_tokens(task_ids: Collection[int]) -> dict[int, int]:
    """Raises the tokens of these tasks, in one commit, and returns them by task."""
    with transaction(durable=True, alone=False):
        Task.update(token=Task.token + 1).where(Task.id.in_(task_ids)).execute()
        rows: Any = Task.select(Task.id, Task.token).where(Task.id.in_(task_ids)).tuples()
        tokens = dict(rows)
        keep_while_acting()
    return tokens


def report_error(
    task_id: int, token: int, text: str, fault: Coded | None = None, *, failed_ms: int | None = None
) -> None:
    """Writes a worker's error as `set_error`; nothing when another worker has taken over.

    `failed_ms` is when it ended a cycle, which so was not recorded: it is counted among those in a row with an error.
    """
    with transaction(alone=False):
        base.lock_task(task_id)
        base.hold_back_events()
        found = statements.TROUBLES.row(id=task_id, token=token)
        if found is None:
            return
        user_id, error_cycles, _ = found
        if failed_ms is not None:
            error_cycles = troubles.counted(task_id, user_id, error_cycles, text, failed_ms)
        _update(task_id, error_cycles=error_cycles, **error_columns(text, fault))


def stop_wanting(task_id: int, reason: str | None, fault: Coded | None = None) -> None:
    """Stops a task on behalf of the service, not the user; `reason` is for its owner, None when nothing is wrong."""
    wanted = Task.id == task_id, Task.desired == RUNNING
    Task.update(desired=STOPPED, **error_columns(reason, fault)).where(*wanted).execute()


def count_by_observed(slot: Slot) -> dict[str, int]:
    """Counts the slot's tasks of both kinds by observed state."""
    rows: Any = Task.select(Task.observed, fn.COUNT(Task.id)).where(slot.has(Task.user)).group_by(Task.observed)
    return dict(rows.tuples())


class Glance(NamedTuple):
    """The few columns that show a manager whether anything must be done."""

    id: int
    desired: str
    observed: str
    revision: int
    deleted_ms: int | None


def glances(to_end: Iterable[int], slot: Slot) -> list[Glance]:
    """Returns the rows of `rows_of_interest`, but cheaply: this runs every second."""
    columns = [getattr(Task, name) for name in Glance._fields]
    rows: Any = Task.select(*columns).where(_of_interest(to_end, slot)).order_by(Task.id).tuples()
    return [Glance._make(row) for row in rows]


def rows_of_interest(to_end: Iterable[int], slot: Slot) -> list[Task]:
    """Returns the rows that the slot's manager must look at, with their users.

    Wanted, observed as something else than stopped, deleted, or `to_end` (ids), which have orders to be closed.
    """
    return list(Task.select(Task, User).join(User).where(_of_interest(to_end, slot)).order_by(Task.id))


def _of_interest(to_end: Iterable[int], slot: Slot) -> Any:
    is_busy = (Task.desired == RUNNING) | (Task.observed != STOPPED)
    return slot.has(Task.user) & (is_busy | Task.deleted_ms.is_null(False) | Task.id.in_(list(to_end)))
