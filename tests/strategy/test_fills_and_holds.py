"""The rest that fills leave to bid with, and the restraint by control and fills."""

from __future__ import annotations

import pytest

from strategy.decision import Memory
from strategy.plan_bids import halted
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds import market as m

LADDER = [75_000, 60_000, 45_000, 30_000, 15_000]


class TestMaxFills:
    def test_no_more_open_orders_than_fills_are_left(self) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(fills_left=2))

        assert m.placed(result) == [75_000, 60_000]
        assert m.rung_reasons(result) == ["place", "place", "max_fills", "max_fills", "max_fills"]

    def test_what_is_being_cancelled_may_still_fill(self) -> None:
        own = [m.order(1, 50_000, "cancelling"), m.order(2, 60_000, "unknown")]

        result = m.plan(m.ladder_config(), m.book(100_000), own, m.with_limits(fills_left=3))

        assert m.placed(result) == [75_000]

    def test_bids_beyond_what_is_left_go_at_any_age(self) -> None:
        own = m.orders(*LADDER, created_ms=m.NOW)

        result = m.plan(m.ladder_config(), m.book(100_000), own, m.with_limits(fills_left=3))

        assert m.cancelled(result) == [(30_000, True, "max_fills"), (15_000, True, "max_fills")]

    @pytest.mark.parametrize("left", [0, -1])
    def test_none_left(self, left: int) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), m.orders(75_000), m.with_limits(fills_left=left))

        assert m.cancelled(result) == [(75_000, True, "max_fills")]
        assert result.to_place == ()

    def test_a_renewal_is_not_one_more(self) -> None:
        own = m.orders(75_000, expires_ms=m.NOW + 1_000)

        result = m.plan(m.ladder_config(bid_count=1), m.book(100_000), own, m.with_limits(fills_left=1))

        assert m.rung_reasons(result) == ["renew"]


class TestSpendCap:
    @pytest.mark.parametrize(("left", "expected"), [(135_000, [75_000, 60_000]), (134_999, [75_000, 45_000])])
    def test_is_a_total_and_inclusive(self, left: int, expected: list[int]) -> None:
        assert (
            m.placed(m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(spend_left_sats=left)))[:2]
            == expected
        )

    @pytest.mark.parametrize("left", [0, -5])
    def test_nothing_left_is_not_unlimited(self, left: int) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), m.orders(15_000), m.with_limits(spend_left_sats=left))

        assert m.cancelled(result) == [(15_000, True, "spend_cap")]
        assert m.rung_reasons(result) == ["spend_cap"] * 5


class TestHold:
    OWN = (m.order(1, 75_000), m.order(2, 52_000), m.order(3, 95_000), m.order(4, 30_000, expires_ms=m.NOW + 1_000))

    def test_after_a_fill_nothing_is_placed_and_nothing_given_up_but_what_is_forbidden(self) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), self.OWN, m.with_limits(hold=Reason.FILL_PAUSE))

        assert m.cancelled(result) == [(95_000, True, "above_range")]
        assert result.to_place == ()
        assert m.rung_reasons(result) == ["kept", "fill_pause", "fill_pause", "kept", "fill_pause"]
        assert m.bid_reasons(result)[2] == "fill_pause"

    def test_many_fills_are_like_reduce(self) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), self.OWN, m.with_limits(hold=Reason.FILL_BURST))

        assert m.cancelled(result) == [(95_000, True, "above_range"), (52_000, False, "surplus")]
        assert result.to_place == ()
        assert m.rung_reasons(result) == ["kept"] + ["fill_burst"] * 4


def test_halt_cancels_every_live_order_and_places_nothing() -> None:
    own = [m.order(1, 15_000), m.order(2, 75_000), m.order(3, 60_000, "unknown"), m.order(4, 50_000, "cancelling")]
    memory = Memory(5, (m.NOW,))

    result = halted(m.ladder_config(), own, memory)

    assert m.cancelled(result) == [(75_000, True, "halt"), (15_000, True, "halt")]
    assert result.to_place == ()
    assert m.rung_reasons(result) == ["halt"] * 5
    assert m.bid_reasons(result) == {1: "halt", 2: "halt", 3: "in_flight", 4: "cancelling"}
    assert result.memory == memory
    assert halted(replace(m.ladder_config(), bid_count=1), [], memory).to_cancel == ()
