"""How a listing is priced, and when it is put up, changed or left."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from strategy.config.listing import ListingConfig
from strategy.plan_listing import Listed, ListingInputs, foreign_prices, guard, plan_listing, without_outliers
from strategy.reasons import Reason
from tests.shapes import replace
from tests.strategy.listings import BARE, MINUTE, NOW, VAULT, asks, found, listed, price_of


@pytest.mark.parametrize(
    ("at", "wanted", "action", "price", "reason"),
    [
        # One tick is close.
        (100_000, 101_000, "keep", 100_000, Reason.UNCHANGED),
        (100_000, 99_000, "keep", 100_000, Reason.UNCHANGED),
        # Two ticks down are worth a signature, two up are not: raising takes 5 %.
        (100_000, 98_000, "reprice", 98_000, Reason.LOWERED),
        (100_000, 102_000, "keep", 100_000, Reason.SMALL_RAISE),
        (100_000, 104_000, "keep", 100_000, Reason.SMALL_RAISE),
        (100_000, 105_000, "reprice", 105_000, Reason.RAISED),
        (100_000, 300_000, "reprice", 300_000, Reason.RAISED),
        # 1 % of 1,000,000 is 10,000: exactly that is close, one tick more is not.
        (1_000_000, 990_000, "keep", 1_000_000, Reason.UNCHANGED),
        (1_000_000, 989_000, "reprice", 989_000, Reason.LOWERED),
        (1_000_000, 1_010_000, "keep", 1_000_000, Reason.UNCHANGED),
        (1_000_000, 1_049_000, "keep", 1_000_000, Reason.SMALL_RAISE),
        (1_000_000, 1_050_000, "reprice", 1_050_000, Reason.RAISED),
        # A tenth is the most that it falls.
        (100_000, 90_000, "reprice", 90_000, Reason.LOWERED),
        (100_000, 89_000, "reprice", 90_000, Reason.LOWERED),
        (100_000, 10_000, "reprice", 90_000, Reason.LOWERED),
        # 0.9 x 103,000 = 92,700 is rounded up: rounding down would be more than a tenth.
        (103_000, 50_000, "reprice", 93_000, Reason.LOWERED),
        # A listing off the grid, as another program made it.
        (100_500, 100_000, "keep", 100_500, Reason.UNCHANGED),
        (100_500, 50_000, "reprice", 91_000, Reason.LOWERED),
    ],
)
def test_repricing(at: int, wanted: int, action: str, price: int, reason: Reason) -> None:
    config = {"price_mode": "fixed", "price_sats": wanted}

    decision = plan_listing(found(config=config, listed=listed(at)))

    assert (decision.action, decision.price, decision.reason) == (action, price, reason), decision.note


def test_a_young_listing_is_not_lowered() -> None:
    inputs = found(80_000, listed=listed(100_000, minutes_ago=4))
    # 80,000 x 1.05 = 84,000, so a step to 90,000 is due once it is five minutes old.
    young = plan_listing(inputs)
    almost = plan_listing(replace(inputs, now_ms=NOW + MINUTE - 1))
    grown = plan_listing(found(80_000, listed=listed(100_000, minutes_ago=5)))

    assert (young.action, young.price, young.reason) == ("keep", 100_000, Reason.LISTING_YOUNG)
    assert almost == young
    assert (grown.action, grown.price) == ("reprice", 90_000)


def test_a_young_listing_is_raised() -> None:
    decision = plan_listing(found(120_000, listed=listed(100_000, minutes_ago=0)))

    assert (decision.action, decision.price) == ("reprice", 126_000)


def test_a_clock_that_went_back_makes_no_listing_old() -> None:
    decision = plan_listing(found(80_000, listed=listed(100_000, minutes_ago=-600)))

    assert decision.reason is Reason.LISTING_YOUNG


def test_the_highest_price_of_the_hour_counts_not_the_last_one() -> None:
    # 100,000 was asked within the hour: 90,000 is the least, and that is where it is.
    inputs = found(50_000, listed=listed(90_000), highest_last_hour=100_000)
    limited = plan_listing(inputs)
    # Half way there: 95,000 may go to 90,000 still.
    partly = plan_listing(found(50_000, listed=listed(95_000), highest_last_hour=100_000))

    assert (limited.action, limited.price, limited.reason) == ("keep", 90_000, Reason.LOWER_LIMITED)
    assert (partly.action, partly.price) == ("reprice", 90_000)
    assert "wanted 53,000" in partly.note


def test_a_fall_to_a_tenth_takes_hours() -> None:
    """100,000 -> 90,000 -> 81,000 -> 73,000 (72,900 rounded up) -> ... as a cycle a minute would have it."""
    listing = listed(100_000)
    steps = [(0, 100_000)]
    for minute in range(1, 300):
        # A price was asked until the next one took its place.
        ends = [since for since, _ in steps[1:]] + [minute]
        highest = max(price for (_, price), end in zip(steps, ends, strict=True) if minute - end < 60)
        inputs = found(10_000, now_ms=NOW + minute * MINUTE, listed=listing, highest_last_hour=highest)
        decision = plan_listing(inputs)
        if decision.action == "reprice" and decision.price is not None:
            steps.append((minute, decision.price))
            listing = Listed(decision.price, inputs.now_ms)

    assert steps == [(0, 100_000), (1, 90_000), (61, 81_000), (121, 73_000), (181, 66_000), (241, 60_000)]


def test_a_tenth_of_less_than_a_tick_is_no_step() -> None:
    # 0.9 x 5,000 = 4,500, rounded up to 5,000 again.
    decision = plan_listing(found(config={"price_mode": "fixed", "price_sats": 1_000}, listed=listed(5_000)))

    assert (decision.action, decision.reason) == ("keep", Reason.LOWER_LIMITED)


@pytest.mark.parametrize("floor", [60_000, 66_500])
def test_a_listing_below_its_guard_is_raised_at_once(floor: int) -> None:
    # 60,000 x 1.05 = 63,000 and 66,500 x 1.05 = 69,825 -> 70,000: the least price is 70,000, less than 5 % above.
    config = {"min_price_sats": 70_000}

    decision = plan_listing(found(floor, config=config, listed=listed(69_000, minutes_ago=0)))

    assert (decision.action, decision.price) == ("reprice", 70_000)


def test_the_guard_is_last_when_prices_fall_slowly() -> None:
    # A tenth lower were 90,000.
    decision = plan_listing(found(50_000, config={"min_price_sats": 95_000}, listed=listed(100_000)))
    kept = plan_listing(found(50_000, config={"min_price_sats": 95_000}, listed=listed(95_000)))

    assert (decision.action, decision.price, decision.reason) == ("reprice", 95_000, Reason.AT_MIN)
    assert (kept.action, kept.price, kept.reason) == ("keep", 95_000, Reason.AT_MIN)


def test_an_existing_listing_is_adopted() -> None:
    close = plan_listing(found(100_000, listed=listed(105_500)))
    far = plan_listing(found(100_000, listed=listed(80_000)))

    assert (close.action, close.price) == ("keep", 105_500)
    assert (far.action, far.price) == ("reprice", 105_000)


@pytest.mark.parametrize(
    ("inscription_state", "at", "action", "price", "reason"),
    [
        ("held", None, "list", 105_000, Reason.LIST),
        ("moved", 105_000, "list", 105_000, Reason.MOVED),
        ("moved", None, "list", 105_000, Reason.MOVED),
        ("spent", 105_000, "ended", None, Reason.SPENT),
        ("spent", None, "ended", None, Reason.SPENT),
        ("pending", 105_000, "wait", None, Reason.SPEND_PENDING),
        ("pending", None, "wait", None, Reason.SPEND_PENDING),
        ("unknown", 90_000, "keep", 90_000, Reason.HOLDING_UNKNOWN),
        ("unknown", None, "wait", None, Reason.HOLDING_UNKNOWN),
    ],
)
def test_where_the_inscription_is(
    inscription_state: Any, at: int | None, action: str, price: int | None, reason: Reason
) -> None:
    decision = plan_listing(found(100_000, inscription_state=inscription_state, listed=listed(at) if at else None))

    assert (decision.action, decision.price, decision.reason) == (action, price, reason)


def test_own_listings_that_cannot_be_read_are_not_none() -> None:
    for at in (None, listed(50_000)):
        for inscription_state in ("held", "moved", "unknown"):
            decision = plan_listing(found(100_000, own_read=False, listed=at, inscription_state=inscription_state))

            assert (decision.action, decision.reason) == ("keep", Reason.OWN_LISTINGS_UNKNOWN)
            assert decision.price == (at.price if at else None)
    assert plan_listing(found(100_000, own_read=False, inscription_state="spent")).action == "ended"


@pytest.mark.parametrize("at", [None, 105_000])
def test_two_reads_have_to_agree_before_it_is_listed_again(at: int | None) -> None:
    shown = listed(at) if at else None
    once = plan_listing(found(100_000, listed=shown, missing_reads=1))
    twice = plan_listing(found(100_000, listed=shown, missing_reads=2))

    assert (once.action, once.price, once.reason) == ("wait", None, Reason.RELIST_CONFIRMING)
    assert (twice.action, twice.price, twice.reason) == ("list", 105_000, Reason.RELIST)


def test_a_listing_on_an_output_that_is_gone_need_not_be_confirmed() -> None:
    decision = plan_listing(found(100_000, inscription_state="moved", missing_reads=1))

    assert (decision.action, decision.price, decision.reason) == ("list", 105_000, Reason.MOVED)


def test_listing_again_is_no_way_around_slow_falling() -> None:
    # 50,000 x 1.05 = 53,000 is wanted; 100,000 was asked within the hour.
    again = plan_listing(found(50_000, listed=listed(100_000), missing_reads=2))
    restarted = plan_listing(found(50_000, highest_last_hour=100_000))
    moved = plan_listing(found(50_000, listed=listed(95_000), highest_last_hour=100_000, inscription_state="moved"))
    # ... and three minutes ago, so that it may not fall at all.
    young = plan_listing(found(50_000, listed=listed(100_000, minutes_ago=3), missing_reads=2))

    assert [d.price for d in (again, restarted, moved, young)] == [90_000, 90_000, 90_000, 100_000]
    assert {d.action for d in (again, restarted, moved, young)} == {"list"}


def test_a_missing_listing_and_no_reference_is_waited_out() -> None:
    decision = plan_listing(found(listed=listed(100_000), missing_reads=2))

    assert (decision.action, decision.price, decision.reason) == ("wait", None, Reason.NO_REFERENCE)


def test_three_delistings_in_an_hour_are_a_pause() -> None:
    for missing in (0, 1, 2):
        paused = plan_listing(found(100_000, delistings_last_hour=3, missing_reads=missing))

        assert (paused.action, paused.price, paused.reason) == ("pause", None, Reason.DELISTED_OFTEN)
        assert "3 times" in paused.note
    assert plan_listing(found(100_000, delistings_last_hour=2, missing_reads=2)).action == "list"
    assert plan_listing(found(100_000, delistings_last_hour=3, inscription_state="spent")).action == "ended"


def test_notes_say_what_a_price_comes_from() -> None:
    assert plan_listing(found(100_000)).note == "at 105,000: 1.05 x floor 100,000"
    assert plan_listing(found(60_000, config={"min_price_sats": 70_000})).note == (
        "at 70,000: 1.05 x floor 60,000; not below 70,000"
    )
    fell = plan_listing(found(50_000, median_60m=100_000))
    assert fell.note == "at 79,000: 1.05 x 75,000 (the floor 50,000 is below three quarters of its median)"
    assert plan_listing(found(100_000, listed=listed(103_000))).note == (
        "at 103,000: wanted 105,000 (1.05 x floor 100,000)"
    )


PERCENT: dict[str, Any] = {"price_percent": Decimal("1.05")}
UNDERCUT: dict[str, Any] = {"price_mode": "undercut"}


def test_floor_times_percent() -> None:
    assert price_of(found(100_000, config=PERCENT)) == 105_000


def test_the_own_listing_is_no_floor() -> None:
    inputs = found(config=PERCENT, asks=asks(95_000, maker=VAULT) + asks(100_000))

    assert price_of(inputs) == 105_000


def test_the_minimum_holds() -> None:
    # 60,000 x 1.05 = 63,000, raised to 70,000
    decision = plan_listing(found(60_000, config={**PERCENT, "min_price_sats": 70_000}))

    assert (decision.action, decision.price, decision.reason) == ("list", 70_000, Reason.AT_MIN)


def test_the_cost_margin_and_fee_hold() -> None:
    config: dict[str, Any] = {**PERCENT, "cost_sats": 80_000, "min_margin": Decimal("0.10")}
    # 80,000 x 1.10 / 0.98 = 89,795.9..., on the grid 90,000
    assert guard(ListingConfig(**config), 20_000, 1) == 89_796
    assert price_of(found(60_000, config=config, fee_ppm=20_000)) == 90_000


def test_a_bait_ask_is_dropped_and_the_median_is_only_a_brake() -> None:
    # 20,000 is under 70 % of 98,000; max(98,000, 75,000) x 1.05 = 102,900, on the grid 103,000
    assert price_of(found(20_000, 98_000, 99_000, config=PERCENT, median_60m=100_000)) == 103_000


@pytest.mark.parametrize(
    ("config", "inputs", "price"),
    [
        # Percent: 87,300 x 1.1 = 96,030, rounded up to 97,000.
        ({"price_percent": Decimal("1.1")}, found(87_300), 97_000),
        # Exactly on the grid stays there: 87,500 x 1.2 = 105,000.
        ({"price_percent": Decimal("1.2")}, found(87_500), 105_000),
        # The market fell by half within the hour: 0.75 x 100,000 x 1.05 = 78,750 -> 79,000.
        (PERCENT, found(50_000, 51_000, median_60m=100_000), 79_000),
        # Three quarters of the median are below the floor: 76,000 x 1.05 = 79,800 -> 80,000.
        (PERCENT, found(76_000, median_60m=100_000), 80_000),
        # Trait floor: the collection's floor of 50,000 does not matter; 200,000 x 1.05 = 210,000.
        ({**PERCENT, "reference": "traitFloor"}, found(50_000, trait_asks=asks(200_000, 230_000)), 210_000),
        # Cost: 40,000 x 1.5 = 60,000, more than the cost itself.
        ({"price_percent": Decimal("1.5"), "reference": "purchase", "cost_sats": 40_000}, found(), 60_000),
        # Last sale: 123,456 x 2 = 246,912 -> 247,000.
        ({"price_percent": Decimal(2), "reference": "lastSale"}, found(last_sales=(123_456,) * 3), 247_000),
        # Below the reference, which was meant: 100,000 x 0.9.
        ({"price_percent": Decimal("0.9"), "allow_below_reference": True}, found(100_000), 90_000),
        # Fixed, off the grid: rounded up.
        ({"price_mode": "fixed", "price_sats": 123_400}, found(50_000), 124_000),
        # Fixed below cost: 100,000 is what was paid.
        ({"price_mode": "fixed", "price_sats": 90_000, "cost_sats": 100_000}, found(), 100_000),
        # A minimum off the grid is rounded up, too.
        ({**PERCENT, "min_price_sats": 70_001}, found(60_000), 71_000),
        # The higher of both guards: 50,000 x 1.2 / 0.95 = 63,157.9 -> 64,000, above the minimum 60,000.
        ({**PERCENT, "min_price_sats": 60_000, "cost_sats": 50_000, "min_margin": Decimal("0.2")},
         found(10_000, fee_ppm=50_000), 64_000),
        # ... and the other way round: 50,000 is below the minimum 60,000.
        ({**PERCENT, "min_price_sats": 60_000, "cost_sats": 50_000}, found(10_000), 60_000),
        # An item that cost nothing has no guard.
        ({**PERCENT, "cost_sats": 0}, found(10_000), 11_000),
        # Undercut by one tick, and by more.
        (UNDERCUT, found(100_000, 105_000), 99_000),
        ({**UNDERCUT, "undercut_sats": 5_500}, found(100_000), 95_000),
        # Less than a tick would be no undercutting when rounded up: 99,999 -> 100,000 is not below the ask.
        ({**UNDERCUT, "undercut_sats": 1}, found(100_000), 99_000),
        # An ask off the grid: 100,300 - 1,000 = 99,300 -> 100,000, which is below 100,300.
        (UNDERCUT, found(100_300), 100_000),
        # Zero is joining the cheapest, never passing it.
        ({**UNDERCUT, "undercut_sats": 0}, found(100_000), 100_000),
        ({**UNDERCUT, "undercut_sats": 0}, found(100_300), 100_000),
        # Bait is not undercut.
        (UNDERCUT, found(20_000, 98_000, 99_000), 97_000),
        # 70,000 and 80,000 cannot be undercut above 90,000; 120,000 can. (70,000 is not under 70 % of 80,000.)
        ({**UNDERCUT, "min_price_sats": 90_000}, found(70_000, 80_000, 120_000), 119_000),
        # 91,000 - 1,000 is the minimum itself: that is allowed.
        ({**UNDERCUT, "min_price_sats": 90_000}, found(70_000, 91_000), 90_000),
        # Whoever asks less than three quarters of the median is not followed: next is 90,000.
        (UNDERCUT, found(70_000, 90_000, median_60m=100_000), 89_000),
        (UNDERCUT, found(60_000, 70_000, median_60m=100_000), 75_000),
    ],
)  # fmt: skip
def test_prices(config: dict[str, Any], inputs: ListingInputs, price: int) -> None:
    decision = plan_listing(replace(inputs, config=ListingConfig(**config)))

    assert (decision.action, decision.price) == ("list", price), decision.note


def test_an_undercut_stays_at_the_guard_when_all_asks_are_below_it() -> None:
    decision = plan_listing(found(60_000, 70_000, config={**UNDERCUT, "min_price_sats": 90_000}))

    assert (decision.price, decision.reason) == (90_000, Reason.AT_MIN)


@pytest.mark.parametrize(
    ("ascending", "left"),
    [
        ([], []),
        ([20_000], [20_000]),
        ([20_000, 98_000], [98_000]),
        # Exactly 70 % is not under it.
        ([70_000, 100_000], [70_000, 100_000]),
        ([69_999, 100_000], [100_000]),
        # Two steps, each under 70 % of the next; a third is believed.
        ([10, 20, 40, 80], [40, 80]),
        ([10, 20, 40], [40]),
        # The lowest is close to the next, so that neither is dropped: two agree with one another.
        ([20_000, 21_000, 98_000], [20_000, 21_000, 98_000]),
        ([20_000, 20_000, 98_000], [20_000, 20_000, 98_000]),
    ],
)
def test_outliers(ascending: list[int], left: list[int]) -> None:
    assert without_outliers(ascending) == left


def test_asks_that_cannot_be_are_not_seen() -> None:
    strange = asks(0, -5, 2_100_000_000_000_001, 100_000)

    assert foreign_prices(strange, ()) == [100_000]


def test_the_own_asks_do_not_make_others_look_dear() -> None:
    # Without the own 21,000 the foreign 20,000 is under 70 % of 98,000.
    book = asks(20_000, 98_000) + asks(21_000, maker="bc1qpayment")

    assert foreign_prices(book, BARE.own_wallets) == [98_000]


@pytest.mark.parametrize("median", [None, Decimal(0), Decimal(-1), Decimal("NaN"), Decimal("Infinity")])
def test_a_median_that_is_none_brakes_nothing(median: Decimal | None) -> None:
    assert price_of(found(50_000, config=PERCENT, median_60m=median)) == 53_000


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        (PERCENT, {"asks": None}),
        (PERCENT, {"asks": ()}),
        (PERCENT, {"asks": asks(95_000, maker=VAULT)}),
        (PERCENT, {"asks": None, "median_60m": Decimal(100_000)}),
        ({"reference": "traitFloor"}, {"trait_asks": None}),
        ({"reference": "traitFloor"}, {"trait_asks": ()}),
        ({"reference": "purchase"}, {}),
        ({"reference": "purchase", "cost_sats": 0}, {}),
        ({"reference": "lastSale"}, {}),
        ({"reference": "lastSale"}, {"last_sales": ()}),
        ({"reference": "lastSale"}, {"last_sales": (100_000, 100_000)}),
        ({"reference": "lastSale"}, {"last_sales": (100_000, 100_000, 0, -5, 2_100_000_000_000_001)}),
        (UNDERCUT, {"asks": None}),
        (UNDERCUT, {"asks": ()}),
        # Nothing can be undercut, and there is no guard to stay at.
        (UNDERCUT, {"asks": asks(1_000)}),
    ],
)
def test_without_a_reference_nothing_is_listed_and_a_listing_stays(
    config: dict[str, Any], changes: dict[str, Any]
) -> None:
    inputs = found(100_000, config=config, **changes)
    fresh = plan_listing(inputs)
    kept = plan_listing(found(100_000, config=config, **changes, listed=listed(50_000)))

    assert (fresh.action, fresh.price, fresh.reason) == ("wait", None, Reason.NO_REFERENCE)
    assert (kept.action, kept.price, kept.reason) == ("keep", 50_000, Reason.NO_REFERENCE)
    assert fresh.note


@pytest.mark.parametrize(
    ("newest_first", "price"),
    [
        ((20_000, 98_000, 99_000), 98_000),
        ((900_000, 98_000, 99_000), 99_000),
        ((20_000, 21_000, 100_000, 101_000, 102_000), 100_000),
        ((100_000, 102_000, 104_000, 106_000), 103_000),
        ((100_000, 101_000, 102_000, 103_000, 104_000, 1, 1, 1, 1, 1, 1), 102_000),
        ((0, 100_000, 100_000, 100_000), 100_000),
    ],
)
def test_no_single_sale_sets_the_price(newest_first: tuple[int, ...], price: int) -> None:
    inputs = found(config={"reference": "lastSale", "price_percent": Decimal(1)}, last_sales=newest_first)

    assert price_of(inputs) == price
    assert (
        f"the median of the last {min(5, len([x for x in newest_first if x > 0]))} sales" in plan_listing(inputs).note
    )


def test_a_fixed_price_needs_no_market() -> None:
    inputs = found(config={"price_mode": "fixed", "price_sats": 50_000}, asks=None)

    assert price_of(inputs) == 50_000


def test_more_than_every_bitcoin_is_no_price() -> None:
    inputs = found(2_000_000_000_000_000, config={"price_percent": Decimal(1000)})
    decision = plan_listing(inputs)

    assert (decision.action, decision.reason) == ("wait", Reason.IMPOSSIBLE_PRICE)


@pytest.mark.parametrize(("tick", "fee"), [(0, 0), (-1, 0), (1, -1), (1, 1_000_000)])
def test_a_tick_or_fee_that_cannot_be_is_an_error(tick: int, fee: int) -> None:
    with pytest.raises(ValueError):
        plan_listing(found(100_000, tick=tick, fee_ppm=fee))
