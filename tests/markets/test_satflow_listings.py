"""Satflow's listings, and its offers on single inscriptions."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import pytest
import responses
from msgspec import structs
from msgspec.structs import replace

from markets.base import BidOrder, NotSupported, Refused, Unavailable, Unknown
from markets.orders import BidToDraft, Coin, DraftPsbt, ListingOrder, ListingToDraft, OwnListing, SecureDraft
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import BASE, ID, PSBT

pytestmark = pytest.mark.usefixtures("no_network")

CONTENTS, INTENT, LIST, CANCEL = (
    BASE + path for path in ("/address/wallet-contents", "/intent/sell", "/list", "/cancel")
)
INSCRIPTION = "ab" * 32 + "i0"
OTHER = "ba" * 32 + "i0"
VAULT, PAYOUT = "bc1pvault", "bc1qpayout"
ASK = ListingToDraft(900_000, INSCRIPTION, VAULT, PAYOUT, "cd" * 32, "goosinals")
ORDER = ListingOrder(ASK, PSBT, PSBT, (PSBT,), PAYOUT, "02" + "ef" * 32)
LISTED = {
    "collection": {"id": "goosinals", "name": "Goosinals"},
    "token": {"name": "Goose 7", "inscription_id": INSCRIPTION, "inscription_number": 7, "content_type": "image/png"},
    "listing": {"price": 900_000, "secureListing": True},
    "market": None,
}
DRAFT = {
    "unsignedListingPSBTBase64": PSBT,
    "secureListingPSBTs": [{"base64": PSBT, "indicesToSign": [0, 2]}],
}
MADE = {"_id": ID, "price": 900_000, "inscriptionId": INSCRIPTION, "status": "active"}
GONE = {"success": True, "summary": {"id": ID, "success": True}, "successCount": 1, "failedCount": 0}


def _contents(*entries: Any, **more: Any) -> None:
    body = {"success": True, "data": {"results": {"ordinals": list(entries), "runes": []}, "nextCursor": None, **more}}
    responses.get(CONTENTS, json=body)


def test_own_listings_are_asked_and_read_as_documented(satflow: Satflow) -> None:
    _contents(LISTED, nextCursor=100)
    page = satflow.own_listings(VAULT, 0)
    assert page.entries == (OwnListing(INSCRIPTION, INSCRIPTION, "goosinals", 900_000, VAULT),)
    assert page.following == 100
    assert responses.calls[0].request.params == {
        "address": VAULT,
        "itemType": "inscription",
        "listedOnly": "true",
        "cursor": "0",
        "limit": "100",
    }


def test_later_page_with_one_odd_listing_and_nothing_else_is_read(satflow: Satflow) -> None:
    _contents({**LISTED, "listing": {"price": "cheap"}})
    assert [each.key for each in satflow.own_listings(VAULT, 100).unread] == [INSCRIPTION]
    responses.reset()
    _contents(None)
    assert len(satflow.wallet_contents(VAULT, 100).unread) == 1


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {"listing": {"price": "900000", "_id": {"$oid": ID}}},
            OwnListing(ID, INSCRIPTION, "goosinals", 900_000, VAULT),
        ),
        (
            {"listing": {"price": 1, "id": ID, "sellerOrdAddress": VAULT}},
            OwnListing(ID, INSCRIPTION, "goosinals", 1, VAULT),
        ),
        ({"collection": None}, OwnListing(INSCRIPTION, INSCRIPTION, None, 900_000, VAULT)),
    ],
)
def test_own_listings_in_other_shapes(satflow: Satflow, changed: Any, expected: OwnListing) -> None:
    _contents({**LISTED, **changed})
    assert satflow.own_listings(VAULT, 0).entries == (expected,)


def test_what_is_not_listed_is_no_listing(satflow: Satflow) -> None:
    _contents({**LISTED, "listing": None}, LISTED)
    assert len(satflow.own_listings(VAULT, 0).entries) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"listing": {}},
        {"listing": []},
        {"listing": "yes"},
        {"listing": {"price": 0}},
        {"listing": {"price": 1.5}},
        {"listing": {"price": True}},
        {"listing": {"price": "9e5"}},
        {"listing": {"price": -900_000}},
        {"listing": {"price": 10**17}},
        {"listing": {"price": 900_000, "sellerOrdAddress": "bc1panother"}},
        {"listing": {"price": 900_000, "_id": 7}},
        {"token": None},
        {"token": {"inscription_id": "a b"}},
        {"collection": {"id": "x" * 300}},
    ],
)
def test_unreadable_own_listing_may_be_listed(satflow: Satflow, changed: Any) -> None:
    other = {**LISTED, "token": {"inscription_id": OTHER}}
    _contents(other, {**LISTED, **changed})
    page = satflow.own_listings(VAULT, 0)
    assert [listing.inscription_id for listing in page.entries] == [OTHER]
    assert [unread.key for unread in page.unread] == ["" if "token" in changed else INSCRIPTION]


@pytest.mark.parametrize(
    "body",
    [
        {"success": False, "error": {}},
        {"success": True, "data": {}},
        {"success": True, "data": {"results": {"runes": []}}},
        {"success": True, "data": {"results": {"ordinals": {}}}},
        {"success": True, "data": {"results": {"ordinals": []}, "nextCursor": "next"}},
        [],
    ],
)
def test_an_answer_without_a_list_is_not_an_empty_one(satflow: Satflow, body: Any) -> None:
    responses.get(CONTENTS, json=body)
    with pytest.raises(Unavailable):
        satflow.own_listings(VAULT, 0)


def test_a_draft_is_asked_and_read_as_documented(satflow: Satflow) -> None:
    responses.post(INTENT, json={"success": True, "data": {"seller": DRAFT}})
    draft = satflow.draft_listing(ASK)
    assert (draft.psbt, draft.secure) == (PSBT, (SecureDraft(PSBT, (0, 2)),))
    body = json.loads(responses.calls[0].request.body or "")
    assert body == {
        "price": 900_000,
        "inscriptionId": INSCRIPTION,
        "sellerOrdAddress": VAULT,
        "sellerReceiveAddress": PAYOUT,
        "tapInternalKey": "02" + "cd" * 32,
        "collectionSlug": "goosinals",
    }


def test_a_draft_may_be_told_in_hex(satflow: Satflow) -> None:
    told = base64.b64decode(PSBT).hex()
    drafts = {"unsignedListingPSBTHex": told, "secureListingPSBTs": [{"hex": told, "indicesToSign": ["1"]}]}
    responses.post(INTENT, json={"success": True, "data": {"seller": drafts}})
    draft = satflow.draft_listing(ASK)
    assert (draft.psbt, draft.secure) == (PSBT, (SecureDraft(PSBT, (1,)),))


def test_a_listing_without_secure_forms_says_so(satflow: Satflow) -> None:
    responses.post(LIST, json={"success": True, "data": {}})
    satflow.list_item(structs.replace(ORDER, signed_secure=()))
    assert json.loads(responses.calls[0].request.body or "")["signedSecureListingPSBTs"] == []


@pytest.mark.parametrize("secure", [None, []])
def test_a_draft_may_have_no_secure_form(satflow: Satflow, secure: Any) -> None:
    responses.post(INTENT, json={"data": {"seller": {**DRAFT, "secureListingPSBTs": secure}}})
    assert satflow.draft_listing(structs.replace(ASK, slug=None)).secure == ()
    assert "collectionSlug" not in json.loads(responses.calls[0].request.body or "")


@pytest.mark.parametrize(
    "changed",
    [
        {"unsignedListingPSBTBase64": None},
        {"unsignedListingPSBTBase64": ""},
        {"unsignedListingPSBTBase64": "70736274ff"[:3]},
        {"unsignedListingPSBTBase64": "not base64!"},
        {"unsignedListingPSBTBase64": PSBT + "\n"},
        {"unsignedListingPSBTBase64": "A" * (64 * 1024 + 4)},
        {"unsignedListingPSBTBase64": [PSBT]},
        {"secureListingPSBTs": PSBT},
        {"secureListingPSBTs": {"base64": PSBT, "indicesToSign": [0]}},
        {"secureListingPSBTs": [PSBT]},
        {"secureListingPSBTs": [{"base64": PSBT}]},
        {"secureListingPSBTs": [{"hex": "70736274ff0", "indicesToSign": [0]}]},
        {"unsignedListingPSBTBase64": None, "unsignedListingPSBTHex": "00" * 20},
        {"secureListingPSBTs": [{"base64": PSBT, "indicesToSign": [-1]}]},
        {"secureListingPSBTs": [{"base64": PSBT, "indicesToSign": [True]}]},
        {"secureListingPSBTs": [{"base64": PSBT, "indicesToSign": [0.5]}]},
        {"secureListingPSBTs": [{"base64": PSBT, "indicesToSign": 0}]},
        {"secureListingPSBTs": [{"base64": PSBT, "indicesToSign": list(range(1001))}]},
        {"secureListingPSBTs": [{"base64": PSBT, "indicesToSign": [0]}] * 9},
    ],
)
def test_a_strange_draft_is_none(satflow: Satflow, changed: Any) -> None:
    responses.post(INTENT, json={"success": True, "data": {"seller": {**DRAFT, **changed}}})
    with pytest.raises(Unavailable):
        satflow.draft_listing(ASK)


@pytest.mark.parametrize(
    "answer", ['{"data": {"seller": NaN}}', "[]", '"a"', "{}", '{"data": []}', "<html>", "{" * 5000]
)
def test_an_answer_that_is_no_draft_is_none(satflow: Satflow, answer: str) -> None:
    responses.post(INTENT, body=answer)
    with pytest.raises(Unavailable):
        satflow.draft_listing(ASK)


def test_a_listing_is_sent_as_documented(satflow: Satflow) -> None:
    responses.post(LIST, json={"success": True, "data": {"listings": [MADE]}})
    satflow.list_item(ORDER)
    assert json.loads(responses.calls[0].request.body or "") == {
        "listings": [
            {
                "price": 900_000,
                "inscriptionId": INSCRIPTION,
                "sellerOrdAddress": VAULT,
                "sellerReceiveAddress": PAYOUT,
                "tapInternalKey": "02" + "cd" * 32,
                "sellerPaymentAddress": PAYOUT,
                "sellerPaymentPublicKey": "02" + "ef" * 32,
            }
        ],
        "signedListingPSBT": PSBT,
        "unsignedListingPSBT": PSBT,
        "signedSecureListingPSBTs": [PSBT],
    }


@pytest.mark.parametrize(
    "data", [{}, {"txid": "ab"}, {"listings": None}, {"listings": [{"inscriptionId": "other"}, MADE]}]
)
def test_a_listing_is_taken_when_the_venue_says_so(satflow: Satflow, data: Any) -> None:
    responses.post(LIST, json={"success": True, "data": data})
    satflow.list_item(ORDER)


@pytest.mark.parametrize(
    "answer",
    [
        {"success": True, "data": {"listings": []}},
        {"success": True, "data": {"listings": [{**MADE, "inscriptionId": "other"}]}},
        {"success": True, "data": {"listings": [{**MADE, "price": 90_000}]}},
        {"success": True, "data": {"listings": [{**MADE, "price": None}]}},
        {"success": True, "data": {"listings": MADE}},
        {"success": True, "data": {"listings": [7]}},
        {"success": True, "data": 7},
        {"success": True, "error": "but"},
        {"success": 1},
        {},
        [],
        7,
    ],
)
def test_whether_a_listing_was_taken_is_unknown_when_the_answer_is_not_clear(satflow: Satflow, answer: Any) -> None:
    responses.post(LIST, json=answer)
    with pytest.raises(Unknown):
        satflow.list_item(ORDER)


def test_a_listing_whose_answer_says_no_was_not_made(satflow: Satflow) -> None:
    responses.post(LIST, json={"success": False, "error": "utxo is spent"})
    with pytest.raises(Refused):
        satflow.list_item(ORDER)


@pytest.mark.parametrize(
    ("data", "gone"),
    [
        (GONE, True),
        ({**GONE, "failedCount": 1}, False),
        ({**GONE, "successCount": 0}, False),
        ({**GONE, "success": False}, False),
        ({"success": True, "summary": {"id": ID, "success": False}}, False),
        ({"success": True, "summary": [{"id": ID, "success": True}, {"id": ID, "success": False}]}, False),
        ({"success": True, "summary": [{"id": ID, "success": True}]}, True),
        ({"success": True}, True),
    ],
)
def test_a_delist_goes_by_inscription_and_says_whether_it_went(satflow: Satflow, data: Any, gone: bool) -> None:
    responses.post(CANCEL, json={"success": True, "data": data})
    assert satflow.delist(VAULT, INSCRIPTION, "AkcwRA==") is gone
    assert json.loads(responses.calls[0].request.body or "") == {
        "makerAddress": VAULT,
        "orderType": "ask",
        "signature": "AkcwRA==",
        "inscriptionId": INSCRIPTION,
    }


@pytest.mark.parametrize("data", [{}, {"failedCount": "none"}, [], {"successCount": True}])
def test_a_delist_that_says_nothing_clear_is_unknown(satflow: Satflow, data: Any) -> None:
    responses.post(CANCEL, json={"success": True, "data": data})
    with pytest.raises(Unknown):
        satflow.delist(VAULT, INSCRIPTION, "AkcwRA==")


COINS = (Coin("cd" * 32 + ":1", 60_000), Coin("ef" * 32 + ":0", 50_000))
OUTPOINTS = ["cd" * 32 + ":1", "ef" * 32 + ":0"]
BID_ASK = BidToDraft(
    100_000, Decimal(1), INSCRIPTION, "ordinals", None, "bc1qpay", "02ab", "bc1pord", "cd" * 32, 1, COINS
)
BID_ORDER = BidOrder(
    price=100_000,
    quantity=Decimal(1),
    slug=INSCRIPTION,
    kind="ordinals",
    payment="bc1qpay",
    payment_pubkey="02ab",
    receive="bc1pord",
    expires_ms=1_700_000_960_000,
    timestamp_ms=1_700_000_000_000,
    signature="",
    fee_rate="halfHourFee",
    reference=",".join(OUTPOINTS),
    signed_psbts=(PSBT,),
)


def _drafts(bidder: Any) -> None:
    responses.post(BASE + "/intent/bid", json={"success": True, "data": {"bidder": bidder}})


def test_an_offer_is_drafted_with_the_coins_that_may_pay_for_it(satflow: Satflow) -> None:
    _drafts({"unsignedBiddingPSBTBase64": PSBT, "unsignedBiddingPSBTHex": "70", "bidderPaymentUTXOs": [{}]})
    draft = satflow.draft_bid(BID_ASK)
    assert draft.psbts == (DraftPsbt("bid", PSBT, (), None),)
    assert draft.reference == BID_ORDER.reference
    assert json.loads(responses.calls[0].request.body or "") == {
        "price": 100_000,
        "inscriptionId": INSCRIPTION,
        "bidderAddress": "bc1qpay",
        "bidderTokenReceiveAddress": "bc1pord",
        "bidderPublicKey": "02ab",
        "allowedPaymentOutpoints": OUTPOINTS,
    }


def test_a_signed_offer_is_placed_with_the_same_coins(satflow: Satflow) -> None:
    responses.post(BASE + "/bid/place", json={"success": True, "data": {"message": "Successfully bid!"}})
    satflow.place(BID_ORDER)
    assert json.loads(responses.calls[0].request.body or "") == {
        "price": 100_000,
        "inscriptionId": INSCRIPTION,
        "bidderAddress": "bc1qpay",
        "bidderTokenReceiveAddress": "bc1pord",
        "signedBiddingPSBT": PSBT,
        "allowedPaymentOutpoints": OUTPOINTS,
    }


@pytest.mark.parametrize(
    "bidder", [None, [], {}, {"unsignedBiddingPSBTBase64": None}, {"unsignedBiddingPSBTBase64": "<psbt>"}]
)
def test_a_draft_that_is_not_understood_is_none(satflow: Satflow, bidder: Any) -> None:
    _drafts(bidder)
    with pytest.raises(Unavailable):
        satflow.draft_bid(BID_ASK)


def test_an_answer_that_says_nothing_leaves_the_fate_open(satflow: Satflow) -> None:
    responses.post(BASE + "/bid/place", json={"data": {}})
    with pytest.raises(Unknown):
        satflow.place(BID_ORDER)


def test_what_could_be_paid_with_any_coin_is_not_drafted(satflow: Satflow) -> None:
    many = tuple(Coin(f"{number:064x}:0", 1000) for number in range(100))
    with responses.RequestsMock():
        for coins in ((), many):
            with pytest.raises(Refused):
                satflow.draft_bid(replace(BID_ASK, coins=coins))


def test_what_was_not_drafted_and_signed_is_not_sent(satflow: Satflow) -> None:
    with responses.RequestsMock():
        for order in (replace(BID_ORDER, signed_psbts=()), replace(BID_ORDER, reference="")):
            with pytest.raises(Refused):
                satflow.place(order)


def test_other_bids_are_messages(satflow: Satflow) -> None:
    with responses.RequestsMock():
        for slug in ("goosinals", "A•B", "AB" * 32 + "i0", "ab" * 32 + "i01"):
            with pytest.raises(NotSupported):
                satflow.draft_bid(replace(BID_ASK, slug=slug))
