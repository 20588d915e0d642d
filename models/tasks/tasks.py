"""Tasks: the user's wish (`desired`, written by the API) and the reality (`observed`, by the manager)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from peewee import BigIntegerField, CharField, Check, ForeignKeyField, IntegerField, IntegrityError, TextField

from core.local_time import is_zone
from models import outbox
from models.budgets import Budget
from models.database import base
from models.database.base import Row, Statement, add_indexes, columns, insertion, instance, primary_key, transaction
from models.leases.leases import Slot, keep_while_acting
from models.outbox import TASK, WORKER_DEAD, Coded, error_columns
from models.users import User
from strategy.config.bid import BidConfig, Problem
from strategy.reasons import FaultCode

BIDDING = "bidding"
LISTING = "listing"

RUNNING = "running"
STOPPED = "stopped"

# Every legal move of `observed`.
MOVES = {
    "stopped": {"starting"},
    "starting": {"running", "stopping", "backoff", "crashed", "stopped"},
    "running": {"stopping", "backoff", "crashed", "stopped"},
    "stopping": {"stopped", "starting"},
    "backoff": {"starting", "stopped", "crashed"},
    "crashed": {"starting", "stopped"},
}


class Task(Row):
    """A ladder of bids on one collection or rune, or a listing of one inscription, kept at the configured price.

    `token` only increases; the newest worker has the highest. A deleted task stays hidden until its orders are closed.
    """

    id = primary_key()
    user = ForeignKeyField(User, on_delete="CASCADE", index=False)
    user_id: int  # as peewee names the column itself, so that no query is needed
    kind = CharField(max_length=10)
    venue = CharField(max_length=30)  # by its name; it never changes, as bids and listings stay where they were made
    config = TextField()
    revision = IntegerField(default=1)
    desired = CharField(max_length=10, default=STOPPED)
    observed = CharField(max_length=10, default=STOPPED)
    token = BigIntegerField(default=0)
    pid = IntegerField(null=True)
    exit_status = CharField(max_length=100, null=True)
    restarts = IntegerField(default=0)
    cycles = BigIntegerField(default=0)
    memory = TextField(default="{}")
    error_cycles = IntegerField(default=0)  # in a row, up to now; see models/outbox.py
    told = TextField(default="")
    last_cycle_ms = BigIntegerField(null=True)
    last_cycle_action = TextField(null=True)
    last_error = TextField(null=True)
    last_error_code = CharField(max_length=30, null=True)  # strategy.reasons; none while nothing is wrong
    last_error_params = TextField(null=True)  # JSON
    created_ms = BigIntegerField()
    deleted_ms = BigIntegerField(null=True)
    tags = TextField(default="[]")  # the owner's words for it, as a JSON list
    # A bidding task has all of these, any other none. (Any: peewee would have each reader ask for None.)
    type: Any = CharField(max_length=10, null=True)
    slug: Any = CharField(max_length=200, null=True)
    slug_key: Any = CharField(max_length=200, null=True)
    # A listing task's; its inscription's collection may be unknown.
    inscription_id: Any = CharField(max_length=80, null=True)
    collection_id = CharField(max_length=200, null=True)
    # The filled order that bought the inscription, where the cost is from its record. A fill has one such task at most.
    source_order: Any = BigIntegerField(null=True)
    # A bidding task may share limits with others; the rows of two users never do.
    budget = ForeignKeyField(Budget, null=True, index=False)
    budget_id: int | None

    class Meta:
        indexes = ((("user", "kind"), False),)
        constraints = (
            Check("(kind = 'bidding') = (type IS NOT NULL AND slug IS NOT NULL AND slug_key IS NOT NULL)"),
            Check("(kind = 'listing') = (inscription_id IS NOT NULL)"),
            Check("kind = 'bidding' OR budget_id IS NULL"),
        )

    @property
    def is_running(self) -> bool:
        """Whether it should run and has not crashed for good."""
        return bool(self.desired == RUNNING and self.observed != "crashed")


_IS_THERE = Task.deleted_ms.is_null()
add_indexes(
    ("tasks_user_slug", (Task.user, Task.slug_key), _IS_THERE, True),
    ("tasks_user_inscription", (Task.user, Task.inscription_id), _IS_THERE, True),
    ("tasks_budget_id", (Task.budget,), Task.budget.is_null(False), False),
    ("tasks_source_order", (Task.source_order,), Task.source_order.is_null(False) & _IS_THERE, True),
)

_OF_USER = "user_id = :user AND kind = :kind AND deleted_ms IS NULL"
_WITH_OWNER = (
    f"SELECT {columns(Task, 't')}, {columns(User, 'u')} FROM tasks AS t INNER JOIN users AS u ON t.user_id = u.id"
)

OWN = Statement(f"SELECT {columns(Task)} FROM tasks WHERE id = :id AND {_OF_USER}")
COUNT = Statement(f"SELECT COUNT(1) FROM tasks WHERE {_OF_USER}")
INSERT = Statement(f"{insertion(Task)} $returning_id")
CHANGE_BIDDING = Statement(
    """
    UPDATE tasks SET config = :config, revision = revision + 1, type = :type, slug = :slug, slug_key = :slug_key,
        budget_id = :budget
    WHERE id = :id AND revision = :revision
    """
)

TOKEN = Statement("SELECT token FROM tasks WHERE id = :id")
RAISE_TOKEN = Statement("UPDATE tasks SET token = $larger(token + 1, :least) WHERE id = :id RETURNING token")
OVERTAKE = Statement("UPDATE tasks SET token = :new WHERE id = :id AND token = :token")
OUTLINE = Statement("SELECT kind, venue, COALESCE(slug, inscription_id), user_id, token FROM tasks WHERE id = :id")
STANDING = Statement("SELECT kind, desired, deleted_ms, token FROM tasks WHERE id = :id")
OBSERVED = Statement("SELECT observed, user_id, kind, desired, error_cycles, last_error FROM tasks WHERE id = :id")
WITH_OWNER = Statement(f"{_WITH_OWNER} WHERE t.id = :id")
UNDER_TOKEN = Statement(f"{_WITH_OWNER} WHERE t.id = :id AND t.token = :token")
TROUBLES = Statement("SELECT user_id, error_cycles, told FROM tasks WHERE id = :id AND token = :token")
FORGET_CYCLES = Statement("DELETE FROM cycles WHERE task_id = :task_id")


class ListedTask(NamedTuple):
    """A bidding task as callers are shown it, with the columns' names and meanings."""

    id: int
    slug: str
    type: str
    config: str
    desired: str
    observed: str
    last_cycle_ms: int | None
    last_cycle_action: str | None
    last_error: str | None
    last_error_code: str | None
    last_error_params: str | None
    created_ms: int
    venue: str
    tags: str

    @property
    def is_running(self) -> bool:
        """Whether it runs, as in a task's own row."""
        return self.desired == RUNNING and self.observed != "crashed"


