"""Satflow's sales: the documented items, the shapes of its orders, and hostile ones."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import NotFound, Sale, Unavailable
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import BASE, ID, OTHER_ID

pytestmark = pytest.mark.usefixtures("no_network")

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
