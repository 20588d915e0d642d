"""Guards, fills and holds: when a task places nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from strategy.book import NO_HISTORY, Snapshot
from strategy.config.bid import ActiveHours, BidConfig, FloorDrop, dump_bid_config, load_bid_config, problems
from strategy.decision import BidPlan, Entry, Memory
from strategy.guards import MinuteSample, guarded, minutes_wanted
from strategy.plan_bids import halted, plan_bids
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds import market as m

MINUTE = 60_000
DROP = m.ladder_config(pause_on_floor_drop=FloorDrop(Decimal("0.10"), 60, 120))
BETWEEN = m.ladder_config(only_while_floor_between=(Decimal(80_000), Decimal(120_000)))
LIVE = m.orders(75_000, 60_000, 45_000)


def course(*prices: tuple[int, int]) -> list[MinuteSample]:
    """The samples of these (minutes after NOW, price): the lowest of a minute is its last one given."""
    samples: dict[int, MinuteSample] = {}
    for minutes, price in prices:
        minute, at_ms = (m.NOW // MINUTE) + minutes, (m.NOW // MINUTE + minutes) * MINUTE
        first = samples.get(minute, MinuteSample(minute, Decimal(price), Decimal(price), at_ms, Decimal(price)))
        samples[minute] = replace(first, low=min(first.low, Decimal(price)), high=max(first.high, Decimal(price)))
    return list(samples.values())


def at(minutes: int, floor: int, samples: list[MinuteSample], config: BidConfig = DROP, own: Any = LIVE) -> BidPlan:
    """Returns the plan so many minutes after NOW, as a worker that knows the samples before it makes it."""
    now_ms = (m.NOW // MINUTE + minutes) * MINUTE
    wanted = [s for s in samples if now_ms // MINUTE - minutes_wanted(config) <= s.minute <= now_ms // MINUTE]
    market = Snapshot(now_ms, (m.ask(floor),), history=guarded(NO_HISTORY, config, wanted, now_ms))
    own = [replace(each, created_ms=now_ms - 10 * MINUTE, expires_ms=now_ms + 10 * MINUTE) for each in own]
    return plan_bids(Entry(now_ms, config, m.ORDINALS, market, tuple(own), m.AMPLE, m.RULES, Memory()))


HIGH = course(*((minutes, 100_000) for minutes in range(40)))
FALLEN = [*HIGH, *course(*((minutes, 89_000) for minutes in range(40, 200)))]


class TestAFallOfTheFloor:
    def test_it_takes_every_bid_away_and_keeps_the_task_from_bidding_for_two_hours(self) -> None:
        result = at(40, 89_000, HIGH)
        # 75,000 is above the range (66,750, and 1,000 of tolerance): it must go in any case.
        assert m.cancelled(result) == [
            (75_000, True, "above_range"), (60_000, True, "floor_drop"), (45_000, True, "floor_drop"),
        ]  # fmt: skip
        assert (m.placed(result), m.rung_reasons(result)) == ([], ["floor_drop"] * 5)

        assert m.rung_reasons(at(40 + 119, 89_000, FALLEN, own=()))[0] == "floor_drop"
        assert m.rung_reasons(at(40 + 120, 89_000, FALLEN, own=()))[0] == "place"

    def test_a_tenth_exactly_is_no_fall(self) -> None:
        assert m.placed(at(40, 90_000, HIGH, own=())) != []
        assert m.placed(at(40, 89_999, HIGH, own=())) == []

    def test_the_high_is_that_of_the_window(self) -> None:
        late = [*HIGH, *course(*((minutes, 95_000) for minutes in range(40, 101)))]
        assert m.placed(at(99, 89_000, late, own=())) == [], "the last 100,000 is 60 minutes ago"
        assert m.placed(at(100, 89_000, late, own=())) != []

    def test_a_new_low_begins_the_pause_anew_and_staying_low_does_not(self) -> None:
        again = [*FALLEN[:50], *course(*((minutes, 88_000) for minutes in range(50, 200)))]
        assert m.placed(at(160, 88_000, again, own=())) == []
        assert m.placed(at(50 + 119, 88_000, again, own=())) == []
        assert m.placed(at(50 + 120, 88_000, again, own=())) != []

    def test_a_fall_within_a_minute_is_known_afterwards(self) -> None:
        dip = [*HIGH, *course((40, 100_000), (40, 89_000)), *course((41, 100_000))]
        assert m.placed(at(41, 100_000, dip, own=())) == []
        assert m.placed(at(160, 100_000, dip, own=())) != []

    def test_a_rise_and_a_slow_fall_are_none(self) -> None:
        slow = course(*((minutes, 100_000 - 100 * minutes) for minutes in range(200)))
        assert m.placed(at(199, 80_100, slow, own=())) != []
        assert m.placed(at(40, 300_000, HIGH, own=())) != []

    def test_without_a_history_nothing_has_fallen(self) -> None:
        assert m.placed(at(0, 89_000, [], own=())) != []

    def test_a_fall_in_a_fixed_range_counts_too(self) -> None:
        fixed = replace(DROP, bid_mode="fixed")
        assert fixed.wants_history and not m.ladder_config(bid_mode="fixed").wants_history
        assert m.rung_reasons(at(40, 89_000, HIGH, fixed, own=())) == ["floor_drop"] * 5

    def test_a_market_that_cannot_be_read_does_not_end_the_pause_of_a_fixed_range(self) -> None:
        fixed = replace(DROP, bid_mode="fixed")
        for unread in (
            None,
            replace(m.book(100_000), complete=False),
            replace(m.book(100_000), taken_ms=m.NOW - 3_600_000),
        ):
            assert m.rung_reasons(m.plan(fixed, unread)) == ["floor_guard"] * 5
            assert m.placed(m.plan(replace(fixed, pause_on_floor_drop=None), unread)) != []

    def test_the_bids_go_though_ours_cannot_be_read(self) -> None:
        high = guarded(NO_HISTORY, DROP, HIGH, m.NOW + 40 * MINUTE)
        market = Snapshot(m.NOW + 40 * MINUTE, (m.ask(89_000),), history=high)
        own = tuple(replace(each, expires_ms=m.NOW + 60 * MINUTE) for each in LIVE[1:])
        entry = Entry(
            m.NOW + 40 * MINUTE, DROP, m.ORDINALS, market, own, m.AMPLE, m.RULES, Memory(), Reason.OWN_BIDS_UNKNOWN
        )
        assert [cancel.price_sats for cancel in plan_bids(entry).to_cancel] == [60_000, 45_000]

    def test_what_is_in_flight_stays_what_it_is(self) -> None:
        result = at(40, 89_000, HIGH, own=[m.order(7, 60_000, "unknown")])
        assert (m.cancelled(result), m.bid_reasons(result)) == ([], {7: "in_flight"})

    def test_a_collections_floor_in_place_of_a_traits_is_no_fall(self) -> None:
        trait = replace(DROP, bid_type="trait", trait_type="Hat", trait_value="Crown")
        high = guarded(NO_HISTORY, trait, HIGH, (m.NOW // MINUTE + 39) * MINUTE)
        assert m.placed(m.plan(trait, replace(m.book(50_000), history=high, trait_asks=()))) != []
        assert m.placed(m.plan(trait, replace(m.book(50_000), history=high, trait_asks=(m.ask(89_000),)))) == []


class TestTwoFloors:
    @pytest.mark.parametrize("floor", [79_999, 120_001])
    def test_outside_nothing_is_placed_and_the_surplus_goes(self, floor: int) -> None:
        result = at(0, floor, [], BETWEEN, m.orders(44_000))
        assert m.placed(result) == []
        assert set(m.rung_reasons(result)) <= {"floor_guard", "kept"} and "floor_guard" in m.rung_reasons(result)

    @pytest.mark.parametrize("floor", [80_000, 120_000])
    def test_the_bounds_are_inside(self, floor: int) -> None:
        assert m.placed(at(0, floor, [], BETWEEN, own=())) != []

    def test_a_bid_at_its_rung_stays_as_under_reduce(self) -> None:
        result = at(0, 130_000, [], BETWEEN, m.orders(97_000, 20_000))
        assert [note.label for note in result.rungs][:1] == ["kept"]
        assert m.cancelled(result) == [] or m.cancelled(result) == [(20_000, False, "surplus")]

    def test_once_outside_it_takes_one_percent_to_be_back(self) -> None:
        outside = course((0, 79_000), (1, 80_500))
        assert m.placed(at(2, 80_799, outside, BETWEEN, own=())) == []
        assert m.placed(at(2, 80_800, outside, BETWEEN, own=())) != []
        above = course((0, 121_000), (1, 119_500))
        assert m.placed(at(2, 118_801, above, BETWEEN, own=())) == []
        assert m.placed(at(2, 118_800, above, BETWEEN, own=())) != []

    def test_what_was_well_inside_may_come_close_to_the_bounds(self) -> None:
        inside = course((0, 79_000), (1, 90_000), (2, 80_500))
        assert m.placed(at(3, 80_100, inside, BETWEEN, own=())) != []
        assert m.placed(at(3, 80_100, course((0, 90_000), (0, 79_000)), BETWEEN, own=())) == []

    def test_a_spike_that_bids_do_not_follow_was_outside_all_the_same(self) -> None:
        [clamped] = course((0, 110_000))
        assert m.placed(at(1, 119_500, [clamped], BETWEEN, own=())) != []
        assert m.placed(at(1, 119_500, [replace(clamped, high=Decimal(180_000))], BETWEEN, own=())) == []

    def test_an_unknown_floor_is_not_inside(self) -> None:
        fixed = replace(BETWEEN, bid_mode="fixed")
        assert m.rung_reasons(m.plan(fixed, m.book())) == ["floor_guard"] * 5
        assert m.placed(m.plan(replace(fixed, only_while_floor_between=None), m.book())) != []


class TestHours:
    def test_beyond_them_every_bid_goes(self) -> None:
        result = m.plan(
            m.ladder_config(), m.book(100_000), m.orders(75_000, 61_000), m.with_limits(hold=Reason.ACTIVE_HOURS)
        )
        assert m.cancelled(result) == [(75_000, True, "active_hours"), (61_000, True, "active_hours")]
        assert (m.placed(result), m.rung_reasons(result)) == ([], ["active_hours"] * 5)


class TestADaysLimits:
    def test_they_skip_rungs_and_say_so(self) -> None:
        fills = m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(fills_left_today=2))
        assert m.rung_reasons(fills) == ["place", "place", *["max_fills_per_day"] * 3]
        sats = m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(spend_left_today_sats=90_000))
        assert m.rung_reasons(sats) == ["place", *["spend_cap_per_day"] * 3, "place"]


class TestWhoeverIsIgnored:
    def test_their_bids_and_listings_are_none(self) -> None:
        config = m.ladder_config(outbid_enabled=True, bid_percent_high=Decimal("0.9"))
        bait = structs.replace(m.ask(50_000), maker="bait")
        market = m.rivals(replace(m.book(100_000), asks=(bait, m.ask(100_000))), 70_000)
        assert m.placed(m.plan(replace(config, ignore_addresses=("rival", "bait")), market))[0] == 15_000
        assert m.placed(m.plan(replace(config, ignore_addresses=("bait",)), market))[0] == 71_000

    def test_a_rival_above_the_lowest_ask_is_not_followed_and_told(self) -> None:
        highest = m.ladder_config(only_bid_if_highest=True)
        result = m.plan(highest, m.rivals(m.book(100_000), 100_001, 50_000), m.orders(75_000))
        assert (m.cancelled(result), m.rung_reasons(result)[:2]) == ([], ["kept", "place"])
        assert Reason.RIVAL_ABOVE_ASK in result.marks
        equal = m.plan(highest, m.rivals(m.book(100_000), 100_000, 50_000), m.orders(75_000))
        assert m.cancelled(equal) == [(75_000, False, "not_highest")]
        assert Reason.RIVAL_ABOVE_ASK not in equal.marks

    def test_a_rival_for_a_trait_is_meant_where_only_the_collections_floor_is_known(self) -> None:
        """A trait may be worth more than that floor, so a bid above it may well be the highest one."""
        crown = m.ladder_config(bid_type="trait", trait_type="Hat", trait_value="Crown", only_bid_if_highest=True)
        own = [m.order(1, 75_000, trait=("Hat", "Crown"))]
        market = replace(m.rivals(m.book(100_000), 140_000), trait_asks=())
        result = m.plan(crown, market, own)
        assert (m.placed(result), m.cancelled(result)) == ([], [(75_000, False, "not_highest")])
        assert Reason.RIVAL_ABOVE_ASK not in result.marks
        known = m.plan(crown, replace(market, trait_asks=(m.ask(130_000),)), own)
        assert Reason.RIVAL_ABOVE_ASK in known.marks


def test_guards_are_stored_exactly() -> None:
    hours = ActiveHours("Europe/Berlin", "22:00", "06:30")
    config = replace(DROP, only_while_floor_between=(Decimal("0.5"), Decimal(2)), active_hours=hours)
    config = replace(config, ignore_addresses=("bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75",))
    assert load_bid_config(dump_bid_config(config)) == config
    assert [problem.field for problem in problems(config)] == ["only_while_floor_between"]


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
