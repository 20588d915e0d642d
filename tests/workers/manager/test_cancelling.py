"""The cancels of one wallet's bids for a brake: which are sent, and which bids count as cancelled."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec import structs

from markets.base import AuthFailed, NotFound, OwnBids, RateLimited, Refused, SignInNeeded, Unavailable, VenueError
from markets.venues import capabilities
from models.ledger import orders
from models.ledger.states import CANCELLING, Order
from strategy.config.bid import BidConfig
from tests.workers.manager.brake_desk import at_brakes, bids, cancels, closed, due, halt, round_of
from tests.worlds.worker import World
from workers.manager import brakes
from workers.manager.brakes import Known


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    return at_brakes(world, monkeypatch)


def test_one_call_cancels_all_bids_of_a_halted_task(here: World) -> None:
    halt(here, bids(here))
    assert closed(here) == [4]
    assert (here.market.own_, cancels(here)) == ([], [4])


def test_failure_of_several_is_halved_until_the_one_that_fails_is_alone(here: World) -> None:
    """Once a read shows them: a venue would report a failure for each bid that it does not have."""
    halt(here, bids(here))
    some, this = NotFound("one of them"), NotFound("this one")
    here.market.fail("cancel", some, some, None, some, None, this)
    assert closed(here, rounds=2) == [0, 3]
    assert cancels(here) == [4, 4, 2, 2, 1, 1, 1]


def test_bids_that_a_read_does_not_show_are_not_cancelled_again(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", "lost")
    assert closed(here, rounds=3) == [0, 0, 0], "the answer was lost: they may have been sold"
    assert (here.market.own_, cancels(here)) == ([], [4])


@pytest.mark.parametrize("error", [AuthFailed("bad key"), SignInNeeded("sign in")])
def test_refusal_that_is_about_no_bid_is_not_halved(here: World, error: Refused) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", error)
    with pytest.raises(type(error)):
        closed(here)
    assert cancels(here) == [4]


@pytest.mark.parametrize("error", [AuthFailed("not this route"), SignInNeeded("sign in"), RateLimited(1.0)])
def test_cancel_that_the_venue_did_not_look_at_was_not_tried(here: World, error: VenueError) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", None, error)
    one_by_one = structs.replace(capabilities("simulator"), cancels_at_once=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brakes, "capabilities", lambda name: one_by_one)
        done = round_of(here, due(here), Known())
    assert (len(done.known.confirmed), done.known.tried) == (1, frozenset())


def test_confirmed_cancels_are_kept_when_the_read_fails(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("own_bids", Unavailable("no turn in time"))
    assert closed(here, rounds=2) == [0, 4]
    assert cancels(here) == [4]


def test_cancels_go_on_behind_a_venue_that_wants_a_pause(here: World) -> None:
    """As at a venue that takes one bid a call and a few calls a minute: the first ones are not cancelled again."""
    halt(here, bids(here))
    here.market.fail("cancel", None, RateLimited(1.0, "a pause"), None)
    one_by_one = structs.replace(capabilities("simulator"), cancels_at_once=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brakes, "capabilities", lambda name: one_by_one)
        assert closed(here, rounds=2) == [1, 3]
    assert (here.market.own_, cancels(here)) == ([], [1, 1, 1, 1, 1])


def test_bid_that_was_sold_after_a_confirmed_cancel_is_not_closed_as_cancelled(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", "lie")  # confirmed, and not carried out
    assert closed(here) == [3]
    [bid] = here.market.own_
    here.market.fail("cancel", NotFound("it was sold"))
    known = Known(confirmed=frozenset(order.id for order in Order.select() if order.state == CANCELLING))
    done = round_of(here, due(here), known)
    here.market.own_.remove(bid)
    assert (done.known.confirmed, round_of(here, due(here), done.known).closed) == (frozenset(), frozenset())


def test_cancels_are_tried_again_while_no_read_succeeds(here: World) -> None:
    halt(here, bids(here))
    some = NotFound("one of them")
    here.market.fail("cancel", some, some, None, None)
    here.market.fail("own_bids", *[Unavailable("no turn in time")] * 2)
    assert closed(here, rounds=2) == [0, 0]
    assert here.market.own_ == []


def test_bid_that_a_read_still_shows_is_not_gone(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", "lie")
    assert closed(here) == [3]


def test_bid_with_only_its_id_readable_is_not_closed(here: World) -> None:
    halt(here, bids(here))
    first = here.market.own_[0].venue_id
    here.market.odd_own = {first: first}
    here.market.fail("cancel", "lie", "no")
    assert closed(here) == [3]
    assert [bid.venue_id for bid in here.market.own_] == [first]


@pytest.mark.parametrize(("key", "closes"), [("", [0, 0]), ("by-hand", [4])])
def test_bids_that_a_row_without_id_may_hide_are_left_to_their_worker(here: World, key: str, closes: list[int]) -> None:
    halt(here, bids(here))
    here.market.odd_rows = (key,)
    assert (closed(here, rounds=len(closes)), here.market.own_) == (closes, [])


def test_read_that_began_before_the_cancel_closes_nothing(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    halt(here, bids(here))
    before_ms = here.clock()
    monkeypatch.setattr(here.market, "own_bids", lambda *_: OwnBids((), before_ms))
    assert closed(here) == [0]


def test_bid_that_expires_before_the_read_is_left_to_the_worker(here: World) -> None:
    halt(here, bids(here))
    late_ms = max(order.expires_ms for order in Order.select())
    here.market.own_bids = lambda *_: OwnBids((), late_ms)  # type: ignore[method-assign]
    assert closed(here) == [0]


@pytest.mark.parametrize(("share", "number"), [(1, 4), (2, 0)], ids=["whole", "a part may have been sold"])
def test_rune_bid_is_closed_if_a_read_before_showed_it_whole(here: World, share: int, number: int) -> None:
    halt(here, bids(here))
    Order.update(slug="UNCOMMON•GOODS").execute()
    here.market.own_ = [structs.replace(bid, quantity=Decimal(1) / share) for bid in here.market.own_]
    assert closed(here) == [number]
    assert here.market.own_ == []


def test_sold_bid_is_not_closed_as_cancelled(here: World) -> None:
    halt(here, bids(here))
    here.market.sell(here.market.prices[0])
    closed(here, rounds=2)
    sold = Order.select().order_by(Order.price_sats.desc()).get()
    assert (here.market.own_, sold.state) == ([], CANCELLING)


def test_only_bids_of_the_halted_task_go(here: World) -> None:
    left, halted = bids(here), here.task(BidConfig(slug="dogs", hardcap_sats=100_000))
    here.bidder(halted).cycle()
    Order.update(venue_id=Order.expires_ms.cast("TEXT")).where(Order.venue_id.is_null()).execute()
    halt(here, halted)
    assert {bid.order.task_id for bid in due(here)} == {halted}
    assert len(orders.open_orders(left)) == 4


@pytest.mark.parametrize(("column", "value"), [("dry_run", True), ("state", "unknown"), ("state", "submitted")])
def test_order_that_no_venue_can_cancel_is_not_owed(here: World, column: str, value: object) -> None:
    """It is of a dry run, on its way, or in doubt until a worker's read shows it."""
    halt(here, bids(here))
    Order.update(**{column: value}).execute()
    assert due(here) == []
