"""The count of raises and the knowledge of our own bids survive a second look at the market in one cycle."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from models.ledger import orders
from models.tasks.tasks import Task
from strategy.book import Bid
from strategy.config.bid import BidConfig, dump_bid_config
from tests.shapes import replace
from tests.worlds.worker import CATS, World, ask, bid
from workers.bidding.bidder import Bidder

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