_LIST_OF_USER = Statement(
    f"""
    SELECT {", ".join(ListedTask._fields)} FROM tasks
    WHERE user_id = :user AND kind = 'bidding' AND deleted_ms IS NULL ORDER BY id
    """
)


def bidding_task_list(user_id: int) -> list[ListedTask]:
    """Returns the user's bidding tasks, oldest first, without deleted ones."""
    return [ListedTask._make(row) for row in _LIST_OF_USER.rows(user=user_id)]


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
    return OWN.instance(Task, id=task_id, user=user_id, kind=kind)


def naming_budgets(user_id: int) -> dict[int, list[int]]:
    """Returns the ids of the user's tasks by the budget that they name, oldest first, without deleted ones."""
    found: dict[int, list[int]] = {}
    for task in of_user(user_id, BIDDING):
        if task.budget_id is not None:
            found.setdefault(task.budget_id, []).append(task.id)
    return found


def count(user_id: int, kind: str) -> int:
    """Counts the user's tasks of this kind, without deleted ones."""
    return int(COUNT.value(user=user_id, kind=kind))


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
    """Creates a task as `create_bidding_task` does, limited by MAX_AUTOLIST_TASKS. `is_wanted`: start it immediately.

    `source_order` is the filled order whose record has the cost; no other task may have the same. `with_it` writes more
    in the same commit; if it raises, nothing is written.
    """
    task = Task(user=user_id, kind=LISTING, venue=venue, config=config, created_ms=now_ms, tags=tags)
    task.inscription_id, task.collection_id, task.source_order = inscription_id, collection_id, source_order
    task.desired = RUNNING if is_wanted else STOPPED
    return _created(task, MAX_AUTOLIST_TASKS, with_it)


