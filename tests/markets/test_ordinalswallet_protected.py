"""Ordinals Wallet's protected listings: drafts of two PSBTs, their signed forms, and cancels by output."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import responses
from msgspec.structs import replace

from markets.base import NotFound, Refused, Unavailable, Unknown
from markets.orders import ListingDraft, ListingOrder, ListingToDraft
from markets.ordinalswallet.adapter import OrdinalsWallet
from tests.clock import Clock
from tests.markets.test_ordinalswallet_listings import BASE, HELD, INSCRIPTION, KEY, NOW_MS, PAYOUT, VAULT, _sign_in

pytestmark = pytest.mark.usefixtures("no_network")

OUTPOINT = "ab" * 31 + "01:3"
SERIALIZED = bytes.fromhex("ab" * 31 + "01")[::-1].hex() + "03000000"
TRANSFER, SALE, SIGNED = "70736274ff0100", "70736274ff0200", "70736274ff0300"
ASK = ListingToDraft(50_000, INSCRIPTION, VAULT, PAYOUT, KEY, "punks", OUTPOINT)
BUILD, AUTHORIZE = BASE + "/market/secure-listing/build-bulk", BASE + "/market/secure-listing/authorize-bulk"
ROW = {
    "version": 4,
    "state": "authorization_required",
    "outpoint": OUTPOINT,
    "protocol": "ordinal",
    "policy": "passthrough_v4",
    "template_digest": "d1",
    "psbt": TRANSFER,
    "sale_psbt": SALE,
    "passthrough_txid": "ee" * 32,
    "escrow_value": 534,
    "escrow_price_sats": 50_000,
    "escrow_script": "5120",
    "cosigner_public_key": "1d08",
}
LISTED = {"version": 4, "state": "listed", "outpoint": OUTPOINT, "protocol": "ordinal", "policy": "passthrough_v4"}
GONE = {"success": True, "transition": "cancelled", "listing": {"escrow_id": "e", "secure_v2": True}}
PROTECTED = {
    **HELD,
    "outpoint": {"outpoint": SERIALIZED, "sat_offset": 0, "sats": 546},
    "escrow": {**HELD["escrow"], "protected": True},  # type: ignore[dict-item]
}


def b64(psbt: str) -> str:
    return base64.b64encode(bytes.fromhex(psbt)).decode()


ORDER = ListingOrder(ASK, b64(SIGNED), b64(SALE), (), PAYOUT, "02" + "ef" * 32, b64(SIGNED))


@pytest.fixture
def venue() -> OrdinalsWallet:
    return OrdinalsWallet(BASE, "ordinalswallet", is_protecting=True, now_ms=Clock(NOW_MS))


def built(*rows: Any, status: int = 200, **changes: Any) -> None:
    responses.post(BUILD, json={"version": 4, "policy": "passthrough_v4", "items": [*rows]} | changes, status=status)


def sent() -> Any:
    return json.loads(responses.calls[-1].request.body)


def test_a_draft_is_asked_for_by_output_and_has_two_psbts(venue: OrdinalsWallet) -> None:
    built(ROW)
    assert venue.draft_listing(ASK) == ListingDraft(b64(SALE), (), b64(TRANSFER), "")
    assert sent() == {
        "protocol": "ordinal",
        "seller_address": PAYOUT,
        "seller_public_key": "02" + KEY,
        "items": [{"outpoint": OUTPOINT, "escrow_price_sats": 50_000}],
    }


def test_without_its_output_nothing_is_sent(venue: OrdinalsWallet) -> None:
    with pytest.raises(Refused):
        venue.draft_listing(replace(ASK, outpoint=""))
    assert len(responses.calls) == 0


@pytest.mark.parametrize(
    ("code", "error"),
    [("postage_too_small", Refused), ("build_tip_changed", Unavailable), (7, Refused), (None, Refused)],
)
def test_an_item_that_is_refused_says_why(venue: OrdinalsWallet, code: Any, error: type[Exception]) -> None:
    built({"outpoint": OUTPOINT, "error": True, "code": code})
    with pytest.raises(error, match=code if isinstance(code, str) else "no reason"):
        venue.draft_listing(ASK)


@pytest.mark.parametrize(
    "changes",
    [
        {"outpoint": "cd" * 32 + ":0"},
        {"state": "listed"},
        {"policy": "passthrough_v5"},
        {"protocol": "rune"},
        {"escrow_price_sats": 49_999},
        {"escrow_price_sats": None},
        {"template_digest": None},
        {"template_digest": ""},
        {"psbt": None},
        {"psbt": "00"},
        {"sale_psbt": TRANSFER[:-1]},
        {"sale_psbt": "70736274ff" + "00" * 60_000},
    ],
)
def test_a_draft_of_another_form_is_none(venue: OrdinalsWallet, changes: dict[str, Any]) -> None:
    built(ROW | changes)
    with pytest.raises(Unavailable):
        venue.draft_listing(ASK)


@pytest.mark.parametrize("rows", [[], [ROW, ROW], ["x"]])
def test_an_answer_of_other_items_is_none(venue: OrdinalsWallet, rows: list[Any]) -> None:
    built(*rows)
    with pytest.raises(Unavailable):
        venue.draft_listing(ASK)


def test_a_refused_call_says_why(venue: OrdinalsWallet) -> None:
    answer = {"error": True, "code": "invalid_batch_size", "message": "Select between 1 and 100 items"}
    responses.post(BUILD, json=answer, status=400)
    with pytest.raises(Refused, match="between 1 and 100"):
        venue.draft_listing(ASK)


@pytest.mark.parametrize("answer", [LISTED, {"items": [LISTED]}])
def test_the_signed_form_repeats_the_drafts_digest(venue: OrdinalsWallet, answer: Any) -> None:
    built(ROW)
    venue.draft_listing(ASK)
    responses.post(AUTHORIZE, json=answer)
    venue.list_item(ORDER)
    assert sent() == {
        "items": [
            {
                "outpoint": OUTPOINT,
                "protocol": "ordinal",
                "seller_public_key": "02" + KEY,
                "template_digest": "d1",
                "psbt": SIGNED,
                "sale_psbt": SIGNED,
                "escrow_price_sats": 50_000,
            }
        ]
    }


def test_what_was_not_drafted_here_is_not_sent(venue: OrdinalsWallet) -> None:
    with pytest.raises(Refused, match="not known"):
        venue.list_item(ORDER)
    built(ROW)
    venue.draft_listing(ASK)
    others = (
        replace(ORDER, ask=replace(ASK, price=1)),
        replace(ORDER, unsigned_psbt=b64(TRANSFER)),
        replace(ORDER, signed_recovery=b64(SIGNED)),
        replace(ORDER, signed_transfer="*"),
    )
    for order in others:
        with pytest.raises(Refused):
            venue.list_item(order)
    assert len(responses.calls) == 1


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        ({"outpoint": OUTPOINT, "error": True, "code": "template_digest_mismatch"}, 400, "template_digest_mismatch"),
        ({"outpoint": OUTPOINT, "error": True, "code": "authorize_tip"}, 200, "authorize_tip"),
        ({"items": [{"outpoint": OUTPOINT, "error": True, "code": "already_listed"}]}, 200, "already_listed"),
    ],
)
def test_a_refused_listing_says_why(venue: OrdinalsWallet, answer: Any, status: int, error: str) -> None:
    built(ROW)
    venue.draft_listing(ASK)
    responses.post(AUTHORIZE, json=answer, status=status)
    with pytest.raises(Refused, match=error):
        venue.list_item(ORDER)


@pytest.mark.parametrize("answer", [{}, {**LISTED, "state": "pending"}, {**LISTED, "outpoint": "x"}, {"items": []}, []])
def test_an_unclear_answer_is_unknown(venue: OrdinalsWallet, answer: Any) -> None:
    built(ROW)
    venue.draft_listing(ASK)
    responses.post(AUTHORIZE, json=answer)
    with pytest.raises(Unknown):
        venue.list_item(ORDER)


def own(venue: OrdinalsWallet, entry: Any) -> None:
    responses.upsert(responses.GET, f"{BASE}/wallet/{VAULT}/inscriptions", json=[entry])
    assert len(venue.own_listings(VAULT, None).entries) == 1


def test_a_protected_listing_is_cancelled_by_its_output_and_a_plain_one_by_its_inscription(
    venue: OrdinalsWallet,
) -> None:
    _sign_in(venue, Clock(NOW_MS))
    responses.post(f"{BASE}/market/cancel-escrow", json=GONE)
    by_inscription = {"inscription_id": INSCRIPTION, "signature": "ows1.secret"}
    by_output = {"outpoint": OUTPOINT, "signature": "ows1.secret"}
    own(venue, HELD)
    assert venue.delist(VAULT, INSCRIPTION, "") is True
    assert sent() == by_inscription
    for told in ({"outpoint": SERIALIZED}, {"outpoint": OUTPOINT}):
        own(venue, HELD)
        own(venue, PROTECTED | {"outpoint": told})
        assert venue.delist(VAULT, INSCRIPTION, "") is True
        assert sent() == by_output
    own(venue, PROTECTED | {"outpoint": None})  # it is not told this time, and known
    venue.delist(VAULT, INSCRIPTION, "")
    assert sent() == by_output


def test_a_cancel_waits_until_the_output_is_told(venue: OrdinalsWallet) -> None:
    _sign_in(venue, Clock(NOW_MS))
    own(venue, PROTECTED | {"outpoint": None})
    with pytest.raises(Unavailable):
        venue.delist(VAULT, INSCRIPTION, "")


def test_what_was_just_listed_is_cancelled_by_its_output(venue: OrdinalsWallet) -> None:
    _sign_in(venue, Clock(NOW_MS))
    built(ROW)
    venue.draft_listing(ASK)
    responses.post(AUTHORIZE, json=LISTED)
    venue.list_item(ORDER)
    responses.post(f"{BASE}/market/cancel-escrow", json={"error": True, "message": "x: not found"}, status=404)
    with pytest.raises(NotFound):
        venue.delist(VAULT, INSCRIPTION, "")
    assert sent()["outpoint"] == OUTPOINT


def test_one_that_is_asked_for_alone_tells_its_output_too(venue: OrdinalsWallet) -> None:
    _sign_in(venue, Clock(NOW_MS))
    alone = {
        "inscription_id": INSCRIPTION,
        "outpoint": SERIALIZED,
        "satoshi_price": 16_000,
        "escrow_price": 15_000,
        "secure_purchase_version": 2,
        "secure_purchase_state": "listed",
    }
    responses.get(f"{BASE}/market/escrow/{INSCRIPTION}", json=alone)
    assert len(venue.own_listings(VAULT, INSCRIPTION).entries) == 1
    responses.post(f"{BASE}/market/cancel-escrow", json=GONE)
    venue.delist(VAULT, INSCRIPTION, "")
    assert sent()["outpoint"] == OUTPOINT
