"""Bids that are kept, and how old bids are paired with rungs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from strategy.book import Snapshot
from strategy.config.bid import BidConfig
from strategy.decision import OwnOrder
from strategy.fill import SatsBudget
from strategy.ladders import Rung
from strategy.plan_bids import Pairing
from tests.shapes import replace
from tests.worlds import market as m
from tests.worlds.market import NOW, order, with_limits

LADDER = (75_000, 60_000, 45_000, 30_000, 15_000)
PLAIN = m.ladder_config()


def prices(result: Any) -> list[int | None]:
    return [note.price_sats for note in result.rungs]


class TestWorkedExamples:
    """Tick 1,000; 0.15-0.75 in five rungs, hard cap 100,000; live 75,000 to 15,000, old enough."""

    def test_floor_99_500_leaves_everything(self) -> None:
        result = m.plan(PLAIN, m.book(99_500), m.orders(*LADDER))

        assert prices(result)[0] == 74_000
        assert (result.to_cancel, result.to_place) == ((), ())
        assert m.rung_reasons(result) == ["kept"] * 5

    @pytest.mark.parametrize(
        ("floor", "wanted", "cancel"),
        [
            (97_000, [72_000, 57_000, 43_000, 29_000, 15_000], (75_000, True, "above_range")),
            (103_000, [77_000, 61_000, 46_000, 31_000, 16_000], (75_000, False, "surplus")),
        ],
    )
    def test_a_floor_nearby_moves_the_top_only(self, floor: int, wanted: list[int], cancel: Any) -> None:
        result = m.plan(PLAIN, m.book(floor), m.orders(*LADDER))

        assert prices(result) == wanted
        assert m.cancelled(result) == [cancel]
        assert m.placed(result) == wanted[:1]

    def test_floor_70_000_moves_all_but_one(self) -> None:
        result = m.plan(PLAIN, m.book(70_000), m.orders(*LADDER))

        assert prices(result) == [52_000, 41_000, 31_000, 21_000, 11_000]
        assert m.cancelled(result) == [
            (75_000, True, "above_range"),
            (60_000, True, "above_range"),
            (45_000, False, "surplus"),
            (15_000, False, "surplus"),
        ]
        assert m.rung_reasons(result) == ["place", "place", "kept", "place", "place"]

    def test_what_is_renewed_stands_on_its_rung(self) -> None:
        own = [replace(each, expires_ms=m.NOW + 80_000) for each in m.orders(*LADDER)]

        result = m.plan(PLAIN, m.book(99_500), own)

        assert m.placed(result) == [74_000, 59_000, 44_000, 29_000, 15_000]


def top_only(**changes: Any) -> BidConfig:
    return m.ladder_config(bid_count=1, **changes)


class TestAboveTheHighEnd:
    """0.75 of 99,500 is 74,625: H' is 74,000, and 75,000 is the most that stays."""

    @pytest.mark.parametrize(("price", "cancels"), [(75_000, []), (75_001, [(75_001, True, "above_range")])])
    def test_a_tick_is_tolerated(self, price: int, cancels: list[tuple[int, bool, str]]) -> None:
        assert m.cancelled(m.plan(top_only(), m.book(99_500), m.orders(price))) == cancels

    @pytest.mark.parametrize(("price", "is_kept"), [(404_000, True), (404_001, False)])
    def test_or_one_per_cent(self, price: int, is_kept: bool) -> None:
        result = m.plan(
            top_only(bid_percent_high=Decimal("0.8"), hardcap_sats=500_000), m.book(500_000), m.orders(price)
        )

        assert (m.rung_reasons(result) == ["kept"]) is is_kept

    def test_at_any_age(self) -> None:
        young = m.orders(76_000, created_ms=m.NOW - 1)

        assert m.cancelled(m.plan(top_only(), m.book(99_500), young)) == [(76_000, True, "above_range")]

    def test_not_above_the_hard_cap(self) -> None:
        """It does not bind H', but it binds what is tolerated."""
        result = m.plan(top_only(hardcap_sats=74_900), m.book(99_500), m.orders(75_000))

        assert m.cancelled(result) == [(75_000, True, "hardcap")]
        assert m.placed(result) == [74_000]

    @pytest.mark.parametrize("price", [74_001, 75_000])
    def test_not_where_the_hard_cap_is_the_high_end(self, price: int) -> None:
        assert m.cancelled(m.plan(top_only(hardcap_sats=74_000), m.book(99_500), m.orders(price))) == [
            (price, True, "hardcap")
        ]

    @pytest.mark.parametrize("price", [98_001, 99_000, 99_500])
    def test_not_where_the_ask_is_the_high_end(self, price: int) -> None:
        config = top_only(bid_percent_high=Decimal(1), hardcap_sats=200_000)  # H' 98,500 -> 98,000

        assert m.cancelled(m.plan(config, m.book(99_500), m.orders(price))) == [(price, True, "at_ask")]

    def test_never_at_an_ask(self) -> None:
        """0.99 of 201,000 is 198,990; the ask of 201,000 is within 2 % above it."""
        config = top_only(bid_percent_high=Decimal("0.99"), hardcap_sats=500_000, update_tolerance=Decimal("0.02"))

        assert m.cancelled(m.plan(config, m.book(201_000), m.orders(201_000))) == [(201_000, True, "at_ask")]
        assert m.cancelled(m.plan(config, m.book(201_000), m.orders(200_999))) == []

    def test_never_past_a_limit(self) -> None:
        result = m.plan(top_only(), m.book(99_500), m.orders(75_000), m.with_limits(task_total=74_999))

        assert m.cancelled(result) == [(75_000, True, "task_total")]

    def test_a_fixed_range_is_the_owners_own_number(self) -> None:
        config = top_only(bid_mode="fixed", bid_fixed_low=50_000, bid_fixed_high=74_000)

        assert m.cancelled(m.plan(config, m.book(100_000), m.orders(75_000))) == [(75_000, True, "above_range")]

    def test_with_updates_off_too(self) -> None:
        config = top_only(update_bid_enabled=False)

        assert m.cancelled(m.plan(config, m.book(99_500), m.orders(75_000))) == []
        assert m.cancelled(m.plan(config, m.book(99_500), m.orders(75_001))) == [(75_001, True, "above_range")]

    def test_it_holds_the_top_rung_and_no_second_one_is_placed(self) -> None:
        config = m.ladder_config(bid_count=2)

        result = m.plan(config, m.book(99_500), m.orders(75_000))

        assert [note.order_id for note in result.rungs] == [1, None]
        assert m.placed(result) == [15_000]

    def test_trait_bids_likewise(self) -> None:
        config = top_only(bid_type="trait", trait_type="Hat", trait_value="Crown")
        market = replace(m.book(60_000), trait_asks=m.book(99_500).asks)
        own = [m.order(1, 75_000, trait=("Hat", "Crown"))]

        assert m.rung_reasons(m.plan(config, market, own)) == ["kept"]


