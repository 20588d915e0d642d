"""UniSat's collection market, what is read of it: documented shapes, recorded, drifted and hostile ones."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import NotFound, NotSupported, NotUnderstood, Unavailable
from markets.orders import OwnListing
from markets.unisat.adapter import UnisatMarket
from strategy.book import Ask
from tests.markets.unisat_examples import (
    FOR_SALE,
    INSCRIPTION,
    LISTING,
    RECORDED,
    RECORDED_MS,
    SOLD,
    TXID,
    VAULT,
    answers,
    as_page,
    market,
    sent,
)

pytestmark = pytest.mark.usefixtures("no_network")


@pytest.fixture
def venue() -> UnisatMarket:
    return market()


def test_listings_of_a_collection(venue: UnisatMarket) -> None:
    auction = {**LISTING, "auctionId": "a2", "marketType": "auction"}
    withdrawn = {**LISTING, "auctionId": "a3", "notOnSale": True}
    answers("list", as_page({**LISTING, "marketType": None}, auction, withdrawn, total=250))
    page = venue.asks("puppets", None)
    (listing,) = page.entries
    ask = listing.ask
    assert (ask.order_id, ask.price, ask.quantity, ask.unit_price, ask.maker) == (
        "a1b2c3",
        60_000,
        Decimal(1),
        Decimal(60_000),
        VAULT,
    )
    assert (listing.traits, page.following) == (None, 3)
    assert sent() == {
        "filter": {"nftType": "collection", "isEnd": False, "collectionId": "puppets"},
        "sort": {"initPrice": 1},
        "start": 0,
        "limit": 99,
    }


def test_listings_end_where_the_total_says(venue: UnisatMarket) -> None:
    answers("list", as_page(LISTING, total="4"))
    assert venue.asks("puppets", 3).following is None
    assert sent()["start"] == 3
    responses.reset()
    answers("list", {"list": None, "total": 0})
    assert venue.asks("puppets", None).entries == ()


@pytest.mark.parametrize(
    "data",
    [
        as_page({**LISTING, "price": None}),
        as_page({**LISTING, "price": 0}),
        as_page({**LISTING, "price": 1.5}),
        as_page({**LISTING, "auctionId": None}),
        as_page({**LISTING, "collectionId": "others"}),
        as_page({**LISTING, "address": "a b"}),
        as_page("x"),
        as_page(total=3),
        {"list": [LISTING]},
        {"list": None, "total": 3},
        {"list": {}, "total": 1},
        [],
        None,
    ],
)
def test_a_strange_book_is_unknown(venue: UnisatMarket, data: Any) -> None:
    answers("list", data)
    with pytest.raises(Unavailable):
        venue.asks("puppets", None)


def test_recorded_listings_below_the_floors_of_their_own_traits_are_not_for_sale(venue: UnisatMarket) -> None:
    answers("list", as_page(*RECORDED, FOR_SALE, total=126))
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
        {"onSaleTime": RECORDED_MS - 80_000_000},  # less than a day old: the floors may lag
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
    answers("list", as_page({**RECORDED[0], **changed}, FOR_SALE))
    assert [listing.ask.price for listing in venue.asks("puppets", None).entries] == [1_800_000, 5_000_000]


def test_book_without_a_listing_for_sale_is_not_empty_where_a_trait_has_a_floor(venue: UnisatMarket) -> None:
    answers("list", as_page(*RECORDED))
    with pytest.raises(NotUnderstood, match="floors of their traits"):
        venue.asks("puppets", None)
    responses.reset()
    answers("list", as_page(*RECORDED, total=126))
    page = venue.asks("puppets", None)
    assert (page.entries, page.following) == ((), 5)  # they may be on the next page
    with pytest.raises(NotUnderstood):
        venue.asks("puppets", 5)


def test_listing_without_traits_has_unknown_ones(venue: UnisatMarket) -> None:
    listings = [{**LISTING, "auctionId": f"a{number}", "attrs": attrs} for number, attrs in enumerate((None, [], "x"))]
    answers("list", as_page(*listings, LISTING))
    assert [listing.traits for listing in venue.asks("puppets", None).entries] == [None] * 4


@pytest.mark.parametrize("seconds", [1_790_000_000, "1790000000000"])
def test_sales(venue: UnisatMarket, seconds: Any) -> None:
    answers("actions", as_page(SOLD, {**SOLD, "auctionId": "a2", "to": None, "timestamp": seconds}, total=300))
    page = venue.sales("puppets", "ordinals", None)
    first, second = page.entries
    assert (first.sale_id, first.price, first.quantity, first.buyer) == ("a1b2c3", 60_000, Decimal(1), "bc1pbuyer")
    assert (first.inscription_id, first.sold_ms, page.following) == (INSCRIPTION, 1_790_000_000_123, 2)
    assert (second.buyer, second.sold_ms) == (None, 1_790_000_000_000)
    assert sent()["filter"] == {"nftType": "collection", "collectionId": "puppets", "event": "Sold"}


def test_recorded_sale_has_its_transaction(venue: UnisatMarket) -> None:
    recorded = {
        **SOLD,
        "amount": 1,
        "attributes": None,
        "channel": "UniSat",
        "height": 948_768,
        "nftType": "collection",
        "price": 134_860,
        "sellTxid": None,
        "txid": TXID,
        "unitPrice": 134_980,
    }
    answers("actions", as_page(recorded, {**recorded, "txid": None}, {**recorded, "txid": 7}))
    found = venue.sales("puppets", "ordinals", None).entries
    assert [(sale.price, sale.txid) for sale in found] == [(134_860, TXID), (134_860, None), (134_860, None)]


def test_own_listings_are_asked_by_address(venue: UnisatMarket) -> None:
    answers("list", as_page(LISTING, {**LISTING, "auctionId": "a2", "collectionId": None}))
    page = venue.own_listings(VAULT, None)
    assert page.entries == (
        OwnListing("a1b2c3", INSCRIPTION, "puppets", 60_000, VAULT),
        OwnListing("a2", INSCRIPTION, None, 60_000, VAULT),
    )
    assert sent()["filter"] == {"nftType": "collection", "isEnd": False, "address": VAULT}


def test_an_inscription_in_detail(venue: UnisatMarket) -> None:
    info = {**LISTING, "collectionName": "Puppets", "utxo": {"txid": TXID, "vout": 1, "satoshi": 546}}
    answers("inscription_info", info)
    found = venue.item(INSCRIPTION)
    assert (found.listed, found.listing_price, found.seller) == (True, 60_000, VAULT)
    assert (found.output, found.output_value) == (TXID + ":1", 546)
    assert (found.collection_id, found.collection_name) == ("puppets", "Puppets")


def test_an_inscription_that_is_not_on_sale(venue: UnisatMarket) -> None:
    answers("inscription_info", {"inscriptionId": INSCRIPTION, "auctionId": None, "utxo": {"txid": TXID}})
    found = venue.item(INSCRIPTION)
    assert (found.listed, found.listing_price, found.output) == (False, None, None)


def test_recorded_item_that_is_not_for_sale_is_its_holders(venue: UnisatMarket) -> None:
    # [R] of 2026-05-10, inscription_info_list of the same fixtures; inscription_info is documented with its fields.
    recorded = {
        "inscriptionId": INSCRIPTION,
        "address": None,
        "attrs": RECORDED[0]["attrs"],
        "auctionId": None,
        "marketType": "fixedPrice",
        "notOnSale": True,
        "price": None,
        "utxo": {"txid": TXID, "vout": 0, "satoshi": 330, "address": "bc1pholder"},
    }
    answers("inscription_info", recorded)
    found = venue.item(INSCRIPTION)
    assert (found.owner, found.listed, found.seller, found.listing_price) == ("bc1pholder", False, None, None)
    assert found.traits == (("Body", "Pink"), ("Count", "3"), ("Earring", "None"), ("Eyes", "Frog"), ("Head", "Wood"))


def test_an_answer_about_another_inscription_is_none(venue: UnisatMarket) -> None:
    answers("inscription_info", {**LISTING, "inscriptionId": TXID + "i9"})
    with pytest.raises(Unavailable):
        venue.item(INSCRIPTION)
    responses.reset()
    answers("inscription_info", None, -109, "Inscription not found, please try again later")
    with pytest.raises(NotFound):
        venue.item(INSCRIPTION)


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
