"""The sharing of the room under a ceiling that several tasks share."""

from __future__ import annotations

from decimal import Decimal

import pytest

from strategy.decision import SignedRoom
from strategy.fill import Ration
from strategy.ladders import Rung
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


def waiting(room: SignedRoom, now_ms: int, *prices: int) -> list[str]:
    """Returns what each missing bid waits for, "" for one that is placed."""
    rungs = [Rung(at, price, Decimal(1), price, 0, 0) for at, price in enumerate(prices)]
    Ration([room], now_ms).share_out(rungs, (), (), len(rungs))
    return [rung.detail for rung in rungs]


ENDS = ((20_000, 10_000), (150_000, 60_000), (400_000, 150_000))  # Unix ms, and the sats that have expired by then


def room_at(now_ms: int, signed: int, whose: str = "task", others: int = 0) -> SignedRoom:
    """Returns the room once those have expired whose end has come."""
    gone = max((freed for end, freed in ENDS if end <= now_ms), default=0)
    left = [(end, freed - gone) for end, freed in ENDS if end > now_ms]
    ends, freed = tuple(end for end, _ in left), tuple(sats for _, sats in left)
    return SignedRoom(whose, MOST, signed - gone, ends[0] if ends else None, others, ends, freed)


def test_room_is_dated_by_the_expiry_that_frees_enough() -> None:
    signed = MOST - 10_000
    assert waiting(room_at(0, signed), 0, 15_000) == ["task, frees in 20 s"]
    assert waiting(room_at(0, signed), 0, 50_000) == ["task, frees in 150 s"]
    assert waiting(room_at(0, signed), 0, 100_000) == ["task, frees in 400 s"]
    assert waiting(room_at(0, signed), 0, 200_000) == ["task"], "no known expiry frees that much"


@pytest.mark.parametrize("price", [15_000, 50_000, 100_000])
def test_a_bid_fits_at_the_time_that_was_named_and_not_before(price: int) -> None:
    signed = MOST - 10_000
    (words,) = waiting(room_at(0, signed), 0, price)
    at_ms = 1000 * int(words.removeprefix("task, frees in ").removesuffix(" s"))
    assert waiting(room_at(at_ms - 1, signed), at_ms - 1, price) != [""]
    assert waiting(room_at(at_ms, signed), at_ms, price) == [""]


def test_a_lower_bid_waits_for_the_bids_above_it_too() -> None:
    held = 3 * 30_000 // 2  # what the first one leaves for its own renewal before the second is signed
    signed = MOST - held
    details = waiting(room_at(0, signed), 0, 30_000, 30_000, 30_000)
    assert details == ["", "task, frees in 150 s", "task, frees in 400 s"]


def test_a_bid_that_the_ceiling_alone_would_take_says_what_the_rest_is_kept_for() -> None:
    assert waiting(room_at(0, MOST - 60_000, "user", 40_000), 0, 50_000) == ["user, kept for renewals, frees in 150 s"]
    assert waiting(room_at(0, MOST - 40_000, "user", 40_000), 0, 50_000) == ["user, frees in 400 s"]


def test_of_two_ceilings_the_one_that_frees_later_is_named() -> None:
    rung = Rung(0, 50_000, Decimal(1), 50_000, 0, 0)
    soon, late = SignedRoom("task", MOST, MOST, 9_000), room_at(0, MOST - 10_000, "user")
    Ration([soon, late], 0).share_out([rung], (), (), 1)
    assert rung.detail == "user, frees in 150 s"
