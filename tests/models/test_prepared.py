"""That queries built once say what peewee's own would say."""

from __future__ import annotations

from typing import Any

import pytest

from core.subscription_plans import DEFAULT_PLANS
from models import sessions, users
from models.prepared import Prepared, given
from models.tasks import tasks
from models.tasks.table import BIDDING, Task
from models.tasks.tasks import TaskExists
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
    sessions.open_session("hash", owner.id, 1)

    found = tasks.own(owner.id, BIDDING, task.id)
    assert found is not None and columns(found) == columns(Task.get_by_id(task.id))
    assert found.user_id == owner.id and found.user == owner
    subscription = users.subscription_of(owner.id)
    assert subscription is not None and columns(subscription) == columns(Subscription.get())
    signed_in = sessions.user_and_mark("hash", 1)
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
    query = Prepared(lambda: User.select(User.address).where(User.id == given("id"), User.address != given("but")))
    assert query.row(id=owner.id, but="") == ("bc1qa",)
    assert query.row(but="bc1qa", id=owner.id) is None
    for values in ({"id": owner.id}, {"id": owner.id, "but": "", "more": 1}, {"id": owner.id, "bet": ""}, {}):
        with pytest.raises(TypeError, match="wanted"):
            query.row(**values)


def test_a_name_may_stand_in_several_places(database: str) -> None:
    user()
    query = Prepared(
        lambda: User.select(User.address).where((User.address == given("at")) | (User.display_name == given("at")))
    )
    assert query.row(at="bc1qa") == ("bc1qa",)
