"""Satflow's own bids, floors, wallets, places and cancels: documented and observed shapes, and hostile ones."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import BidOrder, Item, NotFound, NotSupported, NotUnderstood, Unavailable, Unknown
from markets.parse import Unread
from markets.satflow import books
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import BASE, ID, OTHER_ID, answers

pytestmark = pytest.mark.usefixtures("no_network")


OWN = {
    "bid_id": ID,
    "inscription_id": None,
    "price": 500_000,
    "type": "collection",
    "isNonCustodial": False,
    "expiration": 1_700_000_960_000,
    "attribute": {"trait_type": "Hat", "value": "Red"},
    "inscription_metadata": {"collection": {"id": "goosinals"}},
    "runes_metadata": None,
}
RUNE = {
    **OWN,
    "type": "rune",
    "attribute": None,
    "inscription_metadata": None,
    "runes_metadata": {"runes": [{"name": "A•B", "amount": "12345", "divisibility": 2}]},
}


def test_own_bids_as_documented(satflow: Satflow) -> None:
    item = {**OWN, "type": "individual", "inscription_id": "1i0", "inscription_metadata": None, "expiration": None}
    answers("/address/bids", {"success": True, "data": {"results": [OWN, {**RUNE, "bid_id": {"$oid": ID}}, item]}})
    collection, rune, single = satflow.own_bids("bc1qpay").entries
    assert (collection.venue_id, collection.slug, collection.kind, collection.price) == (
        ID,
        "goosinals",
        "ordinals",
        500_000,
    )
    assert (collection.expires_ms, collection.trait) == (1_700_000_960_000, ("Hat", "Red"))
    assert (rune.venue_id, rune.slug, rune.kind, rune.quantity) == (ID, "A•B", "runes", Decimal("123.45"))
    assert (single.slug, single.expires_ms) == ("", None)


def test_an_own_bid_on_a_number(satflow: Satflow) -> None:
    answers("/address/bids", {"data": {"results": [{**OWN, "attribute": {"trait_type": "Level", "value": 7}}]}})
    assert satflow.own_bids("bc1qpay").entries[0].trait == ("Level", "7")


@pytest.mark.parametrize("more", [{"total": 2}, {"pagination": {"total": 2}}, {"pagination": {"totalPages": 2}}])
def test_own_bids_are_refused_when_there_are_more_than_shown(satflow: Satflow, more: dict[str, Any]) -> None:
    answers("/address/bids", {"data": {"results": [OWN], **more}})
    with pytest.raises(NotUnderstood, match="more own bids"):
        satflow.own_bids("bc1qpay")


@pytest.mark.parametrize(
    "entry",
    [
        {**OWN, "price": None},
        {**OWN, "price": 5.5},
        {**OWN, "bid_id": None},
        {**OWN, "type": "mystery"},
        {**OWN, "expiration": 1_700_000_960},
        {**OWN, "expiration": "soon"},
        {**OWN, "inscription_metadata": None},
        {**OWN, "attribute": {"trait_type": "Hat"}},
        {**OWN, "attribute": {"trait_type": "Hat", "value": True}},
        {**OWN, "attribute": {"trait_type": "Hat", "value": {"a": 1}}},
        {**OWN, "attribute": "Hat"},
        {**OWN, "attribute": []},
        {**RUNE, "runes_metadata": None},
        {**RUNE, "runes_metadata": {"runes": []}},
        {**RUNE, "runes_metadata": {"runes": [{"name": "A•B", "amount": "1.5", "divisibility": 2}]}},
        {**RUNE, "runes_metadata": {"runes": [{"name": "A•B", "amount": "15", "divisibility": 39}]}},
        None,
    ],
)
def test_unreadable_own_bid_is_neither_open_nor_gone(satflow: Satflow, entry: Any) -> None:
    answers("/address/bids", {"data": {"results": [{**OWN, "bid_id": OTHER_ID}, entry]}})
    page = satflow.own_bids("bc1qpay")
    assert [bid.venue_id for bid in page.entries] == [OTHER_ID]
    assert [unread.key for unread in page.unread] == [ID if entry and entry["bid_id"] else ""]


@pytest.mark.parametrize("shape", [lambda rows: rows, lambda rows: {"results": rows}])
def test_floors_of_many_slugs(satflow: Satflow, shape: Any) -> None:
    rows = [
        {"slug": "Goosinals", "floor": 1_000_000, "listedCount": 12},
        {"slug": "empty", "floor": 0, "listedCount": 0},
        {"slug": "bare", "floor": None},
        {"slug": "uninvited", "floor": 5},
    ]
    answers("/collection-stats/floors", {"success": True, "data": shape(rows)})
    floors = satflow.floors(["goosinals", "empty", "bare", "unknown"], "ordinals")
    assert sorted(floors) == ["bare", "empty", "goosinals"]
    assert (floors["goosinals"].floor, floors["goosinals"].listed_count) == (Decimal(1_000_000), 12)
    assert floors["empty"].floor is None and floors["bare"].floor is None
    assert responses.calls[0].request.params == {"type": "ordinals", "slugs": "goosinals,empty,bare,unknown"}


def test_rune_floors_keep_their_fractions(satflow: Satflow) -> None:
    answers("/collection-stats/floors", '{"data": [{"slug": "A•B", "floor": 0.899, "listedCount": "3"}]}')
    assert satflow.floors(["AB"], "runes")["AB"].floor == Decimal("0.899")
    (odd,) = satflow.floors(["AB"], "ordinals").values()
    assert isinstance(odd, Unread)


def test_wallet_contents(satflow: Satflow) -> None:
    token = {"inscription_id": "1i0", "name": "Goose #1", "image_url": "https://x/1.png"}
    full = {"token": token, "collection": {"id": "goosinals", "name": "Goosinals"}, "listing": {"price": 900}}
    bare = {
        "token": {"inscription_id": "2i0", "name": "\u0000" * 5, "image_url": "javascript:1"},
        "collection": None,
        "listing": None,
    }
    answers("/address/wallet-contents", {"data": {"results": {"ordinals": [full, bare]}, "nextCursor": 2}})
    page = satflow.wallet_contents("bc1p", 0)
    first, second = page.entries
    assert (first.name, first.collection_id, first.listed, first.listing_price) == ("Goose #1", "goosinals", True, 900)
    assert (second.id, second.name, second.image_url, second.listed) == ("2i0", None, None, False)
    assert page.following == 2


@pytest.mark.parametrize("data", [{"address": "bc1qmulti"}, {"address": None, "multiSig": {"address": "bc1qmulti"}}])
def test_the_bidding_wallet_as_documented_and_as_seen(satflow: Satflow, data: Any) -> None:
    answers("/address/bidding-wallet", {"data": data})
    assert satflow.bidding_wallet("bc1qpay", "bc1p", "02ab") == "bc1qmulti"


def test_an_inscription_in_detail(satflow: Satflow) -> None:
    told = {
        "id": "1i0",
        "inscriptionNumber": 7,
        "contentType": "image/png",
        "contentURI": "https://example.org/c",
        "contentPreviewURI": "http://example.org/p",
        "genesisTransaction": "ab",
        "owner": "bc1powner",
        "location": "a:0:0",
        "output": "a:0",
        "outputValue": 546,
        "listing": {"price": 9_000, "sellerAddress": "bc1pseller"},
        "topBid": {"price": 8_000},
        "metadata": {
            "token": {
                "name": "One",
                "image_url": "https://example.org/i",
                "meta": {"attributes": [{"trait_type": "Hat", "value": "Red"}, {"x": 1}]},
            },
            "collection": {"id": "", "slug": "goosinals", "name": "Goosinals"},
        },
    }
    answers("/item", {"data": told})
    assert satflow.item("1i0") == Item(
        id="1i0",
        listed=True,
        number=7,
        name="One",
        collection_id="goosinals",
        collection_name="Goosinals",
        image_url="https://example.org/i",
        content_url="https://example.org/c",
        content_type="image/png",
        owner="bc1powner",
        location="a:0:0",
        output="a:0",
        output_value=546,
        genesis="ab",
        listing_price=9_000,
        seller="bc1pseller",
        top_bid=8_000,
        traits=(("Hat", "Red"),),
    )


@pytest.mark.parametrize("strange", [None, 5, "7.5", [], {}, True, 2**70, "546"])
def test_what_an_inscriptions_details_tell_strangely_is_not_known(satflow: Satflow, strange: Any) -> None:
    names = ("inscriptionNumber", "outputValue", "listing", "topBid", "metadata", "contentURI")
    answers("/item", {"data": {"id": "1i0", **dict.fromkeys(names, strange)}})
    number = 5 if strange == 5 else None
    assert satflow.item("1i0") == Item("1i0", listed=False, number=number, output_value=number)


def test_challenge_and_item_are_checked(satflow: Satflow) -> None:
    answers("/challenge", {"challenge": "sign me"})
    answers("/item", {"data": {"id": "2i0"}})
    assert satflow.challenge("bc1qpay") == "sign me"
    with pytest.raises(Unavailable, match="another"):
        satflow.item("1i0")
    answers("/address/bidding-wallet", {"data": {"address": None}})
    with pytest.raises(NotFound):
        satflow.bidding_wallet("bc1qpay", "bc1p", "02ab")


def _order(**changed: Any) -> BidOrder:
    fields: dict[str, Any] = {
        "price": 500_000,
        "quantity": Decimal(1),
        "slug": "goosinals",
        "kind": "ordinals",
        "payment": "bc1qpay",
        "payment_pubkey": "02ab",
        "receive": "bc1p",
        "expires_ms": 1_700_000_960_000,
        "timestamp_ms": 1_700_000_000_000,
        "signature": "c2ln",
        "fee_rate": "halfHourFee",
    }
    return BidOrder(**fields | changed)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"quantity": Decimal("2.0")}, b'"quantity": 2}'),
        ({"quantity": Decimal("1E+3")}, b'"quantity": 1000}'),
        ({"quantity": Decimal("12.50")}, b'"quantity": 12.5}'),
        ({"quantity": Decimal("0.00000001")}, b'"quantity": 0.00000001}'),
        ({"fee_rate": "1.5"}, b'"quantity": 1, "feeRate": 1.5}'),
        ({"trait": ("Hat", "Red")}, b'"attribute": {"trait_type": "Hat", "value": "Red"}'),
        ({"slug": "A•B"}, '"collectionSlug": "A•B"'.encode()),
    ],
)
def test_numbers_are_sent_with_the_digits_that_were_signed(changed: Any, expected: bytes) -> None:
    responses.add(responses.POST, BASE + "/bid/place", json={"success": True, "data": {"message": "ok"}})
    Satflow(BASE, "key", "simulator").place(_order(**changed))
    assert expected in responses.calls[0].request.body
    json.loads(responses.calls[0].request.body)


def test_rune_bids_are_not_sent_to_satflow(satflow: Satflow) -> None:
    with pytest.raises(NotSupported):
        satflow.place(_order(kind="runes"))


@pytest.mark.parametrize(
    ("data", "gone"),
    [
        ({"success": True, "successCount": 1, "failedCount": 0}, True),
        ({"success": True, "successCount": "1"}, True),
        ({"success": True}, True),
        ({"success": True, "successCount": 0, "failedCount": 1}, False),
        ({"success": True, "successCount": 0}, False),
        ({"success": False, "successCount": 1, "failedCount": 0}, False),
    ],
)
def test_a_cancel_counts_what_failed(satflow: Satflow, data: Any, gone: bool) -> None:
    responses.add(responses.POST, BASE + "/cancel", json={"success": True, "data": data})
    assert satflow.cancel("bc1qpay", [ID], "c2ln") is gone


@pytest.mark.parametrize("data", [None, {}, {"failedCount": "none"}, {"failedCount": -1}, []])
def test_a_cancel_that_does_not_say_what_happened_is_unknown(satflow: Satflow, data: Any) -> None:
    responses.add(responses.POST, BASE + "/cancel", json={"success": True, "data": data})
    with pytest.raises(Unknown):
        satflow.cancel("bc1qpay", [ID], "c2ln")


@pytest.mark.parametrize(("market", "tick", "least"), [("satflow", 1000, 1000), ("simulator", 1000, 10_000)])
def test_profiles(market: str, tick: int, least: int) -> None:
    venue = Satflow(BASE, "key", market)
    ordinals, runes = venue.profile("ordinals"), venue.profile("runes")
    assert (ordinals.venue, ordinals.tick, ordinals.min_bid, ordinals.min_duration_s) == (market, tick, least, 900)
    assert (runes.tick, runes.min_bid, runes.equal_bids_allowed, runes.balance_model) == (1, 1, True, "per_bid")


@pytest.mark.parametrize("base", ["http://api.satflow.com/v1", "ftp://127.0.0.1", "api.satflow.com"])
def test_only_https_or_this_machine(base: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        Satflow(base, "key", "satflow")


def test_floors_answer_every_spelling_that_was_asked_for() -> None:
    answer = {"success": True, "data": [{"slug": "cats", "floor": 5000, "listedCount": 2}]}
    found = books.floors(answer, ["cats", "Cats", "dogs"], "ordinals")
    assert {slug: floor.listed_count for slug, floor in found.items()} == {"cats": 2, "Cats": 2}
