"""Tasks: what a user wants kept right (`desired`, written by the API) and what runs (`observed`, by the manager)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from peewee import SQL, BigIntegerField, CharField, ForeignKeyField, IntegerField, TextField, fn

from models.base import Row, primary_key, transaction
from models.prepared import Prepared, instance
from models.users import User

RUNNING = "running"
STOPPED = "stopped"

# Every legal move of `observed`; a move that is not here is an error of ours.
MOVES = {
    "stopped": {"starting"},
    "starting": {"running", "stopping", "backoff", "crashed", "stopped"},
    "running": {"stopping", "backoff", "crashed", "stopped"},
    "stopping": {"stopped", "starting"},
    "backoff": {"starting", "stopped", "crashed"},
    "crashed": {"starting", "stopped"},
}


class TaskExists(Exception):
    """The user has such a task already."""


class TaskLimitReached(Exception):
    """The user's plan allows no more tasks; `max_tasks` is its limit."""

    def __init__(self, max_tasks: int) -> None:
        super().__init__(f"the plan allows {max_tasks} tasks")
        self.max_tasks = max_tasks


def is_running(desired: str, observed: str) -> bool:
    """Wanted to run, and not given up on."""
    return desired == RUNNING and observed != "crashed"


class _Task(Row):
    """What bidding and auto-list tasks have in common. `token` only grows: the newest worker has the highest."""

    id = primary_key()
    user = ForeignKeyField(User, on_delete="CASCADE")
    user_id: int  # as peewee names the column itself, which asks nothing of the database
    config = TextField()
    revision = IntegerField(default=1)
    desired = CharField(max_length=10, default=STOPPED)
    observed = CharField(max_length=10, default=STOPPED)
    token = BigIntegerField(default=0)
    pid = IntegerField(null=True)
    started_ms = BigIntegerField(null=True)
    exit_status = CharField(max_length=100, null=True)
    restarts = IntegerField(default=0)
    cycles = BigIntegerField(default=0)
    memory = TextField(default="{}")
    last_cycle_ms = BigIntegerField(null=True)
    last_cycle_action = TextField(null=True)
    last_error = TextField(null=True)
    created_ms = BigIntegerField()
    deleted_ms = BigIntegerField(null=True)

    @property
    def is_running(self) -> bool:
        """What the API says."""
        return is_running(self.desired, self.observed)


class BiddingTask(_Task):
    """A ladder of bids on one collection or rune. A deleted one stays hidden until its orders are closed."""

    type = CharField(max_length=10)
    slug = CharField(max_length=200)
    slug_key = CharField(max_length=200)

    class Meta:
        table_name = "bidding_tasks"


BiddingTask.add_index(
    BiddingTask.index(
        BiddingTask.user,
        BiddingTask.slug_key,
        unique=True,
        where=BiddingTask.deleted_ms.is_null(),
        name="bidding_tasks_user_slug",
    )
)


class AutolistTask(_Task):
    """A listing of one inscription, kept at the configured price."""

    inscription_id = CharField(max_length=80)
    collection_id = CharField(max_length=200, null=True)

    class Meta:
        table_name = "autolist_tasks"


AutolistTask.add_index(
    AutolistTask.index(
        AutolistTask.user,
        AutolistTask.inscription_id,
        unique=True,
        where=AutolistTask.deleted_ms.is_null(),
        name="autolist_tasks_user_inscription",
    )
)


def _listed(model: type[_Task], user_id: int) -> list[Any]:
    query = model.select().where(model.user == user_id, model.deleted_ms.is_null())
    return list(query.order_by(model.id))


def bidding_tasks(user_id: int) -> list[BiddingTask]:
    """The user's bidding tasks, oldest first, without deleted ones."""
    return _listed(BiddingTask, user_id)


def autolist_tasks(user_id: int) -> list[AutolistTask]:
    """The user's auto-list tasks, oldest first, without deleted ones."""
    return _listed(AutolistTask, user_id)


_OWN = Prepared(
    lambda: BiddingTask.select().where(BiddingTask.id == 0, BiddingTask.user == 0, BiddingTask.deleted_ms.is_null())
)


def bidding_task(user_id: int, task_id: int) -> BiddingTask | None:
    """The user's bidding task of this id, unless it is deleted or somebody else's."""
    found = _OWN.row(task_id, user_id)
    return None if found is None else instance(BiddingTask, found)


def autolist_task(user_id: int, task_id: int) -> AutolistTask | None:
    """The user's auto-list task of this id, unless it is deleted or somebody else's."""
    return AutolistTask.get_or_none(
        AutolistTask.id == task_id, AutolistTask.user == user_id, AutolistTask.deleted_ms.is_null()
    )


_COUNT = Prepared(
    lambda: BiddingTask.select(fn.COUNT(BiddingTask.id)).where(BiddingTask.user == 0, BiddingTask.deleted_ms.is_null())
)