class TestBetweenTheRungs:
    """Targets 72 / 57 / 43 / 29 / 15 thousand: a quarter of the gap of 14,250 is 3,562."""

    @pytest.mark.parametrize(("price", "is_kept"), [(60_562, True), (60_563, False), (53_438, True), (53_437, False)])
    def test_a_quarter_of_the_gap(self, price: int, is_kept: bool) -> None:
        result = m.plan(PLAIN, m.book(97_000), m.orders(price))

        assert (m.rung_reasons(result)[1] == "kept") is is_kept

    def test_the_top_rung_keeps_a_tick_only(self) -> None:
        assert m.rung_reasons(m.plan(PLAIN, m.book(97_000), m.orders(71_000)))[0] == "kept"
        assert m.rung_reasons(m.plan(PLAIN, m.book(97_000), m.orders(70_999)))[0] == "place"

    def test_the_share_is_the_tasks_own(self) -> None:
        config = m.ladder_config(keep_within_gap=Decimal("0.45"))  # 6,412

        assert m.rung_reasons(m.plan(config, m.book(97_000), m.orders(63_412)))[1] == "kept"
        assert m.rung_reasons(m.plan(config, m.book(97_000), m.orders(63_413)))[1] == "place"
        assert m.rung_reasons(m.plan(replace(config, keep_within_gap=Decimal(0)), m.book(97_000), m.orders(58_001)))[
            1
        ] == ("place")

    def test_not_while_outbidding(self) -> None:
        config = m.ladder_config(outbid_enabled=True)
        market = m.rivals(m.book(97_000), 71_000)

        assert prices(m.plan(config, market)) == [72_000, 57_000, 43_000, 29_000, 15_000]
        assert m.rung_reasons(m.plan(config, market, m.orders(72_000, 58_000)))[1] == "kept"
        assert m.rung_reasons(m.plan(config, market, m.orders(72_000, 58_001)))[1] == "place"


