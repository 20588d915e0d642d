"""The one table of moves: it leads to known states only, from a new row to each of them, and no end is left again."""

from __future__ import annotations

import itertools

import pytest

from models import users
from models.ledger import states
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


LIVES = pytest.mark.parametrize(
    "life", [states.ORDER_LIFE, states.LISTING_LIFE, states.WITHDRAWAL_LIFE], ids=lambda life: life.kind
)


@LIVES
def test_each_state_is_known_and_reached_from_a_new_row(life: states.Life) -> None:
    targets = frozenset[str]().union(*life.moves.values())
    assert targets <= {*life.states, *life.ends} and life.moves.keys() <= {states.NEW, *life.states, *life.ends}
    reached, before = {states.NEW}, set[str]()
    while reached != before:
        before = set(reached)
        reached |= {state for former in before for state in life.moves.get(former, ())}
    assert {*life.states} <= reached


@LIVES
def test_a_move_that_is_not_in_the_table_is_an_error(life: states.Life) -> None:
    open_states = [state for state in life.states if life.moves.get(state)]
    for state in open_states:
        with pytest.raises(states.IllegalMove, match=f"{life.kind} 7 cannot go from {state} to {state}"):
            life.check(state, state, row_id=7)
        with pytest.raises(states.IllegalMove):
            life.check(state, states.RESERVED)
    for end in {*life.states} - {*open_states}:
        for state in life.states:
            with pytest.raises(states.IllegalMove):
                life.check(end, state, life.ends[0] if life.ends and state == states.CLOSED else None)


@pytest.mark.parametrize("life", [states.ORDER_LIFE, states.LISTING_LIFE], ids=["order", "listing"])
def test_a_row_is_closed_for_one_of_its_reasons_and_for_nothing_else(life: states.Life) -> None:
    for reason in life.ends:
        life.check(states.LIVE, states.CLOSED, reason)
    for state, wrong in ((states.CLOSED, None), (states.CLOSED, "bored"), ("cancelling", life.ends[0])):
        with pytest.raises(states.IllegalMove):
            life.check(states.LIVE, state, wrong)


def test_only_a_replaced_listing_is_live_again_and_what_outlives_its_end_may_be_sold() -> None:
    states.LISTING_LIFE.check(states.REPLACED, states.LIVE)
    assert [end for end in states.LISTING_LIFE.ends if states.LIVE in states.LISTING_LIFE.moves.get(end, ())] == [
        states.REPLACED
    ]
    assert states.OUTLIVED == ("cancelled", "replaced", "lost")
    for end in states.OUTLIVED:
        states.LISTING_LIFE.check(end, states.CLOSED, "sold")
    assert not any(end in states.ORDER_LIFE.moves for end in states.ORDER_LIFE.ends)
