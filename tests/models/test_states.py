"""The one table of moves: it leads to known states only, from a new row to each of them, and no end is left again."""

from __future__ import annotations

import pytest

from models.ledger import states

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
