"""Every bid hangs on a book of a moment ago; late ones are decided anew, or put off to a cycle that comes at once."""

from __future__ import annotations

from decimal import Decimal

import pytest

from markets.base import InsufficientFunds, Unavailable
from tests.shapes import replace
from tests.worlds.worker import CATS, LADDER, World, ask, bid, seconds
from workers.bidding.moment import SIGN_WITHIN_MS

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
