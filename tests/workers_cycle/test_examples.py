"""The worked examples of the bidding rules, through whole cycles: ledger, signer and venue included."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from markets.base import Unavailable, Unknown
from models import orders, tasks
from tests.workers_cycle.fakes import ask
from tests.workers_cycle.world import CATS, World


def test_example_1_a_ladder(world: World) -> None:
    task = world.task()
    world.bidder(task).cycle()
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
    task = world.task(replace(CATS, max_bid_total=150_000))
    world.bidder(task).cycle()
    assert world.market.prices == [75_000, 60_000, 15_000]
    assert world.row(task).last_cycle_action == "placed 3, kept 0, cancelled 0; skipped 2 task_total"


def test_example_7_the_order_of_actions(world: World) -> None:
    task = world.task()
    bidder = world.bidder(task)
    bidder.cycle()
    world.clock.advance(61)
    world.market.asks_, world.market.done = [ask(70_000)], []

    bidder.cycle()

    assert world.market.done == [
        ("challenge", 0),
        *[("cancel", price) for price in (75_000, 60_000, 45_000, 15_000)],
        *[("place", price) for price in (52_000, 41_000, 21_000, 11_000)],
    ]
    assert world.market.prices == [52_000, 41_000, 30_000, 21_000, 11_000]
    assert orders.task_exposure(task) == 155_000
    assert world.market.peak_sats == 225_000
    assert world.row(task).last_cycle_action == "placed 4, kept 1, cancelled 4 (2 above_range, 2 surplus)"


def test_example_7_a_cancel_that_times_out_still_counts(world: World) -> None:
    task = world.task(replace(CATS, max_bid_total=225_000))
    bidder = world.bidder(task)
    bidder.cycle()
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]
    world.market.fail("cancel", Unknown("timed out"))

    bidder.cycle()

    assert world.open(task) == {75_000: "cancelling"} | dict.fromkeys((30_000, 52_000, 41_000, 21_000), "live")
    assert orders.task_exposure(task) == 219_000
    assert (
        world.row(task).last_cycle_action
        == "placed 3, kept 1, cancelled 3 (1 above_range, 2 surplus); skipped 1 task_total"
    )

    world.clock.advance(30)
    bidder.cycle()
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
    for _ in range(5):
        world.clock.advance(30)
        bidder.cycle()
    assert world.open(task) == {52_000: "unknown"}

    world.clock.advance(16 * 60 + 29 - 150)
    bidder.cycle()
    assert world.open(task) == {52_000: "unknown"}
    assert world.market.prices == []

    world.clock.advance(2)
    bidder.cycle()
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


def test_runes_are_bid_for_by_the_whole_order(world: World) -> None:
    config = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity=Decimal("1000.50"), bid_count=2)
    world.market.asks_ = [ask(20_000, quantity=200)]
    task = world.task(config)
    world.bidder(task).cycle()
    assert world.market.prices == [75_037, 15_008]
    assert {(bid.kind, bid.slug) for bid in world.market.placed} == {("runes", "UNCOMMON•GOODS")}
    assert {message.quantity for message in world.signer.signed.values()} == {"1000.5"}


def test_another_cycle_has_nothing_left_to_do(world: World) -> None:
    task = world.task()
    bidder = world.bidder(task)
    bidder.cycle()
    done = list(world.market.done)
    for _ in range(3):
        world.clock.advance(30)
        bidder.cycle()
    assert world.market.done == done
    assert world.row(task).last_cycle_action == "placed 0, kept 5, cancelled 0"


def test_a_task_that_is_no_longer_wanted_is_left(world: World) -> None:
    task = world.task()
    bidder = world.bidder(task)
    tasks.set_desired(world.row(task), tasks.STOPPED)
    assert bidder.cycle() is None
    assert world.market.done == []


def test_an_overtaken_worker_ends_without_a_trace(world: World) -> None:
    task = world.task()
    old = world.bidder(task)
    world.bidder(task).cycle()
    done = list(world.market.done)
    assert old.cycle() is None
    assert world.market.done == done
