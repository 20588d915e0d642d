"""The one table of moves: it leads to known states only, from a new row to each of them, and no end is left again."""

from __future__ import annotations

import pytest

from models.ledger.states import (
    CLOSED,
    LISTING_LIFE,
    LIVE,
    NEW,
    ORDER_LIFE,
    OUTLIVED,
    REPLACED,
    RESERVED,
    WITHDRAWAL_LIFE,
    IllegalMove,
    Life,
)

LIVES = pytest.mark.parametrize("life", [ORDER_LIFE, LISTING_LIFE, WITHDRAWAL_LIFE], ids=lambda life: life.kind)


@LIVES
def test_each_state_is_known_and_reached_from_a_new_row(life: Life) -> None:
    targets = frozenset[str]().union(*life.moves.values())
    assert targets <= {*life.states, *life.ends} and life.moves.keys() <= {NEW, *life.states, *life.ends}
    reached, before = {NEW}, set[str]()
    while reached != before:
        before = set(reached)
        reached |= {state for former in before for state in life.moves.get(former, ())}
    assert {*life.states} <= reached


@LIVES
def test_a_move_that_is_not_in_the_table_is_an_error(life: Life) -> None:
    open_states = [state for state in life.states if life.moves.get(state)]
    for state in open_states:
        with pytest.raises(IllegalMove, match=f"{life.kind} 7 cannot go from {state} to {state}"):
            life.check(state, state, row_id=7)
        with pytest.raises(IllegalMove):
            life.check(state, RESERVED)
    for end in {*life.states} - {*open_states}:
        for state in life.states:
            with pytest.raises(IllegalMove):
                life.check(end, state, life.ends[0] if life.ends and state == CLOSED else None)


@pytest.mark.parametrize("life", [ORDER_LIFE, LISTING_LIFE], ids=["order", "listing"])
def test_a_row_is_closed_for_one_of_its_reasons_and_for_nothing_else(life: Life) -> None:
    for reason in life.ends:
        life.check(LIVE, CLOSED, reason)
    for state, wrong in ((CLOSED, None), (CLOSED, "bored"), ("cancelling", life.ends[0])):
        with pytest.raises(IllegalMove):
            life.check(LIVE, state, wrong)


def test_only_a_replaced_listing_is_live_again_and_what_outlives_its_end_may_be_sold() -> None:
    LISTING_LIFE.check(REPLACED, LIVE)
    assert [end for end in LISTING_LIFE.ends if LIVE in LISTING_LIFE.moves.get(end, ())] == [REPLACED]
    assert OUTLIVED == ("cancelled", "replaced", "lost")
    for end in OUTLIVED:
        LISTING_LIFE.check(end, CLOSED, "sold")
    assert not any(end in ORDER_LIFE.moves for end in ORDER_LIFE.ends)
