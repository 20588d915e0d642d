"""Shapes that programs in production read from Satflow, retyped with other names: the raw answer, and what it says.

Each case names its source and how far it is known: [P] a program in production that could only know the field from
answers, [C] the vendor's own client, [D] the vendor's documentation. No raw answer of bids was found anywhere.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import BidOrder, Sale
from markets.look import BidderWallet
from markets.satflow.adapter import Satflow
from strategy.book import Snapshot
from strategy.plan_bids import without_makers
from tests.markets.satflow_examples import BASE

pytestmark = pytest.mark.usefixtures("no_network")

EPOCH, WHEN, WHEN_MS = "1970-01-01T00:00:00.000Z", "2026-03-01T09:30:00.000Z", 1_772_357_400_000
ITEM, FILL, FORWARD = "7d" * 32 + "i0", "a1" * 32, "b2" * 32
SELLER, BUYER, BIDDER, RECEIVER = "bc1pseller", "bc1pbuyer", "bc1qbidder", "bc1preceiver"
# mrv777/omb-gallery, src/lib/satflow.ts and tests/satflow.test.ts (August 2026) [P]; satflow-mm reads `ask`, too [C].
LISTING = {
    "id": "evt-1",
    "type": "listing",
    "orderType": "ask",
    "cancelledAt": None,
    "fillPendingAt": None,
    "fillCompletedAt": None,
    "invalidAt": None,
    "expiry": None,
    "lastValidationAt": EPOCH,
    "createdAt": WHEN,
    "price": 2_900_000,
    "ask": {"inscriptionId": ITEM, "sellerOrdAddress": SELLER, "collectionSlug": "frogs", "price": 2_900_000},
}
# The same source [P]. `prepareTx`, `fillTx` and `transferTx` are from its scripts/repair-satflow-transferTx-dupes.js.
ASK_SALE = {
    "id": "evt-2",
    "type": "sale",
    "orderType": "ask",
    "fillCompletedAt": WHEN,
    "prepareTx": "c3" * 32,
    "fillTx": FILL,
    "transferTx": FORWARD,
    "price": 2_500_000,
    "fillOrdAddress": BUYER,
    "fillAddress": "bc1qbuyer",
    "ask": {"inscriptionId": ITEM, "sellerOrdAddress": SELLER, "collectionSlug": "frogs", "price": 2_500_000},
}
BID_SALE = {
    **{name: value for name, value in ASK_SALE.items() if name not in ("ask", "prepareTx", "transferTx")},
    "orderType": "bid",
    "fillOrdAddress": SELLER,
    "fillAddress": "bc1qseller",
    "bid": {"inscriptionId": ITEM, "bidderTokenReceiveAddress": RECEIVER, "collectionSlug": "frogs"},
}
# mempoolsurfclub/mempoolsurfclub, scripts/msc-api/reconcile-satflow.mjs and tools-activity-data.mjs [P]: the names that
# a parser with a key reads; the values are ours.
RUNE = {
    "id": "840000:3",
    "name": "FROG•FROG•FROG",
    "spacedName": "FROG•FROG•FROG",
    "amount": "25050",
    "divisibility": 2,
}
RUNE_SALE = {
    "id": "evt-3",
    "orderType": "ask",
    "fillCompletedAt": WHEN,
    "price": 501,
    "unitPrice": 2,
    "ask": {"price": 501},
}


def lists(path: str, *rows: Any, name: str = "sales") -> None:
    responses.get(BASE + path, json={"success": True, "data": {name: list(rows), "total": len(rows)}})


def _sold(satflow: Satflow, *rows: Any, slug: str = "frogs", kind: Any = "ordinals") -> tuple[Sale, ...]:
    lists("/activity/sales", *rows)
    return satflow.sales(slug, kind, 1).entries


# V7


@pytest.mark.parametrize(
    "runes",
    [
        {"runes": [RUNE]},
        {"ask": {"price": 501, "runesData": {"runes": [RUNE]}}},
        {"ask": {"price": 501, "runes": [RUNE]}},
        {"runes": [RUNE], "quantity": 1},  # one lot
        {"runesAmountAsNumber": 250.5},
    ],
)
def test_sale_of_runes_has_its_whole_price_and_its_tokens(satflow: Satflow, runes: dict[str, Any]) -> None:
    (sale,) = _sold(satflow, {**RUNE_SALE, **runes}, slug="FROGFROGFROG", kind="runes")
    assert (sale.price, sale.quantity, sale.sold_ms) == (501, Decimal("250.5"), WHEN_MS)


@pytest.mark.parametrize("number", [None, "many", 25050])  # the last is not in whole tokens, as the prices show
def test_sale_of_runes_without_an_amount_costs_its_price(satflow: Satflow, number: Any) -> None:
    (sale,) = _sold(satflow, {**RUNE_SALE, "runesAmountAsNumber": number}, slug="FROGFROGFROG", kind="runes")
    assert (sale.price, sale.quantity) == (501, None)


def test_unreadable_sale_of_runes_hides_no_other_and_a_fill_of_its_time_only(satflow: Satflow) -> None:
    odd = {**RUNE_SALE, "id": "evt-4", "runes": [RUNE, {**RUNE, "id": "840000:4"}]}
    other = {**RUNE_SALE, "id": "evt-5", "runes": [{**RUNE, "name": "TOAD•TOAD", "spacedName": "TOAD•TOAD"}]}
    lists("/activity/sales", {**RUNE_SALE, "runes": [RUNE]}, odd, other)
    page = satflow.sales("FROG•FROG•FROG", "runes", 1)
    assert [sale.sale_id for sale in page.entries] == ["evt-3"]
    assert [(left.key, left.at_ms, left.is_foreign) for left in page.unread] == [
        ("evt-4", WHEN_MS, False),
        ("evt-5", WHEN_MS, True),
    ]


# V8


def test_buyer_is_the_taker_of_an_ask_and_the_maker_of_a_bid(satflow: Satflow) -> None:
    of_ask, of_bid = _sold(satflow, ASK_SALE, {**BID_SALE, "id": "evt-9"})
    assert (of_ask.buyer, of_ask.txid, of_ask.is_of_listing) == (BUYER, FILL, True)
    assert (of_bid.buyer, of_bid.txid, of_bid.is_of_listing) == (RECEIVER, FILL, False)


@pytest.mark.parametrize("order_type", [None, "swap", 7])
def test_buyer_is_unknown_where_the_type_of_the_order_is(satflow: Satflow, order_type: Any) -> None:
    (sale,) = _sold(satflow, {**ASK_SALE, "orderType": order_type})
    assert (sale.buyer, sale.txid, sale.is_of_listing) == (None, FILL, False)


@pytest.mark.parametrize("order_type", [{"orderType": "ask"}, {"orderType": None, "ask": {"orderType": "ask"}}])
def test_sale_that_names_a_bid_may_be_its_fill(satflow: Satflow, order_type: dict[str, Any]) -> None:
    (sale,) = _sold(satflow, {**BID_SALE, "bid": {**BID_SALE["bid"], "_id": "b-1"}, **order_type})
    assert (sale.bid_id, sale.buyer, sale.is_of_listing) == ("b-1", RECEIVER, False)


@pytest.mark.parametrize(
    ("fill", "txid"), [(FILL.upper(), FILL), ("", None), ("pending", None), (7, None), (None, None)]
)
def test_malformed_transaction_leaves_the_sale(satflow: Satflow, fill: Any, txid: str | None) -> None:
    (sale,) = _sold(satflow, {**ASK_SALE, "fillTx": fill})
    assert (sale.price, sale.txid) == (2_500_000, txid)


# V9


@pytest.mark.parametrize("value", [EPOCH, "1970-01-01T00:00:00+00:00", "0001-01-01T00:00:00Z", 0, -1, "0", "", False])
def test_placeholder_of_a_time_closes_no_order(satflow: Satflow, value: Any) -> None:
    ends = dict.fromkeys(("cancelledAt", "canceledAt", "invalidAt", "fillPendingAt", "fillCompletedAt"), value)
    lists("/activity/listings", {**LISTING, **ends}, name="listings")
    bid = {"id": "b", "price": 900_000, "bidderAddress": BIDDER, **ends}
    lists("/activity/bids", bid, {**bid, "id": "c", "bid": ends}, name="bids")
    own = {"bid_id": "b", "type": "collection", "collectionSlug": "frogs", "price": 900_000, "expiration": WHEN_MS}
    lists("/address/bids", {**own, **ends}, name="results")
    held = {"token": {"inscription_id": ITEM}, "listing": {"price": 900_000, **ends}}
    contents = {"data": {"results": {"ordinals": [held]}, "nextCursor": None}}
    responses.get(BASE + "/address/wallet-contents", json=contents)
    assert [entry.ask.price for entry in satflow.asks("frogs", 1).entries] == [2_900_000]
    assert len(satflow.bids("frogs", "ordinals", 1).entries) == 2
    assert [bid.venue_id for bid in satflow.own_bids(BIDDER).entries] == ["b"]
    assert len(satflow.own_listings("bc1pvault", 0).entries) == 1
    assert [item.listing_price for item in satflow.wallet_contents("bc1pvault", 0).entries] == [900_000]


def test_placeholder_is_neither_the_time_of_a_sale_nor_its_end(satflow: Satflow) -> None:
    late = {**ASK_SALE, "fillCompletedAt": EPOCH, "timestamp": WHEN, "cancelledAt": EPOCH}
    no_time = {**ASK_SALE, "id": "evt-9", "fillCompletedAt": EPOCH, "createdAt": None}
    order_only = {**no_time, "id": "evt-10", "createdAt": WHEN, "price": "12x"}
    lists("/activity/sales", late, no_time, ASK_SALE, ASK_SALE, order_only)
    page = satflow.sales("frogs", "ordinals", 1)
    assert [sale.sold_ms for sale in page.entries] == [WHEN_MS] * 3
    # An order is made before it is filled, so its making does not bound the time of the fill.
    assert [(left.key, left.at_ms) for left in page.unread] == [("evt-9", None), ("evt-10", None)]


@pytest.mark.parametrize(("days", "over"), [(29, True), (31, False)])
def test_own_bid_that_ended_long_after_its_expiry_may_be_open(satflow: Satflow, days: int, over: bool) -> None:
    own = {"type": "collection", "collectionSlug": "frogs", "price": 900_000, "expiration": WHEN_MS}
    ended = {**own, "bid_id": "b", "cancelledAt": WHEN_MS + days * 86_400_000}
    lists("/address/bids", {**own, "bid_id": "a"}, ended, name="results")
    page = satflow.own_bids(BIDDER)
    assert [bid.venue_id for bid in page.entries] == ["a"]
    assert [left.key for left in page.unread] == ([] if over else ["b"])


# V10


def test_ask_of_an_unconfirmed_item_is_not_the_floor(satflow: Satflow) -> None:
    # Bit-Trading-Company/finetrader.com, src/trading/satflow/satflowApi.js [P]
    cheap = {**LISTING, "id": "evt-9", "ask": {**LISTING["ask"], "price": 1_000, "unconfirmed": True}}  # type: ignore[dict-item]
    lists("/activity/listings", cheap, LISTING, name="listings")
    page = satflow.asks("frogs", 1)
    assert [entry.ask.price for entry in page.entries] == [2_900_000]
    assert page.unread == ()


@pytest.mark.parametrize(
    ("row", "maker", "receive"),
    [
        ({"bidderAddress": BIDDER, "bidderTokenReceiveAddress": RECEIVER}, BIDDER, RECEIVER),
        ({"bid": {"bidderAddress": "bc1qmulti", "bidderTokenReceiveAddress": RECEIVER}}, "bc1qmulti", RECEIVER),
        ({"bidderTokenReceiveAddress": RECEIVER}, RECEIVER, RECEIVER),
        ({"bidderAddress": BIDDER}, BIDDER, ""),
    ],
)
def test_bid_is_ours_by_either_address(satflow: Satflow, row: dict[str, Any], maker: str, receive: str) -> None:
    # The vendor's market maker checks both [C].
    lists("/activity/bids", {"id": "b", "price": 900_000, **row}, name="bids")
    (bid,) = (offer.bid for offer in satflow.bids("frogs", "ordinals", 1).entries)
    assert (bid.maker, bid.receive) == (maker, receive)
    wallet = BidderWallet(BIDDER, "02ab", RECEIVER, frozenset({BIDDER, RECEIVER}))
    assert wallet.owns_bid(bid)
    assert without_makers(Snapshot(0, (), bids=(bid,)), {receive or maker}).bids == ()
    assert not BidderWallet("bc1q", "02ab", "bc1p", frozenset({"bc1q", "bc1p"})).owns_bid(bid)


# V11


@pytest.mark.parametrize(
    "traits",
    [
        {"attribute": {"trait_type": "Hat", "value": "Red"}},
        {"attributes": [{"trait_type": "Hat", "value": "Red"}]},
        {"attribute": None, "attributes": [{"trait_type": "Hat", "value": "Red"}]},
    ],
)
def test_own_bid_on_a_trait_is_read_in_both_forms(satflow: Satflow, traits: dict[str, Any]) -> None:
    # docs.satflow.com/reference, bid/place of May 2026 [D]: `attribute` is the legacy form of one trait.
    own = {"bid_id": "b", "type": "collection", "collectionSlug": "frogs", "price": 900_000, "expiration": WHEN_MS}
    lists("/address/bids", {**own, **traits}, name="results")
    assert [bid.trait for bid in satflow.own_bids(BIDDER).entries] == [("Hat", "Red")]


def test_own_bid_on_several_traits_is_not_taken_for_one(satflow: Satflow) -> None:
    own = {"type": "collection", "collectionSlug": "frogs", "price": 900_000, "expiration": WHEN_MS}
    both = [{"trait_type": "Hat", "value": "Red"}, {"trait_type": "Eyes", "value": "Blue"}]
    lists("/address/bids", {**own, "bid_id": "a"}, {**own, "bid_id": "b", "attributes": both}, name="results")
    page = satflow.own_bids(BIDDER)
    assert ([bid.venue_id for bid in page.entries], [left.key for left in page.unread]) == (["a"], ["b"])


def test_bid_on_a_trait_is_placed_in_the_documented_form_for_one(satflow: Satflow) -> None:
    responses.post(BASE + "/bid/place", json={"success": True, "data": {}})
    order = BidOrder(
        900_000, Decimal(1), "frogs", "ordinals", BIDDER, "02ab", RECEIVER, WHEN_MS, 1, "c2ln", "1", ("Hat", "Red")
    )
    satflow.place(order)
    body = json.loads(responses.calls[0].request.body or "")
    assert body["attribute"] == {"trait_type": "Hat", "value": "Red"}
    assert "attributes" not in body
