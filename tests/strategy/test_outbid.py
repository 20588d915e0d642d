"""Outbidding, stepping down, and bidding only when highest: the smallest cycle for each rule."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from strategy.book import Bid, Snapshot
from strategy.config.bid import BidConfig
from strategy.decision import Memory, Rules
from strategy.plan_bids import without_places
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds import market as m

HOUR = 3_600_000


def outbid_config(**changes: Any) -> BidConfig:
    """Makes a config: one bid between 50,000 and 80,000, a tick above others."""
    values = {"bid_mode": "fixed", "bid_fixed_low": 50_000, "bid_fixed_high": 80_000, "bid_count": 1}
    return m.ladder_config(**{**values, "outbid_enabled": True, **changes})


def market(*bids: Bid | int) -> Snapshot:
    return m.rivals(m.book(100_000), *bids)


class TestTheLeastThatWins:
    @pytest.mark.parametrize(
        ("changes", "rival", "price"),
        [
            ({}, 62_000, 63_000),
            ({"outbid_amount": 0}, 62_000, 63_000),  # a tick at least
            ({"outbid_amount": 1}, 62_500, 64_000),  # a tick above, then onto the grid
            ({"outbid_amount": 1_001}, 62_000, 64_000),
            ({"outbid_mode": "percent", "outbid_percent": Decimal("0.02")}, 70_000, 72_000),
            ({"outbid_mode": "percent", "outbid_percent": Decimal("0.0001")}, 70_000, 71_000),
            ({}, 79_000, 80_000),  # inclusive
            ({}, 79_001, 50_000),  # nobody can be outbid: the low end
            ({}, 10_000, 50_000),  # never below the range
        ],
    )
    def test_price(self, changes: dict[str, Any], rival: int, price: int) -> None:
        assert m.placed(m.plan(outbid_config(**changes), market(rival))) == [price]

    def test_without_rivals_the_low_end_is_where_it_starts(self) -> None:
        assert m.placed(m.plan(outbid_config(), market())) == [50_000]

    def test_the_cap_comes_last(self) -> None:
        config = outbid_config(hardcap_sats=70_999)

        assert m.placed(m.plan(config, market(69_000))) == [70_000]
        assert m.placed(m.plan(config, market(69_001, 60_000))) == [61_000]

    def test_an_ask_is_not_reached_to_outbid(self) -> None:
        assert m.placed(m.plan(outbid_config(), m.rivals(m.book(65_000), 64_000, 55_000))) == [56_000]

    def test_a_bid_on_several_items_counts_by_the_price_of_one(self) -> None:
        assert m.placed(m.plan(outbid_config(), market(m.bid(180_000, "3")))) == [61_000]

    def test_outbidding_off_takes_no_notice(self) -> None:
        assert m.placed(m.plan(outbid_config(outbid_enabled=False), market(62_000))) == [80_000]


class TestRank:
    @pytest.mark.parametrize(("placed_ms", "is_kept"), [(m.NOW - 1, True), (m.NOW - 600_000, False), (None, False)])
    def test_an_equal_price_loses_to_the_older_and_to_one_of_unknown_age(
        self, placed_ms: int | None, is_kept: bool
    ) -> None:
        rival = m.bid(62_000, placed_ms=placed_ms)

        result = m.plan(outbid_config(), market(rival), m.orders(62_000))  # ours is ten minutes old

        assert m.rung_reasons(result) == (["kept"] if is_kept else ["place"])
        assert m.placed(result) == ([] if is_kept else [63_000])

    def test_of_equal_rivals_the_oldest_counts(self) -> None:
        equals = [m.bid(62_000, placed_ms=m.NOW - 1), m.bid(62_000, placed_ms=None)]

        for bids in (equals, equals[::-1]):
            assert m.placed(m.plan(outbid_config(), market(*bids), m.orders(62_000))) == [63_000]

    def test_a_bid_ahead_is_kept_though_it_is_below_the_wanted_step(self) -> None:
        result = m.plan(outbid_config(outbid_amount=5_000), market(62_000), m.orders(63_000))

        assert (result.to_cancel, result.to_place) == ((), ())
        assert [(note.price_sats, note.reason.value) for note in result.rungs] == [(67_000, "kept")]

    def test_the_other_rungs_are_not_above_a_bid_that_keeps_the_top_for_less(self) -> None:
        config = outbid_config(outbid_amount=5_000, bid_count=6)

        result = m.plan(config, market(62_000), m.orders(63_000))

        assert [note.price_sats for note in result.rungs] == [67_000, 63_000, 60_000, 56_000, 53_000, 50_000]

    @pytest.mark.parametrize(
        ("left_ms", "prices"),
        [
            (600_000, [72_000, 63_000, 63_000, 58_000, 54_000, 50_000]),
            (1_000, [72_000, 67_000, 63_000, 58_000, 54_000, 50_000]),  # renewed at the top rung's price
        ],
    )
    def test_until_it_is_renewed(self, left_ms: int, prices: list[int]) -> None:
        config = outbid_config(outbid_amount=10_000, bid_count=6)

        result = m.plan(config, market(62_000), m.orders(63_000, expires_ms=m.NOW + left_ms))

        assert [note.price_sats for note in result.rungs] == prices


class TestRaise:
    def test_an_outbid_bid_is_replaced_at_once_whatever_its_age_and_updates(self) -> None:
        config = outbid_config(update_bid_enabled=False)

        result = m.plan(config, market(62_000), m.orders(55_000, created_ms=m.NOW - 1_000))

        assert m.cancelled(result) == [(55_000, False, "outbid")]
        assert m.placed(result) == [63_000]
        assert result.memory.raises_ms == (m.NOW,)

    def test_one_that_holds_a_lower_rung_is_kept(self) -> None:
        result = m.plan(outbid_config(bid_count=3), market(62_000), m.orders(56_000, created_ms=m.NOW - 1_000))

        assert m.rung_reasons(result) == ["place", "kept", "place"]
        assert result.memory.raises_ms == (m.NOW,)

    def test_only_the_best_is_replaced_before_its_time(self) -> None:
        own = m.orders(58_000, 53_000, created_ms=m.NOW - 1_000)

        result = m.plan(outbid_config(bid_count=3), market(62_000), own)

        assert m.cancelled(result) == [(58_000, False, "outbid")]
        assert m.rung_reasons(result) == ["place", "place", "min_age"]
        assert m.bid_reasons(result)[2] == "min_age"

    def test_a_full_house_makes_room_for_the_raise(self) -> None:
        own = m.orders(56_000, 53_000, 50_000, created_ms=m.NOW - 1_000)

        result = m.plan(outbid_config(bid_count=3), market(62_000), own)

        assert m.cancelled(result) == [(53_000, False, "outbid")]
        assert m.rung_reasons(result) == ["place", "kept", "kept"]

    def test_the_first_bid_of_all_is_no_raise(self) -> None:
        assert m.plan(outbid_config(), market(62_000)).memory.raises_ms == ()

    def test_a_bid_is_not_given_up_when_what_replaces_it_does_not_fit(self) -> None:
        for limits in ({"task_total": 62_999}, {"balance_sats": 64_999}, {"fee_reserve_sats": None}):
            result = m.plan(outbid_config(), market(62_000), m.orders(55_000), m.with_limits(**limits))

            assert (result.to_cancel, result.to_place, result.memory.raises_ms) == ((), (), ())

    def test_raises_of_an_hour_are_limited_and_the_bid_stays(self) -> None:
        rules = replace(m.RULES, max_raises=2)
        full = Memory(raises_ms=(m.NOW - HOUR + 1, m.NOW - 1))

        result = m.plan(outbid_config(), market(62_000), m.orders(55_000), rules=rules, memory=full)
        assert (result.to_cancel, result.to_place) == ((), ())
        assert m.rung_reasons(result) == ["raise_limited"]
        assert m.bid_reasons(result) == {1: "raise_limited"}
        assert result.memory == full

        later = Memory(raises_ms=(m.NOW - HOUR, m.NOW - 1))
        result = m.plan(outbid_config(), market(62_000), m.orders(55_000), rules=rules, memory=later)
        assert m.placed(result) == [63_000]
        assert result.memory.raises_ms == (m.NOW - 1, m.NOW)

    def test_twenty_an_hour_unless_told_otherwise(self) -> None:
        assert Rules().max_raises == 20

    def test_the_limit_is_not_passed_by_lower_rungs_that_outbid_too(self) -> None:
        config = outbid_config(bid_count=3, outbid_amount=15_000)

        result = m.plan(config, market(60_000), m.orders(50_000), rules=replace(m.RULES, max_raises=0))

        assert [note.price_sats for note in result.rungs] == [75_000, 62_000, 50_000]
        assert m.rung_reasons(result) == ["raise_limited", "raise_limited", "kept"]

    def test_nor_when_the_bid_that_was_ahead_passes_a_limit(self) -> None:
        own, limits, rules = m.orders(79_000, 55_000), m.with_limits(task_total=70_000), replace(m.RULES, max_raises=0)

        result = m.plan(outbid_config(bid_count=2), market(62_000), own, limits, rules=rules)

        assert m.cancelled(result) == [(79_000, True, "task_total")]
        assert m.rung_reasons(result)[0] == "raise_limited"

    def test_nor_by_dropping_the_bid_that_is_no_longer_the_highest(self) -> None:
        config, rules = outbid_config(only_bid_if_highest=True), replace(m.RULES, max_raises=0)

        first = m.plan(config, market(62_000), m.orders(55_000), rules=rules)
        assert m.cancelled(first) == [(55_000, False, "not_highest")]
        assert m.rung_reasons(first) == m.rung_reasons(m.plan(config, market(62_000), rules=rules)) == ["raise_limited"]

    def test_a_raise_that_may_not_be_placed_is_not_counted(self) -> None:
        made = m.plan(outbid_config(), market(62_000), m.orders(55_000))

        for soft_cancels in (True, False):
            stripped = without_places(made, Reason.REDUCE, soft_cancels=soft_cancels)
            assert (stripped.to_cancel, stripped.to_place, stripped.memory.raises_ms) == ((), (), ())
            assert m.bid_reasons(stripped) == {1: "reduce"}
            assert [note.label for note in stripped.rungs] == ["reduce"]


class TestStepDown:
    def test_a_leader_that_left_is_not_overpaid(self) -> None:
        result = m.plan(outbid_config(), market(62_000), m.orders(75_000))

        assert m.cancelled(result) == [(75_000, False, "step_down")]
        assert m.placed(result) == [63_000]
        assert result.memory.raises_ms == ()

    @pytest.mark.parametrize("price", [63_000, 64_000])
    def test_a_tick_more_is_close_enough(self, price: int) -> None:
        assert m.plan(outbid_config(), market(62_000), m.orders(price)).to_cancel == ()

    def test_not_before_its_time(self) -> None:
        result = m.plan(outbid_config(), market(62_000), m.orders(75_000, created_ms=m.NOW - 1_000))

        assert result.to_cancel == ()
        assert m.rung_reasons(result) == ["min_age"]

    def test_not_with_updates_off(self) -> None:
        result = m.plan(outbid_config(update_bid_enabled=False, bid_count=3), market(62_000), m.orders(75_000))

        assert result.to_cancel == ()
        assert m.rung_reasons(result) == ["kept", "place", "place"]
        assert m.placed(result) == [56_000, 50_000]

    def test_with_nobody_left_to_the_low_end(self) -> None:
        result = m.plan(outbid_config(), market(), m.orders(75_000))

        assert m.cancelled(result) == [(75_000, False, "step_down")]
        assert m.placed(result) == [50_000]

    def test_a_renewal_takes_the_price_of_now(self) -> None:
        own = m.orders(64_000, expires_ms=m.NOW + 1_000)

        result = m.plan(outbid_config(update_bid_enabled=False), market(62_000), own)

        assert m.cancelled(result) == [(64_000, False, "renew")]
        assert m.placed(result) == [63_000]


class TestOnlyIfHighest:
    CONFIG = outbid_config(outbid_enabled=False, only_bid_if_highest=True, bid_count=3)  # 80,000 / 65,000 / 50,000

    def test_a_new_bid_is_younger_than_an_equal_one(self) -> None:
        result = m.plan(self.CONFIG, market(65_000))

        assert m.rung_reasons(result) == ["place", "not_highest", "not_highest"]

    def test_an_older_bid_at_the_same_price_stays_but_is_not_renewed(self) -> None:
        rival = m.bid(65_000, placed_ms=m.NOW - 1)

        assert m.rung_reasons(m.plan(self.CONFIG, market(rival), m.orders(65_000)))[1] == "kept"
        due = m.plan(self.CONFIG, market(rival), m.orders(65_000, expires_ms=m.NOW + 1_000))
        assert m.cancelled(due) == []
        assert m.placed(due) == [80_000]

    def test_at_any_age_and_with_updates_off(self) -> None:
        config = replace(self.CONFIG, update_bid_enabled=False)

        result = m.plan(config, market(65_000), m.orders(50_000, created_ms=m.NOW))

        assert m.cancelled(result) == [(50_000, False, "not_highest")]

    def test_off_it_takes_no_notice(self) -> None:
        config = replace(self.CONFIG, only_bid_if_highest=False)

        assert m.placed(m.plan(config, market(90_000))) == [80_000, 65_000, 50_000]


@pytest.mark.parametrize("field", ["outbid_enabled", "only_bid_if_highest"])
class TestBidsUnknown:
    def test_nothing_is_placed_or_raised_and_hard_cancels_run(self, field: str) -> None:
        config = outbid_config(**{"outbid_enabled": False, field: True, "bid_count": 2})

        result = m.plan(config, m.book(100_000), m.orders(90_000, 55_000))

        assert m.cancelled(result) == [(90_000, True, "above_range")]
        assert result.to_place == ()
        assert m.rung_reasons(result) == ["bids_unknown"] * 2
        assert m.bid_reasons(result) == {1: "above_range", 2: "bids_unknown"}

    def test_bids_of_a_stale_book_are_not_known(self, field: str) -> None:
        config = outbid_config(**{"outbid_enabled": False, field: True})

        result = m.plan(config, m.rivals(m.book(100_000, age_ms=120_001), 62_000), m.orders(55_000))

        assert m.rung_reasons(result) == ["bids_unknown"]

    def test_no_bids_are_known_bids(self, field: str) -> None:
        config = outbid_config(**{"outbid_enabled": False, field: True})

        assert len(m.placed(m.plan(config, market()))) == 1


class TestRunes:
    """Unit prices are compared; the amount is spread over the order."""

    CONFIG = m.rune_config(
        bid_mode="fixed",
        bid_fixed_low=50_000,
        bid_fixed_high=80_000,
        quantity=Decimal(1_000),
        bid_count=1,
        outbid_enabled=True,
        outbid_amount=1_000,
    )
    MARKET = Snapshot(m.NOW, (m.rune_ask("5000", "100"),))

    @pytest.mark.parametrize(
        ("rival", "price"),
        [
            (m.bid(62_000, "1000"), 63_000),
            (m.bid(6_200, "100"), 63_000),
            (m.bid(124_000, "2000"), 63_000),
            (m.bid(185, "3"), 62_667),  # 61.666... a token: 61,666.67 for a thousand
        ],
    )
    def test_price(self, rival: Bid, price: int) -> None:
        assert m.placed(m.plan(self.CONFIG, m.rivals(self.MARKET, rival))) == [price]

    def test_a_unit_price_without_end_is_no_ground_to_believe_to_be_first(self) -> None:
        """20,000 for 3 tokens is 6,666.66...: an equal bid of ours is not above it."""
        config = replace(self.CONFIG, quantity=Decimal("7.5"))
        rival = m.bid(20_000, "3", placed_ms=m.NOW - 600_001)

        result = m.plan(
            config, m.rivals(replace(self.MARKET, asks=()), rival), m.orders(50_000, quantity=Decimal("7.5"))
        )

        assert m.placed(result) == [51_000]


def test_own_orders_move_no_target() -> None:
    """They are no rivals: the top rung hangs from others only."""
    config = outbid_config(bid_count=3)
    for own in ([], m.orders(79_000), m.orders(63_000, 62_000), [m.order(1, 70_000, "unknown")]):
        assert m.plan(config, market(62_000, 60_500), own).rungs[0].price_sats == 63_000
