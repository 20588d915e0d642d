"""Satflow's books of listings and bids: documented and observed shapes, and hostile ones."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import Unavailable
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import BASE, ID, answers

pytestmark = pytest.mark.usefixtures("no_network")


def _listings(*entries: Any, **data: Any) -> dict[str, Any]:
    return {"success": True, "data": {"items": list(entries), **data}}


def test_each_read_is_one_request_with_the_key_and_the_documented_query(satflow: Satflow) -> None:
    answers("/activity/listings", _listings())
    satflow.asks("goosinals", 2)
    (call,) = responses.calls
    assert call.request.headers["x-api-key"] == "key"
    assert call.request.params == {
        "collectionSlug": "goosinals",
        "active": "true",
        "sortBy": "price",
        "sortDirection": "asc",
        "page": "2",
        "pageSize": "100",
    }


@pytest.mark.parametrize(
    ("data", "order", "maker"),
    [
        ({"items": [{"_id": ID, "inscriptionId": "1i0", "price": 900, "collectionSlug": "Goosinals"}]}, ID, ""),
        ({"items": [{"_id": {"$oid": ID}, "price": "900", "sellerOrdAddress": "bc1p"}]}, ID, "bc1p"),
        (
            {"listings": [{"id": ID, "ask": {"inscriptionId": "1i0", "price": 900, "sellerOrdAddress": "bc1p"}}]},
            ID,
            "bc1p",
        ),
        ({"listings": [{"ask": {"inscriptionId": "1i0", "price": 900}, "sellerAddress": "bc1p"}]}, "1i0", "bc1p"),
        ({"results": [{"_id": ID, "listing": {"price": 900, "sellerAddress": "bc1p"}}]}, ID, "bc1p"),
        ({"items": [{"_id": ID, "price": 900, "seller": {"address": "bc1p"}}]}, ID, "bc1p"),
        ({"items": [{"_id": ID, "price": 900, "seller": "bc1p"}]}, ID, "bc1p"),
        ({"items": [{"_id": ID, "price": 900, "sellerReceiveAddress": "bc1q", "maker": "bc1p"}]}, ID, "bc1p"),
    ],
)
def test_listings_in_every_known_shape(satflow: Satflow, data: Any, order: str, maker: str) -> None:
    answers("/activity/listings", {"data": data})
    (listing,) = satflow.asks("goosinals", 1).entries
    ask = listing.ask
    assert listing.traits is None
    assert (ask.order_id, ask.price, ask.unit_price, ask.quantity, ask.maker) == (order, 900, 900, 1, maker)


@pytest.mark.parametrize(
    "sign",
    [
        {"isPending": True},
        {"status": "pending"},
        {"fillPendingAt": "2026-01-01T00:00:00Z"},
        {"ask": {"pending": True}},
        {"status": "SOLD"},
    ],
)
def test_sales_that_wait_for_their_block_are_no_asks(satflow: Satflow, sign: dict[str, Any]) -> None:
    answers("/activity/listings", _listings({"_id": ID, "price": 900, **sign}))
    assert satflow.asks("goosinals", 1).entries == ()


@pytest.mark.parametrize(
    ("count", "data", "following"),
    [
        (1, {"pagination": {"page": 1, "totalPages": 3}}, 2),
        (100, {"pagination": {"page": 1, "totalPages": 1}}, None),
        (100, {}, 2),
        (99, {}, None),
        (100, {"total": 101}, 2),
        (100, {"total": "100"}, None),
        (50, {"total": 101, "pageSize": 50}, 2),
        (0, {"total": 101}, None),
    ],
)
def test_pages_end_where_the_venue_says(satflow: Satflow, count: int, data: Any, following: int | None) -> None:
    answers("/activity/listings", _listings(*({"_id": ID, "price": n + 1} for n in range(count)), **data))
    assert satflow.asks("goosinals", 1).following == following


@pytest.mark.parametrize(
    "price",
    [True, None, "1e3", "-5", "+5", "5.0", 5.5, "NaN", "", " 5", "٥", -1, 0, 2_100_000_000_000_001, [5], {"amount": 5}],
)
def test_a_price_that_is_not_one_makes_the_listings_unreadable(satflow: Satflow, price: Any) -> None:
    answers("/activity/listings", _listings({"_id": ID, "price": price}))
    with pytest.raises(Unavailable):
        satflow.asks("goosinals", 1)


@pytest.mark.parametrize(
    "body",
    [
        "NaN",
        '{"data": {"items": [{"_id": "a", "price": 1e999}]}}',
        '{"data": {"items": [{"_id": "a", "price": 1e3}]}}',
        '{"data": {"items": [{"_id": "a", "price": Infinity}]}}',
        '{"data": {"items": [{"_id": "a", "price": ' + "9" * 5000 + "}]}}",
        "[" * 100_000,
        '{"success": false, "data": {"items": []}}',
        '{"error": {}}',
        '{"data": {"items": {}}}',
        '{"data": {}}',
        '{"data": []}',
        '{"data": {"items": [null]}}',
        '{"data": {"items": [{"price": 5}]}}',
        '{"data": {"items": [{"_id": "<script>", "price": 5}]}}',
        '{"data": {"items": [{"_id": "a", "price": 5, "collectionSlug": "another"}]}}',
        "<html>",
        "",
    ],
)
def test_strange_answers_are_unavailable_and_never_an_empty_book(satflow: Satflow, body: str) -> None:
    answers("/activity/listings", body)
    with pytest.raises(Unavailable):
        satflow.asks("goosinals", 1)


def test_redirects_are_not_followed(satflow: Satflow) -> None:
    elsewhere = responses.add(responses.GET, "https://evil.example/", json=_listings())
    responses.add(responses.GET, BASE + "/activity/listings", status=302, headers={"Location": "https://evil.example/"})
    with pytest.raises(Unavailable):
        satflow.asks("goosinals", 1)
    assert elsewhere.call_count == 0


@pytest.mark.parametrize(
    ("entry", "price", "maker"),
    [
        ({"price": 5000, "bidderAddress": "bc1qpay", "bidderTokenReceiveAddress": "bc1p"}, 5000, "bc1qpay"),
        ({"bid": {"price": "5000", "bidderAddress": "bc1qpay"}}, 5000, "bc1qpay"),
        ({"bidPrice": 5000, "bidderTokenReceiveAddress": "bc1p"}, 5000, "bc1p"),
        ({"amount": 5000, "maker": "bc1qpay"}, 5000, "bc1qpay"),
        ({"price": 5000, "bidder": {"address": "bc1qpay"}}, 5000, "bc1qpay"),
        ({"price": 5000, "bid": {"bidderTokenReceiveAddress": "bc1p"}}, 5000, "bc1p"),
        ({"price": 5000}, 5000, ""),
    ],
)
@pytest.mark.parametrize("name", ["items", "bids", "results"])
def test_bids_in_every_known_shape(satflow: Satflow, name: str, entry: Any, price: int, maker: str) -> None:
    answers("/activity/bids", {"data": {name: [{"_id": ID, "timestamp": 1_700_000_000_000, **entry}]}})
    (offer,) = satflow.bids("goosinals", "ordinals", 1).entries
    bid = offer.bid
    assert offer.traits == frozenset()
    assert (bid.price, bid.unit_price, bid.maker, bid.placed_ms) == (price, price, maker, 1_700_000_000_000)


def test_bids_on_one_item_are_no_bids_on_the_collection(satflow: Satflow) -> None:
    items = [{"_id": ID, "price": 9000, "inscriptionId": "1i0"}, {"_id": ID, "price": 9000, "type": "individual"}]
    answers("/activity/bids", {"data": {"bids": [*items, {"_id": ID, "price": 5000, "attribute": None}]}})
    assert [offer.bid.price for offer in satflow.bids("goosinals", "ordinals", 1).entries] == [5000]


@pytest.mark.parametrize(
    "entry",
    [
        {"quantity": "250.5"},
        {"runes_metadata": {"runes": [{"name": "A•B", "amount": "25050", "divisibility": 2}]}},
        {"unitPrice": "2"},
    ],
)
def test_rune_bids_are_priced_by_the_token(satflow: Satflow, entry: Any) -> None:
    answers("/activity/bids", {"data": {"bids": [{"_id": ID, "price": 501, "collectionSlug": "AB", **entry}]}})
    (offer,) = satflow.bids("A•B", "runes", 1).entries
    bid = offer.bid
    assert (bid.price, bid.quantity, bid.unit_price) == (501, Decimal("250.5"), 2)
