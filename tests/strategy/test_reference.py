"""The reference price: floor, VWAP, trait floor, and the clamp against spikes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from strategy.book import History, Snapshot
from strategy.config.bid import BidConfig
from strategy.guards import measure
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds import market as m

TRAIT = m.ladder_config(bid_type="trait", trait_type="Hat", trait_value="Crown")


class TestSpikeClamp:
    CONFIG = m.ladder_config(bid_count=1, hardcap_sats=1_000_000)

    @pytest.mark.parametrize(
        ("floor", "samples", "reference", "marks"),
        [
            (125_000, 10, 125_000, ()),
            (125_001, 10, 125_000, (Reason.FLOOR_SPIKE,)),
            (200_000, 10, 125_000, (Reason.FLOOR_SPIKE,)),
            (200_001, 10, 125_000, (Reason.FLOOR_SPIKE, Reason.FLOOR_ALARM)),
            (200_001, 9, 200_001, (Reason.COLD_START,)),
            (10_000_000, 0, 10_000_000, (Reason.COLD_START,)),
            (70_000, 60, 70_000, ()),  # a fall is followed at once
        ],
    )
    def test_against_a_median_of_100_000(
        self, floor: int, samples: int, reference: int, marks: tuple[Reason, ...]
    ) -> None:
        result = m.plan(self.CONFIG, m.remembered(m.book(floor), 100_000, samples))

        assert (result.raw_reference, result.reference) == (Decimal(floor), Decimal(reference))
        assert result.marks == marks

    def test_no_median_is_a_cold_start(self) -> None:
        market = replace(m.book(100_000), history=History(None, 60))

        assert m.plan(self.CONFIG, market).marks == (Reason.COLD_START,)

    def test_the_ask_that_is_not_reached_is_the_real_one(self) -> None:
        config = replace(self.CONFIG, bid_percent_high=Decimal(2))

        assert m.placed(m.plan(config, m.remembered(m.book(150_000), 100_000))) == [149_000]

    def test_a_fixed_range_needs_no_clamp_but_gives_a_clamped_sample(self) -> None:
        config = replace(self.CONFIG, bid_mode="fixed")

        result = m.plan(config, m.remembered(m.book(300_000), 100_000))

        assert (result.reference, result.marks) == (Decimal(125_000), ())


class TestVwap:
    CONFIG = m.rune_config(
        bid_percent_low=Decimal("0.5"), bid_count=1, quantity=Decimal(1_000), use_vwap=True, depth_sats=1_000_000
    )

    def book(self, *asks: tuple[str, str]) -> Snapshot:
        return Snapshot(m.NOW, tuple(m.rune_ask(tokens, price) for tokens, price in asks))

    def test_the_average_instead_of_the_floor(self) -> None:
        market = self.book(("5000", "100"), ("10000", "150"))

        result = m.plan(self.CONFIG, market)

        assert result.reference == Decimal(120)  # 500,000 buy 5,000; 500,000 buy 3,333.33: 8,333.33 in all
        assert m.placed(result) == [90_000]
        assert m.plan(replace(self.CONFIG, use_vwap=False), market).reference == Decimal(100)

    def test_the_lowest_ask_is_still_not_reached(self) -> None:
        config = replace(self.CONFIG, bid_percent_high=Decimal("0.95"))

        assert m.placed(m.plan(config, self.book(("5000", "100"), ("10000", "150")))) == [99_999]

    @pytest.mark.parametrize(("tokens", "is_known"), [("5000", True), ("4999.99", False)])
    def test_half_the_depth_is_enough(self, tokens: str, is_known: bool) -> None:
        result = m.plan(self.CONFIG, self.book((tokens, "100")))

        assert (result.reference is not None) is is_known
        assert (Reason.THIN_BOOK in result.marks) is not is_known

    def test_a_thin_book_places_nothing_and_keeps_what_is_live_below_the_ask(self) -> None:
        own = [m.order(1, 100_000, quantity=Decimal(1_000)), m.order(2, 90_000, quantity=Decimal(1_000))]

        result = m.plan(self.CONFIG, self.book(("10", "100")), own)

        assert (result.reference, result.raw_reference, result.to_place) == (None, None, ())
        assert [note.label for note in result.rungs] == ["no_reference (thin_book)"]
        assert m.cancelled(result) == [(100_000, True, "at_ask")]
        assert result.memory.no_reference_since_ms == m.NOW

    def test_a_fixed_range_does_not_care(self) -> None:
        config = replace(self.CONFIG, bid_mode="fixed")

        result = m.plan(config, self.book(("10", "100")))

        assert m.placed(result) == [50_000]
        assert result.marks == (Reason.THIN_BOOK,)

    @pytest.mark.parametrize(("quantity_mode", "expected"), [("quantity", (8_400, 9_000)), ("sats", (8_400, 9_000))])
    def test_a_third_is_not_lost(self, quantity_mode: str, expected: tuple[int, int]) -> None:
        """200,000 sats buy 150,000 tokens: 4/3 each. 9,000 of them at 70 % are 8,400 sats, to the last."""
        config = m.rune_config(
            bid_percent_low=Decimal("0.7"), bid_percent_high=Decimal("0.7"), bid_count=1, use_vwap=True,
            depth_sats=250_000, quantity=Decimal(9_000), quantity_mode=quantity_mode, sats_per_order=8_400,
        )  # fmt: skip
        market = replace(self.book(("100000", "1.00"), ("50000", "2.00")), divisibility=0)

        result = m.plan(config, market)

        assert [(intent.price_sats, intent.quantity) for intent in result.to_place] == [expected]
        assert str(result.reference) == "1." + "3" * 49

    def test_the_average_is_exact(self) -> None:
        """A rounding up in the last digit would put the low end a sat too high."""
        assert m.plan(self.CONFIG, self.book(("99999", "54.88"))).reference == Decimal("54.88")


class TestTrait:
    def book(self, *with_trait: int, floor: int = 100_000) -> Snapshot:
        return replace(m.book(floor, floor + 5_000), trait_asks=tuple(m.ask(price) for price in with_trait))

    def test_hangs_on_the_lowest_ask_with_the_trait(self) -> None:
        config = replace(TRAIT, hardcap_sats=1_000_000)

        result = m.plan(config, self.book(300_000, 200_000))

        assert result.reference == Decimal(200_000)
        assert m.placed(result)[0] == 150_000  # above the collection's floor
        assert {intent.trait for intent in result.to_place} == {("Hat", "Crown")}

    def test_the_ask_that_is_not_reached_has_the_trait(self) -> None:
        fixed = replace(TRAIT, bid_mode="fixed", bid_fixed_high=250_000, hardcap_sats=0, bid_count=1)

        assert m.placed(m.plan(fixed, self.book(200_000))) == [199_000]

    @pytest.mark.parametrize("trait_asks", [(), None])
    def test_without_one_the_collections_floor_stands_in(self, trait_asks: tuple[()] | None) -> None:
        market = replace(m.book(100_000), trait_asks=trait_asks)

        result = m.plan(replace(TRAIT, bid_percent_high=Decimal("1.5"), hardcap_sats=1_000_000, bid_count=1), market)

        assert result.reference == Decimal(100_000)
        assert m.placed(result) == [99_000]
        assert result.marks == (Reason.COLD_START, Reason.TRAIT_FLOOR_MISSING)

    def test_without_one_a_fixed_range_goes_on_without_the_ask_cap(self) -> None:
        fixed = replace(TRAIT, bid_mode="fixed", bid_fixed_high=250_000, hardcap_sats=0, bid_count=1)

        result = m.plan(fixed, self.book())

        assert m.placed(result) == [250_000]
        assert result.marks == (Reason.TRAIT_FLOOR_MISSING, Reason.NO_REFERENCE_FIXED)

    def test_a_bid_on_something_else_goes(self) -> None:
        own = [
            m.order(1, 75_000, trait=("Hat", "Crown")),
            m.order(2, 60_000, trait=("Hat", "Cap")),
            m.order(3, 45_000),
        ]

        result = m.plan(TRAIT, self.book(100_000), own)
        assert m.cancelled(result) == [(60_000, True, "wrong_trait"), (45_000, True, "wrong_trait")]

        result = m.plan(m.ladder_config(), m.book(100_000), own)
        assert m.cancelled(result) == [(75_000, True, "wrong_trait"), (60_000, True, "wrong_trait")]

    def test_a_trait_that_is_not_selected_is_no_trait(self) -> None:
        config = m.ladder_config(trait_type="Hat", trait_value="Crown")

        assert m.plan(config, self.book(200_000), m.orders(75_000)).to_cancel == ()


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (m.ladder_config(), "floor"),
        (m.ladder_config(use_vwap=True), "floor"),  # for runes only
        (m.rune_config(), "floor"),
        (m.rune_config(use_vwap=True, depth_sats=5_000), "vwap:5000"),
        (TRAIT, "trait:Hat=Crown"),
    ],
)
def test_measure_names_what_the_history_is_of(config: BidConfig, name: str) -> None:
    assert measure(config) == name


def test_bids_of_a_book_cut_short_still_count_for_a_fixed_range() -> None:
    config = m.ladder_config(bid_mode="fixed", bid_fixed_high=80_000, bid_count=1, only_bid_if_highest=True)

    assert m.rung_reasons(m.plan(config, replace(m.book(complete=False), bids=()))) == ["place"]


class TestUnreadAsks:
    def test_floor_that_may_not_be_the_lowest_is_no_reference_and_stays_the_cap(self) -> None:
        unsure = replace(m.book(100_000), is_floor_sure=False)
        assert m.plan(m.ladder_config(), unsure).reference is None
        fixed = m.ladder_config(bid_count=1, bid_mode="fixed", bid_fixed_high=200_000, hardcap_sats=1_000_000)
        assert m.placed(m.plan(fixed, unsure)) == [99_000]

    def test_lot_that_may_be_missing_leaves_no_vwap(self) -> None:
        market = replace(Snapshot(m.NOW, (m.rune_ask(100, 1_000_000),)), is_depth_sure=False)
        vwap = m.rune_config(bid_count=1, use_vwap=True, depth_sats=1_000)
        assert (m.plan(vwap, market).reference, Reason.THIN_BOOK in m.plan(vwap, market).marks) == (None, True)
        assert m.plan(replace(vwap, use_vwap=False), market).reference is not None