def count_bidding_tasks(user_id: int) -> int:
    """How many bidding tasks the plan counts."""
    return int(_COUNT.rows(user_id)[0][0])


_STORED = [field for field in BiddingTask._meta.sorted_fields if field is not BiddingTask.id]
_INSERT = Prepared(lambda: BiddingTask.insert(dict.fromkeys(_STORED)))


def create_bidding_task(
    user_id: int, *, type: str, slug: str, slug_key: str, config: str, max_tasks: int, now_ms: int
) -> BiddingTask:
    """A new, stopped task. Raises TaskExists, then TaskLimitReached; neither can be raced past."""
    with transaction():
        _refuse_second(user_id, slug_key, but=0)
        if count_bidding_tasks(user_id) >= max_tasks:
            raise TaskLimitReached(max_tasks)
        task = BiddingTask(user=user_id, type=type, slug=slug, slug_key=slug_key, config=config, created_ms=now_ms)
        task.id = _INSERT.run(*(task.__data__.get(field.name) for field in _STORED)).lastrowid
        return task


_CHANGE = Prepared(
    lambda: BiddingTask.update(
        {
            BiddingTask.config: "",
            BiddingTask.revision: SQL("revision + 1"),
            BiddingTask.type: "",
            BiddingTask.slug: "",
            BiddingTask.slug_key: "",
        }
    ).where(BiddingTask.id == 0)
)
_REVISION = Prepared(lambda: BiddingTask.select(BiddingTask.revision).where(BiddingTask.id == 0))
_SAME_SLUG = Prepared(
    lambda: BiddingTask.select(BiddingTask.id).where(
        BiddingTask.user == 0, BiddingTask.slug_key == "", BiddingTask.deleted_ms.is_null(), BiddingTask.id != 0
    )
)


def change_bidding_task(task: BiddingTask, *, type: str, slug: str, slug_key: str, config: str) -> int:
    """Writes a new config and returns its revision. Raises TaskExists when the new slug is another task's."""
    with transaction():
        _refuse_second(task.user_id, slug_key, but=task.id)
        _CHANGE.run(config, type, slug, slug_key, task.id)
        return int(_REVISION.rows(task.id)[0][0])


def _refuse_second(user_id: int, slug_key: str, *, but: int) -> None:
    if _SAME_SLUG.row(user_id, slug_key, but) is not None:
        raise TaskExists(slug_key)


def create_autolist_task(
    user_id: int, *, inscription_id: str, collection_id: str | None, config: str, now_ms: int
) -> AutolistTask:
    """A new, stopped auto-list task. Raises TaskExists."""
    with transaction():
        same = AutolistTask.select().where(
            AutolistTask.user == user_id,
            AutolistTask.inscription_id == inscription_id,
            AutolistTask.deleted_ms.is_null(),
        )
        if same.exists():
            raise TaskExists(inscription_id)
        return AutolistTask.create(
            user=user_id,
            inscription_id=inscription_id,
            collection_id=collection_id,
            config=config,
            created_ms=now_ms,
        )


def change_autolist_task(task: AutolistTask, *, collection_id: str | None, config: str) -> None:
    """Writes a new config."""
    AutolistTask.update(collection_id=collection_id, config=config, revision=AutolistTask.revision + 1).where(
        AutolistTask.id == task.id
    ).execute()


def set_desired(task: _Task, desired: str) -> None:
    """What the user wants; asking for a start also clears what the last worker left as an error."""
    changes: dict[str, object] = {"desired": desired}
    if desired == RUNNING:
        changes["last_error"] = None
    model = type(task)
    model.update(**changes).where(model.id == task.id).execute()


def set_error(task: _Task, text: str | None) -> None:
    """What keeps the task from doing its job, in words for its owner; None when nothing does."""
    model = type(task)
    model.update(last_error=text).where(model.id == task.id).execute()


def mark_deleted(task: _Task, now_ms: int) -> None:
    """Hides the task and stops wanting it; its row goes once its orders are closed (`remove_tombstone`)."""
    model = type(task)
    model.update(deleted_ms=now_ms, desired=STOPPED).where(model.id == task.id).execute()


def remove_tombstone(task_id: int) -> None:
    """Removes a deleted bidding task for good."""
    BiddingTask.delete().where(BiddingTask.id == task_id, BiddingTask.deleted_ms.is_null(False)).execute()


def remove_autolist_task(task_id: int) -> None:
    """Removes an auto-list task for good; no worker runs one yet, so nothing is owed."""
    AutolistTask.delete().where(AutolistTask.id == task_id).execute()


_TOKEN = Prepared(lambda: BiddingTask.select(BiddingTask.token).where(BiddingTask.id == 0))
_RAISE_TOKEN = Prepared(lambda: BiddingTask.update({BiddingTask.token: SQL("token + 1")}).where(BiddingTask.id == 0))


