"""Satflow's market in its documented and its observed form.

Each case names its source and how far it is known: [P] a program in production that could only know the field from
answers, [C] the vendor's own client, [D] the vendor's documentation. No raw answer of bids was found anywhere.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.adapter import TraitedAsk, TraitedBid
from markets.base import BidOrder, Floor, OwnBid, Sale
from markets.look import BidderWallet
from markets.orders import ListingDraft, ListingToDraft, OwnListing, SecureDraft
from markets.parse import Page
from markets.satflow.adapter import Satflow
from strategy.book import Ask, Bid, Snapshot
from strategy.plan_bids import without_makers
from tests.markets.satflow_examples import BASE

pytestmark = pytest.mark.usefixtures("no_network")

ONE, TWO, THREE = (f"66a1b2c3d4e5f60718293a{at:02x}" for at in (1, 2, 3))
HELD = "3c" * 32 + "i4"
PAYER, VAULT, SELLER = "bc1qpayer", "bc1pvault", "bc1pseller"
WHEN, TEXT = 1_772_357_400_250, "2026-03-01T09:30:00.250Z"
PSBT = base64.b64encode(b"psbt\xff" + bytes(20)).decode()
HEX = base64.b64decode(PSBT).hex()
PAGES = {"pagination": {"page": 1, "pageSize": 100, "total": 1, "totalPages": 1}}
LIFE = dict.fromkeys(("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt"))


def _over(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows that a market shows beside `row` and that are nobody's to deal with."""
    changes = [{name: TEXT} for name in LIFE]
    return [row | {"_id": f"{at:024x}", "price": "1000"} | change for at, change in enumerate(changes)]


@dataclass(frozen=True)
class Told:
    """One read: the two answers to a request for `path`, and what they say."""

    path: str
    documented: Any
    seen: Any
    read: Callable[[Satflow], Any]
    said: Any


LISTING = {"_id": ONE, "orderType": "ask", "collectionSlug": "Goosinals", "createdAt": TEXT, **LIFE}
BID = {"_id": ONE, "orderType": "bid", "createdAt": TEXT, "price": "1500000", "quantity": 3, "unitPrice": "500000"}
SALE = {"_id": ONE, "orderType": "bid", "createdAt": "2026-02-01T00:00:00.000Z", "price": "500000", **LIFE}
OWN = {"type": "collection", "expiration": WHEN, "attribute": None, "isNonCustodial": False}
TOKEN = {"name": "Goose", "inscription_id": HELD, "inscription_number": 7, "content_type": "image/png"}

CASES = {
    "floors": Told(
        "/collection-stats/floors",
        {"data": [{"slug": "goosinals", "floor": 700_000, "listedCount": 12, "timestamp": TEXT}]},
        {"data": {"results": [{"slug": "Goosinals", "floor": "700000", "listedCount": "12"}]}},
        lambda venue: venue.floors(["goosinals"], "ordinals"),
        {"goosinals": Floor("goosinals", Decimal(700_000), 12)},
    ),
    "listings": Told(
        "/activity/listings",
        {"data": {"items": [{"_id": ONE, "price": 700_000, "sellerOrdAddress": SELLER, "type": "listing"}], **PAGES}},
        {
            "data": {
                "listings": [
                    *_over({**LISTING, "ask": {"inscriptionId": HELD}}),
                    {**LISTING, "ask": {"inscriptionId": HELD, "price": "700000", "sellerOrdAddress": SELLER}},
                    {**LISTING, "_id": TWO, "orderType": "bid", "price": 1000},
                ],
                "total": 6,
            }
        },
        lambda venue: venue.asks("goosinals", 1),
        ((TraitedAsk(Ask(ONE, 700_000, Decimal(1), Decimal(700_000), SELLER), None),), None),
    ),
    "bids": Told(
        "/activity/bids",
        {"data": {"items": [{"_id": ONE, "price": 500_000, "quantity": 3, "bidderAddress": PAYER, "timestamp": WHEN}]}},
        {
            "data": {
                "bids": [
                    *_over(BID),
                    {**BID, "_id": TWO, "inscriptionId": HELD, "price": 9_000_000},
                    {**BID, "bidder": {"address": PAYER}},
                ],
                "total": "6",
            }
        },
        lambda venue: venue.bids("goosinals", "ordinals", 1),
        ((TraitedBid(Bid(ONE, 1_500_000, Decimal(3), Decimal(500_000), PAYER, WHEN), frozenset()),), None),
    ),
    "sales": Told(
        "/activity/sales",
        {"data": {"items": [{"_id": ONE, "inscriptionId": HELD, "price": 500_000, "timestamp": WHEN}], **PAGES}},
        {
            "data": {
                "sales": [
                    {**SALE, "ask": {"inscriptionId": HELD}, "fillCompletedAt": TEXT},
                    {**SALE, "_id": TWO, "cancelledAt": TEXT},
                    {**SALE, "_id": THREE, "ask": {"invalidAt": TEXT}},
                ],
                "total": 3,
            }
        },
        lambda venue: venue.sales("goosinals", "ordinals", 1),
        ((Sale(ONE, "goosinals", 500_000, Decimal(1), None, None, HELD, WHEN),), None),
    ),
    "own bids": Told(
        "/address/bids",
        {
            "data": {
                "results": [
                    {
                        **OWN,
                        "bid_id": ONE,
                        "price": 500_000,
                        "inscription_metadata": {"collection": {"id": "goosinals"}},
                    }
                ]
            }
        },
        {
            "results": [
                {**OWN, "bid_id": {"$oid": ONE}, "price": "500000", "collectionSlug": "goosinals", "cancelledAt": None},
                {**OWN, "bid_id": {"$oid": TWO}, "price": "500000", "collectionSlug": "goosinals", "cancelledAt": TEXT},
            ]
        },
        lambda venue: venue.own_bids(PAYER),
        ((OwnBid(ONE, "goosinals", "ordinals", 500_000, None, WHEN, None),), None),
    ),
    "own listings": Told(
        "/address/wallet-contents",
        {
            "data": {
                "results": {"ordinals": [{"collection": None, "token": TOKEN, "listing": {"price": 700_000}}]},
                "nextCursor": None,
            }
        },
        {
            "results": {
                "ordinals": [
                    {"token": TOKEN, "listing": {"price": "700000", "cancelledAt": None}},
                    {
                        "token": {**TOKEN, "inscription_id": "5d" * 32 + "i0"},
                        "listing": {"price": 1, "cancelledAt": TEXT},
                    },
                ]
            }
        },
        lambda venue: venue.own_listings(VAULT, 0),
        ((OwnListing(HELD, HELD, None, 700_000, VAULT),), None),
    ),
    "bidding wallet": Told(
        "/address/bidding-wallet",
        {"data": {"address": "bc1pboth", "userPaymentAddress": PAYER}},
        {"data": {"multiSig": {"address": "bc1pboth"}}},
        lambda venue: venue.bidding_wallet(PAYER, VAULT, "02" + "ab" * 32),
        "bc1pboth",
    ),
    "challenge": Told(
        "/challenge",
        {"data": {"challenge": "Prove that this is yours\nNonce: 17"}},
        {"challenge": "Prove that this is yours\nNonce: 17"},
        lambda venue: venue.challenge(PAYER),
        "Prove that this is yours\nNonce: 17",
    ),
    "draft": Told(
        "/intent/sell",
        {
            "data": {
                "seller": {
                    "unsignedListingPSBTBase64": PSBT,
                    "secureListingPSBTs": [{"base64": PSBT, "indicesToSign": [0]}],
                }
            }
        },
        {
            "data": {
                "seller": {"unsignedListingPSBTHex": HEX, "secureListingPSBTs": [{"hex": HEX, "indicesToSign": ["0"]}]}
            }
        },
        lambda venue: venue.draft_listing(ListingToDraft(700_000, HELD, VAULT, PAYER, "cd" * 32, None)),
        ListingDraft(PSBT, (SecureDraft(PSBT, (0,)),)),
    ),
}


