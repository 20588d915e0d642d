"""While the month's quota of calls runs short, the lowest rungs get no new bids and nothing else changes."""

from __future__ import annotations

from random import Random

import pytest

from strategy.reasons import Reason
from tests.examples import part_of
from tests.shapes import replace
from tests.strategy.random_cycles import random_cycle
from tests.worlds import market as m


def test_the_lowest_rungs_wait_first() -> None:
    for rungs, reasons in (
        (None, ["place"] * 5),
        (5, ["place"] * 5),
        (3, ["place"] * 3 + ["quota"] * 2),
        (0, ["quota"] * 5),
    ):
        result = m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(rungs=rungs))

        assert m.rung_reasons(result) == reasons
        assert m.placed(result) == m.placed(m.plan(m.ladder_config(), m.book(100_000)))[:rungs]


def test_a_low_bid_is_left_alone_instead_of_being_renewed() -> None:
    top, low = 75_000, 15_000
    own = m.orders(top, low, expires_ms=m.NOW + m.MINUTE)

    result = m.plan(m.ladder_config(), m.book(100_000), own, m.with_limits(rungs=1))

    assert m.cancelled(result) == [(top, False, "renew")]
    assert m.placed(result) == [top]
    assert m.rung_reasons(result) == ["renew", "quota", "quota", "quota", "quota"]


def test_what_must_go_goes() -> None:
    result = m.plan(m.ladder_config(hardcap_sats=60_000), m.book(100_000), m.orders(75_000), m.with_limits(rungs=0))

    assert m.cancelled(result) == [(75_000, True, "hardcap")]
    assert m.placed(result) == []


@pytest.mark.sampled
def test_nothing_else_changes() -> None:
    """In random cycles: the same plan without new bids below, and no cancel but those that made room for them."""
    waited = 0
    seeds = part_of(3_000, dear=True)
    for seed in range(seeds):
        cycle = random_cycle(Random(seed))
        rungs = seed % 4
        ample = cycle.plan()
        short = replace(cycle, limits=replace(cycle.limits, rungs=rungs)).plan()

        if ample.to_place and cycle.limits.hold is None:
            assert short.to_place == tuple(each for each in ample.to_place if each.rung < rungs), seed
        # What was to wait for a bid that is not placed waits for nothing.
        all_, left = ({replace(cancel, after_rung=None) for cancel in made.to_cancel} for made in (ample, short))
        missing = all_ - left
        assert left <= all_, seed
        assert all(not cancel.hard and cancel.reason in (Reason.RENEW, Reason.OUTBID) for cancel in missing), seed
        waited += any(note.reason is Reason.QUOTA for note in short.rungs)
        notes = {note.order_id: note.reason for note in short.bids}
        assert all(notes[cancel.order_id] is Reason.QUOTA for cancel in missing), seed
    assert waited > seeds // 10
