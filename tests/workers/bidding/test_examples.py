"""The worked examples of the bidding rules, through whole cycles: ledger, signer and venue included."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from markets.base import Unavailable
from models.ledger import orders
from models.tasks import cycles, tasks
from models.tasks.tasks import STOPPED
from strategy.book import Ask
from strategy.config.bid import dump_bid_config
from tests.shapes import replace
from tests.worlds.worker import CATS, World, ask, bid
from workers.bidding.bidder import Bidder


def test_example_1_a_ladder(world: World) -> None:
    task, _ = world.begun()
    assert world.market.done == [("place", price) for price in (75_000, 60_000, 45_000, 30_000, 15_000)]
    assert orders.task_exposure(task) == 225_000
    assert world.row(task).last_cycle_action == "placed 5, kept 0, cancelled 0"
    assert world.row(task).last_error is None


def test_example_2_rounding_and_cap(world: World) -> None:
    world.market.asks_ = [ask(87_300)]
    config = replace(
        CATS, bid_percent_low=Decimal("0.60"), bid_percent_high=Decimal("0.85"), bid_count=4, hardcap_sats=70_000
    )
    world.bidder(world.task(config)).cycle()
    assert world.market.prices == [70_000, 64_000, 58_000, 53_000]


def test_example_3_skip_and_go_on(world: World) -> None:
    task, _ = world.begun(replace(CATS, max_bid_total=150_000))
    assert world.market.prices == [75_000, 60_000, 15_000]
    assert world.row(task).last_cycle_action == "placed 3, kept 0, cancelled 0; skipped 2 task_total"


def ladder_at(world: World, **changes: object) -> tuple[int, Bidder]:
    """Sets up a fixed range from 50,000 to 80,000 under an ask that does not matter."""
    fixed = replace(CATS, bid_mode="fixed", bid_fixed_low=50_000, bid_fixed_high=80_000, hardcap_sats=100_000)
    world.market.asks_ = [ask(1_000_000)]
    task = world.task(replace(fixed, **changes))  # type: ignore[arg-type]
    return task, world.bidder(task)


def test_example_4_outbid_and_keep_within_tolerance(world: World) -> None:
    task, bidder = ladder_at(world, bid_count=1, bid_fixed_low=50_000, bid_fixed_high=55_000)
    bidder.cycle()
    assert world.market.prices == [55_000]
    task_config = replace(
        CATS, bid_mode="fixed", bid_fixed_low=50_000, bid_fixed_high=80_000, bid_count=3, outbid_enabled=True
    )
    row = world.row(task)
    tasks.change_bidding_task(row, type="ordinals", slug="cats", slug_key="cats", config=dump_bid_config(task_config))
    world.market.bids_ = [bid(62_000), bid(60_500), bid(41_000)]
    world.clock.advance(61)
    world.market.done = []

    world.bidder(task).cycle()

    assert world.market.done == [("place", 63_000), ("place", 50_000)]
    assert world.market.prices == [63_000, 55_000, 50_000]
    assert world.action(task) == "placed 2, kept 1, cancelled 0"
    assert world.detail(task)["seen"]["best_bid"]["price_sats"] == 62_000

    world.clock.advance(30)
    world.bidder(task).cycle()
    assert world.action(task) == "placed 0, kept 3, cancelled 0", "our own bids are no rivals"


def test_example_5_an_unbeatable_leader(world: World) -> None:
    outbid = {"bid_count": 1, "outbid_enabled": True, "outbid_mode": "percent", "outbid_percent": Decimal("0.02")}
    _, bidder = ladder_at(world, **outbid)
    world.market.bids_ = [bid(79_800), bid(70_000)]
    bidder.cycle()
    assert world.market.prices == [72_000]


def test_example_5_only_the_highest_bid_stays(world: World) -> None:
    outbid = {"bid_count": 1, "outbid_enabled": True, "outbid_mode": "percent", "outbid_percent": Decimal("0.02")}
    task, bidder = ladder_at(world, **outbid, only_bid_if_highest=True)
    world.market.bids_ = [bid(70_000)]
    bidder.cycle()
    assert world.market.prices == [72_000]
    bidder.cycle()
    world.market.bids_ = [bid(79_800), bid(70_000)]
    world.later(30, bidder)
    assert world.market.prices == []
    assert "cancelled 1 (not_highest)" in world.action(task)


def test_example_5_a_ladder_that_keeps_what_is_ahead(world: World) -> None:
    _, bidder = ladder_at(world, bid_count=5, bid_fixed_low=30_000, bid_fixed_high=50_000, only_bid_if_highest=True)
    world.market.bids_ = [bid(42_000)]
    bidder.cycle()
    assert world.market.prices == [50_000, 45_000]


def test_bids_that_are_wanted_and_cannot_be_read_place_nothing_and_leave_what_is_there(world: World) -> None:
    task, bidder = ladder_at(world, bid_count=1, outbid_enabled=True)
    world.market.bids_ = [bid(62_000)]
    bidder.cycle()
    bidder.cycle()
    assert world.market.prices == [63_000]
    world.market.bids_ = [bid(70_000)]
    world.market.fail("bids", Unavailable("down"))
    world.later(61, bidder)
    assert world.market.prices == [63_000]
    assert "bids_unknown" in str(world.detail(task)["bids"])
    assert "down" in str(world.row(task).last_error)
    bidder.cycle()
    assert world.market.prices == [71_000]


def test_where_makers_are_not_told_we_do_not_outbid_ourselves(world: World) -> None:
    world.market.tells_makers = False
    _, bidder = ladder_at(world, bid_count=1, outbid_enabled=True)
    world.market.bids_ = [bid(62_000, maker="")]
    for _ in range(4):
        bidder.cycle()
        assert world.market.prices == [63_000]
        world.clock.advance(61)
    world.market.bids_.append(bid(70_000, maker=""))
    bidder.cycle()
    assert world.market.prices == [71_000]


def test_where_makers_are_not_told_a_bid_that_has_no_id_yet_is_known_by_its_price(world: World) -> None:
    """The book is read again between two slow places; the first bid is in it, but not among our own yet."""
    world.market.tells_makers = False
    task, bidder = ladder_at(world, bid_count=3, outbid_enabled=True)
    world.market.bids_ = [bid(62_000, maker="")]
    world.market.witness = lambda operation: world.clock.advance(13) if operation == "place" else None
    bidder.cycle()
    assert world.market.prices == [63_000, 56_000, 50_000]
    assert world.detail(task)["looks"] == 2


def test_a_bid_made_by_hand_at_our_wallet_is_no_rival(world: World) -> None:
    world.market.tells_makers = False
    _, bidder = ladder_at(world, bid_count=1, outbid_enabled=True)
    world.market.add(62_000, world.clock() + 10**9)
    bidder.cycle()
    assert world.market.prices == [62_000, 50_000]


def history_of(world: World, prices: Sequence[int]) -> None:
    """One accepted reference in each of the last minutes, the newest one a minute ago."""
    for minutes, price in enumerate(reversed(prices), start=1):
        cycles.record_reference("ordinals", "cats", "floor", Decimal(price), world.clock() - minutes * 60_000)


def test_example_6_a_floor_spike(world: World) -> None:
    history_of(world, [100_000] * 30)
    world.market.asks_ = [ask(180_000)]
    config = replace(
        CATS,
        bid_percent_low=Decimal("0.50"),
        bid_percent_high=Decimal("0.80"),
        bid_count=3,
        hardcap_sats=120_000,
    )
    task, _ = world.begun(config)
    assert world.market.prices == [100_000, 81_000, 63_000]
    seen = world.detail(task)["seen"]
    assert (seen["raw_reference"], Decimal(seen["reference"])) == ("180000", 125_000)
    assert (seen["median"], seen["samples"]) == ("100000", 30)
    assert world.detail(task)["marks"] == ["floor_spike"]
    assert world.action(task) == "placed 3, kept 0, cancelled 0; floor_spike"


def test_example_6_far_above_its_median_it_is_an_alarm(world: World, caplog: pytest.LogCaptureFixture) -> None:
    history_of(world, [100_000] * 30)
    world.market.asks_ = [ask(201_000)]
    task, _ = world.begun()
    assert "floor_alarm" in world.action(task)
    assert "far above its median" in caplog.text


def test_example_6_a_spike_becomes_a_sample_as_it_was_clamped_and_all_tasks_of_a_slug_share_it(world: World) -> None:
    history_of(world, [100_000] * 30)
    world.market.asks_ = [ask(180_000)]
    first = world.bidder(world.task())
    for _ in range(3):
        first.cycle()
        world.clock.advance(30)
    found = cycles.history("ordinals", "cats", "floor", world.clock())
    assert found.samples in (31, 32, 33)
    assert found.median == 100_000
    assert {Decimal(row.reference) for row in cycles.FloorSample.select()} == {
        Decimal(100_000),
        Decimal(125_000),
    }


def test_without_history_the_floor_counts_as_it_is(world: World) -> None:
    task, _ = world.begun()
    assert world.detail(task)["marks"] == ["cold_start"]
    assert world.action(task) == "placed 5, kept 0, cancelled 0"


def test_example_7_the_order_of_actions(world: World) -> None:
    task, bidder = world.begun(replace(CATS, replace_mode="breakFirst"))
    world.clock.advance(61)
    world.market.asks_, world.market.done = [ask(70_000)], []

    bidder.cycle()

    assert world.market.done == [
        ("challenge", 0),
        ("cancel", 75_000, 60_000),
        ("cancel", 45_000, 15_000),
        *[("place", price) for price in (52_000, 41_000, 21_000, 11_000)],
    ]
    assert world.market.prices == [52_000, 41_000, 30_000, 21_000, 11_000]
    assert orders.task_exposure(task) == 155_000
    assert world.market.peak_sats == 225_000
    assert world.row(task).last_cycle_action == "placed 4, kept 1, cancelled 4 (2 above_range, 2 surplus)"


def test_example_7_where_a_bid_goes_when_what_takes_its_place_has_come(world: World) -> None:
    task, bidder = world.begun()
    world.clock.advance(61)
    world.market.asks_, world.market.done = [ask(70_000)], []

    bidder.cycle()

    assert world.market.done == [
        ("challenge", 0),
        ("cancel", 75_000, 60_000),
        *[("place", price) for price in (52_000, 41_000, 21_000, 11_000)],
        ("cancel", 45_000, 15_000),
    ]
    assert world.market.prices == [52_000, 41_000, 30_000, 21_000, 11_000]
    assert world.market.peak_sats == 225_000
    assert world.row(task).last_cycle_action == "placed 4, kept 1, cancelled 4 (2 above_range, 2 surplus)"


def test_example_7_a_cancel_that_did_not_work_still_counts(world: World) -> None:
    task, bidder = world.begun(replace(CATS, max_bid_total=225_000, replace_mode="breakFirst"))
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]
    world.market.fail("cancel", "lie")

    bidder.cycle()

    assert world.open(task) == {75_000: "cancelling"} | dict.fromkeys((30_000, 52_000, 41_000, 21_000), "live")
    assert orders.task_exposure(task) == 219_000
    assert (
        world.row(task).last_cycle_action
        == "placed 3, kept 1, cancelled 3 (1 above_range, 2 surplus); skipped 1 task_total"
    )

    world.later(30, bidder)
    assert 75_000 not in world.open(task)
    assert world.market.prices == [52_000, 41_000, 30_000, 21_000, 11_000]


def test_example_8_two_tasks_share_their_users_limit(database: str) -> None:
    world = World(max_exposure=300_000)
    fixed = replace(CATS, bid_mode="fixed", bid_count=1)
    held = world.task(replace(fixed, slug="dogs", hardcap_sats=0, bid_fixed_low=10_000, bid_fixed_high=180_000))
    first = world.task(replace(fixed, bid_fixed_high=75_000))
    second = world.task(replace(fixed, slug="owls", bid_count=2, bid_fixed_low=45_000, bid_fixed_high=60_000))
    world.market.asks_ = [ask(1_000_000)]

    for task in (held, first, second):
        world.bidder(task).cycle()

    assert world.market.prices == [180_000, 75_000, 45_000]
    assert world.row(second).last_cycle_action == "placed 1, kept 0, cancelled 0; skipped 1 exposure_limit"
    assert orders.exposure(world.user.id) == 300_000


def test_example_8_a_limit_that_another_worker_takes_up_meanwhile(database: str) -> None:
    """The first has planned 75,000, 60,000 and 45,000 when the other reserves 180,000: its reservations decide."""
    world = World(max_exposure=300_000)
    fixed = replace(CATS, bid_mode="fixed", hardcap_sats=0)
    first = world.task(replace(fixed, bid_count=3, bid_fixed_low=45_000, bid_fixed_high=75_000))
    other = world.task(replace(fixed, slug="owls", bid_count=1, bid_fixed_low=10_000, bid_fixed_high=180_000))
    world.market.asks_ = [ask(1_000_000)]
    rival = [world.bidder(other)]

    def let_the_rival_in(point: str) -> None:
        if point == "after_reserve" and rival:
            rival.pop().cycle()

    world.bidder(first, crash=let_the_rival_in).cycle()

    assert world.market.prices == [180_000, 75_000, 45_000]
    assert world.row(first).last_cycle_action == "placed 2, kept 0, cancelled 0; skipped 1 exposure_limit"
    assert orders.exposure(world.user.id) == 300_000


def test_example_9_a_bid_that_arrived_is_adopted(world: World) -> None:
    config = replace(CATS, bid_mode="fixed", bid_count=1, bid_fixed_high=52_000)
    task = world.task(config)
    world.market.fail("place", "lost")
    world.bidder(task).cycle()
    assert world.open(task) == {52_000: "unknown"}

    world.bidder(task).cycle()

    assert world.open(task) == {52_000: "live"}
    assert world.market.done == [("place", 52_000)]


def test_example_9_a_bid_that_never_shows_blocks_its_slot_until_it_is_lost(world: World) -> None:
    config = replace(CATS, bid_mode="fixed", bid_count=1, bid_fixed_high=52_000)
    task = world.task(config)
    world.market.fail("place", "never")
    world.bidder(task).cycle()
    bidder = world.bidder(task)
    world.later(30, bidder, times=5)
    assert world.open(task) == {52_000: "unknown"}

    world.later(16 * 60 + 29 - 150, bidder)
    assert world.open(task) == {52_000: "unknown"}
    assert world.market.prices == []

    world.later(2, bidder)
    assert world.closed() == [(52_000, "lost")]
    assert world.market.prices == [52_000]


def test_example_9_nothing_is_placed_while_the_own_bids_cannot_be_read(world: World) -> None:
    task = world.task()
    world.market.fail("place", "lost")
    world.bidder(task).cycle()
    world.market.fail("own_bids", Unavailable("read timed out"), Unavailable("read timed out"))
    placed = list(world.market.done)

    world.bidder(task).cycle()

    assert world.market.done == placed
    assert world.row(task).last_error == "failed to read our own bids: read timed out"


def test_example_10_a_rune_by_vwap_in_sats_mode(world: World) -> None:
    def lot(tokens: int, unit_price: str) -> Ask:
        sats = int(tokens * Decimal(unit_price))
        return Ask(f"lot-{tokens}", sats, Decimal(tokens), Decimal(unit_price), "bc1qseller")

    world.market.asks_ = [lot(400_000, "1.00"), lot(300_000, "1.10"), lot(800_000, "1.20")]
    config = replace(
        CATS,
        type="rune",
        slug="UNCOMMON•GOODS",
        bid_percent_low=Decimal("0.80"),
        bid_percent_high=Decimal("0.90"),
        bid_count=2,
        quantity_mode="sats",
        sats_per_order=50_000,
        use_vwap=True,
    )
    task, bidder = world.begun(config)
    assert [(each.price, each.quantity) for each in world.market.placed] == [(49_999, 51_388), (49_999, 57_812)]
    assert {message.quantity for message in world.signer.signed.values()} == {"51388", "57812"}
    assert orders.task_exposure(task) == 99_998
    assert world.detail(task)["seen"]["reference"].startswith("1.08108108")
    world.later(61, bidder)
    assert world.action(task) == "placed 0, kept 2, cancelled 0"


def test_a_rune_whose_smallest_unit_is_not_known_gets_no_bid_in_sats_mode(world: World) -> None:
    world.market.asks_ = [ask(20_000, quantity=200)]
    config = replace(CATS, type="rune", slug="GOODS", quantity_mode="sats", sats_per_order=50_000)
    task = world.task(config)
    world.market.fail("rune", Unavailable("down"))
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.market.placed == []
    assert "unit_unknown" in world.action(task)
    bidder.cycle()
    assert len(world.market.placed) == 5


def test_runes_are_bid_for_by_the_whole_order(world: World) -> None:
    config = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity=Decimal("1000.50"), bid_count=2)
    world.market.asks_ = [ask(20_000, quantity=200)]
    world.begun(config)
    assert world.market.prices == [75_037, 15_008]
    assert {(bid.kind, bid.slug) for bid in world.market.placed} == {("runes", "UNCOMMON•GOODS")}
    assert {message.quantity for message in world.signer.signed.values()} == {"1000.5"}


def test_another_cycle_has_nothing_left_to_do(world: World) -> None:
    task, bidder = world.begun()
    done = list(world.market.done)
    world.later(30, bidder, times=3)
    assert world.market.done == done
    assert world.row(task).last_cycle_action == "placed 0, kept 5, cancelled 0"


def test_a_task_that_is_no_longer_wanted_is_left(world: World) -> None:
    task = world.task()
    bidder = world.bidder(task)
    tasks.set_desired(world.row(task), STOPPED)
    assert bidder.cycle() is None
    assert world.market.done == []


def test_an_overtaken_worker_ends_without_a_trace(world: World) -> None:
    task = world.task()
    old = world.bidder(task)
    world.bidder(task).cycle()
    done = list(world.market.done)
    assert old.cycle() is None
    assert world.market.done == done
