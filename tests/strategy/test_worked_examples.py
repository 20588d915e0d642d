"""The worked examples of the strategy's rules, with the numbers they were written down with."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from strategy.book import Snapshot, vwap
from strategy.config.bid import BidConfig
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds import market as m

LADDER = [75_000, 60_000, 45_000, 30_000, 15_000]


def test_example_1_ladder() -> None:
    result = m.plan(m.ladder_config(), m.book(100_000, 120_000))

    assert m.placed(result) == LADDER
    assert sum(m.placed(result)) == 225_000
    assert [intent.rung for intent in result.to_place] == [0, 1, 2, 3, 4]
    assert result.to_cancel == ()
    assert result.reference == Decimal(100_000)
    assert m.rung_reasons(result) == ["place"] * 5


def test_example_2_rounding_and_cap() -> None:
    config = m.ladder_config(
        bid_percent_low=Decimal("0.60"), bid_percent_high=Decimal("0.85"), bid_count=4, hardcap_sats=70_000
    )

    assert m.placed(m.plan(config, m.book(87_300))) == [70_000, 64_000, 58_000, 53_000]


def test_example_3_budget_skips_and_goes_on() -> None:
    result = m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(task_total=150_000))

    assert m.placed(result) == [75_000, 60_000, 15_000]
    assert sum(m.placed(result)) == 150_000
    assert m.rung_reasons(result) == ["place", "place", "task_total", "task_total", "place"]


def outbid_config(**changes: Any) -> BidConfig:
    """Makes a config: a fixed range of 50,000 to 80,000 with outbidding."""
    return m.ladder_config(
        **{"bid_mode": "fixed", "bid_fixed_low": 50_000, "bid_fixed_high": 80_000, "outbid_enabled": True, **changes}
    )


def test_example_4_outbid_keeps_what_is_within_a_tick() -> None:
    market = m.rivals(m.book(100_000), 62_000, 60_500, 41_000)

    result = m.plan(outbid_config(bid_count=3, outbid_amount=1_000), market, m.orders(55_000))

    assert [note.price_sats for note in result.rungs] == [63_000, 56_000, 50_000]
    assert m.rung_reasons(result) == ["place", "kept", "place"]
    assert m.placed(result) == [63_000, 50_000]
    assert result.to_cancel == ()


class TestExample5:
    CONFIG = outbid_config(bid_count=1, outbid_mode="percent", outbid_percent=Decimal("0.02"))
    MARKET = m.rivals(m.book(100_000), 79_800, 70_000)

    def test_an_unbeatable_leader_leaves_the_best_attainable_place(self) -> None:
        assert m.placed(m.plan(self.CONFIG, self.MARKET)) == [72_000]

    def test_only_if_highest_there_is_no_target_and_a_live_bid_goes(self) -> None:
        result = m.plan(replace(self.CONFIG, only_bid_if_highest=True), self.MARKET, m.orders(72_000))

        assert m.placed(result) == []
        assert m.cancelled(result) == [(72_000, False, "not_highest")]
        assert m.rung_reasons(result) == ["not_highest"]

    def test_variant_only_the_upper_rungs_of_a_ladder_are_left(self) -> None:
        config = m.ladder_config(
            bid_mode="fixed", bid_fixed_low=30_000, bid_fixed_high=50_000, bid_count=5, only_bid_if_highest=True
        )
        market = m.rivals(m.book(100_000), 42_000)

        fresh = m.plan(config, market)
        assert m.placed(fresh) == [50_000, 45_000]
        assert m.rung_reasons(fresh) == ["place", "place", "not_highest", "not_highest", "not_highest"]

        held = m.plan(config, market, m.orders(50_000, 45_000, 40_000, 35_000, 30_000))
        assert m.cancelled(held) == [(price, False, "not_highest") for price in (40_000, 35_000, 30_000)]
        assert m.rung_reasons(held)[:2] == ["kept", "kept"]
        assert m.placed(held) == []


def test_example_6_floor_spike() -> None:
    config = m.ladder_config(
        bid_percent_low=Decimal("0.50"), bid_percent_high=Decimal("0.80"), hardcap_sats=120_000, bid_count=3
    )

    result = m.plan(config, m.remembered(m.book(180_000), 100_000))

    assert (result.raw_reference, result.reference) == (Decimal(180_000), Decimal(125_000))
    assert m.placed(result) == [100_000, 81_000, 63_000]
    assert result.marks == (Reason.FLOOR_SPIKE,)
    assert m.placed(m.plan(config, m.book(180_000)))[0] == 120_000  # without the clamp


def test_example_7_floor_drop_cancels_first_and_from_the_top() -> None:
    own = m.orders(*LADDER)

    result = m.plan(m.ladder_config(), m.book(70_000), own)

    assert m.cancelled(result) == [
        (75_000, True, "above_range"),
        (60_000, True, "above_range"),
        (45_000, False, "surplus"),
        (15_000, False, "surplus"),
    ]
    assert m.placed(result) == [52_000, 41_000, 21_000, 11_000]
    assert [note.price_sats for note in result.rungs] == [52_000, 41_000, 31_000, 21_000, 11_000]
    assert m.rung_reasons(result) == ["place", "place", "kept", "place", "place"]
    left = m.carry_out(m.ladder_config(), own, result)
    assert sum(each.price_sats for each in left) == 155_000
    assert 30_000 + sum(m.placed(result)) == 155_000


def test_example_7_with_a_cancel_that_is_not_confirmed() -> None:
    """Its 75,000 stays reserved with the kept 30,000, so that the last rung has no room."""
    own = [m.order(1, 75_000, "cancelling"), m.order(4, 30_000)]

    result = m.plan(m.ladder_config(), m.book(70_000), own, m.with_limits(task_total=225_000))

    assert m.placed(result) == [52_000, 41_000, 21_000]
    assert 75_000 + 30_000 + sum(m.placed(result)) == 219_000
    assert m.rung_reasons(result) == ["place", "place", "kept", "place", "task_total"]


def test_example_8_second_task_gets_what_is_left_of_the_users_exposure() -> None:
    config = m.ladder_config(bid_mode="fixed", bid_fixed_low=45_000, bid_fixed_high=60_000, bid_count=2)

    result = m.plan(config, m.book(100_000), limits=m.with_limits(user_headroom=300_000 - 255_000))

    assert m.placed(result) == [45_000]
    assert m.rung_reasons(result) == ["exposure_limit", "place"]


def test_example_9_unknown_fate_blocks_the_slot_until_the_ledger_closes_it() -> None:
    config = m.ladder_config(bid_mode="fixed", bid_fixed_low=52_000, bid_fixed_high=52_000, bid_count=1)
    intent = m.order(1, 52_000, "unknown")

    assert m.placed(m.plan(config, m.book(100_000), [intent])) == []
    assert m.plan(config, m.book(100_000), [replace(intent, state="live")]).to_cancel == ()
    assert m.placed(m.plan(config, m.book(100_000), [])) == [52_000]


def test_example_10_vwap_of_a_rune_book() -> None:
    asks = [m.rune_ask("400000", "1.00"), m.rune_ask("300000", "1.10"), m.rune_ask("800000", "1.20")]

    price, walked = vwap(asks, 1_000_000)

    assert price is not None
    assert walked == 1_000_000
    assert abs(price * 925_000 - 1_000_000) < Decimal("1e-30")
    assert str(price).startswith("1.081081081")


def test_example_10_rune_in_sats_mode_on_the_vwap() -> None:
    asks = (m.rune_ask("400000", "1.00"), m.rune_ask("300000", "1.10"), m.rune_ask("800000", "1.20"))
    config = m.rune_config(
        bid_percent_low=Decimal("0.80"),
        bid_percent_high=Decimal("0.90"),
        quantity_mode="sats",
        sats_per_order=50_000,
        use_vwap=True,
        depth_sats=1_000_000,
        bid_count=2,
    )

    result = m.plan(config, Snapshot(m.NOW, asks, divisibility=0))

    assert str(result.reference).startswith("1.081081081")
    assert [(intent.price_sats, intent.quantity) for intent in result.to_place] == [
        (49_999, Decimal(51_388)),
        (49_999, Decimal(57_812)),
    ]
    assert sum(m.placed(result)) == 99_998
