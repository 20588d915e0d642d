"""Satflow's books, traits and sales: documented and observed shapes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import NotFound, NotSupported, NotUnderstood, Sale, Unavailable, VenueError
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import BASE, ID, OTHER_ID, answers

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


RED_HAT = {"trait_type": "Hat", "value": "Red"}
HAT = frozenset({("Hat", "Red")})


def _listed(satflow: Satflow, **entry: Any) -> frozenset[tuple[str, str]] | None:
    answers("/activity/listings", {"data": {"items": [{"_id": ID, "price": 900, **entry}]}})
    return satflow.asks("goosinals", 1).entries[0].traits


@pytest.mark.parametrize(
    "entry",
    [
        {"attributes": [RED_HAT]},
        {"traits": [{"type": "Hat", "value": "Red"}]},
        {"traits": {"Hat": "Red"}},
        {"attributes": [{"traitType": "Hat", "value": "Red"}]},
        {"attributes": [{"key": "Hat", "value": "Red"}]},
        {"token": {"attributes": [RED_HAT]}},
        {"token": {"meta": {"name": "Goose 1", "attributes": [RED_HAT]}}},
        {"metadata": {"token": {"attributes": [RED_HAT]}}},
        {"inscription_metadata": {"attributes": [RED_HAT], "collection": {"id": "goosinals"}}},
        {"ask": {"price": 900, "attributes": [RED_HAT]}},
        {"attributes": None, "item": {"traits": [RED_HAT]}},
    ],
)
def test_a_listings_traits_in_every_known_shape(satflow: Satflow, entry: Any) -> None:
    assert _listed(satflow, **entry) == HAT


def test_numbers_are_traits_as_they_are_printed(satflow: Satflow) -> None:
    given = [
        {"trait_type": "Level", "value": 7},
        {"trait_type": "Weight", "value": 1.50},
        {"trait_type": 3, "value": "x"},
    ]
    assert _listed(satflow, attributes=given) == {("Level", "7"), ("Weight", "1.5"), ("3", "x")}


@pytest.mark.parametrize("entry", [{}, {"attributes": None}, {"attributes": "Hat: Red"}, {"traits": 7}, {"token": "x"}])
def test_a_listing_that_says_nothing_of_traits_is_not_one_without_any(satflow: Satflow, entry: Any) -> None:
    assert _listed(satflow, **entry) is None


def test_a_listing_with_an_empty_list_has_no_traits(satflow: Satflow) -> None:
    assert _listed(satflow, attributes=[]) == frozenset()


@pytest.mark.parametrize(
    "strange",
    [
        None,
        7,
        "Hat",
        [],
        [RED_HAT],
        {},
        {"trait_type": "Eyes"},
        {"trait_type": "Eyes", "value": None},
        {"trait_type": "Eyes", "value": True},
        {"trait_type": "Eyes", "value": {"a": "b"}},
        {"trait_type": "Eyes", "value": ["Red"]},
        {"trait_type": "Eyes", "value": "x" * 201},
        {"trait_type": "Eyes", "value": "a\nb"},
        {"trait_type": "", "value": "Red"},
        {"trait_type": ["Eyes"], "value": "Red"},
    ],
)
def test_a_strange_trait_hides_neither_the_others_nor_the_book(satflow: Satflow, strange: Any) -> None:
    assert _listed(satflow, attributes=[strange, RED_HAT]) == HAT


@pytest.mark.parametrize(
    ("entry", "traits"),
    [
        ({}, frozenset()),
        ({"attribute": None}, frozenset()),
        ({"attributes": []}, frozenset()),
        ({"attribute": {}}, frozenset()),
        ({"attribute": RED_HAT}, HAT),
        ({"bid": {"attribute": RED_HAT}}, HAT),
        ({"attributes": [RED_HAT]}, HAT),
        ({"trait": {"type": "Hat", "value": "Red"}}, HAT),
        ({"type": "trait", "attribute": RED_HAT}, HAT),
        ({"attributes": [RED_HAT, {"trait_type": "Eyes", "value": 2}]}, HAT | {("Eyes", "2")}),
    ],
)
def test_what_a_bid_asks_for(satflow: Satflow, entry: Any, traits: Any) -> None:
    answers("/activity/bids", {"data": {"bids": [{"_id": ID, "price": 5000, **entry}]}})
    (offer,) = satflow.bids("goosinals", "ordinals", 1).entries
    assert (offer.bid.price, offer.traits) == (5000, traits)


@pytest.mark.parametrize(
    "entry",
    [
        {"attribute": "Hat"},
        {"attribute": {"trait_type": "Hat"}},
        {"attribute": {"trait_type": "Hat", "value": None}},
        {"attributes": [7]},
        {"type": "trait"},
    ],
)
def test_a_bid_on_some_trait_or_other_is_taken_for_none_on_the_collection(satflow: Satflow, entry: Any) -> None:
    plain = {"_id": ID, "price": 5000}
    answers("/activity/bids", {"data": {"bids": [{"_id": ID, "price": 9000, **entry}, plain]}})
    assert [offer.bid.price for offer in satflow.bids("goosinals", "ordinals", 1).entries] == [5000]


def _collection(**fields: Any) -> dict[str, Any]:
    return {"success": True, "data": {"collection": [{"id": "goosinals", "name": "Goosinals", **fields}]}}


def test_the_catalogue_as_documented(satflow: Satflow) -> None:
    hats = {"key": "Hat", "values": [{"value": "Red", "count": 12}, {"value": 7, "count": "3"}]}
    answers("/collection", _collection(category_attributes=[hats, {"key": "Eyes", "values": []}]))
    assert satflow.traits("Goosinals") == {"Hat": {"Red": 12, "7": 3}, "Eyes": {}}
    assert responses.calls[0].request.params == {"collection_id": "Goosinals", "categoryAttributes": "true"}


@pytest.mark.parametrize("nothing", [None, []])
def test_a_collection_without_traits(satflow: Satflow, nothing: Any) -> None:
    answers("/collection", {"data": {"collection": {"slug": "goosinals", "category_attributes": nothing}}})
    assert satflow.traits("goosinals") == {}


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        ({"error": "not found", "code": "NOT_FOUND"}, 404, NotFound),
        ({"success": True, "data": {"collection": []}}, 200, NotFound),
        (_collection(), 200, NotSupported),
        ("<html>", 404, Unavailable),
        ({"data": {}}, 200, NotUnderstood),
        ({"data": {"collection": "goosinals"}}, 200, NotUnderstood),
        ({"data": {"collection": [None]}}, 200, NotUnderstood),
        ({"data": {"collection": [{"id": "another", "category_attributes": []}]}}, 200, NotUnderstood),
        (_collection(category_attributes={"Hat": {"Red": 12}}), 200, NotUnderstood),
        (_collection(category_attributes=[7]), 200, NotUnderstood),
        (_collection(category_attributes=[{"key": "Hat"}]), 200, NotUnderstood),
        (_collection(category_attributes=[{"key": "Hat", "values": ["Red"]}]), 200, NotUnderstood),
        (
            _collection(category_attributes=[{"key": "Hat", "values": [{"value": "Red", "count": -1}]}]),
            200,
            NotUnderstood,
        ),
        (
            _collection(category_attributes=[{"key": "Hat", "values": [{"value": "Red", "count": 1.5}]}]),
            200,
            NotUnderstood,
        ),
        (json.dumps(_collection(category_attributes=[{"key": float("nan"), "values": []}])), 200, Unavailable),
    ],
)
def test_what_is_no_catalogue(satflow: Satflow, answer: Any, status: int, error: type[VenueError]) -> None:
    answers("/collection", answer, status)
    with pytest.raises(VenueError) as raised:
        satflow.traits("goosinals")
    assert type(raised.value) is error


def test_a_value_that_nobody_can_write_hides_no_other(satflow: Satflow) -> None:
    values = [{"value": None, "count": 1}, {"value": "a\x00b", "count": 1}, {"value": "Red", "count": None}]
    answers("/collection", _collection(category_attributes=[{"key": "Hat", "values": values}]))
    assert satflow.traits("goosinals") == {"Hat": {"Red": 0}}


SOLD_MS = 1_700_000_000_000
SALE = {
    "_id": ID,
    "inscriptionId": "1i0",
    "price": 900,
    "timestamp": SOLD_MS,
    "type": "sale",
    "collectionSlug": "frogs",
}


def sold(*entries: Any, name: str = "items", **data: Any) -> None:
    responses.add(responses.GET, BASE + "/activity/sales", json={"data": {name: list(entries), **data}})


def test_sales_are_asked_for_newest_first_and_read_as_documented(satflow: Satflow) -> None:
    sold(SALE, pagination={"page": 2, "pageSize": 100, "total": 240, "totalPages": 3})
    page = satflow.sales("frogs", "ordinals", 2)
    assert page.entries == (Sale(ID, "frogs", 900, Decimal(1), None, None, "1i0", SOLD_MS),)
    assert page.following == 3
    assert responses.calls[0].request.params == {
        "collectionSlug": "frogs",
        "sortBy": "fillCompletedAt",
        "sortDirection": "desc",
        "active": "false",
        "page": "2",
        "pageSize": "100",
    }


@pytest.mark.parametrize("name", ["items", "sales", "results", "listings"])
@pytest.mark.parametrize(
    ("entry", "buyer", "bid_id"),
    [
        ({"bid_id": OTHER_ID, "bidderAddress": "bc1qpay", "bidderTokenReceiveAddress": "bc1p"}, "bc1qpay", OTHER_ID),
        ({"bidId": {"$oid": OTHER_ID}, "buyerAddress": "bc1p"}, "bc1p", OTHER_ID),
        ({"bid": {"_id": OTHER_ID, "bidderAddress": "bc1qpay"}}, "bc1qpay", OTHER_ID),
        ({"buyer": {"address": "bc1p"}}, "bc1p", None),
        ({"buyer": "bc1p", "seller": "bc1pseller"}, "bc1p", None),
        ({"buyerTokenReceiveAddress": "bc1p"}, "bc1p", None),
        ({"sellerOrdAddress": "bc1pseller", "ask": {"sellerOrdAddress": "bc1pseller"}}, None, None),
    ],
)
def test_who_bought_by_which_bid_in_every_known_shape(
    satflow: Satflow, name: str, entry: Any, buyer: str | None, bid_id: str | None
) -> None:
    sold({**SALE, **entry}, name=name)
    (sale,) = satflow.sales("frogs", "ordinals", 1).entries
    assert (sale.buyer, sale.bid_id) == (buyer, bid_id)


@pytest.mark.parametrize(
    ("times", "sold_ms"),
    [
        ({"timestamp": str(SOLD_MS)}, SOLD_MS),
        ({"timestamp": "2023-11-14T22:13:20.000Z"}, SOLD_MS),
        ({"timestamp": "2023-11-14T22:13:20"}, SOLD_MS),
        ({"timestamp": "2023-11-15T00:13:20+02:00"}, SOLD_MS),
        ({"fillCompletedAt": SOLD_MS, "createdAt": SOLD_MS - 9}, SOLD_MS),
        ({"fillPendingAt": SOLD_MS, "fillCompletedAt": None}, SOLD_MS),
        ({"timestamp": None, "createdAt": SOLD_MS - 9}, SOLD_MS - 9),
    ],
)
def test_when_it_was_sold(satflow: Satflow, times: Any, sold_ms: int) -> None:
    sold({**SALE, "timestamp": SOLD_MS - 99, **times} if "fillCompletedAt" in times else {**SALE, **times})
    assert satflow.sales("frogs", "ordinals", 1).entries[0].sold_ms == sold_ms


@pytest.mark.parametrize(
    ("kind", "entry", "quantity"),
    [
        ("ordinals", {"quantity": 3}, Decimal(1)),
        ("ordinals", {"inscriptionId": None, "quantity": 3}, Decimal(3)),
        ("ordinals", {"inscriptionId": None}, None),
        ("ordinals", {"inscriptionId": None, "fillQuantity": 2, "quantity": 3}, Decimal(2)),
        ("runes", {"quantity": "250.5"}, Decimal("250.5")),
        (
            "runes",
            {"runes_metadata": {"runes": [{"name": "F", "amount": "25050", "divisibility": 2}]}},
            Decimal("250.5"),
        ),
        ("runes", {}, None),
    ],
)
def test_how_much_was_sold(satflow: Satflow, kind: Any, entry: Any, quantity: Decimal | None) -> None:
    sold({**SALE, **entry})
    assert satflow.sales("frogs", kind, 1).entries[0].quantity == quantity


@pytest.mark.parametrize("status", ["cancelled", "EXPIRED", "active"])
def test_what_was_not_filled_is_no_sale(satflow: Satflow, status: str) -> None:
    sold({**SALE, "status": status}, SALE)
    assert len(satflow.sales("frogs", "ordinals", 1).entries) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"_id": None},
        {"_id": 7},
        {"_id": "<script>"},
        {"price": None},
        {"price": 0},
        {"price": -5},
        {"price": True},
        {"price": 5.5},
        {"price": "1e3"},
        {"price": 2_100_000_000_000_001},
        {"price": {"amount": 5}},
        {"timestamp": None},
        {"timestamp": 1_700_000_000},
        {"timestamp": "yesterday"},
        {"timestamp": 10**13},
        {"timestamp": True},
        {"timestamp": "0001-01-01T00:00:00+23:59"},
        {"inscriptionId": 7},
        {"bidId": ["a"]},
        {"buyerAddress": "bc1q\n"},
        {"fillQuantity": 0},
        {"collectionSlug": "toads"},
    ],
)
def test_unreadable_sale_is_reported_by_its_time_and_hides_no_other(satflow: Satflow, changed: Any) -> None:
    sold({**SALE, "_id": OTHER_ID}, {**SALE, **changed})
    page = satflow.sales("frogs", "ordinals", 1)
    assert [sale.sale_id for sale in page.entries] == [OTHER_ID]
    (unread,) = page.unread
    assert unread.at_ms == (None if "timestamp" in changed else SOLD_MS)
    assert unread.is_foreign == ("collectionSlug" in changed)


@pytest.mark.parametrize(
    "body",
    [
        "<html>",
        "[]",
        '{"data": {}}',
        '{"data": {"items": {}}}',
        '{"data": {"items": [null]}}',
        '{"data": {"groups": []}}',
        '{"success": false, "error": {}}',
        json.dumps({"data": {"items": [{**SALE, "price": float("nan")}]}}),
        json.dumps({"data": {"items": [SALE] * 1001}}),
    ],
)
def test_strange_answers_are_unavailable_and_never_no_sales(satflow: Satflow, body: str) -> None:
    responses.add(responses.GET, BASE + "/activity/sales", body=body)
    with pytest.raises(Unavailable):
        satflow.sales("frogs", "ordinals", 1)


def test_an_unknown_collection_has_not_simply_no_sales(satflow: Satflow) -> None:
    responses.add(responses.GET, BASE + "/activity/sales", json={"error": "not found"}, status=404)
    with pytest.raises(NotFound):
        satflow.sales("nowhere", "ordinals", 1)
