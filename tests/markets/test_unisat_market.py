"""UniSat's collection market: books, sales and floors."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.adapter import AskAgain
from markets.base import (
    AuthFailed,
    NotFound,
    NotSupported,
    NotUnderstood,
    RateLimited,
    Refused,
    Unavailable,
    VenueError,
)
from markets.orders import OwnListing
from markets.unisat.adapter import UnisatMarket
from strategy.book import Ask
from tests.markets import unisat_examples as ex

pytestmark = pytest.mark.usefixtures("no_network")


@pytest.fixture
def venue() -> UnisatMarket:
    return ex.market()


def test_listings_of_a_collection(venue: UnisatMarket) -> None:
    auction = {**ex.LISTING, "auctionId": "a2", "marketType": "auction"}
    withdrawn = {**ex.LISTING, "auctionId": "a3", "notOnSale": True}
    ex.answers("list", ex.as_page({**ex.LISTING, "marketType": None}, auction, withdrawn, total=250))
    page = venue.asks("puppets", None)
    (listing,) = page.entries
    ask = listing.ask
    assert (ask.order_id, ask.price, ask.quantity, ask.unit_price, ask.maker) == (
        "a1b2c3",
        60_000,
        Decimal(1),
        Decimal(60_000),
        ex.VAULT,
    )
    assert (listing.traits, page.following) == (None, 3)
    assert ex.sent() == {
        "filter": {"nftType": "collection", "isEnd": False, "collectionId": "puppets"},
        "sort": {"initPrice": 1},
        "start": 0,
        "limit": 99,
    }


def test_listings_end_where_the_total_says(venue: UnisatMarket) -> None:
    ex.answers("list", ex.as_page(ex.LISTING, total="4"))
    assert venue.asks("puppets", 3).following is None
    assert ex.sent()["start"] == 3
    responses.reset()
    ex.answers("list", {"list": None, "total": 0})
    assert venue.asks("puppets", None).entries == ()


@pytest.mark.parametrize(
    "data",
    [
        ex.as_page({**ex.LISTING, "price": None}),
        ex.as_page({**ex.LISTING, "price": 0}),
        ex.as_page({**ex.LISTING, "price": 1.5}),
        ex.as_page({**ex.LISTING, "auctionId": None}),
        ex.as_page({**ex.LISTING, "collectionId": "others"}),
        ex.as_page({**ex.LISTING, "address": "a b"}),
        ex.as_page("x"),
        ex.as_page(total=3),
        {"list": [ex.LISTING]},
        {"list": None, "total": 3},
        {"list": {}, "total": 1},
        [],
        None,
    ],
)
def test_a_strange_book_is_unknown(venue: UnisatMarket, data: Any) -> None:
    ex.answers("list", data)
    with pytest.raises(Unavailable):
        venue.asks("puppets", None)


def test_recorded_listings_below_the_floors_of_their_own_traits_are_not_for_sale(venue: UnisatMarket) -> None:
    ex.answers("list", ex.as_page(*ex.RECORDED, ex.FOR_SALE, total=126))
    page = venue.asks("puppets", None)
    (listing,) = page.entries
    ask = Ask("cdusou4421copuxv6", 5_000_000, Decimal(1), Decimal(5_000_000), "bc1pseller")
    assert (listing.ask, page.following, page.unread) == (ask, 6, ())
    assert listing.traits == {
        ("Body", "Green"),
        ("Head", "Cap"),
        ("Eyes", "Bot"),
        ("Earring", "None"),
        ("Count", "3"),
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"onSaleTime": ex.RECORDED_MS - 80_000_000},  # less than a day old: the floors may lag
        {"onSaleTime": 0},
        {"onSaleTime": None},
        {"attrs": None},
        {"attrs": {}},
        {"attrs": [None, 7, {"floorPrice": 9_000_000}]},
        {"attrs": [{"traitType": "Hat", "value": "Red", "listingCount": 0, "floorPrice": 9_000_000}]},
        {"attrs": [{"traitType": "Hat", "value": "Red", "listingCount": 4, "floorPrice": 1_800_000}]},
        {"attrs": [{"traitType": "Hat", "value": "Red", "listingCount": 4, "floorPrice": "many"}]},
    ],
)
def test_listing_that_its_traits_do_not_contradict_stays(venue: UnisatMarket, changed: Any) -> None:
    ex.answers("list", ex.as_page({**ex.RECORDED[0], **changed}, ex.FOR_SALE))
    assert [listing.ask.price for listing in venue.asks("puppets", None).entries] == [1_800_000, 5_000_000]


def test_book_without_a_listing_for_sale_is_not_empty_where_a_trait_has_a_floor(venue: UnisatMarket) -> None:
    ex.answers("list", ex.as_page(*ex.RECORDED))
    with pytest.raises(NotUnderstood, match="floors of their traits"):
        venue.asks("puppets", None)
    responses.reset()
    ex.answers("list", ex.as_page(*ex.RECORDED, total=126))
    page = venue.asks("puppets", None)
    assert (page.entries, page.following) == ((), 5)  # they may be on the next page
    with pytest.raises(NotUnderstood):
        venue.asks("puppets", 5)


def test_listing_without_traits_has_unknown_ones(venue: UnisatMarket) -> None:
    listings = [
        {**ex.LISTING, "auctionId": f"a{number}", "attrs": attrs} for number, attrs in enumerate((None, [], "x"))
    ]
    ex.answers("list", ex.as_page(*listings, ex.LISTING))
    assert [listing.traits for listing in venue.asks("puppets", None).entries] == [None] * 4


@pytest.mark.parametrize("seconds", [1_790_000_000, "1790000000000"])
def test_sales(venue: UnisatMarket, seconds: Any) -> None:
    ex.answers(
        "actions", ex.as_page(ex.SOLD, {**ex.SOLD, "auctionId": "a2", "to": None, "timestamp": seconds}, total=300)
    )
    page = venue.sales("puppets", "ordinals", None)
    first, second = page.entries
    assert (first.sale_id, first.price, first.quantity, first.buyer) == ("a1b2c3", 60_000, Decimal(1), "bc1pbuyer")
    assert (first.inscription_id, first.sold_ms, page.following) == (ex.INSCRIPTION, 1_790_000_000_123, 2)
    assert (second.buyer, second.sold_ms) == (None, 1_790_000_000_000)
    assert ex.sent()["filter"] == {"nftType": "collection", "collectionId": "puppets", "event": "Sold"}


def test_recorded_sale_has_its_transaction(venue: UnisatMarket) -> None:
    recorded = {
        **ex.SOLD,
        "amount": 1,
        "attributes": None,
        "channel": "UniSat",
        "height": 948_768,
        "nftType": "collection",
        "price": 134_860,
        "sellTxid": None,
        "txid": ex.TXID,
        "unitPrice": 134_980,
    }
    ex.answers("actions", ex.as_page(recorded, {**recorded, "txid": None}, {**recorded, "txid": 7}))
    found = venue.sales("puppets", "ordinals", None).entries
    assert [(sale.price, sale.txid) for sale in found] == [(134_860, ex.TXID), (134_860, None), (134_860, None)]


def test_own_listings_are_asked_by_address(venue: UnisatMarket) -> None:
    ex.answers("list", ex.as_page(ex.LISTING, {**ex.LISTING, "auctionId": "a2", "collectionId": None}))
    page = venue.own_listings(ex.VAULT, None)
    assert page.entries == (
        OwnListing("a1b2c3", ex.INSCRIPTION, "puppets", 60_000, ex.VAULT),
        OwnListing("a2", ex.INSCRIPTION, None, 60_000, ex.VAULT),
    )
    assert ex.sent()["filter"] == {"nftType": "collection", "isEnd": False, "address": ex.VAULT}


def test_an_inscription_in_detail(venue: UnisatMarket) -> None:
    info = {**ex.LISTING, "collectionName": "Puppets", "utxo": {"txid": ex.TXID, "vout": 1, "satoshi": 546}}
    ex.answers("inscription_info", info)
    found = venue.item(ex.INSCRIPTION)
    assert (found.listed, found.listing_price, found.seller) == (True, 60_000, ex.VAULT)
    assert (found.output, found.output_value) == (ex.TXID + ":1", 546)
    assert (found.collection_id, found.collection_name) == ("puppets", "Puppets")


def test_an_inscription_that_is_not_on_sale(venue: UnisatMarket) -> None:
    ex.answers("inscription_info", {"inscriptionId": ex.INSCRIPTION, "auctionId": None, "utxo": {"txid": ex.TXID}})
    found = venue.item(ex.INSCRIPTION)
    assert (found.listed, found.listing_price, found.output) == (False, None, None)


def test_recorded_item_that_is_not_for_sale_is_its_holders(venue: UnisatMarket) -> None:
    # [R] of 2026-05-10, inscription_info_list of the same fixtures; inscription_info is documented with its fields.
    recorded = {
        "inscriptionId": ex.INSCRIPTION,
        "address": None,
        "attrs": ex.RECORDED[0]["attrs"],
        "auctionId": None,
        "marketType": "fixedPrice",
        "notOnSale": True,
        "price": None,
        "utxo": {"txid": ex.TXID, "vout": 0, "satoshi": 330, "address": "bc1pholder"},
    }
    ex.answers("inscription_info", recorded)
    found = venue.item(ex.INSCRIPTION)
    assert (found.owner, found.listed, found.seller, found.listing_price) == ("bc1pholder", False, None, None)
    assert found.traits == (("Body", "Pink"), ("Count", "3"), ("Earring", "None"), ("Eyes", "Frog"), ("Head", "Wood"))


def test_an_answer_about_another_inscription_is_none(venue: UnisatMarket) -> None:
    ex.answers("inscription_info", {**ex.LISTING, "inscriptionId": ex.TXID + "i9"})
    with pytest.raises(Unavailable):
        venue.item(ex.INSCRIPTION)
    responses.reset()
    ex.answers("inscription_info", None, -109, "Inscription not found, please try again later")
    with pytest.raises(NotFound):
        venue.item(ex.INSCRIPTION)


def test_bids_are_not_taken_and_why_is_said(venue: UnisatMarket) -> None:
    with pytest.raises(NotSupported, match="standing"):
        venue.place(None)  # type: ignore[arg-type]
    with pytest.raises(NotSupported, match="standing"):
        venue.draft_bid(None)  # type: ignore[arg-type]
    with pytest.raises(NotSupported):
        venue.profile("ordinals")
    with pytest.raises(NotSupported):
        venue.sales("A•B", "runes", None)


def test_catalogue_of_traits_is_refused_because_listings_tell_only_some(venue: UnisatMarket) -> None:
    with pytest.raises(NotSupported, match="may not be all"):
        venue.traits("puppets")


@pytest.fixture
def now_ms() -> list[int]:
    return [ex.RECORDED_MS]


@pytest.fixture
def timed_venue(now_ms: list[int]) -> UnisatMarket:
    return UnisatMarket(ex.BASE, "key", "unisat", now_ms=lambda: now_ms[0])


@pytest.mark.parametrize(
    ("changed", "floor", "count"),
    [
        ({}, Decimal(50_000), 7),
        ({"floorPrice": "50000", "listed": "7"}, Decimal(50_000), 7),
        ({"floorPrice": 50_000.0}, Decimal(50_000), 7),
        ({"floorPrice": 0, "listed": 0}, None, 0),
        ({"floorPrice": None, "listed": None}, None, 0),
        ({"collectionId": "Puppets"}, Decimal(50_000), 7),
    ],
)
def test_a_floor(timed_venue: UnisatMarket, changed: Any, floor: Decimal | None, count: int) -> None:
    ex.answers("collection_statistic", {**ex.STATISTIC, **changed})
    found = timed_venue.floors(["puppets"], "ordinals")["puppets"]
    assert (found.slug, found.floor, found.listed_count) == ("puppets", floor, count)
    assert ex.sent() == {"collectionId": "puppets"}
    assert responses.calls[0].request.headers["Authorization"] == "Bearer key"


@pytest.mark.parametrize(
    ("data", "code", "msg"),
    [
        (None, 0, "ok"),
        ({}, 0, "ok"),
        ([], 0, "ok"),
        ({**ex.STATISTIC, "collectionId": None}, 0, "ok"),
        (None, -109, "not found"),
    ],
)
def test_an_unknown_collection_has_no_floor(timed_venue: UnisatMarket, data: Any, code: int, msg: str) -> None:
    ex.answers("collection_statistic", data, code, msg)
    assert timed_venue.floors(["puppets"], "ordinals") == {}


@pytest.mark.parametrize(
    ("data", "code", "status", "leaf"),
    [
        ({**ex.STATISTIC, "floorPrice": 1.5}, 0, 200, Unavailable),
        ({**ex.STATISTIC, "floorPrice": "cheap"}, 0, 200, Unavailable),
        ({**ex.STATISTIC, "floorPrice": -1}, 0, 200, Unavailable),
        ({**ex.STATISTIC, "floorPrice": True}, 0, 200, Unavailable),
        ({**ex.STATISTIC, "collectionId": "others"}, 0, 200, Unavailable),
        ({"collectionId": "puppets", "listed": 7}, 0, 200, Unavailable),
        ("puppets", 0, 200, Unavailable),
        (ex.STATISTIC, None, 200, Unavailable),
        (None, -106, 200, Unavailable),
        (None, -119, 200, Unavailable),
        (None, -161, 200, Unavailable),
        (None, -156, 200, Refused),
        (None, 0, 429, RateLimited),
        (None, 0, 401, AuthFailed),
        (None, 0, 502, Unavailable),
    ],
)
def test_what_is_not_understood_is_no_floor(
    timed_venue: UnisatMarket, data: Any, code: Any, status: int, leaf: Any
) -> None:
    ex.answers("collection_statistic", data, code, "said", status)
    with pytest.raises(leaf):
        timed_venue.floors(["puppets"], "ordinals")


def test_floor_whose_statistic_fails_is_asked_of_the_list_and_remembered(
    timed_venue: UnisatMarket, now_ms: list[int]
) -> None:
    ex.answers("collection_statistic", None, -1, "Internal Server Error", 500)
    ex.answers("collection_statistic_list", ex.STATISTICS)
    with pytest.raises(AskAgain):
        timed_venue.floors(["puppets"], "ordinals")
    for _ in range(2):
        assert timed_venue.floors(["puppets"], "ordinals")["puppets"].floor == 50_000
    assert ex.sent() == {"filter": {"timeType": "7d", "collections": ["puppets"]}, "start": 0, "limit": 20}
    with pytest.raises(AskAgain):
        timed_venue.floors(["frogs"], "ordinals")  # every collection by itself
    now_ms[0] += 3_600_000
    with pytest.raises(AskAgain):
        timed_venue.floors(["puppets"], "ordinals")
    first, again = "collection_statistic", "collection_statistic_list"
    assert ex.steps() == [first, again, again, first, first]


@pytest.mark.parametrize(
    ("listed", "status"),
    [
        ({"list": [], "total": 0}, 200),
        ({"list": [{**ex.STATISTIC, "collectionId": "frogs"}], "total": 1988}, 200),
        ({"list": [{**ex.STATISTIC, "floorPrice": "x"}], "total": 1}, 200),
        (None, 500),
    ],
)
def test_floor_that_the_list_does_not_have_is_the_cheapest_listing(
    timed_venue: UnisatMarket, listed: Any, status: int
) -> None:
    ex.answers("collection_statistic", None, -1, "Internal Server Error", 500)
    ex.answers("collection_statistic_list", listed, status=status)
    ex.answers("list", ex.as_page(ex.RECORDED[0], ex.FOR_SALE))
    for _ in range(2):
        with pytest.raises(AskAgain):
            timed_venue.floors(["puppets"], "ordinals")
    for _ in range(2):
        found = timed_venue.floors(["puppets"], "ordinals")["puppets"]
        assert (found.floor, found.listed_count) == (5_000_000, 2)
    assert ex.steps() == ["collection_statistic", "collection_statistic_list", "list", "list"]


@pytest.mark.parametrize(
    ("listings", "status", "leaf"),
    [
        (ex.as_page(*ex.RECORDED, total=126), 200, NotUnderstood),
        (ex.as_page("x"), 200, NotUnderstood),
        (None, 500, Unavailable),
    ],
)
def test_floor_that_no_source_has_is_unavailable(
    timed_venue: UnisatMarket, listings: Any, status: int, leaf: type[Unavailable]
) -> None:
    ex.answers("collection_statistic", None, status=500)
    ex.answers("collection_statistic_list", None, status=500)
    ex.answers("list", listings, status=status)
    for wanted in (AskAgain, AskAgain, leaf, leaf):
        with pytest.raises(Unavailable) as raised:
            timed_venue.floors(["puppets"], "ordinals")
        assert type(raised.value) is wanted


def test_collection_without_listings_has_no_floor(timed_venue: UnisatMarket) -> None:
    ex.answers("collection_statistic", None, status=500)
    ex.answers("collection_statistic_list", None, status=500)
    ex.answers("list", ex.as_page())
    for _ in range(2):
        with pytest.raises(AskAgain):
            timed_venue.floors(["puppets"], "ordinals")
    assert timed_venue.floors(["puppets"], "ordinals")["puppets"].floor is None


@pytest.mark.parametrize("status", [429, 502, 503, 401])
def test_other_fault_of_the_statistic_is_not_asked_elsewhere(timed_venue: UnisatMarket, status: int) -> None:
    ex.answers("collection_statistic", None, status=status)
    for _ in range(2):
        with pytest.raises(VenueError) as raised:
            timed_venue.floors(["puppets"], "ordinals")
        assert not isinstance(raised.value, AskAgain)
    assert ex.steps() == ["collection_statistic"] * 2


def test_floors_of_runes_and_of_several_are_not_asked_for(timed_venue: UnisatMarket) -> None:
    with pytest.raises(NotSupported):
        timed_venue.floors(["A•B"], "runes")
    with pytest.raises(ValueError):
        timed_venue.floors(["a", "b"], "ordinals")
