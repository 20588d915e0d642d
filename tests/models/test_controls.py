from __future__ import annotations

import itertools

import pytest

from models import users
from models.tasks import tasks
from models.users import EVERYBODY, GLOBAL, HALT, REDUCE, RUN, SCOPES, STATES, TASK, USER, Control, Effective
from tests.models.test_orders import running_task


def facts(row: Control) -> tuple[str, int, str, int | None, int]:
    return row.scope, row.subject_id, row.state, row.by_user, row.set_ms


def test_nothing_set_means_run(database: str) -> None:
    assert users.control_of(1, 1) == (RUN, GLOBAL)
    assert users.controls_of(1) == []


@pytest.mark.parametrize("states", [*itertools.product(STATES, repeat=3)])
def test_the_strictest_holds_and_the_widest_scope_says_so(database: str, states: tuple[str, str, str]) -> None:
    subjects = dict(zip(SCOPES, (EVERYBODY, 3, 17), strict=True))
    for scope, state in zip(SCOPES, states, strict=True):
        users.put_control(scope, subjects[scope], state, 1, 10)
    strictest = HALT if HALT in states else REDUCE if REDUCE in states else RUN
    assert users.control_of(3, 17) == Effective(strictest, SCOPES[states.index(strictest)])


def test_others_are_not_touched(database: str) -> None:
    users.put_control(USER, 17, HALT, 1, 10)
    users.put_control(TASK, 3, HALT, 1, 10)
    assert users.control_of(3, 17) == (RUN, GLOBAL)


def test_one_row_says_who_changed_the_state_and_when(database: str) -> None:
    assert users.put_control(USER, 3, REDUCE, 3, 10)
    assert not users.put_control(USER, 3, REDUCE, 4, 11)
    assert [facts(row) for row in Control.select()] == [(USER, 3, REDUCE, 3, 10)]
    assert users.put_control(USER, 3, RUN, None, 12)
    assert [facts(row) for row in Control.select()] == [(USER, 3, RUN, None, 12)]


@pytest.mark.parametrize(
    ("scope", "subject", "state"),
    [("all", 1, HALT), (USER, 1, "stop"), (USER, EVERYBODY, HALT), (TASK, EVERYBODY, HALT), (GLOBAL, 1, HALT)],
)
def test_words_that_are_none_are_refused(database: str, scope: str, subject: int, state: str) -> None:
    with pytest.raises(ValueError, match="cannot set"):
        users.put_control(scope, subject, state, 1, 10)
    assert Control.select().count() == 0


def test_a_user_is_shown_what_concerns_them_and_nobody_elses(database: str) -> None:
    mine, second, theirs = running_task("cats"), running_task("dogs"), running_task("cats", "bc1qb")
    user = mine.user.id
    for task in (second, mine, theirs):
        users.put_control(TASK, task.id, HALT, 9, 10)
    users.put_control(USER, theirs.user.id, REDUCE, 9, 10)
    users.put_control(USER, user, REDUCE, 9, 10)
    users.put_control(GLOBAL, EVERYBODY, RUN, 9, 10)
    shown = [(row.scope, row.subject_id) for row in users.controls_of(user)]
    assert shown == [(GLOBAL, EVERYBODY), (USER, user), (TASK, mine.id), (TASK, second.id)]
    tasks.mark_deleted(second, 2)
    assert [row.subject_id for row in users.controls_of(user) if row.scope == TASK] == [mine.id]
