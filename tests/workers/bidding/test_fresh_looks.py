"""When a cycle reads a book afresh, a second time, or not at all."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from decimal import Decimal
from types import FrameType

import pytest

from markets.base import InsufficientFunds, Unavailable
from models.ledger import orders
from models.tasks.tasks import Task
from strategy.book import Bid
from strategy.config.bid import BidConfig, dump_bid_config
from tests.shapes import replace
from tests.worlds.worker import CATS, LADDER, World, ask, bid, seconds
from workers.bidding.bidder import Bidder
from workers.bidding.moment import SIGN_WITHIN_MS
from workers.context import signals_held

LONG = replace(CATS, loop_seconds=300, bid_expiry_minutes=60)


def watch_signatures(world: World) -> list[tuple[int, int]]:
    """(age of the newest book in milliseconds, floor of that book) at each signature."""
    seen: list[tuple[int, int]] = []

    def note() -> None:
        book = world.market._kept["asks"]
        seen.append((world.clock.now_ms - book.taken_ms, book.asks[0].price))

    world.market.shares = True
    world.signer.witness = note
    return seen


def slow_places(world: World, seconds_each: float) -> None:
    world.market.witness = lambda operation: world.clock.advance(seconds_each) if operation == "place" else None


@pytest.mark.parametrize(("seconds_each", "most_reads"), [(0.2, 1), (2, 2), (5, 5), (9, 7)])
def test_a_slow_venue_gets_the_whole_ladder_and_no_bid_on_an_old_book(
    world: World, seconds_each: float, most_reads: int
) -> None:
    """Many others wait for the venue: each place takes its turn, and the book is read again between them."""
    task = world.task(replace(CATS, bid_count=10, bid_percent_low=Decimal("0.30")))
    signatures = watch_signatures(world)
    slow_places(world, seconds_each)
    bidder = world.bidder(task)

    bidder.cycle()
    for _ in range(3):
        if len(world.market.prices) < 10:
            bidder.cycle()

    assert len(world.market.prices) == len(set(world.market.prices)) == 10
    assert len(signatures) == 10
    assert max(age for age, _ in signatures) < SIGN_WITHIN_MS
    reads = [age for operation, age in world.market.reads if operation == "asks"]
    assert len(reads) <= most_reads


def test_within_a_cycle_the_book_is_read_once_when_there_is_time(world: World) -> None:
    world.bidder(world.task()).cycle()
    assert world.market.reads == [("asks", 15.0)]


def test_a_shared_book_that_is_old_for_placing_is_read_again_before_the_first_place(world: World) -> None:
    other = world.task(replace(LONG, slug="cats"))
    signatures = watch_signatures(world)
    world.market.asks("cats", 0)
    world.clock.advance(100)
    world.market.asks_ = [ask(40_000)]

    world.bidder(other).cycle()

    assert [floor for _, floor in signatures] == [40_000] * len(signatures)
    assert max(world.market.prices) < 40_000
    assert world.detail(other)["looks"] == 2


def test_what_only_keeps_its_bids_is_content_with_a_shared_book(world: World) -> None:
    task = world.task(LONG)
    bidder = world.bidder(task)
    world.market.shares = True
    bidder.cycle()
    world.clock.advance(301)
    world.market.asks("cats", 0)
    world.clock.advance(100)
    world.market.reads.clear()
    for _ in range(4):
        bidder.cycle()
    assert set(world.market.reads) == {("asks", 150.0)}
    assert len(world.market.placed) == 5


def test_a_floor_that_falls_between_two_places_stops_them_and_the_next_cycle_comes_at_once(world: World) -> None:
    task = world.task()
    signatures = watch_signatures(world)

    def fall_after_the_first(operation: str) -> None:
        if operation == "place" and len(world.market.placed) == 0:
            world.clock.advance(13)
            world.market.asks_ = [ask(40_000)]

    world.market.witness = fall_after_the_first
    bidder = world.bidder(task)
    pause = seconds(bidder.cycle())

    assert [bid.price for bid in world.market.placed] == [75_000], "it was on its way when the floor fell"
    assert pause < 1
    assert "put_off" in world.action(task)
    assert world.row(task).last_error is None

    bidder.cycle()
    assert max(world.market.prices) <= 30_000
    assert all(floor == 40_000 for _, floor in signatures[1:])


def test_a_floor_that_rises_between_two_places_moves_the_rest(world: World) -> None:
    task = world.task()

    def rise_after_the_first(operation: str) -> None:
        if operation == "place" and not world.market.placed:
            world.clock.advance(13)
            world.market.asks_ = [ask(100_500)]

    world.market.witness = rise_after_the_first
    world.market.shares = True
    world.bidder(task).cycle()
    assert len(world.market.prices) == 5
    assert world.action(task) == "placed 5, kept 0, cancelled 0"
    assert world.detail(task)["seen"]["lowest_ask"] == "100500"


def test_a_rung_that_was_refused_is_not_tried_again_on_the_second_look(world: World) -> None:
    task = world.task()
    world.market.fail("place", InsufficientFunds("short"))
    slow_places(world, 13)
    world.bidder(task).cycle()
    assert [message.price for message in world.signer.signed.values()] == LADDER
    assert world.market.prices == LADDER[1:]


def test_a_second_look_that_fails_places_nothing_more(world: World) -> None:
    task = world.task()
    world.market.fail("asks", None, Unavailable("down"), Unavailable("down"))
    slow_places(world, 13)
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.market.prices == LADDER[:1]
    assert "down" in str(world.row(task).last_error)
    world.market.witness = lambda operation: None
    bidder.cycle()
    bidder.cycle()
    assert world.market.prices == LADDER


def test_a_long_loop_placing_slowly_reads_its_own_bids_again_after_a_while(world: World) -> None:
    task = world.task(replace(CATS, bid_count=20, bid_percent_low=Decimal("0.30")))
    slow_places(world, 9)
    bidder = world.bidder(task)
    pause = seconds(bidder.cycle())
    assert pause < 1
    assert 0 < len(world.market.prices) <= 8
    for _ in range(4):
        bidder.cycle()
    assert len(world.market.prices) == 20


def test_bids_of_others_are_read_only_when_they_matter(world: World) -> None:
    world.market.bids_ = [bid(62_000)]
    world.bidder(world.task()).cycle()
    assert {operation for operation, _ in world.market.reads} == {"asks"}
    world.bidder(world.task(replace(CATS, slug="dogs", outbid_enabled=True))).cycle()
    assert ("bids", 15.0) in world.market.reads


def test_a_snapshot_is_as_old_as_the_oldest_book_in_it(world: World) -> None:
    world.market.shares = True
    world.market.bids("cats", "ordinals", 0)
    taken_ms = world.clock.now_ms
    world.clock.advance(5)
    task, _ = world.begun(replace(CATS, outbid_enabled=True))
    assert world.detail(task)["seen"]["taken_ms"] <= taken_ms


def test_a_loop_of_an_hour_wakes_up_to_hear_of_control_and_does_nothing_else(world: World) -> None:
    task = world.task(replace(CATS, loop_seconds=3600, bid_expiry_minutes=180))
    bidder = world.bidder(task)
    assert seconds(bidder.cycle()) == 30
    cycles, reads = world.row(task).cycles, len(world.market.reads)
    for _ in range(5):
        world.clock.advance(30)
        assert seconds(bidder.cycle()) == 30
    assert (world.row(task).cycles, len(world.market.reads)) == (cycles, reads)
    world.later(3500, bidder)
    assert world.row(task).cycles == cycles + 1


OUTBID = replace(
    CATS,
    bid_mode="fixed",
    bid_fixed_low=20_000,
    bid_fixed_high=90_000,
    outbid_enabled=True,
    bid_count=1,
    hardcap_sats=0,
)


def raises(world: World, task: int) -> list[int]:
    found: list[int] = json.loads(world.row(task).memory)["raises_ms"]
    return found


def leading(world: World, config: BidConfig) -> tuple[int, Bidder]:
    """Returns a task that outbids a rival's 50,000, a cycle ago."""
    task = world.task(config)
    bidder = world.bidder(task)
    world.market.shares = True
    world.market.bids_ = [bid(50_000)]
    bidder.cycle()
    world.later(30, bidder)
    assert world.market.prices[0] == 51_000
    world.clock.advance(30)
    return task, bidder


