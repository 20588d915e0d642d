"""Ordinals Wallet's reads: floors, listings, sales, traits, wallets and items; recorded shapes, drifted and hostile."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import BelowMinimum, NotSupported, Refused, Unavailable
from markets.ordinalswallet.adapter import OrdinalsWallet
from markets.ordinalswallet.books import sellers
from markets.parse import Unreadable

pytestmark = pytest.mark.usefixtures("no_network")

BASE = "https://turbo.example"
TXID = "ab" * 32
INSCRIPTION = TXID + "i0"
UUID = "08b8f1ee-3f31-42e3-bfdd-14579dad772e"
STATS = {"id": UUID, "total_supply": 10_001, "floor_price": 308_324, "floor_price_per": None, "listed": 13, "sales": 3}
ESCROW = {
    "id": UUID,
    "inscription_id": INSCRIPTION,
    "name": "Puppet #551",
    "outpoint": TXID + ":0",
    "purchase_txid": None,
    "seller_address": "bc1pseller",
    "buyer_address": None,
    "satoshi_price": 2_569_373,
    "creator_address": None,
    "bought_at": None,
    "created": "2026-05-05 18:30:03.972243+00",
    "price_per": "",
    "amount": "",
    "secure_purchase_version": None,
    "secure_purchase_state": None,
    "protected": False,
    "private_relay": False,
}
LOT = {
    **ESCROW,
    "inscription_id": None,
    "satoshi_price": 119_223,
    "price_per": "1.27976654",
    "amount": "93159.95974",
}
SOLD = {
    **ESCROW,
    "buyer_address": "bc1pbuyer",
    "purchase_txid": TXID,
    "bought_at": "2026-09-25 08:27:58.054663+00",
    "price_per": "2569373",
    "amount": "1",
}
HELD = {
    "id": INSCRIPTION,
    "num": 26_318,
    "content_type": "image/png",
    "meta": {"name": "Punk #0702", "attributes": [{"trait_type": "hair", "value": "Do-rag", "percent": None}]},
    "collection": {"name": "Punks", "slug": "punks", "creator_address": None, "floor_price": 308_324},
    "escrow": None,
    "outpoint": {"outpoint": TXID + "00000000", "sat_offset": 0, "sats": 1324},
    "pending_sale": False,
}
LISTED = {"protected": False, "satoshi_price": 2_569_373, "seller_address": "bc1pseller", "bought_at": ""}
ITEM = {
    **{key: value for key, value in HELD.items() if key != "outpoint"},
    "address": "bc1powner",
    "value": 10_000,
    "satpoint": TXID + ":1:0",
}


@pytest.fixture
def venue() -> OrdinalsWallet:
    return OrdinalsWallet(BASE, "ordinalswallet")


def _answers(path: str, answer: Any, status: int = 200) -> None:
    responses.get(BASE + path, json=answer, status=status)


@pytest.mark.parametrize(
    ("shown", "paid"),
    [
        (308_324, 300_000),
        (2_045_220, 1_990_000),
        (2_569_373, 2_500_000),
        (102_774_922, 100_000_000),
        (1_747_173, 1_700_000),
        (16_000, 15_000),
        (1_001, 1),
    ],
)
def test_what_the_seller_is_paid_of_what_is_shown(shown: int, paid: int) -> None:
    assert sellers(shown, "price") == paid


def test_each_sellers_price_is_found_again_from_what_is_shown_for_it() -> None:
    for paid in (*range(1, 60_000, 7), *range(10**8, 10**8 + 500)):
        assert sellers(max(paid + 1000, paid * 1000 // 973), "price") == paid


@pytest.mark.parametrize("shown", [0, 999, 1000, -1, None, "1e6", True, 10**17])
def test_a_price_that_does_not_cover_the_fee_is_unreadable(shown: Any) -> None:
    with pytest.raises(Unreadable):
        sellers(shown, "price")


@pytest.mark.parametrize(
    ("changed", "floor", "count"),
    [
        ({}, Decimal(300_000), 13),
        ({"floor_price": 308_324.0}, Decimal(300_000), 13),
        ({"floor_price": None, "listed": None, "listed_count": 0}, None, 0),
        ({"floor_price": 0}, None, 13),
        ({"floor_price": "308324", "listed_count": "7"}, Decimal(300_000), 7),
    ],
)
def test_a_floor(venue: OrdinalsWallet, changed: Any, floor: Decimal | None, count: int) -> None:
    _answers("/collection/puppets/stats", {**STATS, **changed})
    found = venue.floors(["puppets"], "ordinals")["puppets"]
    assert (found.floor, found.listed_count) == (floor, count)


def test_the_floor_of_a_rune_is_per_token_and_as_shown(venue: OrdinalsWallet) -> None:
    stats = {**STATS, "floor_price": 100_000, "floor_price_per": 1.2797}
    _answers("/collection/rune-AB%E2%80%A2CD/stats", stats)
    assert venue.floors(["AB•CD"], "runes")["AB•CD"].floor == Decimal("1.2797")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"error": True, "message": "Collection not found"}),
        (404, {"error": "not found"}),
        (200, {"error": True, "code": "collection_not_found"}),
        (200, {"error": True, "message": "not found"}),
    ],
)
def test_an_unknown_collection_has_no_floor(venue: OrdinalsWallet, status: int, body: Any) -> None:
    _answers("/collection/nobody/stats", body, status)
    assert venue.floors(["nobody"], "ordinals") == {}


@pytest.mark.parametrize(
    ("status", "body", "leaf"),
    [
        (400, json.dumps({"error": True, "message": "Invalid slug"}), Refused),
        (200, json.dumps({"error": True, "code": "no_outpoints", "message": "Select at least one item"}), Refused),
        (200, json.dumps({"error": True, "message": "price below the minimum"}), BelowMinimum),
        (200, json.dumps({"error": True, "code": 7}), Refused),
        (200, json.dumps({**STATS, "floor_price": "cheap"}), Unavailable),
        (200, json.dumps({**STATS, "floor_price": 1.5}), Unavailable),
        (200, json.dumps({"listed": 3}), Unavailable),
    ],
)
def test_what_is_not_understood_is_no_floor(venue: OrdinalsWallet, status: int, body: str, leaf: Any) -> None:
    responses.get(BASE + "/collection/puppets/stats", body=body, status=status)
    with pytest.raises(leaf):
        venue.floors(["puppets"], "ordinals")


def test_floors_are_asked_for_one_by_one(venue: OrdinalsWallet) -> None:
    with pytest.raises(ValueError):
        venue.floors(["a", "b"], "ordinals")


def test_listings_are_sorted_and_what_is_sold_is_not_among_them(venue: OrdinalsWallet) -> None:
    cheap = {**ESCROW, "id": "cheap", "satoshi_price": 16_000, "protected": True, "secure_purchase_state": "listed"}
    in_flight = {**ESCROW, "id": "flying", "secure_purchase_state": "broadcast"}
    _answers("/collection/puppets/escrows", [ESCROW, cheap, SOLD, in_flight])
    page = venue.asks("puppets", None)
    assert [(each.ask.order_id, each.ask.price, each.ask.unit_price, each.traits) for each in page.entries] == [
        ("cheap", 15_000, Decimal(15_000), None),
        (UUID, 2_500_000, Decimal(2_500_000), None),
    ]
    assert (page.entries[0].ask.maker, page.following) == ("bc1pseller", None)


def test_a_listing_that_tells_the_sellers_price_is_taken_at_its_word(venue: OrdinalsWallet) -> None:
    _answers("/collection/puppets/escrows", [{**ESCROW, "satoshi_price": 20_000, "escrow_price": 15_000}])
    assert venue.asks("puppets", None).entries[0].ask.price == 15_000


def test_a_lot_of_a_rune_is_shown_with_its_tokens(venue: OrdinalsWallet) -> None:
    _answers("/collection/rune-AB/escrows", [LOT])
    ask = venue.asks("rune-AB", None).entries[0].ask
    assert (ask.price, ask.quantity) == (119_223, Decimal("93159.95974"))
    assert abs(ask.unit_price - Decimal(str(LOT["price_per"]))) < Decimal("0.0000001")


def test_sales_are_paged_by_their_number(venue: OrdinalsWallet) -> None:
    _answers("/collection/puppets/sold-escrows", [SOLD] * 100)
    page = venue.sales("puppets", "ordinals", None)
    assert page.following == 100
    sale = page.entries[0]
    assert (sale.sale_id, sale.price, sale.quantity, sale.buyer) == (UUID, 2_500_000, Decimal(1), "bc1pbuyer")
    assert (sale.inscription_id, sale.bid_id, sale.sold_ms) == (INSCRIPTION, None, 1_790_324_878_054)
    assert sale.txid == TXID
    responses.reset()
    _answers("/collection/puppets/sold-escrows", [SOLD] * 3)
    assert venue.sales("puppets", "ordinals", 100).following is None
    assert responses.calls[-1].request.params == {"limit": "100", "offset": "100"}


def test_sales_of_a_rune_are_as_shown(venue: OrdinalsWallet) -> None:
    _answers("/collection/rune-AB/sold-escrows", [{**SOLD, **LOT, "bought_at": SOLD["bought_at"], "marketplace": 12}])
    sale = venue.sales("AB", "runes", None).entries[0]
    assert (sale.price, sale.quantity, sale.inscription_id) == (119_223, Decimal("93159.95974"), None)


def test_traits_and_how_many_have_them(venue: OrdinalsWallet) -> None:
    def value(name: Any, count: Any) -> dict[str, Any]:
        return {"trait_type": "Face", "value": name, "count": count}

    groups = [{"trait_type": "Face", "values": [value("Bitty", 236), value(7, "5"), value("\x00", 1)]}]
    _answers("/collection/puppets/attributes", [*groups, {"trait_type": None, "values": [value("x", 1)]}])
    assert venue.traits("puppets") == {"Face": {"Bitty": 236, "7": 5}}


@pytest.mark.parametrize("body", [{}, [7], [{"trait_type": "Face"}], [{"values": [{"value": "x", "count": "many"}]}]])
def test_strange_traits_are_unknown(venue: OrdinalsWallet, body: Any) -> None:
    _answers("/collection/puppets/attributes", body)
    with pytest.raises(Unavailable):
        venue.traits("puppets")


def test_the_contents_of_a_wallet(venue: OrdinalsWallet) -> None:
    bare = {"id": TXID + "i1", "num": 1, "content_type": "text/plain", "meta": None, "collection": None}
    _answers("/wallet/bc1powner/inscriptions", [{**HELD, "escrow": LISTED}, bare])
    listed, plain = venue.wallet_contents("bc1powner", None).entries
    assert (listed.id, listed.name, listed.collection_id, listed.collection_name) == (
        INSCRIPTION,
        "Punk #0702",
        "punks",
        "Punks",
    )
    assert (listed.listed, listed.listing_price) == (True, 2_500_000)
    assert listed.image_url == f"{BASE}/inscription/content/{INSCRIPTION}"
    assert (plain.name, plain.collection_id, plain.listed, plain.listing_price) == (None, None, False, None)


def test_what_was_sold_is_not_listed_any_more(venue: OrdinalsWallet) -> None:
    _answers("/wallet/bc1powner/inscriptions", [{**HELD, "escrow": {**LISTED, "bought_at": SOLD["bought_at"]}}])
    assert not venue.wallet_contents("bc1powner", None).entries[0].listed


def test_an_inscription_in_detail(venue: OrdinalsWallet) -> None:
    _answers(f"/inscription/{INSCRIPTION}", {**ITEM, "escrow": LISTED})
    found = venue.item(INSCRIPTION)
    assert (found.owner, found.output, found.output_value) == ("bc1powner", TXID + ":1", 10_000)
    assert (found.collection_id, found.collection_name) == ("punks", "Punks")
    assert (found.listed, found.listing_price, found.seller) == (True, 2_500_000, "bc1pseller")


def test_an_inscription_that_is_not_listed(venue: OrdinalsWallet) -> None:
    _answers(f"/inscription/{INSCRIPTION}", {**ITEM, "satpoint": None})
    found = venue.item(INSCRIPTION)
    assert (found.listed, found.listing_price, found.output) == (False, None, None)


def test_an_answer_about_another_inscription_is_none(venue: OrdinalsWallet) -> None:
    _answers(f"/inscription/{INSCRIPTION}", {**ITEM, "id": TXID + "i9"})
    with pytest.raises(Unavailable):
        venue.item(INSCRIPTION)


def test_bids_are_not_taken_and_why_is_said(venue: OrdinalsWallet) -> None:
    with pytest.raises(NotSupported, match="network fee"):
        venue.place(None)  # type: ignore[arg-type]
    with pytest.raises(NotSupported, match="network fee"):
        venue.draft_bid(None)  # type: ignore[arg-type]
    for kind in ("ordinals", "runes"):
        with pytest.raises(NotSupported):
            venue.profile(kind)
