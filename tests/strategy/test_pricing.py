"""Prices of rungs: the reference, the levels, and how they are rounded and capped."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from strategy.book import History, Snapshot, ceil_to_tick, floor_to_tick, times, vwap
from strategy.config.bid import BidConfig, BidLevel, dump_bid_config, load_bid_config, problems
from strategy.guards import measure
from strategy.ladders import crowded, geometric, geometric_units, nearest_gaps, targets, whole_root
from strategy.reasons import Reason
from tests.shapes import replace
from tests.strategy.test_sats_mode import market as tokens
from tests.strategy.variants import NO_EQUALS
from tests.worlds import market as m
from tests.worlds.market import book, ladder_config, placed, plan, rune_ask, with_limits

ENOUGH = with_limits(user_headroom=10**18, balance_sats=10**18)
TWO_ASKS = [rune_ask("100", "2"), rune_ask("100", "1")]


@pytest.mark.parametrize(
    ("value", "tick", "floor", "ceil"),
    [
        ("0", 1_000, 0, 0),
        ("1000", 1_000, 1_000, 1_000),
        ("1000.0000000000000000000000000000000000001", 1_000, 1_000, 2_000),
        ("1999.9999999999999999999999999999999999999", 1_000, 1_000, 2_000),
        ("74205", 1_000, 74_000, 75_000),
        ("0.3", 1, 0, 1),
        ("-1", 1_000, -1_000, 0),
        ("2100000000000000.5", 1, 2_100_000_000_000_000, 2_100_000_000_000_001),
    ],
)
def test_ticks_are_exact(value: str, tick: int, floor: int, ceil: int) -> None:
    assert floor_to_tick(Decimal(value), tick) == floor
    assert ceil_to_tick(Decimal(value), tick) == ceil


def test_products_are_not_rounded_whatever_the_callers_precision() -> None:
    factors = [Decimal("0.12345678901234567890123456789"), Decimal("99999.99999"), Decimal("1000.1")]
    with localcontext() as context:
        context.prec = 3
        product = times(*factors)

    assert Fraction(product) == Fraction(factors[0]) * Fraction(factors[1]) * Fraction(factors[2])
    assert floor_to_tick(times(Decimal("0.9999999999999999999999999999999"), 100), 1) == 99


@pytest.mark.parametrize(
    ("low", "high", "count", "tick", "expected"),
    [
        (15_000, 75_000, 5, 1_000, [75_000, 60_000, 45_000, 30_000, 15_000]),
        (53_000, 70_000, 4, 1_000, [70_000, 64_000, 58_000, 53_000]),
        (11_000, 52_000, 5, 1_000, [52_000, 41_000, 31_000, 21_000, 11_000]),
        (63_000, 100_000, 3, 1_000, [100_000, 81_000, 63_000]),
        (50_000, 63_000, 3, 1_000, [63_000, 56_000, 50_000]),
        (10_000, 50_000, 1, 1_000, [50_000]),
        (10_000, 50_000, 2, 1_000, [50_000, 10_000]),
        (10_000, 10_000, 3, 1_000, [10_000, 10_000, 10_000]),
        (1, 2, 4, 1, [2, 1, 1, 1]),
        (10_000, 50_000, 0, 1_000, []),
    ],
)
def test_targets(low: int, high: int, count: int, tick: int, expected: list[int]) -> None:
    assert targets(low, high, count, tick) == expected


@pytest.mark.parametrize(
    ("floor", "low", "high", "hardcap", "expected"),
    [
        (100_000, "0.15", "0.75", 100_000, [75_000, 15_000]),
        (87_300, "0.60", "0.85", 70_000, [70_000, 53_000]),
        (100_000, "0.15", "0.75", 75_999, [75_000, 15_000]),
        (100_000, "0.15", "0.75", 74_999, [74_000, 15_000]),
        (100_000, "0.01", "0.75", 100_000, [75_000, 10_000]),  # the venue's minimum
        (100_000, "0.99", "1.00", 200_000, [99_000, 99_000]),  # a tick below the ask
        (99_999, "0.15", "0.75", 100_000, [74_000, 15_000]),
        (2_100_000_000_000_000, "0.15", "0.75", 2_100_000_000_000_000, [1_575_000_000_000_000, 315_000_000_000_000]),
    ],
)
def test_ends_of_the_range(floor: int, low: str, high: str, hardcap: int, expected: list[int]) -> None:
    config = ladder_config(
        bid_percent_low=Decimal(low), bid_percent_high=Decimal(high), hardcap_sats=hardcap, bid_count=2
    )

    assert placed(plan(config, book(floor, floor * 2), limits=ENOUGH)) == expected


@pytest.mark.parametrize(
    ("depth", "price", "walked"),
    [
        (50, "1", 50),
        (100, "1", 100),
        (200, "1.333333333333", 200),  # 100 + 50 tokens
        (300, "1.5", 300),
        (1_000, "1.5", 300),  # thinner than the depth: the average of what there is
        (0, None, 0),
    ],
)
def test_vwap_walks_asks_upwards_and_takes_the_last_in_part(depth: int, price: str | None, walked: int) -> None:
    average, spent = vwap(TWO_ASKS, depth)

    assert spent == walked
    if price is None:
        assert average is None
    else:
        assert average is not None
        assert abs(average - Decimal(price)) < Decimal("1e-12")


def test_vwap_of_an_empty_or_worthless_book_is_not_known() -> None:
    assert vwap([], 1_000) == (None, 0)
    assert vwap([rune_ask("100", "0"), rune_ask("0", "5")], 1_000) == (None, 0)


def test_vwap_passes_over_asks_of_nothing() -> None:
    assert vwap([rune_ask("0", "0.5"), rune_ask("100", "0"), *TWO_ASKS], 100) == (Decimal(1), 100)


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


def levels(*given: tuple[str, int]) -> tuple[BidLevel, ...]:
    return tuple(BidLevel(Decimal(at), count) for at, count in given)


def leveled(*given: tuple[str, int], **more: object) -> BidConfig:
    """A config of these levels between 0.15 and 0.95 of the floor, hard cap 88,000."""
    wide = {"hardcap_sats": 88_000, "bid_percent_high": Decimal("0.95"), "bid_count": sum(n for _, n in given)}
    config = m.ladder_config(**{**wide, "bid_levels": levels(*given), **more})
    assert problems(config) == []
    return config


EXAMPLE = leveled(("0.9", 1), ("0.85", 2), ("0.7", 2))


def labels(config: BidConfig, price: int = 100_000) -> list[tuple[int | None, str]]:
    return [(note.price_sats, note.label) for note in m.plan(config, m.book(price)).rungs]


def test_the_hard_cap_comes_last_and_is_told() -> None:
    assert labels(EXAMPLE) == [
        (88_000, "place (hardcap)"), (85_000, "place"), (85_000, "place"), (70_000, "place"), (70_000, "place"),
    ]  # fmt: skip
    assert m.placed(m.plan(EXAMPLE, m.book(100_000))) == [88_000, 85_000, 85_000, 70_000, 70_000]


def test_levels_may_come_in_any_order_and_are_rounded_down() -> None:
    assert m.placed(m.plan(leveled(("0.7", 1), ("0.8", 1)), m.book(99_999))) == [79_000, 69_000]


def test_the_range_bounds_each_level_and_no_bid_is_above_its_own() -> None:
    config = leveled(("0.9", 1), ("0.5", 1), ("0.1", 1), bid_percent_high=Decimal("0.8"))
    assert labels(config) == [(80_000, "place (high)"), (50_000, "place"), (10_000, "range_empty (low)")]
    ask = leveled(("1.5", 2), hardcap_sats=10**6, bid_percent_high=Decimal(2))
    assert labels(ask) == [(99_000, "place (ask)")] * 2
    least = leveled(("0.5", 1), ("0.09", 1), bid_percent_low=Decimal("0.01"))
    assert labels(least) == [(50_000, "place"), (9_000, "range_empty (low)")]


def test_levels_in_fixed_mode_are_sats() -> None:
    config = leveled(
        ("60000", 1), ("45500", 2), ("9000", 1), bid_mode="fixed", bid_fixed_low=10_000, bid_fixed_high=50_000
    )
    assert labels(config) == [
        (50_000, "place (high)"), (45_000, "place"), (45_000, "place"), (9_000, "range_empty (low)"),
    ]  # fmt: skip


def test_equal_bids_are_merged_where_the_venue_takes_none() -> None:
    assert m.rung_reasons(m.plan(EXAMPLE, m.book(100_000), profile=NO_EQUALS)) == [
        "place", "place", "rungs_merged", "place", "rungs_merged",
    ]  # fmt: skip


def test_a_plan_with_fewer_bids_takes_the_highest() -> None:
    few = m.AMPLE.__class__(**{**{n: getattr(m.AMPLE, n) for n in m.AMPLE.__slots__}, "plan_bids": 2})
    assert m.rung_reasons(m.plan(EXAMPLE, m.book(100_000), limits=few)) == ["place", "place", *["plan_bids"] * 3]


def test_live_bids_hold_their_levels_while_the_market_hardly_moves() -> None:
    own = m.orders(88_000, 85_000, 85_000, 70_000, 70_000)
    still = m.plan(EXAMPLE, m.book(100_000), own)
    assert (m.placed(still), m.cancelled(still)) == ([], [])
    assert [note.label for note in still.rungs] == ["kept (hardcap)", *["kept"] * 4]
    # Of 98,000: 88,200, 83,300 and 68,600. A quarter of the gap of 5,000 is 1,250, of that of 15,000 it is 3,750.
    moved = m.plan(EXAMPLE, m.book(98_000), own)
    assert m.placed(moved) == [83_000, 83_000]
    assert m.cancelled(moved) == [(85_000, False, "surplus")] * 2


def test_outbidding_pays_the_least_that_wins_and_never_more_than_a_level() -> None:
    config = leveled(("0.8", 1), ("0.6", 2), outbid_enabled=True)
    assert m.placed(m.plan(config, m.rivals(m.book(100_000), 70_000))) == [71_000, 60_000, 60_000]
    assert m.placed(m.plan(config, m.rivals(m.book(100_000), 50_000))) == [51_000, 51_000, 51_000]
    # 84,000 could be outbid inside the range, but not at the top level: the next one is.
    assert m.placed(m.plan(config, m.rivals(m.book(100_000), 84_000, 75_000))) == [76_000, 60_000, 60_000]
    assert m.placed(m.plan(config, m.rivals(m.book(100_000), m.bid(80_000)))) == [15_000, 15_000, 15_000]


def test_runes_in_sats_mode_have_levels_of_the_unit_price() -> None:
    config = m.rune_config(
        quantity_mode="sats", sats_per_order=50_000, bid_percent_high=Decimal("0.9"), bid_count=3,
        bid_levels=levels(("0.95", 1), ("0.5", 1), ("0.1", 1)),
    )  # fmt: skip
    result = m.plan(config, tokens("100"))
    assert [(intent.price_sats, intent.quantity) for intent in result.to_place] == [
        (49_999, Decimal("555.55")), (50_000, Decimal(1000)),
    ]  # fmt: skip
    assert [note.label for note in result.rungs] == ["place (high)", "place", "range_empty (low)"]


@pytest.mark.parametrize(
    ("shape", "prices"),
    [
        ("even", [75_000, 60_000, 45_000, 30_000, 15_000]),
        # 75,000 x (1/5)^(i/4): 50,154, 33,541, 22,429.
        ("geometric", [75_000, 50_000, 33_000, 22_000, 15_000]),
        # 75,000 - (i/4)^2 x 60,000: 71,250, 60,000, 41,250.
        ("top", [75_000, 71_000, 60_000, 41_000, 15_000]),
    ],
)
def test_shapes(shape: str, prices: list[int]) -> None:
    assert m.placed(m.plan(m.ladder_config(ladder_shape=shape), m.book(100_000))) == prices


def test_shapes_of_one_bid_and_of_no_width() -> None:
    for shape in ("geometric", "top"):
        assert m.placed(m.plan(m.ladder_config(ladder_shape=shape, bid_count=1), m.book(100_000))) == [75_000]
        narrow = m.ladder_config(ladder_shape=shape, bid_percent_low=Decimal("0.75"), bid_count=3)
        assert m.placed(m.plan(narrow, m.book(100_000))) == [75_000] * 3


def test_shapes_of_runes_in_sats_mode() -> None:
    def units(shape: str) -> list[int]:
        config = m.rune_config(
            quantity_mode="sats", sats_per_order=10**6, bid_count=3, bid_percent_low=Decimal("0.2"),
            bid_percent_high=Decimal("0.8"), ladder_shape=shape,
        )  # fmt: skip
        return [round(each.price_sats / each.quantity) for each in m.plan(config, tokens("1000")).to_place]

    assert units("geometric") == [800, 400, 200]
    assert units("top") == [800, 650, 200]


def test_roots_are_exact() -> None:
    assert [whole_root(n, 3) for n in (1, 7, 8, 26, 27, 999, 1_000)] == [1, 1, 2, 2, 3, 9, 10]
    big = 2_100_000_000_000_000
    assert whole_root(big**99, 99) == big and whole_root(big**99 - 1, 99) == big - 1
    assert [whole_root(n**99 + more, 99) for n in (1, 2, 2**50) for more in (0, 1)] == [1, 1, 2, 2, 2**50, 2**50]
    ends = geometric(10_000, big, 100, 1)
    assert (ends[0], ends[-1]) == (big, 10_000) and ends == sorted(ends, reverse=True)
    assert geometric(1_000, 8_000, 4, 1) == [8_000, 4_000, 2_000, 1_000]
    assert crowded(0, 100, 3, 1) == [100, 75, 0]
    third, high = Fraction(1, 3), Fraction(4, 3)
    assert geometric_units(third, high, 3) == [high, Fraction(2, 3), third]
    assert geometric_units(third, high, 1) == [high]
    assert nearest_gaps([9, 9, 7, 4, 4]) == [0, 0, 2, 3, 3]


def test_levels_are_stored_exactly_and_what_is_no_level_is_refused() -> None:
    assert load_bid_config(dump_bid_config(EXAMPLE)) == EXAMPLE
    stored = dump_bid_config(EXAMPLE)
    for wrong in ('"at": 0.9', '"at": "x"', '"at": "0.9", "cap": 1'):
        with pytest.raises(ValueError, match="stored config"):
            load_bid_config(stored.replace('"at": "0.9"', wrong))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"bid_levels": ()}, "bid_levels"),
        ({"bid_levels": levels(("0", 1)), "bid_count": 1}, "bid_levels"),
        ({"bid_levels": levels(("10.01", 1)), "bid_count": 1}, "bid_levels"),
        ({"bid_levels": levels(("NaN", 1)), "bid_count": 1}, "bid_levels"),
        ({"bid_levels": levels(("0.5", 21)), "bid_count": 21}, "bid_levels"),
        ({"bid_levels": levels(("0.5", 1), ("0.50", 1)), "bid_count": 2}, "bid_levels"),
        ({"bid_levels": levels(("0.5", 2)), "bid_count": 3}, "bid_count"),
        ({"bid_levels": levels(("0.5", 1)), "bid_count": 1, "bid_mode": "fixed"}, "bid_levels"),
        ({"ladder_shape": "round"}, "ladder_shape"),
    ],
)
def test_broken_levels_are_named(changes: dict[str, object], field: str) -> None:
    assert [problem.field for problem in problems(m.ladder_config(**changes))] == [field]


def test_profile_is_the_practice_markets() -> None:
    assert (m.ORDINALS.tick, m.ORDINALS.min_bid) == (1_000, 10_000)
