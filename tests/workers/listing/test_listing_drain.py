"""A listing's drain, its sales meanwhile, and delistings."""

from __future__ import annotations

import pytest

from markets.base import NotFound, Refused, Unavailable, Unknown
from models.ledger import fills, listings
from models.ledger.states import CLOSED, LOST
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.worlds.listing import ITEM, ListingWorld
from tests.worlds.worker import Crash, CrashAt
from wallet.signer_client import SignerUnavailable
from workers.drains import ListingDrain
from workers.listing.lister import IN_DOUBT_S, Lister


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


SOLD = [(105_000, "closed", "sold")]


def test_sold_after_a_cancel_that_did_not_arrive(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.fail("delist", Unavailable("down"))
    drain.cycle()
    shop.clock.advance(6)
    shop.market.buy(105_000)
    assert drained(shop, drain)
    assert shop.rows() == SOLD


@pytest.mark.parametrize("turn", [NotFound("no such listing"), Unknown("no answer")])
def test_sold_while_the_cancel_was_under_way(shop: ListingWorld, turn: Exception) -> None:
    _, drain = deleted(shop)
    shop.market.witness = lambda operation: buy_once(shop) if operation == "delist" else None
    shop.market.fail("delist", turn)
    assert drained(shop, drain)
    assert shop.rows() == SOLD


def buy_once(shop: ListingWorld) -> None:
    if shop.market.listed:
        shop.market.buy(105_000)


def test_sold_while_the_sales_cannot_be_read(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.buy(105_000)
    shop.market.script["sales"] = [Unavailable("down")] * 3
    assert drained(shop, drain)
    assert shop.rows() == SOLD


def test_a_sale_that_is_told_late_is_waited_for(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.buy(105_000, is_told=False)
    assert not drained(shop, drain, 5)
    shop.market.tell_sale(105_000)
    assert drained(shop, drain)
    assert shop.rows() == SOLD


def test_what_left_without_a_sale_is_gone_in_the_end(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.buy(105_000, is_told=False)
    assert drained(shop, drain, 40)
    assert shop.rows() == [(105_000, "closed", "gone")]


def drop(shop: ListingWorld, lister: Lister) -> None:
    """The venue forgets the listing, and two reads confirm it."""
    shop.market.listed.clear()
    shop.clock.advance(301)  # else a young listing's price would be kept
    lister.cycle()
    shop.later(6, lister)


def test_a_dropped_listing_is_put_up_again_after_two_reads(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.listed.clear()
    assert shop.later(30, lister) == IN_DOUBT_S
    assert shop.rows() == [(105_000, "live", None)]
    assert shop.action(task).startswith("waiting: the marketplace does not show the listing")
    shop.later(6, lister)
    assert shop.rows() == [(105_000, "closed", "lost"), (105_000, "live", None)]
    assert shop.market.submitted == [105_000, 105_000]


def test_one_lagging_read_is_not_believed(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.fail("own_listings", "empty")
    shop.later(30, lister)
    shop.later(6, lister)
    assert shop.market.submitted == [105_000]
    assert shop.open_row(task).misses == 0


def test_the_third_delisting_within_an_hour_is_a_pause_that_ends_by_itself(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    for _ in range(3):
        drop(shop, lister)
    assert len(shop.market.submitted) == 3
    assert shop.action(task).startswith("paused: the marketplace dropped the listing 3 times")
    assert "3 times" in str(shop.row(task).last_error)
    assert shop.row(task).desired == "running"
    shop.clock.advance(1800)
    shop.lister(task).cycle()
    assert shop.prices == []
    shop.clock.advance(1800)
    lister = shop.lister(task)
    lister.cycle()
    assert shop.prices == [105_000]
    assert shop.row(task).last_error is None


def test_a_dropped_listing_that_is_shown_again_is_adopted(shop: ListingWorld) -> None:
    _, lister = shop.begun()
    for _ in range(3):
        drop(shop, lister)
    shop.market.show(105_000)
    shop.later(30, lister)
    assert len(shop.market.submitted) == 3
    assert shop.rows()[-1] == (105_000, "live", None)


def test_what_was_sold_is_not_put_up_again(shop: ListingWorld) -> None:
    """The venue shows no listing before the chain and the sales say why."""
    task, lister = shop.begun()
    shop.market.listed.clear()
    shop.later(30, lister)
    shop.market.buy(105_000)
    assert shop.later(6, lister) is None
    assert shop.market.submitted == [105_000]
    assert shop.action(task) == "sold for 105,000"


def test_a_dropped_listing_whose_signature_is_used_after_all_is_a_sale_on_record(shop: ListingWorld) -> None:
    """A pause leaves no open listing; the signature can be used as long as the output is unspent."""
    task, lister = shop.begun()
    for _ in range(3):
        drop(shop, lister)
    assert listings.open_listing(task) is None
    shop.market.buy(105_000)
    assert shop.later(30, lister) is None
    assert shop.action(task) == "sold for 105,000"
    (fill,) = fills.newest(int(shop.user.id), fills.Wanted(), 5)
    assert (fill.price_sats, fill.inscription_id, fill.sale_id) == (105_000, ITEM, "sale-0")
    assert [reason for _, _, reason in shop.rows()] == ["lost", "lost", "sold"]
