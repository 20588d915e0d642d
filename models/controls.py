"""Control states: run, reduce (cancels only) or halt (cancel everything).

Set for the installation, a user or a task; the strictest holds. Each that was ever set has a row, with its setter and
time.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from peewee import EXCLUDED, BigIntegerField, CharField, CompositeKey

from models import outbox
from models.database.base import Row, Statement, transaction
from models.outbox import CONTROL, HALTED
from models.tasks.tasks import Task

RUN: Final = "run"
REDUCE: Final = "reduce"
HALT: Final = "halt"
STATES = (RUN, REDUCE, HALT)  # each stricter than the one before

GLOBAL: Final = "global"
USER: Final = "user"
TASK: Final = "task"
SCOPES = (GLOBAL, USER, TASK)  # each wider than the one after

EVERYBODY = 0  # the subject of the global scope


class Control(Row):
    """One scope's state. `subject_id`: EVERYBODY, a user's id or a task's id; `by_user`: the id of the user who set
    it.
    """

    scope = CharField(max_length=6)
    subject_id = BigIntegerField()
    state = CharField(max_length=6)
    by_user = BigIntegerField(null=True)
    set_ms = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("scope", "subject_id")
        without_rowid = True


class Effective(NamedTuple):
    """The state in force, and the widest scope that sets it; (run, global) when nothing was set."""

    state: str
    scope: str


_ABOUT = Statement(
    """
    SELECT scope, state FROM controls WHERE scope = 'global'
    OR (scope = 'user' AND subject_id = :user) OR (scope = 'task' AND subject_id = :task)
    """
)


def effective(user_id: int, task_id: int) -> Effective:
    """Returns the state in force for this task of this user."""
    found = [Effective(state, scope) for scope, state in _ABOUT.rows(user=user_id, task=task_id)]
    return max(found, key=_strictness, default=Effective(RUN, GLOBAL))


def _strictness(found: Effective) -> tuple[int, int]:
    return STATES.index(found.state), -SCOPES.index(found.scope)


def put(scope: str, subject_id: int, state: str, by_user: int | None, now_ms: int) -> bool:
    """Sets the state, on disk when this returns; returns whether that changed it. `by_user` None is the operator.

    A state that is set already stays as it is, with its setter and time. Raises ValueError for unknown words.
    """
    if scope not in SCOPES or state not in STATES or (scope == GLOBAL) != (subject_id == EVERYBODY):
        raise ValueError(f"cannot set {scope} {subject_id} to {state}")
    new = Control.insert(scope=scope, subject_id=subject_id, state=state, by_user=by_user, set_ms=now_ms)
    changing = new.on_conflict(
        conflict_target=[Control.scope, Control.subject_id],
        preserve=[Control.state, Control.by_user, Control.set_ms],
        where=Control.state != EXCLUDED.state,
    )
    with transaction(durable=True):
        has_changed = bool(changing.as_rowcount().execute())
        if has_changed:
            _tell(scope, subject_id, state, by_user, now_ms)
    return has_changed


def _tell(scope: str, subject_id: int, state: str, by_user: int | None, now_ms: int) -> None:
    """Tells those whom the change concerns: the user, the task's owner, or everybody who has a task."""
    event = HALTED if state == HALT else CONTROL
    if scope == USER:
        owners = [subject_id]
    else:
        concerned = Task.id == subject_id if scope == TASK else Task.deleted_ms.is_null()
        found: Any = Task.select(Task.user).where(concerned).distinct().tuples()
        owners = [user for (user,) in found]
    task_id = subject_id if scope == TASK else None
    for owner in owners:
        by = "operator" if by_user is None else "you" if by_user == owner else "admin"
        outbox.tell(event, owner, task_id, now_ms, {"scope": scope, "state": state, "by": by})


def all_of(user_id: int) -> list[Control]:
    """Returns every state set for all, for the user or for one of the user's tasks, widest scope first."""
    own_tasks = Task.select(Task.id).where(Task.user == user_id, Task.deleted_ms.is_null())
    about = (
        (Control.scope == GLOBAL)
        | ((Control.scope == USER) & (Control.subject_id == user_id))
        | ((Control.scope == TASK) & Control.subject_id.in_(own_tasks))
    )
    return sorted(Control.select().where(about), key=lambda row: (SCOPES.index(row.scope), row.subject_id))