class TestOwnTolerance:
    def test_it_comes_before_the_services(self) -> None:
        config = top_only(update_tolerance=Decimal("0.1"))  # of 75,000: 7,500

        assert m.rung_reasons(m.plan(config, m.book(100_000), m.orders(67_500))) == ["kept"]
        assert m.rung_reasons(m.plan(config, m.book(100_000), m.orders(67_499))) == ["place"]
        assert m.rung_reasons(m.plan(config, m.book(100_000), m.orders(82_500))) == ["kept"]
        assert m.cancelled(m.plan(config, m.book(100_000), m.orders(82_501))) == [(82_501, True, "above_range")]

    def test_null_is_the_services(self) -> None:
        rules = replace(m.RULES, tolerance=Decimal("0.1"))

        assert m.rung_reasons(m.plan(top_only(), m.book(100_000), m.orders(67_500), rules=rules)) == ["kept"]
        own = top_only(update_tolerance=Decimal("0.01"))
        assert m.rung_reasons(m.plan(own, m.book(100_000), m.orders(67_500), rules=rules)) == ["place"]

    def test_a_least_age_of_its_own(self) -> None:
        own = m.orders(70_000, created_ms=m.NOW - 30_000)

        assert m.rung_reasons(m.plan(top_only(), m.book(100_000), own)) == ["min_age"]
        assert m.rung_reasons(m.plan(top_only(min_age_seconds=30), m.book(100_000), own)) == ["place"]
        assert m.rung_reasons(m.plan(top_only(min_age_seconds=31), m.book(100_000), own)) == ["min_age"]
        assert m.rung_reasons(
            m.plan(top_only(min_age_seconds=0), m.book(100_000), m.orders(70_000, created_ms=m.NOW))
        ) == ["place"]


def outbid_config(**changes: Any) -> BidConfig:
    values = {"bid_mode": "fixed", "bid_fixed_low": 500_000, "bid_fixed_high": 800_000, "bid_count": 1}
    return m.ladder_config(**{"hardcap_sats": 0, "outbid_enabled": True, **values, **changes})


class TestStepDown:
    """A rival at 620,000 is outbid by 621,000: 1 % of that would be 6,210."""

    @pytest.mark.parametrize(
        ("changes", "most"),
        [
            ({"outbid_amount": 1_000}, 623_000),
            ({"outbid_amount": 0}, 622_000),  # a tick at least
            ({"outbid_amount": 4_000}, 632_000),  # from 624,000
            ({"outbid_mode": "percent", "outbid_percent": Decimal("0.01")}, 627_000 + 12_540),
        ],
    )
    def test_twice_the_step_is_not_worth_it(self, changes: dict[str, Any], most: int) -> None:
        config, market = outbid_config(**changes), m.rivals(m.book(1_000_000), 620_000)

        assert m.cancelled(m.plan(config, market, m.orders(most))) == []
        assert m.cancelled(m.plan(config, market, m.orders(most + 1))) == [(most + 1, False, "step_down")]

    def test_nor_down_to_the_low_end_when_nobody_is_left(self) -> None:
        assert m.cancelled(m.plan(outbid_config(), m.rivals(m.book(1_000_000)), m.orders(502_000))) == []
        assert m.cancelled(m.plan(outbid_config(), m.rivals(m.book(1_000_000)), m.orders(502_001))) == [
            (502_001, False, "step_down")
        ]

    def test_in_sats_mode_by_the_price_of_a_token(self) -> None:
        """60 and 1,000 sats spread over 816.66 tokens is 61.2245; two steps more are 63.67."""
        config = sats_config(outbid_enabled=True, bid_count=1, bid_percent_low=Decimal("0.5"))
        market = m.rivals(tokens_at("100"), m.bid(60_000, "1000"))

        assert made(m.plan(config, market)) == [(49_999, Decimal("816.66"))]
        assert m.cancelled(m.plan(config, market, [m.order(1, 49_999, quantity=Decimal("785.5"))])) == []
        assert m.cancelled(m.plan(config, market, [m.order(1, 49_999, quantity=Decimal("785.2"))])) == [
            (49_999, False, "step_down")
        ]


