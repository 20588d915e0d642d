"""Rows of a venue's answers that cannot be read: what may be in one of them is never taken for gone."""

from __future__ import annotations

import pytest

from markets.base import NotUnderstood, OwnBid, OwnBids
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.shapes import replace
from tests.workers.bidding.test_own_bids import EXPIRES_MS, LATE_MS, put, shown, state_of
from tests.worlds.worker import CATS, KEYS, LADDER, ONE, START_MS, World, ask, bid, context_at, seconds
from workers.bidding.moment import Found
from workers.bidding.own_bids import settle
from workers.bidding.writes import CancelAnswer

GONE = 17 * 60  # seconds, until a bid of these tasks is well past its expiry


@pytest.fixture
def task(world: World) -> int:
    task_id = world.task()
    world.context(task_id)
    return task_id


def look(
    task_id: int, *unread: str, at: int, bids: tuple[OwnBid, ...] = (), cancels: dict[int, CancelAnswer] | None = None
) -> Found:
    return settle(context_at(at + 5, task_id), KEYS.payment, OwnBids(bids, at, unread), cancels)


def hide_all(world: World, key: str | None = None) -> None:
    """Makes every own bid a row that cannot be read; with its id, or with `key` in its place."""
    world.market.odd_own = {each.venue_id: each.venue_id if key is None else key for each in world.market.own_}


# The ledger against one read


@pytest.mark.parametrize("state", ["submitted", "unknown", "cancelling", "live"])
def test_row_with_only_its_id_readable_shows_the_order(task: int, state: str) -> None:
    order = put(task, state, venue_id="venue-1")
    found = look(task, "venue-1", at=START_MS + 1000)
    assert state_of(order) == "live"
    assert (found.unread, found.unread_own) == ((), {order})


@pytest.mark.parametrize(
    ("state", "stays"),
    [("reserved", "reserved"), ("live", "live"), ("unknown", "unknown"), ("cancelling", "cancelling")],
)
@pytest.mark.parametrize("venue_id", ["venue-1", None])
def test_order_stays_as_it_is_while_a_row_without_id_may_be_it(
    task: int, state: str, stays: str, venue_id: str | None
) -> None:
    order = put(task, state, venue_id=venue_id)
    for turn in range(1, 6):
        look(task, "", at=START_MS + turn * 6_000)
    assert state_of(order) == stays
    assert Order.get_by_id(order).misses == 0


def test_order_without_id_may_be_in_a_row_of_unknown_id(task: int) -> None:
    nameless, named = put(task, "cancelling"), put(task, "cancelling", venue_id="venue-1", expires_ms=EXPIRES_MS + 1)
    for turn in range(1, 4):
        look(task, "by-hand", at=START_MS + turn * 6_000)
    assert (state_of(nameless), state_of(named)) == ("cancelling", "closed cancelled")


def test_row_of_another_order_hides_nothing(task: int) -> None:
    put(task, "live", venue_id="venue-1")
    nameless = put(task, "cancelling", expires_ms=EXPIRES_MS + 1)
    for turn in range(1, 4):
        look(task, "venue-1", at=START_MS + turn * 6_000)
    assert state_of(nameless) == "closed cancelled"


def test_row_of_unknown_kind_hides_an_order_no_longer_than_its_expiry(task: int) -> None:
    order = put(task, "live", venue_id="venue-1")
    look(task, "", at=LATE_MS)
    look(task, "", at=LATE_MS + 6_000)
    assert state_of(order) == "live"
    look(task, "", at=LATE_MS + 12_000)
    assert state_of(order) == "closed expired"


@pytest.mark.parametrize("key", ["venue-1", ""])
def test_row_hides_an_order_an_hour_longer_where_ends_are_whole_hours(task: int, key: str) -> None:
    order = put(task, "live", venue_id="venue-1")
    Order.update(venue="ordnet").where(Order.id == order).execute()
    hour_ms, ends = 3_600_000, []
    for at in (LATE_MS + 6_000, LATE_MS + 12_000, LATE_MS + hour_ms, *(LATE_MS + hour_ms + n * 6_000 for n in (1, 2))):
        settle(context_at(at + 5, task, "ordnet"), KEYS.payment, OwnBids((), at, (key,)))
        ends.append(state_of(order))
    assert ends == ["live", "live", "live", "live", "closed expired"]


