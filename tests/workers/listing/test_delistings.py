"""The venue drops the listing by itself while the inscription is still ours."""

from __future__ import annotations

from models.ledger import fills, listings
from tests.worlds.listing import ITEM, ListingWorld
from workers.listing.lister import IN_DOUBT_S, Lister


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
