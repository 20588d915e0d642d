"""The same market told in two ways: as Satflow documents it, and as its clients have seen it. Both read the same."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.adapter import TraitedAsk, TraitedBid
from markets.base import Floor, OwnBid, Sale
from markets.orders import ListingDraft, ListingToDraft, OwnListing, SecureDraft
from markets.parse import Page
from markets.satflow.adapter import Satflow
from strategy.book import Ask, Bid
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
