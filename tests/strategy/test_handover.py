"""Plans over time, and what one worker hands over to the next."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from strategy.config.bid import BidConfig
from strategy.decision import BidPlan, Limits, OwnOrder, Rules
from strategy.plan_bids import without_places
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds import market as m

RAISE = m.ladder_config(
    bid_mode="fixed",
    bid_fixed_low=50_000,
    bid_fixed_high=80_000,
    bid_count=1,
    outbid_enabled=True,
    outbid_amount=1_000,
    max_bid_total=150_000,
)
RIVAL = m.rivals(m.book(100_000), 65_000)
DUE_MS = m.NOW + 80_000


def waits(result: BidPlan) -> list[tuple[int, int | None]]:
    """(price, rung that it waits for) of every cancel."""
    return [(cancel.price_sats, cancel.after_rung) for cancel in result.to_cancel]


def raised(own: int = 63_000, config: BidConfig = RAISE, **limits: Any) -> BidPlan:
    return m.plan(config, RIVAL, m.orders(own), m.with_limits(**{"task_total": 150_000, **limits}))


def test_a_raise_comes_before_what_it_replaces_goes() -> None:
    result = raised()
    assert (m.placed(result), waits(result)) == ([66_000], [(63_000, 0)])


@pytest.mark.parametrize(
    ("limit", "fits"),
    [
        ("task_total", 129_000),
        ("user_headroom", 129_000),
        ("spend_left_sats", 129_000),
        ("installation_room", 129_000),
        ("fills_left", 2),
    ],
)
def test_it_goes_first_where_both_do_not_fit(limit: str, fits: int) -> None:
    assert waits(raised(**{limit: fits})) == [(63_000, 0)]
    short = raised(**{limit: fits - 1})
    assert (m.placed(short), waits(short)) == ([66_000], [(63_000, None)])


def test_one_balance_backs_both_where_each_alone_must_be_covered() -> None:
    assert waits(raised(balance_sats=70_000)) == [(63_000, 0)]
    reserved = structs.replace(m.ORDINALS, balance_model="reserved")
    fee = m.AMPLE.fee_reserve_sats or 0
    for sats, rung in ((129_000 + 2 * fee, 0), (129_000 + 2 * fee - 1, None)):
        limits = m.with_limits(task_total=150_000, balance_sats=sats)
        assert waits(m.plan(RAISE, RIVAL, m.orders(63_000), limits, profile=reserved)) == [(63_000, rung)]


def test_what_was_to_be_replaced_stays_while_the_fate_of_its_successor_is_unknown() -> None:
    old, new = m.order(1, 63_000), m.order(2, 66_000, state="unknown")
    result = m.plan(RAISE, RIVAL, (old, new))
    assert (result.to_cancel, m.placed(result)) == ((), [])
    known = m.plan(RAISE, RIVAL, (old, replace(new, state="live")))
    assert waits(known) == [(63_000, None)]


def test_break_first_never_waits() -> None:
    assert waits(raised(config=replace(RAISE, replace_mode="breakFirst"))) == [(63_000, None)]


def test_where_bids_stand_on_coins_the_old_one_goes_first_unless_asked_otherwise() -> None:
    on_coins = structs.replace(m.ORDINALS, overlaps=False)
    for mode, rung in (("auto", None), ("makeFirst", 0)):
        assert waits(m.plan(replace(RAISE, replace_mode=mode), RIVAL, m.orders(63_000), profile=on_coins)) == [
            (63_000, rung)
        ]


def test_make_first_keeps_what_its_successor_does_not_fit_beside() -> None:
    result = raised(config=replace(RAISE, replace_mode="makeFirst"), fills_left=1)
    assert (m.placed(result), waits(result)) == ([], [])
    assert m.rung_reasons(result) == ["max_fills"]
    assert [note.reason for note in result.bids] == [Reason.NO_OVERLAP]
    assert result.memory.raises_ms == (), "no raise was made"


def test_hard_cancels_never_wait() -> None:
    result = m.plan(
        m.ladder_config(replace_mode="makeFirst"), m.book(70_000), m.orders(75_000, 60_000, 45_000, 30_000, 15_000)
    )
    assert waits(result)[:2] == [(75_000, None), (60_000, None)]
    assert {rung for price, rung in waits(result)[2:]} == {1, 4}, "45,000 for 41,000 and 15,000 for 11,000"


def test_a_step_down_comes_before_what_it_replaces_goes() -> None:
    result = m.plan(RAISE, m.rivals(m.book(100_000), 55_000), m.orders(63_000), m.with_limits(task_total=150_000))
    assert (m.placed(result), waits(result)) == ([56_000], [(63_000, 0)])


def test_equal_bids_that_a_venue_does_not_take_are_never_side_by_side() -> None:
    strict = structs.replace(m.ORDINALS, equal_bids_allowed=False)
    own = m.orders(75_000, expires_ms=DUE_MS)
    config = m.ladder_config(bid_count=1)
    assert waits(m.plan(config, m.book(100_000), own)) == [(75_000, 0)]
    assert waits(m.plan(config, m.book(100_000), own, profile=strict)) == [(75_000, None)]
    assert m.placed(m.plan(replace(config, replace_mode="makeFirst"), m.book(100_000), own, profile=strict)) == []


def test_a_place_that_is_taken_from_the_plan_takes_the_wait_with_it() -> None:
    cut = without_places(raised(), Reason.OWN_BIDS_UNKNOWN, soft_cancels=False)
    assert (m.placed(cut), waits(cut)) == ([], [])
    moved = m.plan(m.ladder_config(bid_count=1), m.book(100_000), m.orders(70_000))
    assert waits(moved) == [(70_000, 0)]
    reduced = without_places(moved, Reason.REDUCE, soft_cancels=True)
    assert (m.placed(reduced), waits(reduced)) == ([], [(70_000, None)]), (
        "reduce cancels, and there is nothing to wait for"
    )


LADDER = (75_000, 60_000, 45_000, 30_000, 15_000)


def test_a_ladder_that_fits_twice_is_renewed_without_a_gap() -> None:
    result = m.plan(m.ladder_config(), m.book(100_000), m.orders(*LADDER, expires_ms=DUE_MS))
    assert m.placed(result) == list(LADDER)
    assert [rung for _, rung in waits(result)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("mode", ["auto", "breakFirst"])
def test_no_renewal_takes_all_of_a_ladder_off_the_market(mode: str) -> None:
    """Room for one ladder only: three of five go and come, and two once those are back."""
    config, limits = m.ladder_config(replace_mode=mode), m.with_limits(task_total=225_000)
    own: list[OwnOrder] = list(m.orders(*LADDER, expires_ms=DUE_MS))
    first = m.plan(config, m.book(100_000), own, limits)
    assert waits(first) == [(75_000, None), (60_000, None), (45_000, None)]
    assert m.rung_reasons(first) == ["renew", "renew", "renew", "renew_waits", "renew_waits"]
    own = m.carry_out(config, own, first)
    second = m.plan(config, m.book(100_000), own, limits)
    assert waits(second) == [(30_000, None), (15_000, None)]
    own = m.carry_out(config, own, second)
    assert m.plan(config, m.book(100_000), own, limits).to_place == ()
    assert sorted(each.price_sats for each in own) == sorted(LADDER), "on the exact targets"


def test_what_fits_beside_the_ladder_is_renewed_first() -> None:
    limits = m.with_limits(task_total=225_000 + 150_000)
    result = m.plan(m.ladder_config(), m.book(100_000), m.orders(*LADDER, expires_ms=DUE_MS), limits)
    assert waits(result)[:2] == [(75_000, 0), (60_000, 1)]
    assert all(rung is not None for _, rung in waits(result)), "half of the ladder fits, so nothing is broken"


@pytest.mark.parametrize("count", [2, 3, 7, 20])
@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_ladder_of_any_size_is_renewed_in_two_rounds(count: int, room: int) -> None:
    config = m.ladder_config(bid_count=count, bid_percent_high=Decimal("0.75"))
    own: list[OwnOrder] = m.carry_out(config, (), m.plan(config, m.book(100_000)))
    total = sum(each.price_sats for each in own) + room * 75_000
    own = [replace(each, created_ms=m.NOW - 800_000, expires_ms=DUE_MS) for each in own]
    rounds, limits = 0, Limits(total, 10**12, count, 10**12, 2_000)
    while (result := m.plan(config, m.book(100_000), own, limits)).to_place:
        broken = [price for price, rung in waits(result) if rung is None]
        assert len(broken) <= (count + 1) // 2
        own, rounds = m.carry_out(config, own, result), rounds + 1
    assert rounds <= 2
    assert all(each.expires_ms > DUE_MS for each in own)


def test_one_bid_alone_has_no_other_way() -> None:
    result = m.plan(
        m.ladder_config(bid_count=1),
        m.book(100_000),
        [m.order(1, 75_000, expires_ms=DUE_MS)],
        m.with_limits(task_total=75_000),
    )
    assert (m.placed(result), waits(result)) == ([75_000], [(75_000, None)])


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