def raise_token(task_id: int) -> int:
    """The task's next token; whoever holds an older one has lost the right to act."""
    with transaction(durable=True):
        _RAISE_TOKEN.run(task_id)
        return int(_TOKEN.rows(task_id)[0][0])


def least_token(task_id: int) -> int:
    """The token below which nobody may act for the task; beyond all tokens when there is no such task."""
    found = _TOKEN.row(task_id)
    return 2**62 if found is None else int(found[0])


_SLUG = Prepared(lambda: BiddingTask.select(BiddingTask.slug).where(BiddingTask.id == 0))


def slug_of(task_id: int) -> str | None:
    """What the task is about; None when there is no such task."""
    found = _SLUG.row(task_id)
    return None if found is None else str(found[0])


_WITH_OWNER = Prepared(lambda: _and_owner().where(BiddingTask.id == 0))
_UNDER_TOKEN = Prepared(lambda: _and_owner().where(BiddingTask.id == 0, BiddingTask.token == 0))


def _and_owner() -> Any:
    return BiddingTask.select(BiddingTask, User).join(User)


def _as_task(found: tuple[Any, ...] | None) -> BiddingTask | None:
    """One row of `_and_owner`."""
    if found is None:
        return None
    of_task = len(BiddingTask._meta.sorted_field_names)
    task = instance(BiddingTask, found[:of_task])
    task.user = instance(User, found[of_task:])
    return task


def under_token(task_id: int, token: int) -> BiddingTask | None:
    """The task with its user, as the worker with `token` may see it; None once it is gone or another's to act for."""
    return _as_task(_UNDER_TOKEN.row(task_id, token))


_OBSERVED = Prepared(lambda: BiddingTask.select(BiddingTask.observed).where(BiddingTask.id == 0))


def observe(task_id: int, observed: str, **facts: object) -> None:
    """Writes what the manager sees (`facts`: pid, started_ms, exit_status, restarts, last_error).

    Raises ValueError for a move that is not in MOVES.
    """
    found = _OBSERVED.row(task_id)
    if found is None:
        return
    if observed != found[0] and observed not in MOVES[found[0]]:
        raise ValueError(f"task {task_id} cannot go from {found[0]} to {observed}")
    _observing(tuple(facts)).run(observed, *facts.values(), task_id)


@cache
def _observing(facts: tuple[str, ...]) -> Prepared:
    columns = [getattr(BiddingTask, name) for name in ("observed", *facts)]
    return Prepared(lambda: BiddingTask.update(dict.fromkeys(columns, "")).where(BiddingTask.id == 0))


def forget_workers() -> None:
    """At the manager's start: whatever ran under the last one has ended with it (or is ended before its successor)."""
    BiddingTask.update(observed=STOPPED, pid=None).where(BiddingTask.observed != "crashed").execute()


def report_error(task_id: int, token: int, text: str) -> None:
    """A worker's own `set_error`: nothing is written when another worker has taken over."""
    BiddingTask.update(last_error=text).where(BiddingTask.id == task_id, BiddingTask.token == token).execute()


def stop_wanting(task_id: int, reason: str) -> None:
    """The service, not the user, wants the task stopped; `reason` is for its owner."""
    BiddingTask.update(desired=STOPPED, last_error=reason).where(
        BiddingTask.id == task_id, BiddingTask.desired == RUNNING
    ).execute()


def with_owner(task_id: int) -> BiddingTask | None:
    """The bidding task of this id, deleted or not, with its user; for the manager only."""
    return _as_task(_WITH_OWNER.row(task_id))


def count_by_observed() -> dict[str, int]:
    """How many bidding tasks are observed in which state."""
    rows: Any = BiddingTask.select(BiddingTask.observed, fn.COUNT(BiddingTask.id)).group_by(BiddingTask.observed)
    return dict(rows.tuples())


class Glance(NamedTuple):
    """The little of a row by which a manager sees whether anything is to be done."""

    id: int
    desired: str
    observed: str
    revision: int
    deleted_ms: int | None


def _of_interest(with_open_orders: Sequence[int]) -> Any:
    return (
        (BiddingTask.desired == RUNNING)
        | (BiddingTask.observed != STOPPED)
        | BiddingTask.deleted_ms.is_null(False)
        | BiddingTask.id.in_(list(with_open_orders))
    )


def glances(with_open_orders: Sequence[int]) -> list[Glance]:
    """The rows of `rows_of_interest`, but cheap: this is asked every second."""
    columns = [getattr(BiddingTask, name) for name in Glance._fields]
    rows: Any = BiddingTask.select(*columns).where(_of_interest(with_open_orders)).order_by(SQL("1")).tuples()
    return [Glance._make(row) for row in rows]


def rows_of_interest(with_open_orders: Sequence[int]) -> list[BiddingTask]:
    """The rows a manager must look at: wanted, observed as something else than stopped, deleted, or owing orders."""
    wanted = _of_interest(with_open_orders)
    return list(BiddingTask.select(BiddingTask, User).join(User).where(wanted).order_by(SQL("1")))
