"""Control states: run, reduce (cancels only) or halt (cancel everything).

Set for the installation, a user or a task; the strictest holds. Each that was ever set has a row, with its setter and
time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from peewee import EXCLUDED, BigIntegerField, CharField, CompositeKey

from models import outbox
from models.database.base import Row, Statement, columns, transaction
from models.outbox import CONTROL, HALTED

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
    """One scope's state. `subject_id`: EVERYBODY, a user's id or a task's id; `by_user`: the user who set it."""

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


_OF_USER = "controls WHERE scope = 'global' OR (scope = 'user' AND subject_id = :user) OR scope = 'task' AND subject_id"
_ABOUT = Statement(f"SELECT state, scope FROM {_OF_USER} = :task")
_ALL_OF = Statement(
    f"SELECT {columns(Control)} FROM {_OF_USER} IN (SELECT id FROM tasks WHERE user_id = :user AND deleted_ms IS NULL)"
)
_OWNER = Statement("SELECT user_id FROM tasks WHERE id = :task")
_OWNERS = Statement("SELECT DISTINCT user_id FROM tasks WHERE deleted_ms IS NULL")


def effective(user_id: int, task_id: int) -> Effective:
    """Returns the state in force for this task of this user."""
    found = map(Effective._make, _ABOUT.rows(user=user_id, task=task_id))
    return max(
        found, key=lambda each: (STATES.index(each.state), -SCOPES.index(each.scope)), default=Effective(RUN, GLOBAL)
    )


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
    owners = _OWNER.rows(task=subject_id) if scope == TASK else _OWNERS.rows()
    task_id = subject_id if scope == TASK else None
    for (owner,) in [(subject_id,)] if scope == USER else owners:
        by = "operator" if by_user is None else "you" if by_user == owner else "admin"
        data = {"scope": scope, "state": state, "by": by}
        outbox.tell(HALTED if state == HALT else CONTROL, owner, task_id, now_ms, data)


def all_of(user_id: int) -> list[Control]:
    """Returns every state set for all, for the user or for one of the user's tasks, widest scope first."""
    found = _ALL_OF.instances(Control, user=user_id)
    return sorted(found, key=lambda row: (SCOPES.index(row.scope), row.subject_id))