def outbid_on_an_old_book(world: World) -> None:
    """A rival goes to 60,000, and the book that says so is too old to place on, though not to decide on."""
    world.market.bids_ = [bid(60_000)]
    world.market.asks("cats", 0)
    world.market.bids("cats", "ordinals", 0)
    world.clock.advance(13)


@pytest.mark.parametrize("count", [1, 2])
def test_a_raise_that_was_decided_twice_counts_once(world: World, count: int) -> None:
    task, bidder = leading(world, replace(OUTBID, bid_count=count))
    before = len(raises(world, task))
    outbid_on_an_old_book(world)

    bidder.cycle()

    assert world.market.prices[0] == 61_000
    assert len(raises(world, task)) == before + 1


def test_the_last_raise_of_the_hour_is_not_cut_off_halfway(world: World) -> None:
    """Or the bid that was outbid would be gone and nothing in its place."""
    task, bidder = leading(world, replace(OUTBID, bid_count=2))
    nineteen = [world.clock.now_ms - 60_000 * i for i in range(1, 20)]
    memory = json.dumps({"no_reference_since_ms": None, "raises_ms": nineteen})
    Task.update(memory=memory).where(Task.id == task).execute()
    outbid_on_an_old_book(world)

    bidder.cycle()

    assert world.market.prices == [61_000, 20_000]
    assert len(raises(world, task)) == 20