def sats_config(**changes: Any) -> BidConfig:
    """50,000 sats an order, from 0.15 to 0.75 of the floor, in five orders."""
    return m.rune_config(**{"quantity_mode": "sats", "sats_per_order": 50_000, **changes})


def tokens_at(unit_price: str) -> Snapshot:
    return Snapshot(m.NOW, (m.rune_ask("5000", unit_price),), divisibility=2)


def made(result: Any) -> list[tuple[int, Decimal]]:
    return [(intent.price_sats, intent.quantity) for intent in result.to_place]


class TestSatsMode:
    """A floor of 100: rungs at 75, 60, 45, 30 and 15 a token. A quarter of the gap of 15 is 3.75."""

    @pytest.mark.parametrize(
        ("quantity", "rung", "is_kept"),
        [
            ("660.06", 0, True),  # 75.75 a token is 1 % above the high end
            ("659.97", None, False),
            ("673.3", 0, True),  # 74.26, less than 1 % below
            ("673.5", 0, False),
            ("784.35", 1, True),  # 63.747
            ("784.25", 1, False),
            ("888.88", 1, True),  # 56.25
            ("889", 1, False),
        ],
    )
    def test_what_stands_for_which_rung(self, quantity: str, rung: int | None, is_kept: bool) -> None:
        own = [m.order(1, 49_999, quantity=Decimal(quantity))]

        result = m.plan(sats_config(), tokens_at("100"), own)

        if rung is None:
            assert m.cancelled(result) == [(49_999, True, "above_range")]
        else:
            assert (result.rungs[rung].order_id == 1) is is_kept
            assert not is_kept or m.cancelled(result) == []

    def test_not_where_the_ask_is_the_high_end(self) -> None:
        config = sats_config(bid_percent_high=Decimal(1), bid_count=1)
        at_it, below = m.order(1, 50_000, quantity=Decimal(500)), m.order(1, 49_999, quantity=Decimal(500))

        assert m.cancelled(m.plan(config, tokens_at("100"), [at_it])) == [(50_000, True, "at_ask")]
        assert m.cancelled(m.plan(config, tokens_at("100"), [below])) == []

    def test_never_at_an_ask(self) -> None:
        config = sats_config(bid_percent_high=Decimal("0.995"), bid_count=1)
        own = [m.order(1, 50_000, quantity=Decimal(500))]

        assert m.cancelled(m.plan(config, tokens_at("100"), own)) == [(50_000, True, "at_ask")]

    def test_the_share_is_the_tasks_own(self) -> None:
        own = [m.order(1, 49_999, quantity=Decimal("784.35"))]

        assert m.rung_reasons(m.plan(sats_config(keep_within_gap=Decimal(0)), tokens_at("100"), own))[1] == "place"

    def test_runes_of_one_quantity_have_a_tick_of_a_sat(self) -> None:
        config = m.rune_config(quantity=Decimal(1_000), bid_percent_low=Decimal("0.7"), bid_count=1)
        own = [m.order(1, 75_750, quantity=Decimal(1_000))]

        assert m.rung_reasons(m.plan(config, tokens_at("100"), own)) == ["kept"]
        over = [replace(own[0], price_sats=75_751)]
        assert m.bid_reasons(m.plan(config, tokens_at("100"), over)) == {1: "above_range"}


