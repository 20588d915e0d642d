"""Why a rung or a bid is as it is, the hints, and the summary of a cycle."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec import structs

from strategy.book import Snapshot
from strategy.config.bid import BidConfig
from strategy.decision import Limits, OwnOrder, SignedRoom, left_alone, summary
from strategy.monthly import Bidding, CallCosts, hints, moves_an_hour
from strategy.plan_bids import without_places
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds import market as m
from tests.worlds.market import NOW, RULES, book, ladder_config, orders, plan, rivals, rung_reasons

LADDER = [75_000, 60_000, 45_000, 30_000, 15_000]
ONE_BID = m.ladder_config(bid_mode="fixed", bid_fixed_low=10_000, bid_fixed_high=50_000, bid_count=1)


def test_one_bid_sits_at_the_high_end() -> None:
    result = m.plan(ONE_BID, m.book(100_000))

    assert m.placed(result) == [50_000]
    assert result.marks == ()


def test_rungs_above_the_plan_are_cut() -> None:
    result = m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(plan_bids=2))

    assert m.placed(result) == [75_000, 15_000]
    assert m.rung_reasons(result) == ["place", "place", "plan_bids", "plan_bids", "plan_bids"]


@pytest.mark.parametrize(
    ("changes", "floor", "cause"),
    [
        ({"bid_percent_low": Decimal("0.5"), "hardcap_sats": 40_000}, 100_000, "hardcap"),
        ({"bid_mode": "fixed", "bid_fixed_low": 50_000, "bid_fixed_high": 80_000}, 40_000, "ask"),
        ({}, 12_000, "min_bid"),
        ({"bid_percent_low": Decimal("0.531"), "bid_percent_high": Decimal("0.539")}, 100_000, "tick"),
    ],
)
def test_an_empty_range_names_its_cause(changes: dict[str, object], floor: int, cause: str) -> None:
    result = m.plan(m.ladder_config(**changes), m.book(floor))

    assert m.placed(result) == []
    assert m.rung_reasons(result) == ["range_empty"] * 5
    assert {note.label for note in result.rungs} == {f"range_empty ({cause})"}


def test_an_empty_range_cancels_what_is_left_of_the_ladder() -> None:
    result = m.plan(m.ladder_config(), m.book(12_000), m.orders(75_000, 8_000))

    assert m.cancelled(result) == [(75_000, True, "above_range"), (8_000, False, "below_range")]


def test_equal_rungs_are_kept_where_the_venue_takes_equal_bids_and_merged_elsewhere() -> None:
    config = m.ladder_config(bid_mode="fixed", bid_fixed_low=50_000, bid_fixed_high=51_000, bid_count=4)

    assert m.placed(m.plan(config, m.book(100_000))) == [51_000, 50_000, 50_000, 50_000]
    merged = m.plan(config, m.book(100_000), profile=structs.replace(m.ORDINALS, equal_bids_allowed=False))
    assert m.placed(merged) == [51_000, 50_000]
    assert m.rung_reasons(merged) == ["place", "place", "rungs_merged", "rungs_merged"]


def test_a_bid_stays_a_tick_below_the_lowest_ask() -> None:
    config = m.ladder_config(bid_percent_high=Decimal("1.5"), bid_count=1)

    assert m.placed(m.plan(config, m.book(87_300))) == [86_000]
    assert m.placed(m.plan(config, m.book(87_000))) == [86_000]


class TestLimits:
    @pytest.mark.parametrize(("total", "expected"), [(75_000, [75_000]), (74_999, [60_000]), (9_999, [])])
    def test_task_total_is_inclusive(self, total: int, expected: list[int]) -> None:
        assert m.placed(m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(task_total=total))) == expected

    def test_exposure_limit(self) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(user_headroom=80_000))

        assert m.placed(result) == [75_000]
        assert m.rung_reasons(result) == ["place"] + ["exposure_limit"] * 4

    def test_balance_covers_each_bid_and_its_fee(self) -> None:
        result = m.plan(
            m.ladder_config(), m.book(100_000), limits=m.with_limits(balance_sats=62_000, fee_reserve_sats=2_000)
        )

        assert m.placed(result) == [60_000, 45_000, 30_000, 15_000]
        assert m.rung_reasons(result)[0] == "insufficient_balance"

    def test_balance_short_of_the_fee(self) -> None:
        result = m.plan(
            m.ladder_config(), m.book(100_000), limits=m.with_limits(balance_sats=61_999, fee_reserve_sats=2_000)
        )

        assert m.placed(result) == [45_000, 30_000, 15_000]

    def test_balance_covers_all_bids_and_their_fees_where_the_venue_reserves_it(self) -> None:
        profile = structs.replace(m.ORDINALS, balance_model="reserved")
        limits = m.with_limits(balance_sats=154_000, fee_reserve_sats=2_000)

        result = m.plan(m.ladder_config(), m.book(100_000), limits=limits, profile=profile)

        assert m.placed(result) == [75_000, 60_000]  # 139,000 with fees: 15,000 + 2,000 more would be 156,000

    @pytest.mark.parametrize(
        ("limits", "reason"),
        [(m.with_limits(fee_reserve_sats=None), "fee_unknown"), (m.with_limits(balance_sats=None), "balance_unknown")],
    )
    def test_what_is_not_known_places_nothing_and_gives_nothing_up(self, limits: Limits, reason: str) -> None:
        own = m.orders(75_000, 52_000)

        result = m.plan(m.ladder_config(), m.book(100_000), own, limits)

        assert (result.to_place, result.to_cancel) == ((), ())
        assert m.rung_reasons(result) == ["kept", reason, reason, reason, reason]
        assert m.bid_reasons(result) == {1: "kept", 2: reason}

    def test_not_known_still_cancels_what_is_above_the_range(self) -> None:
        result = m.plan(m.ladder_config(), m.book(70_000), m.orders(*LADDER), m.with_limits(balance_sats=None))

        assert m.cancelled(result) == [(75_000, True, "above_range"), (60_000, True, "above_range")]

    def test_lowered_total_cancels_what_the_walk_leaves_out(self) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), m.orders(*LADDER), m.with_limits(task_total=150_000))

        assert m.cancelled(result) == [(45_000, True, "task_total"), (30_000, True, "task_total")]
        assert m.rung_reasons(result) == ["kept", "kept", "task_total", "task_total", "kept"]

    @pytest.mark.parametrize("changes", [{"created_ms": m.NOW - 1_000}, {}])
    def test_lowered_exposure_cancels_highest_first_until_it_fits(self, changes: dict[str, int]) -> None:
        config = m.ladder_config(update_bid_enabled=False)
        own = m.orders(70_000, 50_000, 20_000, **changes)  # stand for no rung

        result = m.plan(config, m.book(100_000), own, m.with_limits(user_headroom=70_000))

        assert m.cancelled(result) == [(70_000, True, "exposure_limit")]

    def test_orders_being_cancelled_do_not_make_others_go(self) -> None:
        own = [m.order(1, 60_000, "cancelling"), m.order(2, 75_000)]

        result = m.plan(m.ladder_config(), m.book(100_000), own, m.with_limits(task_total=100_000))

        assert result.to_cancel == ()
        assert m.placed(result) == []
        assert m.rung_reasons(result) == ["kept", "task_total", "task_total", "task_total", "task_total"]

    def test_a_balance_that_fell_takes_the_bids_it_no_longer_covers(self) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), m.orders(*LADDER), m.with_limits(balance_sats=70_000))

        assert m.cancelled(result) == [(75_000, False, "insufficient_balance")]


class TestUpdates:
    @pytest.mark.parametrize(("price", "is_kept"), [(49_000, True), (48_999, False)])
    def test_one_tick_is_close_enough(self, price: int, is_kept: bool) -> None:
        assert (m.plan(ONE_BID, m.book(100_000), [m.order(1, price)]).to_place == ()) is is_kept

    @pytest.mark.parametrize(("price", "is_kept"), [(495_000, True), (494_999, False)])
    def test_one_percent_is_close_enough(self, price: int, is_kept: bool) -> None:
        config = replace(ONE_BID, bid_fixed_high=500_000, hardcap_sats=0)

        assert (m.plan(config, m.book(900_000), [m.order(1, price)]).to_place == ()) is is_kept

    @pytest.mark.parametrize(("age_ms", "reason"), [(59_999, "min_age"), (60_000, "surplus")])
    def test_young_bids_are_not_replaced(self, age_ms: int, reason: str) -> None:
        result = m.plan(ONE_BID, m.book(100_000), [m.order(1, 40_000, created_ms=m.NOW - age_ms)])

        assert m.bid_reasons(result) == {1: reason}
        assert m.rung_reasons(result) == ["min_age" if reason == "min_age" else "place"]

    def test_the_lowest_missing_rung_waits_for_a_young_bid(self) -> None:
        own = [m.order(1, 65_000, created_ms=m.NOW)]

        result = m.plan(m.ladder_config(), m.book(100_000), own)

        assert m.rung_reasons(result) == ["place", "place", "place", "place", "min_age"]

    def test_updates_off_leaves_bids_within_the_range_alone(self) -> None:
        config = replace(ONE_BID, update_bid_enabled=False)

        result = m.plan(config, m.book(100_000), [m.order(1, 30_000)])

        assert (result.to_cancel, result.to_place) == ((), ())
        assert m.bid_reasons(result) == {1: "update_off"}
        assert m.rung_reasons(result) == ["slot_taken"]

    def test_updates_off_does_not_keep_what_is_outside_the_range(self) -> None:
        config = replace(ONE_BID, bid_fixed_low=40_000, update_bid_enabled=False)

        assert m.cancelled(m.plan(config, m.book(100_000), [m.order(1, 30_000)])) == [(30_000, False, "below_range")]
        above = m.plan(config, m.book(100_000), [m.order(1, 51_000, created_ms=m.NOW)])
        assert m.cancelled(above) == [(51_000, True, "above_range")]

    def test_a_bid_at_the_low_end_is_within_the_range(self) -> None:
        own = [m.order(1, 10_000)]

        assert m.cancelled(m.plan(ONE_BID, m.book(100_000), own)) == [(10_000, False, "surplus")]
        assert m.cancelled(m.plan(replace(ONE_BID, update_bid_enabled=False), m.book(100_000), own)) == []

    @pytest.mark.parametrize(
        ("changes", "floor", "reason"),
        [
            ({"hardcap_sats": 45_000}, 100_000, "hardcap"),
            ({}, 50_000, "at_ask"),
            ({"bid_fixed_high": 46_000}, 100_000, "above_range"),
        ],
    )
    def test_a_bid_that_is_no_longer_allowed_goes_at_any_age(
        self, changes: dict[str, int], floor: int, reason: str
    ) -> None:
        config = replace(ONE_BID, update_bid_enabled=False, **changes)  # type: ignore[arg-type]

        result = m.plan(config, m.book(floor), [m.order(1, 50_000, created_ms=m.NOW)])

        assert m.cancelled(result) == [(50_000, True, reason)]

    def test_fewer_rungs_than_bids_cancels_the_rest_at_once(self) -> None:
        own = m.orders(*LADDER, created_ms=m.NOW)

        result = m.plan(m.ladder_config(bid_count=3, update_bid_enabled=False), m.book(100_000), own)

        assert m.cancelled(result) == [(60_000, True, "over_count"), (30_000, True, "over_count")]

    def test_a_duplicate_beyond_the_rungs_goes_and_the_older_stays(self) -> None:
        own = [*m.orders(*LADDER, created_ms=m.NOW - 2_000), m.order(6, 60_000, created_ms=m.NOW - 1_000)]

        result = m.plan(m.ladder_config(), m.book(100_000), own)

        assert [(c.order_id, c.hard, c.reason.value) for c in result.to_cancel] == [(6, True, "duplicate")]


class TestInFlight:
    @pytest.mark.parametrize("state", ["reserved", "signed", "submitted", "unknown"])
    def test_an_order_in_flight_holds_its_rung(self, state: str) -> None:
        result = m.plan(m.ladder_config(), m.book(100_000), [m.order(1, 60_000, state)])

        assert m.placed(result) == [75_000, 45_000, 30_000, 15_000]
        assert m.rung_reasons(result)[1] == "in_flight"
        assert result.rungs[1].order_id == 1

    def test_in_flight_and_far_from_every_rung_it_blocks_a_slot_and_is_never_cancelled(self) -> None:
        result = m.plan(m.ladder_config(), m.book(70_000), [m.order(1, 75_000, "unknown")])

        assert result.to_cancel == ()
        assert m.rung_reasons(result) == ["place", "place", "place", "place", "in_flight"]

    def test_in_flight_counts_against_the_total(self) -> None:
        result = m.plan(
            m.ladder_config(), m.book(100_000), [m.order(1, 75_000, "unknown")], m.with_limits(task_total=135_000)
        )

        assert m.placed(result) == [60_000]

    def test_cancelling_counts_as_exposure_only(self) -> None:
        own = [m.order(1, 50_000, "cancelling")]

        assert m.placed(m.plan(ONE_BID, m.book(100_000), own)) == [50_000]
        assert m.rung_reasons(m.plan(ONE_BID, m.book(100_000), own, m.with_limits(task_total=99_999))) == ["task_total"]
        assert m.bid_reasons(m.plan(ONE_BID, m.book(100_000), own)) == {1: "cancelling"}

    def test_an_expired_bid_blocks_its_slot_until_the_ledger_closes_it(self) -> None:
        result = m.plan(ONE_BID, m.book(100_000), [m.order(1, 50_000, expires_ms=m.NOW)])

        assert (result.to_cancel, result.to_place) == ((), ())
        assert m.bid_reasons(result) == {1: "expired"}

    def test_a_state_that_is_not_open_is_refused(self) -> None:
        with pytest.raises(ValueError, match="closed"):
            m.plan(ONE_BID, m.book(100_000), [m.order(1, 50_000, "closed")])


class TestRunes:
    CONFIG = m.rune_config(quantity=Decimal(1_000), bid_count=3)
    BOOK = Snapshot(m.NOW, (m.rune_ask("5000", "81.7"), m.rune_ask("200", "80.123")))

    def test_order_totals_are_unit_price_times_quantity_on_a_grid_of_one(self) -> None:
        result = m.plan(self.CONFIG, self.BOOK, limits=m.AMPLE)

        assert result.reference == Decimal("80.123")
        assert m.placed(result) == [60_092, 36_055, 12_019]  # 0.75 x 80,123 = 60,092.25; 0.15 x 80,123 = 12,018.45
        assert {intent.quantity for intent in result.to_place} == {Decimal(1_000)}

    def test_fixed_range_is_the_whole_order_and_capped_by_the_asks_total(self) -> None:
        config = replace(self.CONFIG, bid_mode="fixed", bid_fixed_low=50_000, bid_fixed_high=90_000, bid_count=2)

        assert m.placed(m.plan(config, self.BOOK)) == [80_122, 50_000]  # 80,123 is what buying would cost

    def test_fractions_of_a_token(self) -> None:
        config = replace(self.CONFIG, quantity=Decimal("0.25"), bid_count=1)

        assert m.placed(m.plan(config, Snapshot(m.NOW, (m.rune_ask("1", "79999.9"),)))) == [14_999]  # 14,999.98...

    def test_a_bid_for_another_quantity_is_cancelled(self) -> None:
        own = [m.order(1, 60_092, quantity=Decimal("1000.000")), m.order(2, 36_055, quantity=Decimal(999))]

        result = m.plan(self.CONFIG, self.BOOK, own)

        assert m.cancelled(result) == [(36_055, True, "wrong_quantity")]
        assert m.rung_reasons(result) == ["kept", "place", "place"]


class TestWithoutPlaces:
    OWN = (m.order(1, 75_000), m.order(2, 52_000), m.order(3, 95_000), m.order(4, 30_000, expires_ms=m.NOW + 1_000))

    def test_own_bids_unknown_leaves_hard_cancels_only(self) -> None:
        result = without_places(
            m.plan(m.ladder_config(), m.book(100_000), self.OWN), Reason.OWN_BIDS_UNKNOWN, soft_cancels=False
        )

        assert m.cancelled(result) == [(95_000, True, "above_range")]
        assert result.to_place == ()
        assert m.bid_reasons(result) == {1: "kept", 2: "own_bids_unknown", 3: "above_range", 4: "own_bids_unknown"}
        assert m.rung_reasons(result) == ["kept"] + ["own_bids_unknown"] * 4

    def test_reduce_cancels_surplus_too_but_renews_nothing(self) -> None:
        result = without_places(m.plan(m.ladder_config(), m.book(100_000), self.OWN), Reason.REDUCE, soft_cancels=True)

        assert m.cancelled(result) == [(95_000, True, "above_range"), (52_000, False, "surplus")]
        assert m.bid_reasons(result)[4] == "reduce"


def test_what_is_not_built_is_never_planned_as_something_else() -> None:
    with pytest.raises(ValueError, match="quantity: several items per bid are not available yet"):
        m.plan(m.ladder_config(quantity=Decimal(2)), m.book(100_000))


def test_skipped_rungs_are_those_without_a_bid_held_placed_or_awaited() -> None:
    own: list[OwnOrder] = [m.order(1, 75_000), m.order(2, 60_000, "unknown")]

    result = m.plan(m.ladder_config(), m.book(100_000), own, m.with_limits(task_total=150_000))

    assert [note.is_skipped for note in result.rungs] == [False, False, True, True, False]


TEXTS = CallCosts()
CATS = BidConfig(slug="cats", hardcap_sats=100_000)
EXPOSURE, HINTED = 5_000_000, 225_000


def told(config: BidConfig = CATS, bids: int = 5, total: int = HINTED, costs: CallCosts = TEXTS) -> list[str]:
    limits = Limits(0, EXPOSURE, 20, 10**9, 500)
    return hints(Bidding(config, bids), costs, total, limits)


def test_a_longer_life_is_worth_a_word_where_bids_live_sixteen_minutes() -> None:
    [text] = told()
    assert text.startswith("a 120-minute bid life needs about ")
    assert "keep their place in the queue 7.9 times as long" in text
    assert text.endswith("Trade-off: each bid can move only about 44 times an hour")


def test_with_all_the_exposure_in_use_it_says_what_longer_lives_take_away() -> None:
    [text] = told(total=EXPOSURE)
    assert "Trade-off: each bid can move only about 1.5 times an hour, not 11" in text


def test_a_ladder_that_can_hardly_move_is_told_so() -> None:
    long = replace(CATS, bid_expiry_minutes=120)
    [text] = told(long, total=EXPOSURE)
    assert text.startswith("with 5,000,000 sats in bids that live 120 minutes")
    assert "can move only about 1.5 times an hour" in text
    assert told(long) == []


def test_a_loop_of_its_own_is_told_what_it_costs_only_where_rivals_do_not_matter() -> None:
    long = replace(CATS, bid_expiry_minutes=120, loop_seconds=30)
    [text] = told(long)
    assert text.startswith("without loopSeconds this task reads the market every 30 seconds while it moves")
    assert told(replace(long, outbid_enabled=True)) == []
    assert told(replace(long, loop_seconds=120)) == []


def test_where_lives_are_of_hours_anyway_no_longer_one_is_advised() -> None:
    assert told(costs=replace(TEXTS, life_s=lambda wanted_s: max(wanted_s, 6 * 3600))) == []


def test_without_bids_there_is_nothing_to_say() -> None:
    assert told(bids=0) == []


def test_moves() -> None:
    assert moves_an_hour(EXPOSURE, 4 * EXPOSURE, 16 * 60) == Decimal("11.25")
    assert moves_an_hour(EXPOSURE, 4 * EXPOSURE, 120 * 60) == Decimal("1.5")
    assert moves_an_hour(4 * EXPOSURE, 4 * EXPOSURE, 60) == 0


def test_the_narrowest_of_the_signers_ceilings_counts() -> None:
    rooms = (SignedRoom("user", 4 * EXPOSURE, 0), SignedRoom("task", 2 * HINTED, 0))
    limits = Limits(0, EXPOSURE, 20, 10**9, 500, signed=rooms)
    long = replace(CATS, bid_expiry_minutes=120)
    [text] = hints(Bidding(long, 5), TEXTS, HINTED, limits)
    assert "each bid can move only about 0.5 times an hour" in text


@pytest.mark.parametrize(
    ("placed", "kept", "cancelled", "skipped", "text"),
    [
        (2, 2, ["hardcap"], ["exposure_limit"], "placed 2, kept 2, cancelled 1 (hardcap); skipped 1 exposure_limit"),
        (0, 0, ["surplus", "at_ask", "surplus"], [], "placed 0, kept 0, cancelled 3 (2 surplus, 1 at_ask)"),
        (0, 0, [], [], "placed 0, kept 0, cancelled 0"),
        (1, 0, [], ["task_total", "min_age", "task_total"],
         "placed 1, kept 0, cancelled 0; skipped 2 task_total, 1 min_age"),
        (0, 0, [], ["range_empty (hardcap)"] * 5, "placed 0, kept 0, cancelled 0; skipped 5 range_empty (hardcap)"),
    ],
)  # fmt: skip
def test_summary(placed: int, kept: int, cancelled: list[str], skipped: list[str], text: str) -> None:
    assert summary(placed, kept, cancelled, skipped) == text


def test_summary_of_a_plan() -> None:
    result = plan(ladder_config(bid_count=3), book(12_000))

    skipped = [note.label for note in result.rungs if note.is_skipped]
    assert summary(0, 0, [], skipped) == "placed 0, kept 0, cancelled 0; skipped 3 range_empty (min_bid)"


def test_summary_tells_what_is_left_alone_where_there_is_any() -> None:
    assert summary(0, 0, [], ["raise_limited"], 1) == "placed 0, kept 0, left 1, cancelled 0; skipped 1 raise_limited"


@pytest.mark.parametrize(
    ("config", "own", "left"),
    [
        (ladder_config(), orders(75_000, 66_000), 0),  # kept, and replaced
        (ladder_config(), orders(75_000, 66_000, created_ms=NOW - 1_000), 1),  # too young
        (ladder_config(update_bid_enabled=False), orders(75_000, 66_000), 1),
        (ladder_config(bid_count=1), orders(75_000, state="unknown"), 0),
        (ladder_config(bid_count=1), orders(75_000, state="cancelling"), 0),
        (ladder_config(bid_count=1), orders(80_000), 0),
    ],
)
def test_what_is_left_alone(config: BidConfig, own: list[OwnOrder], left: int) -> None:
    assert left_alone(plan(config, book(100_000), own)) == left


def test_what_is_not_raised_is_left_alone() -> None:
    config = ladder_config(outbid_enabled=True, bid_count=1)

    result = plan(config, rivals(book(100_000), 40_000), orders(30_000), rules=replace(RULES, max_raises=0))

    assert (rung_reasons(result), left_alone(result)) == (["raise_limited"], 1)
