"""The end of a deleted task's listing."""

from __future__ import annotations

import pytest

from markets.base import NotFound, Refused, Unavailable
from models.ledger import listings
from models.ledger.states import CLOSED, LOST
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.worlds.listing import ListingWorld
from tests.worlds.worker import Crash, CrashAt
from wallet.signer_client import SignerUnavailable
from workers.drains import ListingDrain


def deleted(shop: ListingWorld, *list_turns: object) -> tuple[int, ListingDrain]:
    task = shop.task()
    shop.market.fail("list", *list_turns)
    shop.lister(task).cycle()
    tasks.mark_deleted(shop.row(task), shop.clock())
    shop.clock.advance(6)
    return task, shop.listing_drain(task)


def drained(shop: ListingWorld, drain: ListingDrain, rounds: int = 20) -> bool:
    """Tells whether the drain comes to its end."""
    for _ in range(rounds):
        if drain.cycle() is None:
            return True
        shop.clock.advance(6)
    return False


def test_it_is_cancelled_confirmed_and_closed(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    assert drain.cycle() is None
    assert (shop.prices, shop.rows()) == ([], [(105_000, "closed", "cancelled")])
    assert shop.market.done == [("challenge", 0), ("delist", 1)]


def test_a_stopped_task_keeps_its_listing(shop: ListingWorld) -> None:
    task, _ = shop.begun()
    tasks.set_desired(shop.row(task), STOPPED)
    assert shop.listing_drain(task).cycle() is None
    assert (shop.prices, shop.rows()) == ([105_000], [(105_000, "live", None)])


@pytest.mark.parametrize("turn", ["lie", "no", Unavailable("down"), Refused("no", "no")])
def test_what_is_still_shown_is_cancelled_again(shop: ListingWorld, turn: object) -> None:
    _, drain = deleted(shop)
    shop.market.fail("delist", turn, turn)
    assert drain.cycle() is not None
    assert shop.rows()[0][1] != "closed"
    assert drained(shop, drain)
    assert (shop.prices, shop.rows()) == ([], [(105_000, "closed", "cancelled")])


@pytest.mark.parametrize("turn", ["lost", NotFound("no such listing")])
def test_an_answer_that_is_lost_or_not_found_is_settled_by_reads(shop: ListingWorld, turn: object) -> None:
    _, drain = deleted(shop)
    if isinstance(turn, NotFound):
        shop.market.witness = lambda operation: shop.market.listed.clear() if operation == "delist" else None
    shop.market.fail("delist", turn)
    assert drained(shop, drain)
    assert shop.rows() == [(105_000, "closed", "cancelled")]


def test_nothing_is_closed_while_our_listings_cannot_be_read(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.script["own_listings"] = [Unavailable("down")] * 20
    assert not drained(shop, drain)
    assert shop.rows() == [(105_000, "live", None)]


def test_a_signer_that_is_away_is_waited_for(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.signer.away = SignerUnavailable("gone")
    assert not drained(shop, drain, 3)
    shop.signer.away = None
    assert drained(shop, drain)
    assert shop.prices == []


def test_a_listing_that_may_still_arrive_is_waited_for(shop: ListingWorld) -> None:
    _, drain = deleted(shop, "never")
    assert not drained(shop, drain, 4)
    shop.market.show(105_000)
    assert drained(shop, drain)
    assert (shop.prices, shop.rows()) == ([], [(105_000, "closed", "cancelled")])


def test_a_listing_that_never_arrives_is_lost_in_the_end(shop: ListingWorld) -> None:
    _, drain = deleted(shop, "never")
    assert drained(shop, drain)
    assert shop.rows() == [(105_000, "closed", "lost")]


def test_a_sale_before_the_cancel_is_written_down(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.buy(105_000)
    assert drained(shop, drain)
    assert shop.rows() == [(105_000, "closed", "sold")]


def test_what_the_venue_dropped_by_itself_is_lost(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.listed.clear()
    assert drained(shop, drain)
    assert shop.rows() == [(105_000, "closed", "lost")]


@pytest.mark.parametrize(("shown", "left"), [(105_000, "cancelled"), (90_000, "cancelled"), (None, "lost")])
def test_what_may_be_listed_is_looked_for_until_that_is_known(shop: ListingWorld, shown: int | None, left: str) -> None:
    """Our ledger had closed it, and the marketplace could not be read when the task was deleted."""
    task, _ = shop.begun()
    shop.market.listed.clear()
    was = listings.open_listing(task)
    assert was is not None
    listings.move(was, CLOSED, shop.clock(), reason=LOST)
    new = {name: getattr(was, name) for name in listings.NewListing.__slots__} | {"intent": "5" * 64}
    listings.suspect(listings.NewListing(**new), shop.clock())
    tasks.mark_deleted(shop.row(task), shop.clock())
    if shown is not None:
        shop.market.show(shown)
    shop.clock.advance(6)
    assert drained(shop, shop.listing_drain(task))
    assert (shop.prices, shop.rows()[1]) == ([], (105_000, "closed", left))


def test_another_price_than_ours_is_cancelled_too(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.show(90_000)
    assert drained(shop, drain)
    assert shop.prices == []


def test_what_was_to_be_replaced_is_cancelled_though_a_lagging_read_does_not_show_it(shop: ListingWorld) -> None:
    task, _ = shop.begun()
    shop.floor(200_000)
    shop.clock.advance(30)
    with pytest.raises(Crash):
        shop.lister(task, CrashAt("listing-reserved")).cycle()
    tasks.mark_deleted(shop.row(task), shop.clock())
    shop.market.fail("own_listings", "empty")
    drain = shop.listing_drain(task)
    assert drain.cycle() is not None
    assert shop.rows() == [(105_000, "live", None), (210_000, "closed", "refused")]
    assert drained(shop, drain)
    assert (shop.prices, shop.rows()[0]) == ([], (105_000, "closed", "cancelled"))


def test_an_overtaken_drain_does_nothing(shop: ListingWorld) -> None:
    task, drain = deleted(shop)
    tasks.raise_token(task)
    assert drain.cycle() is None
    assert shop.prices == [105_000]