def test_a_bid_of_ours_that_a_late_book_still_shows_is_no_rival(world: World) -> None:
    """The book does not tell makers, so only its id says whose bid it was."""
    task = world.task(OUTBID)
    bidder = world.bidder(task)
    world.market.tells_makers = False
    world.market.bids_ = [bid(50_000)]
    bidder.cycle()
    world.later(61, bidder)
    mine = world.market.own_[0]
    ghost = Bid(mine.venue_id, mine.price, Decimal(1), Decimal(mine.price), "", None)
    world.market.bids_ = [bid(60_000)]
    world.later(30, bidder)
    assert world.market.prices == [61_000]

    world.market.bids_ = [ghost]
    world.later(30, bidder, times=3)

    assert world.market.prices == [20_000]


def test_a_type_changed_to_rune_takes_the_collections_bids_along_to_their_end(world: World) -> None:
    """Ticker CATS and collection cats are spelled alike, and yet a bid on one is none on the other."""
    collection = replace(OUTBID, bid_fixed_low=50_000, bid_fixed_high=50_000, outbid_enabled=False)
    task, _ = world.begun(collection)
    assert [each.kind for each in world.market.own_] == ["ordinals"]
    rune = replace(collection, type="rune", slug="CATS")
    world.market.known = {"CATS"}
    Task.update(config=dump_bid_config(rune), slug=rune.slug, type="rune").where(Task.id == task).execute()
    bidder = world.bidder(task)

    world.later(30, bidder, times=2)

    assert [each.kind for each in world.market.own_] == ["runes"]


def test_a_bid_that_only_the_second_look_has_go_is_told_with_its_reason(world: World) -> None:
    task, bidder = world.begun(replace(CATS, bid_count=5))
    world.clock.advance(70)
    world.market.own_ = [each for each in world.market.own_ if each.price != 15_000]
    [low] = [order for order in orders.open_orders(task) if order.price_sats == 15_000]
    orders.move(low, "cancelling", world.clock())
    orders.move(low, "closed", world.clock(), reason="cancelled")
    world.clock.advance(70)
    world.market.shares = True
    world.market.asks("cats", 0)
    world.clock.advance(13)
    world.market.asks_ = [ask(103_000)]

    bidder.cycle()

    assert world.market.prices == [77_000, 60_000, 45_000, 30_000, 16_000]
    assert world.action(task) == "placed 2, kept 3, cancelled 1 (surplus)"
    detail = world.detail(task)
    assert detail["looks"] == 2 and detail["planned"]["cancels"] == []
    [told] = [row for row in detail["bids"] if row["order"] in detail["cancelled"]]
    assert (told["price_sats"], told["reason"], told["after_rung"]) == (75_000, "surplus", 0)


@pytest.fixture
def asked_to_stop() -> Iterator[list[int]]:
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    before = signal.signal(signal.SIGTERM, hear)
    yield heard
    signal.signal(signal.SIGTERM, before)


def test_a_stop_waits_for_the_end_of_the_step(asked_to_stop: list[int]) -> None:
    with signals_held():
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        assert asked_to_stop == []
    assert asked_to_stop == [signal.SIGTERM]


def test_a_failing_step_does_not_deafen(asked_to_stop: list[int]) -> None:
    with pytest.raises(ZeroDivisionError), signals_held():
        raise ZeroDivisionError
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    assert asked_to_stop == [signal.SIGTERM]