def _created(task: Task, max_tasks: int, with_it: Callable[[int], object] = lambda task_id: None) -> Task:
    values = {field.column_name: task.__data__.get(field.name) for field in Task._meta.sorted_fields}
    del values["id"]
    with transaction():
        task.id = _unlike_others(lambda: INSERT.insert(**values))
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
        change = partial(CHANGE_BIDDING.run, id=task.id, revision=task.revision, **values)
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
    """Writes why the task cannot work, as text for its owner and as a code; None = no error."""
    _update(task.id, **error_columns(text, fault))


def restore_error(task: Task) -> None:
    """Writes the error that `task` was read with."""
    _update(task.id, **{name: getattr(task, name) for name in error_columns(None)})


def note_trouble(task: Task, text: str | None, now_ms: int, fault: Coded | None = None) -> None:
    """Writes a drain's error as `set_error` does, and counts it, so that bids that cannot be cancelled are reported."""
    with transaction():
        found = OBSERVED.row(id=task.id)
        if found is not None:
            counted = outbox.counted(task.id, task.user_id, found[4], text, now_ms)
            _update(task.id, error_cycles=counted, **error_columns(text, fault))


def mark_deleted(task: Task, now_ms: int) -> None:
    """Hides and stops the task; its row is deleted once its orders are closed (`remove_tombstone`).

    Its budget may then be deleted; its open orders count there until they are closed.
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
            FORGET_CYCLES.run(task_id=task_id)


def raise_token(task_id: int, above: int = 0) -> int:
    """Raises the task's token above `above` and returns it; workers with lower tokens lose their right to act."""
    with transaction(durable=True, alone=False):
        token = int(RAISE_TOKEN.value(id=task_id, least=above + 1))
        keep_while_acting()
    return token


def begin_start(task_id: int, now_ms: int) -> int:
    """Does what `observe` (that the task is starting) and `raise_token` do, in one commit; returns the token."""
    with transaction(durable=True, alone=False):
        base.lock_task(task_id)
        base.hold_back_events()
        keep_while_acting()
        _observe(task_id, "starting", now_ms)
        return int(RAISE_TOKEN.value(id=task_id, least=1))


def overtake(task_id: int, token: int, highest: int) -> int | None:
    """Raises the task's token from `token` to above `highest`, which was seen elsewhere; returns the new one.

    Returns None, with nothing written, when the task has another token by now.
    """
    with transaction(durable=True, alone=False):
        is_raised = OVERTAKE.run(id=task_id, token=token, new=highest + 1).rowcount
        keep_while_acting()
    return highest + 1 if is_raised else None


def least_token(task_id: int) -> int:
    """Returns the minimum token that may act for the task; 2**62, above all tokens, if there is no such task."""
    found = TOKEN.row(id=task_id)
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
    found = OUTLINE.row(id=task_id)
    return None if found is None else Outline(*found)


def may_act(task_id: int, kind: str, token: int) -> bool:
    """Returns whether a task of this kind should run and `token` is its newest worker's."""
    found = STANDING.row(id=task_id)
    return found is not None and is_acting(found, kind, token)


def is_acting(standing: tuple[Any, ...], kind: str, token: int) -> bool:
    """Returns the same as `may_act`, from the task's columns kind, desired, deleted_ms and token."""
    return standing == (kind, RUNNING, None, token)


def under_token(task_id: int, token: int) -> Task | None:
    """Returns the task with its user, for the worker with `token`; None once it is gone or another worker's."""
    return _with_owner(UNDER_TOKEN.row(id=task_id, token=token))


def with_owner(task_id: int) -> Task | None:
    """Returns the task of this id, deleted or not, with its user; for the manager only. None when there is none."""
    return _with_owner(WITH_OWNER.row(id=task_id))


def _with_owner(found: tuple[Any, ...] | None) -> Task | None:
    if found is None:
        return None
    of_task = len(Task._meta.sorted_field_names)
    task = instance(Task, found[:of_task])
    task.user = instance(User, found[of_task:])
    return task


def observe(task_id: int, observed: str, now_ms: int, **facts: Any) -> None:
    """Writes the manager's observations, and the event of the move.

    `facts`: pid, exit_status, restarts, and those of `error_columns`.
    Raises ValueError for a move that is not in MOVES, and LeaseLost.
    """
    with transaction(alone=False):
        base.lock_task(task_id)
        base.hold_back_events()
        keep_while_acting()
        _observe(task_id, observed, now_ms, **facts)