def test_cancel_is_not_proven_by_a_read_that_may_hide_the_bid(task: int) -> None:
    order = put(task, "cancelling", venue_id="venue-1")
    look(task, "", at=START_MS + 1, cancels={order: CancelAnswer.DONE})
    assert state_of(order) == "cancelling"
    look(task, "venue-1", at=START_MS + 2, cancels={order: CancelAnswer.DONE})
    assert state_of(order) == "cancelling"


def test_cancel_that_the_venue_confirms_again_and_again_is_done(task: int) -> None:
    order = put(task, "cancelling", venue_id="venue-1")
    for turn, end in enumerate(["cancelling", "closed cancelled"], start=1):
        look(task, "", at=START_MS + turn * 6_000, cancels={order: CancelAnswer.NOT_FOUND})
        assert state_of(order) == end


def test_unread_row_of_a_closed_order_is_a_stray(task: int) -> None:
    order = put(task, "closed", venue_id="venue-1")
    assert look(task, "venue-1", at=START_MS).stray_ids == [], "it was closed after this read had begun"
    found = look(task, "venue-1", at=START_MS + 1)
    assert (found.stray_ids, state_of(order)) == (["venue-1"], "closed lost")


def test_unread_row_of_no_order_counts_as_the_whole_balance(task: int) -> None:
    put(task, "live", venue_id="venue-1")
    foreign = shown(EXPIRES_MS + 7, "venue-7")
    found = look(task, "venue-1", "by-hand", at=START_MS + 1, bids=(foreign,))
    assert found.untracked_within(80_000) == 52_000 + 80_000
    assert found.untracked_within(None) > 10**15
    assert look(task, "venue-1", at=START_MS + 2, bids=(foreign,)).untracked_within(None) == 52_000


# Cycles


def test_ladder_stays_and_nothing_is_placed_while_its_bids_cannot_be_read(world: World) -> None:
    task, bidder = world.begun()
    bidder.cycle()
    hide_all(world)
    world.market.done.clear()
    world.later(30, bidder, times=5)
    assert world.open(task) == dict.fromkeys(LADDER, "live")
    assert (world.market.done, world.market.prices) == ([], LADDER)
    assert world.detail(task)["unread_rows"] == {"own_bids": 5}
    assert world.row(task).last_error is None


def test_bid_that_cannot_be_read_is_cancelled_by_its_id(world: World) -> None:
    _task, bidder = world.begun(ONE)
    bidder.cycle()
    hide_all(world)
    world.market.asks_ = [ask(52_000)]
    world.later(30, bidder, times=2)
    assert (world.market.prices, world.closed()) == ([51_000], [(52_000, "cancelled")])


def test_row_without_id_stops_placing_and_the_owner_reads_why(world: World) -> None:
    task, bidder = world.begun()
    bidder.cycle()
    world.market.odd_rows = ("",)
    world.market.sell(60_000)
    world.market.asks_ = [ask(130_000)]
    world.later(120, bidder, times=3)
    assert world.market.prices == [75_000, 45_000, 30_000, 15_000]
    assert "own_bids_unknown" in world.action(task)
    row = world.row(task)
    assert (
        row.last_error
        == "failed to read our own bids: 1 of them cannot be understood, and may be any bid of this wallet"
    )
    assert row.last_error_code == "venue_not_understood"
    assert Order.get(Order.price_sats == 60_000).state == "live", "it may be in that row: neither gone nor sold"

    world.market.odd_rows = ()
    world.later(30, bidder)
    assert Order.get(Order.price_sats == 60_000).close_reason == "filled"
    assert world.row(task).last_error is None


def test_exposure_limit_counts_a_row_of_unknown_price(database: str) -> None:
    world = World(max_exposure=100_000)
    world.market.balance_sats = 60_000
    world.market.odd_rows = ("by-hand",)
    task, bidder = world.begun(ONE)
    assert world.market.prices == []
    assert "skipped 1 exposure_limit" in world.action(task)
    world.market.odd_rows = ()
    world.later(30, bidder)
    assert world.market.prices == [52_000]