DUE = {"expires_ms": NOW + 1_000}


def walk(
    prices: list[int], own: list[OwnOrder], tick: int = 1_000, total: int = 0, due: tuple[int, ...] = ()
) -> list[int | str | None]:
    """By rung: the id of the order that stands for it, why it gets none, or None where a bid is missing."""
    reach = [max(tick, price // 100) for price in prices]
    rungs = [Rung(index, price, Decimal(1), price, reach[index], reach[index]) for index, price in enumerate(prices)]
    fixed = frozenset(each.id for each in own if each.state != "live")
    budget = SatsBudget(with_limits(task_total=total), "per_bid", [each for each in own if each.id in fixed])
    Pairing(own, fixed, frozenset(due), budget, lambda order: order.price_sats).walk(rungs)
    return [rung.order.id if rung.order else rung.refused and rung.refused.value for rung in rungs]


def test_the_highest_within_reach_on_either_side() -> None:
    own = [order(1, 29_000), order(2, 31_000), order(3, 31_001)]

    assert walk([30_000], own) == [2]
    assert walk([30_000], own[:1]) == [1]
    assert walk([30_000], own[2:]) == [None]


def test_each_order_stands_for_one_rung_only() -> None:
    assert walk([31_000, 30_000], [order(1, 30_000)]) == [1, None]


def test_of_equal_bids_the_older_is_taken() -> None:
    own = [order(1, 30_000, created_ms=NOW - 1), order(2, 30_000, created_ms=NOW - 2)]

    assert walk([30_000], own) == [2]


def test_of_equal_bids_the_one_that_need_not_be_renewed_is_taken() -> None:
    own = [order(1, 30_000, created_ms=NOW - 2, **DUE), order(2, 30_000, created_ms=NOW - 1)]

    assert walk([30_500], own, due=(1,)) == [2]


def test_nothing_is_renewed_onto_a_bid_that_is_there_already() -> None:
    own = [order(1, 30_500, **DUE), order(2, 30_000), order(3, 29_900)]

    assert walk([30_000], own, due=(1,)) == [2]
    assert walk([30_000], [own[0], own[2]], due=(1,)) == [1]


def test_nor_onto_a_rung_that_a_bid_above_it_would_then_take() -> None:
    assert walk([30_000], [order(1, 30_900, **DUE), order(2, 30_100)], due=(1,)) == [2]


def test_a_bid_that_no_longer_fits_gives_way_to_one_that_does() -> None:
    own = [order(1, 31_000), order(2, 30_000)]

    assert walk([30_000], own, total=30_000) == [2]
    assert walk([30_000], own[:1], total=30_000) == [None]  # a new one at the rung's price would fit


def test_a_due_bid_is_counted_at_the_price_it_will_have() -> None:
    assert walk([30_000], [order(1, 31_000, **DUE)], total=30_000, due=(1,)) == [1]
    assert walk([30_000], [order(1, 29_000, **DUE)], total=29_500, due=(1,)) == ["task_total"]


def test_a_rung_without_room_for_a_new_bid_may_keep_a_cheaper_one() -> None:
    """The market rose by less than a tick's worth: the bid that just fits the total is not given up for that."""
    assert walk([16_000], [order(1, 15_000)], total=15_000) == [1]


def test_a_rung_without_room_does_not_take_what_stands_closer_to_the_next() -> None:
    own = [order(1, 15_000)]

    assert walk([16_000, 15_000], own, total=15_500) == ["task_total", 1]
    assert walk([16_000, 16_000, 15_000], own, total=15_500) == ["task_total", "task_total", 1]
    assert walk([16_000, 14_000], own, total=15_500) == [1, "task_total"]  # as close to both: the upper one


def test_in_flight_costs_nothing_more() -> None:
    assert walk([30_000], [order(1, 30_000, "unknown")], total=30_000) == [1]