@pytest.mark.parametrize("shape", ["documented", "seen"])
@pytest.mark.parametrize("name", CASES)
def test_both_ways_of_telling_it_say_the_same(name: str, shape: str) -> None:
    told = CASES[name]
    method = responses.POST if name == "draft" else responses.GET
    responses.add(method, BASE + told.path, json={"success": True, **getattr(told, shape)})
    said = told.read(Satflow(BASE, "key", "satflow"))
    assert (tuple(said[:2]) if isinstance(said, Page) else said) == told.said


EPOCH, SEEN_AT, WHEN_MS = "1970-01-01T00:00:00.000Z", "2026-03-01T09:30:00.000Z", 1_772_357_400_000
ITEM, FILL, FORWARD = "7d" * 32 + "i0", "a1" * 32, "b2" * 32
SEEN_SELLER, BUYER, BIDDER, RECEIVER = "bc1pseller", "bc1pbuyer", "bc1qbidder", "bc1preceiver"
# mrv777/omb-gallery, src/lib/satflow.ts and tests/satflow.test.ts (August 2026) [P]; satflow-mm reads `ask`, too [C].
SEEN_LISTING = {
    "id": "evt-1",
    "type": "listing",
    "orderType": "ask",
    "cancelledAt": None,
    "fillPendingAt": None,
    "fillCompletedAt": None,
    "invalidAt": None,
    "expiry": None,
    "lastValidationAt": EPOCH,
    "createdAt": SEEN_AT,
    "price": 2_900_000,
    "ask": {"inscriptionId": ITEM, "sellerOrdAddress": SEEN_SELLER, "collectionSlug": "frogs", "price": 2_900_000},
}
# The same source [P]. `prepareTx`, `fillTx` and `transferTx` are from its scripts/repair-satflow-transferTx-dupes.js.
ASK_SALE = {
    "id": "evt-2",
    "type": "sale",
    "orderType": "ask",
    "fillCompletedAt": SEEN_AT,
    "prepareTx": "c3" * 32,
    "fillTx": FILL,
    "transferTx": FORWARD,
    "price": 2_500_000,
    "fillOrdAddress": BUYER,
    "fillAddress": "bc1qbuyer",
    "ask": {"inscriptionId": ITEM, "sellerOrdAddress": SEEN_SELLER, "collectionSlug": "frogs", "price": 2_500_000},
}
BID_SALE = {
    **{name: value for name, value in ASK_SALE.items() if name not in ("ask", "prepareTx", "transferTx")},
    "orderType": "bid",
    "fillOrdAddress": SEEN_SELLER,
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
    "fillCompletedAt": SEEN_AT,
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
    lists("/activity/listings", {**SEEN_LISTING, **ends}, name="listings")
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
    late = {**ASK_SALE, "fillCompletedAt": EPOCH, "timestamp": SEEN_AT, "cancelledAt": EPOCH}
    no_time = {**ASK_SALE, "id": "evt-9", "fillCompletedAt": EPOCH, "createdAt": None}
    order_only = {**no_time, "id": "evt-10", "createdAt": SEEN_AT, "price": "12x"}
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
    cheap = {**SEEN_LISTING, "id": "evt-9", "ask": {**SEEN_LISTING["ask"], "price": 1_000, "unconfirmed": True}}  # type: ignore[dict-item]
    lists("/activity/listings", cheap, SEEN_LISTING, name="listings")
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