def test_row_made_by_hand_leaves_the_ladder_to_its_limits(world: World) -> None:
    world.market.balance_sats = 1_000_000
    world.market.odd_rows = ("by-hand",)
    _task, bidder = world.begun()
    world.later(30, bidder)
    assert world.market.prices == LADDER


def test_bid_made_by_hand_that_cannot_be_read_is_not_outbid(world: World) -> None:
    by_hand = world.market.add(70_000, world.clock() + 10**9)
    world.market.odd_own = {by_hand.venue_id: by_hand.venue_id}
    world.market.tells_makers, world.market.balance_sats = False, 1_000_000
    world.market.bids_ = [bid(20_000)]
    world.begun(replace(CATS, bid_count=1, outbid_enabled=True))
    assert world.market.prices == [70_000, 21_000]


def test_unread_stray_is_cancelled_before_anything_is_placed(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    order = orders.open_orders(task)[0]
    orders.move(order, "closed", world.clock(), reason="cancelled")
    hide_all(world)
    world.later(30, bidder)
    assert (world.market.prices, world.detail(task)["strays"]) == ([], ["venue-000"])
    world.later(30, bidder)
    assert world.market.done[-2:] == [("cancel", 52_000), ("place", 52_000)]


def test_drain_cancels_bids_that_cannot_be_read_and_waits_for_their_end(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    hide_all(world)
    world.market.fail("cancel", "lie")
    tasks.set_desired(world.row(task), STOPPED)
    drain = world.drain(task)
    assert seconds(drain.cycle()) > 0
    assert world.open(task) == {52_000: "cancelling"}
    assert drain.cycle() is None
    assert (world.market.prices, world.closed()) == ([], [(52_000, "cancelled")])


def test_drain_does_not_end_while_a_row_may_be_a_bid(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    hide_all(world, "")
    world.market.fail("cancel", *["lie"] * 9)
    tasks.set_desired(world.row(task), STOPPED)
    drain = world.drain(task)
    assert seconds(drain.cycle()) > 0
    assert (world.open(task), world.market.prices) == ({52_000: "cancelling"}, [52_000])
    assert world.row(task).last_error_code == "cannot_cancel"


def test_drain_ends_at_the_expiry_of_bids_that_a_row_may_hide(world: World) -> None:
    task, bidder = world.begun(replace(ONE, cancel_on_stop=False))
    bidder.cycle()
    world.market.odd_rows = ("",)
    world.market.own_.clear()
    tasks.set_desired(world.row(task), STOPPED)
    drain = world.drain(task)
    assert seconds(drain.cycle()) > 0
    assert world.open(task) == {52_000: "live"}
    world.clock.advance(GONE)
    for _ in range(2):
        drain.cycle()
        world.clock.advance(6)
    assert world.closed() == [(52_000, "expired")]


@pytest.mark.parametrize("is_drained", [False, True])
def test_ended_bid_in_an_unread_row_holds_nothing_up_well_after_its_expiry(world: World, *, is_drained: bool) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.odd_rows = ("venue-000",)  # ended, in a state that is not known, and listed for ever
    world.market.own_.clear()
    world.later(30, bidder)
    assert set(world.open(task).values()) <= {"live", "cancelling"}
    world.clock.advance(GONE)
    if is_drained:
        tasks.set_desired(world.row(task), STOPPED)
        drain = world.drain(task)
        for _ in range(3):
            drain.cycle()
            world.clock.advance(6)
        assert world.open(task) == {}
        return
    world.later(30, bidder, times=4)
    assert (world.market.prices, world.row(task).last_error) == ([52_000], None)
    assert world.detail(task)["strays"] == []


# Sales


def test_vanished_bid_stays_in_doubt_while_an_unread_sale_may_be_its_own(world: World) -> None:
    task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.own_.clear()
    world.market.unread_sales = (world.clock.now_ms,)
    world.later(30, bidder, times=3)
    world.market.balance_sats = 10_000  # so that the venue must have cancelled it, if it was not sold
    world.later(50, bidder, times=14)
    assert world.open(task) == {52_000: "unknown"}, "so long after it vanished"
    assert world.detail(task)["unread_rows"] == {"sales": 1}

    world.market.unread_sales = ()
    world.later(30, bidder)
    assert world.closed() == [(52_000, "cancelled")]


def test_unread_sale_from_before_a_bid_hides_no_fill_of_it(world: World) -> None:
    _task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.own_.clear()
    world.market.unread_sales = (START_MS - 3_600_000,)
    world.later(30, bidder, times=3)
    world.market.balance_sats = 10_000
    world.later(50, bidder, times=3)
    assert world.closed() == [(52_000, "cancelled")]


def test_expired_bid_is_not_expired_while_an_unread_sale_may_be_its_own(world: World) -> None:
    _task, bidder = world.begun(ONE)
    bidder.cycle()
    world.market.own_.clear()
    world.market.unread_sales = (None,)
    world.clock.advance(GONE)
    for _ in range(3):
        world.later(6, bidder)
    order = Order.select().order_by(Order.id).get()
    assert order.state != "closed"
    world.clock.advance(600)
    world.later(30, bidder, times=11)
    assert Order.get_by_id(order.id).close_reason == "lost", "it is not waited for without end"


# Books


def test_fixed_range_stays_below_the_asks_that_could_be_read(world: World) -> None:
    world.market.hidden_asks = 1
    world.market.asks_ = [ask(50_000, KEYS.payment), ask(51_000)]
    task, _ = world.begun(ONE)
    assert world.market.prices == [50_000]
    assert world.detail(task)["unread_rows"] == {"asks": 1}


def test_floor_behind_an_own_listing_is_unknown_while_an_ask_cannot_be_read(world: World) -> None:
    world.market.asks_ = [ask(50_000, KEYS.payment), ask(100_000)]
    world.market.hidden_asks = 1
    task, bidder = world.begun()
    assert (world.market.prices, "no_reference" in world.action(task)) == ([], True)
    world.market.hidden_asks = 0
    world.later(30, bidder)
    assert world.market.prices == LADDER


def test_floor_of_others_is_known_without_an_ask_that_cannot_be_read(world: World) -> None:
    world.market.hidden_asks = 1
    world.begun()
    assert world.market.prices == LADDER


def test_floor_above_an_ignored_ask_is_unknown_while_an_ask_cannot_be_read(world: World) -> None:
    world.market.asks_ = [ask(50_000, "a" * 26), ask(100_000)]
    world.market.hidden_asks = 1
    task, _ = world.begun(replace(CATS, ignore_addresses=("a" * 26,)))
    assert (world.market.prices, "no_reference" in world.action(task)) == ([], True)


def test_trait_whose_asks_cannot_all_be_read_goes_by_the_collections_floor(world: World) -> None:
    world.market.trait_asks_ = [ask(400_000)]
    config = replace(CATS, bid_type="trait", trait_type="Fur", trait_value="Gold")
    world.market.hidden_asks = 1
    task, _ = world.begun(config)
    assert world.market.prices == LADDER
    assert "trait_floor_missing" in world.action(task)


def test_only_the_first_rank_is_known_while_a_bid_cannot_be_read(world: World) -> None:
    task, bidder = world.begun(replace(CATS, outbid_enabled=True))
    assert [rung["rank"] for rung in world.detail(task)["rungs"]] == [1, 2, 3, 4, 5]
    world.market.hidden_bids = 1
    world.later(30, bidder)
    detail = world.detail(task)
    assert [rung["rank"] for rung in detail["rungs"]] == [1, None, None, None, None]
    assert detail["unread_rows"] == {"bids": 1}


def test_book_that_is_not_understood_has_a_code_of_its_own(world: World) -> None:
    task, bidder = world.begun()
    world.market.fail("asks", NotUnderstood("failed to understand satflow: 3 of 4 rows are not understood"))
    world.market.bids_ = [bid(1_000)]
    world.later(30, bidder)
    row = world.row(task)
    assert (row.last_error_code, "failed to read the asks" in str(row.last_error)) == ("venue_not_understood", True)
