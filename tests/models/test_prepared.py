"""Statements as text: each is one that the database takes, and finds and writes what peewee's own would."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from core.subscription_plans import DEFAULT_PLANS
from models import schema, users
from models.database import base
from models.database.base import STATEMENTS, Statement, listed, prepare_all
from models.tasks import tasks
from models.tasks.tasks import BIDDING, Task, TaskExists
from models.users import Subscription, User


def user() -> User:
    return users.find_or_create("bc1qa", DEFAULT_PLANS, 1)


def create(owner: User, slug: str) -> Task:
    return tasks.create_bidding_task(
        owner.id, type="rune", slug=slug.upper(), slug_key=slug, config="{}", venue="simulator", max_tasks=20, now_ms=7
    )


def columns(row: Any) -> dict[str, Any]:
    return dict(row.__data__)


def test_a_stored_task_is_as_peewee_would_store_it(database: str) -> None:
    owner = user()
    ours = create(owner, "cats")
    theirs = Task.create(
        user=owner,
        kind=BIDDING,
        type="rune",
        slug="DOGS",
        slug_key="dogs",
        config="{}",
        venue="simulator",
        created_ms=7,
    )
    named = {"slug": "DOGS", "slug_key": "dogs"}
    assert columns(Task.get_by_id(ours.id)) | {"id": theirs.id, **named} == columns(Task.get_by_id(theirs.id))


def test_what_is_found_is_as_peewee_would_find_it(database: str) -> None:
    owner = user()
    task = create(owner, "cats")
    Task.update(last_cycle_ms=5, last_error="no", token=9, pid=3).execute()
    users.open_session("hash", owner.id, 1)

    found = tasks.own(owner.id, BIDDING, task.id)
    assert found is not None and columns(found) == columns(Task.get_by_id(task.id))
    assert found.user_id == owner.id and found.user == owner
    subscription = users.subscription_of(owner.id)
    assert subscription is not None and columns(subscription) == columns(Subscription.get())
    signed_in = users.user_and_mark("hash", 1)
    assert signed_in is not None and columns(signed_in[0]) == columns(User.get_by_id(owner.id))
    assert users.subscription_of(owner.id + 1) is None


def test_a_change_touches_one_task_and_raises_its_revision(database: str) -> None:
    owner = user()
    task, other = create(owner, "cats"), create(owner, "dogs")
    was = task.revision
    revision = tasks.change_bidding_task(task, type="ordinals", slug="Birds", slug_key="birds", config='{"a": 1}')

    changed, untouched = Task.get_by_id(task.id), Task.get_by_id(other.id)
    assert revision == changed.revision == task.revision == was + 1
    assert (changed.type, changed.slug, changed.slug_key, changed.config) == ("ordinals", "Birds", "birds", '{"a": 1}')
    assert (untouched.slug, untouched.revision) == ("DOGS", 1)
    with pytest.raises(TaskExists):
        tasks.change_bidding_task(task, type="rune", slug="DOGS", slug_key="dogs", config="{}")


def test_every_value_is_given_by_its_name_and_no_other(database: str) -> None:
    owner = user()
    query = Statement("SELECT address FROM users WHERE id = :id AND address != :but")
    assert query.row(id=owner.id, but="") == ("bc1qa",)
    assert query.row(but="bc1qa", id=owner.id) is None
    for values in ({"id": owner.id}, {"id": owner.id, "but": "", "more": 1}, {"id": owner.id, "bet": ""}, {}):
        with pytest.raises(TypeError, match="wanted"):
            query.row(**values)


def test_a_name_may_stand_in_several_places(database: str) -> None:
    user()
    query = Statement("SELECT address FROM users WHERE address = :at OR display_name = :at")
    assert query.row(at="bc1qa") == ("bc1qa",)


def test_the_database_takes_every_statement(database: str) -> None:
    """Each is described to the database, which knows its tables, columns and words, and is not carried out."""
    schema.every_model()  # imports all modules
    for statement in STATEMENTS:
        statement.prepare()
        text, places = statement._text, statement._places
        if base.is_postgresql(database):
            for place in range(len(places)):
                text = text.replace("%s", f"${place + 1}", 1)
            base.database.execute_sql(f"PREPARE described AS {text}")
            base.database.execute_sql("DEALLOCATE described")
        else:
            base.database.execute_sql(f"EXPLAIN {text}", [None] * len(places))
    assert len(STATEMENTS) > 80


def test_only_single_colons_mark_values(database: str) -> None:
    user()
    query = Statement(
        f"SELECT address::text, is_admin FROM whitelist WHERE is_admin = $no AND address IN ({listed('at', 2)})"
    )
    query.prepare()
    assert query._names == {"at_0", "at_1"} and "::text" in query._text and "$" not in query._text


def test_a_text_made_for_another_kind_of_database_is_made_anew(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Statement("SELECT $larger(1, :more)")
    if base.is_postgresql(database):
        query = Statement("SELECT $larger(1, :more::int)")
    assert query.value(more=5) == 5
    other = SimpleNamespace(name="another", words=defaultdict(str, larger="MOST"), param="@")
    with monkeypatch.context() as patch:
        patch.setattr(base, "database", SimpleNamespace(obj=other))
        prepare_all()
        assert query._text.startswith("SELECT MOST(1, @")
    assert query.value(more=5) == 5
