"""Bids at our wallet that the ledger does not expect: others' are left alone, ours by fingerprint are ended."""

from __future__ import annotations

from typing import Any

from models.ledger import orders
from tests.shapes import replace
from tests.worlds.worker import ONE, World, ask


def test_of_a_bid_accepted_twice_one_is_cancelled(world: World) -> None:
    task = world.task()
    world.market.fail("place", "twice")
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.market.prices == [75_000, 75_000, 60_000, 45_000, 30_000, 15_000]

    bidder.cycle()

    assert world.market.prices == [75_000, 60_000, 45_000, 30_000, 15_000]
    assert world.untracked() == []
    bidder.cycle()
    assert world.market.done[-2:] == [("challenge", 0), ("cancel", 75_000)]


def test_a_foreign_bid_is_counted_shown_and_never_touched(database: str) -> None:
    world = World(max_exposure=100_000)
    task = world.task(ONE)
    foreign = world.market.add(60_000, world.clock() + 10**9)
    bidder = world.bidder(task)
    for _ in range(3):
        bidder.cycle()
    assert world.market.own_ == [foreign]
    assert "skipped 1 exposure_limit" in world.action(task)
    assert [bid["venue_id"] for bid in world.detail(task)["foreign"]] == [foreign.venue_id]

    world.market.own_.clear()
    bidder.cycle()
    assert world.market.prices == [52_000]


def test_a_foreign_bid_that_comes_later_takes_room_from_ours(database: str) -> None:
    world = World(max_exposure=120_000)
    task, bidder = world.begun(replace(ONE, bid_count=2, bid_fixed_low=50_000))
    assert world.market.prices == [52_000, 50_000]
    world.market.add(60_000, world.clock() + 10**9)
    bidder.cycle()
    assert len(world.open(task)) == 1, "60,000 more leave room for one of the two"
    assert orders.task_exposure(task) <= 60_000


def test_a_foreign_bid_first_seen_after_the_cancels_counts_at_the_reservation(database: str) -> None:
    world = World(max_exposure=110_000)
    task, bidder = world.begun(ONE)
    world.market.asks_ = [ask(52_000)]
    place_by_hand = world.market.add
    cancel = world.market.cancel

    def cancel_and_meet(*args: Any, **kwargs: Any) -> bool:
        place_by_hand(60_000, world.clock() + 10**9)
        return cancel(*args, **kwargs)

    world.market.cancel = cancel_and_meet  # type: ignore[method-assign]
    bidder.cycle()
    assert world.market.prices == [60_000]
    assert "skipped 1 exposure_limit" in world.action(task)


def test_a_bid_that_comes_back_after_it_was_closed_is_ended(world: World) -> None:
    task = world.task(ONE)
    world.market.fail("place", "never")
    bidder = world.bidder(task)
    bidder.cycle()
    lost = orders.open_orders(task)[0]
    world.clock.advance(17 * 60)
    for _ in range(3):
        bidder.cycle()
        world.clock.advance(6)
    assert world.closed() == [(52_000, "lost")]
    assert world.market.prices == [52_000]

    late = world.market.add(52_000, lost.expires_ms)
    world.market.expire = lambda: None  # type: ignore[method-assign]
    bidder.cycle()

    assert late not in world.market.own_
    assert world.market.prices == [52_000]


def test_nothing_is_placed_beside_a_stray_that_cannot_be_cancelled(world: World) -> None:
    task = world.task(replace(ONE, bid_count=2, bid_fixed_low=50_000))
    world.market.fail("place", "twice", "lost")
    bidder = world.bidder(task)
    bidder.cycle()
    world.market.own_ = [bid for bid in world.market.own_ if bid.price == 52_000]
    orders.move(orders.open_orders(task)[1], "closed", world.clock(), reason="lost")
    world.market.fail("cancel", "lie")

    bidder.cycle()
    assert world.market.prices == [52_000, 52_000]
    assert "skipped 1 put_off" in world.action(task)

    bidder.cycle()
    assert world.market.prices == [52_000, 50_000]


def test_a_bid_shown_long_after_its_expiry_is_cancelled(world: World) -> None:
    task = world.task(ONE)
    world.market.expire = lambda: None  # type: ignore[method-assign]
    bidder = world.bidder(task)
    bidder.cycle()
    first = world.market.own_[0]
    world.later(16 * 60 + 31, bidder)
    assert ("cancel", 52_000) in world.market.done
    assert first not in world.market.own_
