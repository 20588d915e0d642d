"""The effect of time on a plan: bids near their expiry, and markets that cannot be read for a while."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec import structs

from strategy.decision import Rules
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds import market as m

ONE_BID = m.ladder_config(bid_mode="fixed", bid_fixed_low=10_000, bid_fixed_high=50_000, bid_count=1)


class TestRenewal:
    """Expiry 16 min and cycles of 30 s: due in the last 90 s."""

    @pytest.mark.parametrize(("left_ms", "is_due"), [(90_000, True), (90_001, False)])
    def test_due_in_the_last_three_cycles(self, left_ms: int, is_due: bool) -> None:
        own = [m.order(1, 49_000, expires_ms=m.NOW + left_ms)]

        result = m.plan(ONE_BID, m.book(100_000), own)

        assert m.placed(result) == ([50_000] if is_due else [])  # at the rung's price of now
        assert m.rung_reasons(result) == (["renew"] if is_due else ["kept"])
        assert m.cancelled(result) == ([(49_000, False, "renew")] if is_due else [])

    @pytest.mark.parametrize(
        ("expiry", "loop", "margin_s"), [(15, 5, 60), (15, 120, 225), (None, 30, 90), (1_440, 3_600, 10_800)]
    )
    def test_margin(self, expiry: int | None, loop: int, margin_s: int) -> None:
        config = replace(ONE_BID, bid_expiry_minutes=expiry, loop_seconds=loop)

        def is_renewed(left_ms: int) -> bool:
            return bool(m.plan(config, m.book(100_000), [m.order(1, 50_000, expires_ms=m.NOW + left_ms)]).to_place)

        assert is_renewed(margin_s * 1_000)
        assert not is_renewed(margin_s * 1_000 + 1)

    def test_updates_off_does_not_stop_renewals(self) -> None:
        config = replace(ONE_BID, update_bid_enabled=False)

        assert m.rung_reasons(m.plan(config, m.book(100_000), [m.order(1, 50_000, expires_ms=m.NOW + 1_000)])) == [
            "renew"
        ]

    def test_renewal_does_not_need_room_for_two(self) -> None:
        own = [m.order(1, 50_000, expires_ms=m.NOW + 1_000)]

        assert m.placed(m.plan(ONE_BID, m.book(100_000), own, m.with_limits(task_total=50_000))) == [50_000]

    def test_a_bid_that_no_rung_needs_is_let_to_expire(self) -> None:
        own = [m.order(1, 50_000), m.order(2, 30_000, expires_ms=m.NOW + 1_000)]
        config = replace(ONE_BID, bid_count=2, bid_fixed_low=49_000)

        result = m.plan(config, m.book(100_000), [*own, m.order(3, 49_000)], m.with_limits(plan_bids=3))
        assert m.bid_reasons(result)[2] == "over_count"  # more bids than rungs is never waited out

        merged = m.plan(
            config, m.book(100_000), own, profile=structs.replace(m.ORDINALS, tick=10_000, equal_bids_allowed=False)
        )
        assert m.bid_reasons(merged) == {1: "kept", 2: "expiring"}

    def test_nothing_is_renewed_while_nothing_can_be_placed(self) -> None:
        own = [m.order(1, 50_000, expires_ms=m.NOW + 1_000)]

        result = m.plan(ONE_BID, m.book(100_000), own, m.with_limits(fee_reserve_sats=None))

        assert (result.to_cancel, result.to_place) == ((), ())


UNKNOWN_BOOKS = {
    "failed": None,
    "cut short": m.book(100_000, complete=False),
    "stale": m.book(100_000, age_ms=120_001),
    "nothing listed": m.book(),
    "listed for nothing": m.book(100_000, 0),
}


class TestNoReference:
    @pytest.mark.parametrize("name", UNKNOWN_BOOKS)
    def test_percent_mode_places_nothing_and_keeps_bids_for_the_grace(self, name: str) -> None:
        own = m.orders(70_000, 15_000)
        first = m.plan(m.ladder_config(), UNKNOWN_BOOKS[name], own)

        assert (first.reference, first.to_place, first.to_cancel, first.marks) == (None, (), (), ())
        assert m.rung_reasons(first) == ["no_reference"] * 5
        assert m.bid_reasons(first) == {1: "no_reference", 2: "no_reference"}

        before = m.plan(m.ladder_config(), None, own, memory=first.memory, now_ms=m.NOW + 5 * m.MINUTE - 1)
        assert before.to_cancel == ()
        after = m.plan(m.ladder_config(), None, own, memory=before.memory, now_ms=m.NOW + 5 * m.MINUTE)
        assert m.cancelled(after) == [(70_000, True, "no_reference"), (15_000, True, "no_reference")]

    def test_the_grace_begins_anew_when_a_reference_was_seen(self) -> None:
        first = m.plan(m.ladder_config(), None)
        assert first.memory.no_reference_since_ms == m.NOW

        assert m.plan(m.ladder_config(), m.book(100_000), memory=first.memory).memory.no_reference_since_ms is None

    def test_the_hard_rules_hold_without_a_reference(self) -> None:
        own = m.orders(110_000, 70_000, 60_000)

        result = m.plan(m.ladder_config(), None, own, m.with_limits(task_total=100_000))

        assert m.cancelled(result) == [(110_000, True, "hardcap"), (70_000, True, "task_total")]

    def test_nothing_is_renewed_without_a_reference(self) -> None:
        assert m.plan(m.ladder_config(), None, [m.order(1, 75_000, expires_ms=m.NOW + 1_000)]).to_cancel == ()

    @pytest.mark.parametrize("name", UNKNOWN_BOOKS)
    def test_fixed_mode_goes_on_without_the_ask_cap(self, name: str) -> None:
        result = m.plan(ONE_BID, UNKNOWN_BOOKS[name])

        assert m.placed(result) == [50_000]
        assert result.marks == (Reason.NO_REFERENCE_FIXED,)
        assert result.memory.no_reference_since_ms is None

    def test_a_snapshot_at_the_limit_of_its_age_still_counts(self) -> None:
        assert m.plan(m.ladder_config(), m.book(100_000, age_ms=120_000)).reference == Decimal(100_000)
        assert m.plan(m.ladder_config(), m.book(100_000, age_ms=-5_000)).reference == Decimal(100_000)

    def test_a_snapshot_is_stale_after_three_loops_but_not_before_two_minutes(self) -> None:
        assert [Rules.of(seconds).stale_after_ms for seconds in (5, 40, 41)] == [120_000, 120_000, 123_000]
