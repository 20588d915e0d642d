"""The statements about tasks that managers, gateways and workers ask again and again, compiled once."""

from __future__ import annotations

from functools import cache
from typing import Any

from peewee import SQL, fn

from models.base import larger
from models.prepared import Prepared, given
from models.tasks.table import Task
from models.users import User

_IS_THIS = Task.id == given("id")
_IS_UNDER_TOKEN = Task.token == given("token")
_OF_USER = Task.user == given("user"), Task.kind == given("kind"), Task.deleted_ms.is_null()

OWN = Prepared(lambda: Task.select().where(_IS_THIS, *_OF_USER))
COUNT = Prepared(lambda: Task.select(fn.COUNT(SQL("1"))).where(*_OF_USER))
STORED = [field for field in Task._meta.sorted_fields if field is not Task.id]
INSERT = Prepared(lambda: Task.insert({field: given(field.name) for field in STORED}))
CHANGE_BIDDING = Prepared(
    lambda: Task.update(
        {
            Task.config: given("config"),
            Task.revision: SQL("revision + 1"),
            Task.type: given("type"),
            Task.slug: given("slug"),
            Task.slug_key: given("slug_key"),
            Task.budget: given("budget"),
        }
    ).where(_IS_THIS, Task.revision == given("revision"))
)

TOKEN = Prepared(lambda: Task.select(Task.token).where(_IS_THIS))
RAISE_TOKEN = Prepared(
    lambda: Task.update({Task.token: larger(SQL("token + 1"), given("least"))}).where(_IS_THIS).returning(Task.token)
)
OVERTAKE = Prepared(lambda: Task.update({Task.token: given("new")}).where(_IS_THIS, _IS_UNDER_TOKEN))
OUTLINE = Prepared(
    lambda: Task.select(
        Task.kind, Task.venue, fn.COALESCE(Task.slug, Task.inscription_id), Task.user, Task.token
    ).where(_IS_THIS)
)
STANDING = Prepared(lambda: Task.select(Task.kind, Task.desired, Task.deleted_ms, Task.token).where(_IS_THIS))
OBSERVED = Prepared(
    lambda: Task.select(Task.observed, Task.user, Task.kind, Task.desired, Task.error_cycles, Task.last_error).where(
        _IS_THIS
    )
)
WITH_OWNER = Prepared(lambda: _and_owner().where(_IS_THIS))
UNDER_TOKEN = Prepared(lambda: _and_owner().where(_IS_THIS, _IS_UNDER_TOKEN))
TROUBLES = Prepared(lambda: Task.select(Task.user, Task.error_cycles, Task.told).where(_IS_THIS, _IS_UNDER_TOKEN))
SHOW_CYCLE = Prepared(
    lambda: Task.update(
        {
            Task.cycles: SQL("cycles + 1"),
            Task.memory: given("memory"),
            Task.error_cycles: given("error_cycles"),
            Task.told: given("told"),
            Task.last_cycle_ms: given("last_cycle_ms"),
            Task.last_cycle_action: given("last_cycle_action"),
            Task.last_error: given("last_error"),
            Task.last_error_code: given("last_error_code"),
            Task.last_error_params: given("last_error_params"),
        }
    ).where(_IS_THIS, _IS_UNDER_TOKEN)
)


@cache
def observing(facts: tuple[str, ...]) -> Prepared:
    """Prepares the update of `observed` and these columns."""
    changes = {getattr(Task, name): given(name) for name in ("observed", *facts)}
    return Prepared(lambda: Task.update(changes).where(_IS_THIS))


def _and_owner() -> Any:
    return Task.select(Task, User).join(User)