def _observe(task_id: int, observed: str, now_ms: int, **facts: Any) -> None:
    found = OBSERVED.row(id=task_id)
    if found is None:
        return
    former, user_id, kind, desired, error_cycles, former_error = found
    if observed != former and observed not in MOVES[former]:
        raise ValueError(f"task {task_id} cannot go from {former} to {observed}")
    error = facts.get("last_error", former_error)
    if observed == "backoff" and facts.get("last_error") is not None:
        facts["error_cycles"] = outbox.counted(task_id, user_id, error_cycles, error, now_ms)
    _update(task_id, observed=observed, **facts)
    if observed != former:
        state = {"kind": kind, "desired": desired, "observed": observed}
        outbox.tell(TASK, user_id, task_id, now_ms, state)
        if observed == "crashed":
            outbox.tell(WORKER_DEAD, user_id, task_id, now_ms, {"error": error})


def forget_workers(slot: Slot) -> None:
    """Marks the slot's tasks as stopped at its manager's start, because the last manager's workers end with it.

    Raises LeaseLost.
    """
    with transaction(alone=False):
        Task.update(observed=STOPPED, pid=None).where(Task.observed != "crashed", slot.has(Task.user)).execute()
        keep_while_acting()


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

    `failed_ms` is the end of a cycle that could not be recorded; it counts as one more cycle in a row with an error.
    """
    with transaction(alone=False):
        base.lock_task(task_id)
        base.hold_back_events()
        found = TROUBLES.row(id=task_id, token=token)
        if found is None:
            return
        user_id, error_cycles, _ = found
        if failed_ms is not None:
            error_cycles = outbox.counted(task_id, user_id, error_cycles, text, failed_ms)
        _update(task_id, error_cycles=error_cycles, **error_columns(text, fault))


def stop_wanting(task_id: int, reason: str | None, fault: Coded | None = None) -> None:
    """Stops a task on behalf of the service, not the user; `reason` is for its owner, None = no error."""
    wanted = Task.id == task_id, Task.desired == RUNNING
    Task.update(desired=STOPPED, **error_columns(reason, fault)).where(*wanted).execute()


LOOPS = 3
# Added to LOOPS, because a starting worker waits for its turn and one with errors backs off for a minute.
_GRACE_MS = 75_000
_LEAST_LOOP_MS = 5_000

_NO_WORKER = "; its worker does not run, so its bids are cancelled"

_LAST_MOVE = Statement(
    "SELECT MAX(at_ms) FROM events WHERE user_id = :user AND is_passing = $yes AND event = 'task' AND task_id = :task"
)


def shown_running(task: Task | ListedTask) -> bool:
    """Returns whether the task is shown as running; with a damaged database only while it has a worker."""
    return task.is_running and (task.observed == RUNNING or base.damage() is None)


class ShownError(NamedTuple):
    """A task's `last_error` with its code, and its values as JSON."""

    text: str | None
    code: str | None
    params: str | None


def shown_error(task: Task | ListedTask, user_id: int, slowest_s: Callable[[], int], now_ms: int) -> ShownError:
    """Returns the error to show: a damaged database or no cycle for LOOPS loops if it runs, else the stored one.

    `slowest_s` returns the longest planned time between two cycles; it is called only if needed.
    """
    is_running = task.is_running
    if is_running and (damage := base.damage()) is not None:
        words = damage.for_owners + ("" if shown_running(task) else _NO_WORKER)
        return ShownError(words, FaultCode.DATABASE_DAMAGED, "{}")
    stored = ShownError(task.last_error, task.last_error_code, task.last_error_params)
    if task.last_error is not None or not is_running or task.last_cycle_ms is None:
        return stored
    if now_ms - task.last_cycle_ms <= LOOPS * _LEAST_LOOP_MS + _GRACE_MS:
        return stored
    most_ms = LOOPS * 1_000 * slowest_s() + _GRACE_MS
    if now_ms - task.last_cycle_ms <= most_ms:
        return stored
    # It may have been started a moment ago, long after its last cycle.
    [(moved_ms,)] = _LAST_MOVE.rows(user=user_id, task=task.id)
    silent_ms = now_ms - max(task.last_cycle_ms, moved_ms or 0)
    if silent_ms <= most_ms:
        return stored
    seconds = silent_ms // 1_000
    text = f"no cycle was recorded for {seconds // 60} min: its worker hangs, or its records cannot be stored"
    return ShownError(text, FaultCode.NO_CYCLE, json.dumps({"silentSeconds": seconds}))
