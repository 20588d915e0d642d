"""UniSat's collection market, what is read of it: documented shapes, drifted and hostile ones."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import AuthFailed, NotFound, NotSupported, RateLimited, Refused, Unavailable
from markets.listings import OwnListing
from markets.unisat.market import UnisatMarket

BASE = "https://open-api.example"
TXID = "ab" * 32
INSCRIPTION = TXID + "i0"
VAULT = "bc1pvault"
STATISTIC = {"collectionId": "puppets", "name": "Puppets", "floorPrice": 50_000, "listed": 7, "total": 100}
LISTING = {
    "auctionId": "a1b2c3",
    "inscriptionId": INSCRIPTION,
    "inscriptionNumber": 7,
    "marketType": "fixedPrice",
    "address": VAULT,
    "price": 60_000,
    "unitPrice": 60_000,
    "nftType": "collection",
    "collectionId": "puppets",
    "collectionItemName": "Puppet #7",
    "notOnSale": None,
}
SOLD = {
    "auctionId": "a1b2c3",
    "inscriptionId": INSCRIPTION,
    "inscriptionNumber": 7,
    "event": "Sold",
    "price": 60_000,
    "from": VAULT,
    "to": "bc1pbuyer",
    "timestamp": 1_790_000_000_123,
    "collectionId": "puppets",
    "attributes": [{"trait_type": "Hat", "value": "Red"}],
}


@pytest.fixture
def venue() -> UnisatMarket:
    return UnisatMarket(BASE, "key", "unisat")


def _answers(step: str, data: Any, code: Any = 0, msg: str = "ok", status: int = 200) -> None:
    body = {"code": code, "msg": msg, "data": data}
    responses.post(f"{BASE}/v3/market/collection/auction/{step}", json=body, status=status)


def _page(*entries: Any, total: Any = None) -> dict[str, Any]:
    return {"list": list(entries), "total": len(entries) if total is None else total, "timestamp": 1_790_000_000_000}


def _sent() -> Any:
    return json.loads(responses.calls[-1].request.body or "")


@responses.activate
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
def test_a_floor(venue: UnisatMarket, changed: Any, floor: Decimal | None, count: int) -> None:
    _answers("collection_statistic", {**STATISTIC, **changed})
    found = venue.floors(["puppets"], "ordinals")["puppets"]
    assert (found.slug, found.floor, found.listed_count) == ("puppets", floor, count)
    assert _sent() == {"collectionId": "puppets"}
    assert responses.calls[0].request.headers["Authorization"] == "Bearer key"


@responses.activate
@pytest.mark.parametrize(
    ("data", "code", "msg"),
    [
        (None, 0, "ok"),
        ({}, 0, "ok"),
        ([], 0, "ok"),
        ({**STATISTIC, "collectionId": None}, 0, "ok"),
        (None, -109, "not found"),
    ],
)
def test_an_unknown_collection_has_no_floor(venue: UnisatMarket, data: Any, code: int, msg: str) -> None:
    _answers("collection_statistic", data, code, msg)
    assert venue.floors(["puppets"], "ordinals") == {}


@responses.activate
@pytest.mark.parametrize(
    ("data", "code", "status", "leaf"),
    [
        ({**STATISTIC, "floorPrice": 1.5}, 0, 200, Unavailable),
        ({**STATISTIC, "floorPrice": "cheap"}, 0, 200, Unavailable),
        ({**STATISTIC, "floorPrice": -1}, 0, 200, Unavailable),
        ({**STATISTIC, "floorPrice": True}, 0, 200, Unavailable),
        ({**STATISTIC, "collectionId": "others"}, 0, 200, Unavailable),
        ({"collectionId": "puppets", "listed": 7}, 0, 200, Unavailable),
        ("puppets", 0, 200, Unavailable),
        (STATISTIC, None, 200, Unavailable),
        (None, -106, 200, Unavailable),
        (None, -119, 200, Unavailable),
        (None, -161, 200, Unavailable),
        (None, -156, 200, Refused),
        (None, 0, 429, RateLimited),
        (None, 0, 401, AuthFailed),
        (None, 0, 502, Unavailable),
    ],
)
def test_what_is_not_understood_is_no_floor(venue: UnisatMarket, data: Any, code: Any, status: int, leaf: Any) -> None:
    _answers("collection_statistic", data, code, "said", status)
    with pytest.raises(leaf):
        venue.floors(["puppets"], "ordinals")


def test_floors_of_runes_and_of_several_are_not_asked_for(venue: UnisatMarket) -> None:
    with pytest.raises(NotSupported):
        venue.floors(["A•B"], "runes")
    with pytest.raises(ValueError):
        venue.floors(["a", "b"], "ordinals")


@responses.activate
def test_listings_of_a_collection(venue: UnisatMarket) -> None:
    auction = {**LISTING, "auctionId": "a2", "marketType": "auction"}
    withdrawn = {**LISTING, "auctionId": "a3", "notOnSale": True}
    _answers("list", _page({**LISTING, "marketType": None}, auction, withdrawn, total=250))
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
    assert _sent() == {
        "filter": {"nftType": "collection", "isEnd": False, "collectionId": "puppets"},
        "sort": {"unitPrice": 1},
        "start": 0,
        "limit": 99,
    }


@responses.activate
def test_listings_end_where_the_total_says(venue: UnisatMarket) -> None:
    _answers("list", _page(LISTING, total="4"))
    assert venue.asks("puppets", 3).following is None
    assert _sent()["start"] == 3
    responses.reset()
    _answers("list", {"list": None, "total": 0})
    assert venue.asks("puppets", None).entries == ()


@responses.activate
@pytest.mark.parametrize(
    "data",
    [
        _page({**LISTING, "price": None}),
        _page({**LISTING, "price": 0}),
        _page({**LISTING, "price": 1.5}),
        _page({**LISTING, "auctionId": None}),
        _page({**LISTING, "collectionId": "others"}),
        _page({**LISTING, "address": "a b"}),
        _page("x"),
        _page(total=3),
        {"list": [LISTING]},
        {"list": None, "total": 3},
        {"list": {}, "total": 1},
        [],
        None,
    ],
)
def test_a_strange_book_is_unknown(venue: UnisatMarket, data: Any) -> None:
    _answers("list", data)
    with pytest.raises(Unavailable):
        venue.asks("puppets", None)


@responses.activate
@pytest.mark.parametrize("seconds", [1_790_000_000, "1790000000000"])
def test_sales(venue: UnisatMarket, seconds: Any) -> None:
    _answers("actions", _page(SOLD, {**SOLD, "auctionId": "a2", "to": None, "timestamp": seconds}, total=300))
    page = venue.sales("puppets", "ordinals", None)
    first, second = page.entries
    assert (first.sale_id, first.price, first.quantity, first.buyer) == ("a1b2c3", 60_000, Decimal(1), "bc1pbuyer")
    assert (first.inscription_id, first.sold_ms, page.following) == (INSCRIPTION, 1_790_000_000_123, 2)
    assert (second.buyer, second.sold_ms) == (None, 1_790_000_000_000)
    assert _sent()["filter"] == {"nftType": "collection", "collectionId": "puppets", "event": "Sold"}


@responses.activate
@pytest.mark.parametrize(
    "changed",
    [
        {"event": "Listed"},
        {"timestamp": None},
        {"timestamp": 17},
        {"price": 0},
        {"price": None},
        {"inscriptionId": None},
        {"collectionId": "others"},
    ],
)
def test_one_strange_sale_makes_all_unknown(venue: UnisatMarket, changed: Any) -> None:
    _answers("actions", _page(SOLD, {**SOLD, **changed}))
    with pytest.raises(Unavailable):
        venue.sales("puppets", "ordinals", None)


@responses.activate
def test_own_listings_are_asked_by_address(venue: UnisatMarket) -> None:
    _answers("list", _page(LISTING, {**LISTING, "auctionId": "a2", "collectionId": None}))
    page = venue.own_listings(VAULT, None)
    assert page.entries == (
        OwnListing("a1b2c3", INSCRIPTION, "puppets", 60_000, VAULT),
        OwnListing("a2", INSCRIPTION, None, 60_000, VAULT),
    )
    assert _sent()["filter"] == {"nftType": "collection", "isEnd": False, "address": VAULT}


@responses.activate
@pytest.mark.parametrize(
    "changed",
    [
        {"address": "bc1panother"},
        {"address": None},
        {"auctionId": None},
        {"price": "6e4"},
        {"price": 0},
        {"inscriptionId": "x y"},
        {"collectionId": ""},
    ],
)
def test_one_strange_listing_of_ours_makes_all_unknown(venue: UnisatMarket, changed: Any) -> None:
    _answers("list", _page(LISTING, {**LISTING, **changed}))
    with pytest.raises(Unavailable):
        venue.own_listings(VAULT, None)


@responses.activate
def test_an_inscription_in_detail(venue: UnisatMarket) -> None:
    info = {**LISTING, "collectionName": "Puppets", "utxo": {"txid": TXID, "vout": 1, "satoshi": 546}}
    _answers("inscription_info", info)
    found = venue.item(INSCRIPTION)
    assert (found.listed, found.listing_price, found.seller) == (True, 60_000, VAULT)
    assert (found.output, found.output_value) == (TXID + ":1", 546)
    assert (found.collection_id, found.collection_name) == ("puppets", "Puppets")


@responses.activate
def test_an_inscription_that_is_not_on_sale(venue: UnisatMarket) -> None:
    _answers("inscription_info", {"inscriptionId": INSCRIPTION, "auctionId": None, "utxo": {"txid": TXID}})
    found = venue.item(INSCRIPTION)
    assert (found.listed, found.listing_price, found.output) == (False, None, None)


@responses.activate
def test_an_answer_about_another_inscription_is_none(venue: UnisatMarket) -> None:
    _answers("inscription_info", {**LISTING, "inscriptionId": TXID + "i9"})
    with pytest.raises(Unavailable):
        venue.item(INSCRIPTION)
    responses.reset()
    _answers("inscription_info", None, -109, "Inscription not found, please try again later")
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
