"""The rest that fills leave to bid with, and the restraint by control and fills."""

from __future__ import annotations

import pytest

from strategy.decision import Memory
from strategy.plan_bids import halted
from strategy.reasons import Reason
from tests.shapes import replace
from tests.strategy.market import (
    NOW,
    bid_reasons,
    book,
    cancelled,
    ladder_config,
    order,
    orders,
    placed,
    plan,
    rung_reasons,
    with_limits,
)

LADDER = [75_000, 60_000, 45_000, 30_000, 15_000]


class TestMaxFills:
    def test_no_more_open_orders_than_fills_are_left(self) -> None:
        result = plan(ladder_config(), book(100_000), limits=with_limits(fills_left=2))

        assert placed(result) == [75_000, 60_000]
        assert rung_reasons(result) == ["place", "place", "max_fills", "max_fills", "max_fills"]

    def test_what_is_being_cancelled_may_still_fill(self) -> None:
        own = [order(1, 50_000, "cancelling"), order(2, 60_000, "unknown")]

        result = plan(ladder_config(), book(100_000), own, with_limits(fills_left=3))

        assert placed(result) == [75_000]

    def test_bids_beyond_what_is_left_go_at_any_age(self) -> None:
        own = orders(*LADDER, created_ms=NOW)

        result = plan(ladder_config(), book(100_000), own, with_limits(fills_left=3))

        assert cancelled(result) == [(30_000, True, "max_fills"), (15_000, True, "max_fills")]

    @pytest.mark.parametrize("left", [0, -1])
    def test_none_left(self, left: int) -> None:
        result = plan(ladder_config(), book(100_000), orders(75_000), with_limits(fills_left=left))

        assert cancelled(result) == [(75_000, True, "max_fills")]
        assert result.to_place == ()

    def test_a_renewal_is_not_one_more(self) -> None:
        own = orders(75_000, expires_ms=NOW + 1_000)

        result = plan(ladder_config(bid_count=1), book(100_000), own, with_limits(fills_left=1))

        assert rung_reasons(result) == ["renew"]


class TestSpendCap:
    @pytest.mark.parametrize(("left", "expected"), [(135_000, [75_000, 60_000]), (134_999, [75_000, 45_000])])
    def test_is_a_total_and_inclusive(self, left: int, expected: list[int]) -> None:
        assert placed(plan(ladder_config(), book(100_000), limits=with_limits(spend_left_sats=left)))[:2] == expected

    @pytest.mark.parametrize("left", [0, -5])
    def test_nothing_left_is_not_unlimited(self, left: int) -> None:
        result = plan(ladder_config(), book(100_000), orders(15_000), with_limits(spend_left_sats=left))

        assert cancelled(result) == [(15_000, True, "spend_cap")]
        assert rung_reasons(result) == ["spend_cap"] * 5


class TestHold:
    OWN = (order(1, 75_000), order(2, 52_000), order(3, 95_000), order(4, 30_000, expires_ms=NOW + 1_000))

    def test_after_a_fill_nothing_is_placed_and_nothing_given_up_but_what_is_forbidden(self) -> None:
        result = plan(ladder_config(), book(100_000), self.OWN, with_limits(hold=Reason.FILL_PAUSE))

        assert cancelled(result) == [(95_000, True, "above_range")]
        assert result.to_place == ()
        assert rung_reasons(result) == ["kept", "fill_pause", "fill_pause", "kept", "fill_pause"]
        assert bid_reasons(result)[2] == "fill_pause"

    def test_many_fills_are_like_reduce(self) -> None:
        result = plan(ladder_config(), book(100_000), self.OWN, with_limits(hold=Reason.FILL_BURST))

        assert cancelled(result) == [(95_000, True, "above_range"), (52_000, False, "surplus")]
        assert result.to_place == ()
        assert rung_reasons(result) == ["kept"] + ["fill_burst"] * 4


def test_halt_cancels_every_live_order_and_places_nothing() -> None:
    own = [order(1, 15_000), order(2, 75_000), order(3, 60_000, "unknown"), order(4, 50_000, "cancelling")]
    memory = Memory(5, (NOW,))

    result = halted(ladder_config(), own, memory)

    assert cancelled(result) == [(75_000, True, "halt"), (15_000, True, "halt")]
    assert result.to_place == ()
    assert rung_reasons(result) == ["halt"] * 5
    assert bid_reasons(result) == {1: "halt", 2: "halt", 3: "in_flight", 4: "cancelling"}
    assert result.memory == memory
    assert halted(replace(ladder_config(), bid_count=1), [], memory).to_cancel == ()
