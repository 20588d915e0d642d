"""The sharing of the room under a ceiling that several tasks share."""

from __future__ import annotations

from decimal import Decimal

import pytest

from strategy.bidding.pairing import Rung
from strategy.bidding.rationing import Ration
from strategy.plan_inputs import SignedRoom
from strategy.reasons import Reason

MOST = 800_000


def refused(signed: int, others: int, *, free: int = 1, whose: str = "user") -> Reason | None:
    """Returns why a missing bid of 50,000 is not placed; without a free slot another one must make way for it."""
    rung = Rung(0, 50_000, Decimal(1), 50_000, 0, 0)
    Ration([SignedRoom(whose, MOST, signed, 1_000, others)], 0).share_out([rung], (), (), free)
    return rung.refused


def test_a_task_alone_may_use_all_that_nobody_else_shares() -> None:
    assert refused(MOST - 50_000, 0) is None
    assert refused(MOST - 49_999, 0) is Reason.SIGNED_LIMIT


@pytest.mark.parametrize(("others", "kept"), [(40_000, 60_000), (60_000, 90_000), (90_000, 100_000), (10**9, 100_000)])
def test_a_missing_bid_leaves_the_renewals_of_others_up_to_an_eighth(others: int, kept: int) -> None:
    assert refused(MOST - 50_000 - kept, others) is None
    assert refused(MOST - 50_000 - kept + 1, others) is Reason.SIGNED_LIMIT


@pytest.mark.parametrize(("others", "kept"), [(60_000, 90_000), (120_000, 180_000), (10**9, 200_000)])
def test_a_move_leaves_the_renewals_of_others_up_to_a_quarter(others: int, kept: int) -> None:
    assert refused(MOST - 50_000 - kept, others, free=0) is None
    assert refused(MOST - 50_000 - kept + 1, others, free=0) is Reason.SIGNED_LIMIT
