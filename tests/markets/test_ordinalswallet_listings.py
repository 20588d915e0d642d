"""Ordinals Wallet's listings of ours, and the session that takes one back."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import responses
from msgspec.structs import replace

from markets.base import AuthFailed, NotFound, RateLimited, Refused, SignInNeeded, Unavailable, Unknown, VenueError
from markets.orders import ListingOrder, ListingToDraft, OwnListing, Pair, SignInAnswer
from markets.ordinalswallet.adapter import SIGN_IN_ID, OrdinalsWallet
from markets.parse import Page
from tests.clock import Clock

pytestmark = pytest.mark.usefixtures("no_network")

BASE = "https://turbo.example"
INSCRIPTION = "ab" * 32 + "i0"
VAULT, PAYOUT = "bc1pvault", "bc1qpayout"
KEY = "cd" * 32
HEX = "70736274ff01000a0200000000000000000000"  # no inputs, no outputs
PSBT = base64.b64encode(bytes.fromhex(HEX)).decode()
ASK = ListingToDraft(2_500_000, INSCRIPTION, VAULT, PAYOUT, KEY, "punks")
ORDER = ListingOrder(ASK, PSBT, PSBT, (), PAYOUT, "02" + "ef" * 32)
PAIR = Pair(PAYOUT, "02" + "ef" * 32, VAULT, KEY)
NOW_MS = 1_790_441_079_359
NONCE = "0123456789abcdef0123456789abcdef"
DAY_S = 86_400
HELD = {
    "id": INSCRIPTION,
    "collection": {"slug": "punks", "creator_address": None},
    "escrow": {"satoshi_price": 2_569_373, "seller_address": PAYOUT, "bought_at": ""},
}
MARKET = {
    "inscription_id": INSCRIPTION,
    "satoshi_price": 16_000,
    "escrow_price": 15_000,
    "market_royalty": 0.0625,
    "seller_address": VAULT,
    "buyer_address": None,
    "secure_purchase_state": "listed",
}


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW_MS)


def _gets(path: str, answer: Any, status: int = 200) -> None:
    responses.get(BASE + path, json=answer, status=status)


def _posts(path: str, answer: Any, status: int = 200) -> None:
    responses.post(BASE + path, json=answer, status=status)


def _sent() -> Any:
    return json.loads(responses.calls[-1].request.body)


def _sign_in(venue: OrdinalsWallet, clock: Clock) -> None:
    _posts("/auth/session", {"token": "ows1.secret", "address": VAULT, "expires_at": clock.now_ms // 1000 + DAY_S})
    texts = venue.sign_in_texts(PAIR)
    venue.sign_in(SignInAnswer(PAIR, texts.reference, {SIGN_IN_ID: "SIG=="}))


def test_own_listings_are_at_the_sellers_price() -> None:
    _gets(f"/wallet/{VAULT}/inscriptions", [HELD, {**HELD, "escrow": None}, {**HELD, "collection": None}])
    page = OrdinalsWallet(BASE, "ordinalswallet").own_listings(VAULT, None)
    assert page.entries == (
        OwnListing(INSCRIPTION, INSCRIPTION, "punks", 2_500_000, VAULT),
        OwnListing(INSCRIPTION, INSCRIPTION, None, 2_500_000, VAULT),
    )
    assert page.following is None


def test_where_a_creator_takes_a_part_the_price_is_asked_for_one_by_one() -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet")
    other = "ab" * 32 + "i1"
    shared = {**HELD, "collection": {"slug": "punks", "creator_address": "bc1qcreator"}}
    _gets(f"/wallet/{VAULT}/inscriptions", [shared, {**shared, "id": other}])
    page = venue.own_listings(VAULT, None)
    assert page.entries == ()
    _gets(f"/market/escrow/{INSCRIPTION}", MARKET)
    page = venue.own_listings(VAULT, page.following)
    assert page.entries == (OwnListing(INSCRIPTION, INSCRIPTION, None, 15_000, VAULT),)
    _gets(f"/market/escrow/{other}", {"error": True, "message": "not found"}, 404)
    page = venue.own_listings(VAULT, page.following)
    assert (page.entries, page.following) == ((), None)


SHARED = {
    "id": INSCRIPTION,
    "collection": {"slug": "punks", "creator_address": "bc1qcreator"},
    "escrow": {"satoshi_price": 16_000},
}


@pytest.mark.parametrize(
    ("now", "is_known"),
    [
        (SHARED, True),
        ({**SHARED, "escrow": {"satoshi_price": 16_001}}, False),
        ({**SHARED, "escrow": {"satoshi_price": None}}, False),
        ({**SHARED, "id": "ab" * 32 + "i1"}, False),
        ({**SHARED, "escrow": {"satoshi_price": 16_000, "protected": True}}, False),  # by which output is not told
        ({**SHARED, "escrow": {"satoshi_price": 16_000, "protected": True}, "outpoint": "cd" * 32 + ":0"}, True),
    ],
)
def test_a_price_that_was_asked_for_is_known_while_the_same_is_shown(now: Any, is_known: bool) -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet")
    _gets(f"/market/escrow/{INSCRIPTION}", MARKET)
    venue.own_listings(VAULT, INSCRIPTION)
    _gets(f"/wallet/{VAULT}/inscriptions", [now])
    page = venue.own_listings(VAULT, None)
    known = OwnListing(INSCRIPTION, INSCRIPTION, "punks", 15_000, VAULT)
    assert page == (Page((known,), None) if is_known else Page((), now["id"]))


def test_a_price_without_the_one_that_is_shown_is_asked_for_again() -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet")
    _gets(f"/market/escrow/{INSCRIPTION}", {**MARKET, "satoshi_price": None})
    assert venue.own_listings(VAULT, INSCRIPTION).entries[0].price == 15_000
    for shown in (None, 16_000):
        _gets(f"/wallet/{VAULT}/inscriptions", [{**SHARED, "escrow": {"satoshi_price": shown}}])
        assert venue.own_listings(VAULT, None) == Page((), INSCRIPTION)
        responses.remove(responses.GET, f"{BASE}/wallet/{VAULT}/inscriptions")


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        ({"error": True, "message": "no listing: not found"}, 0),
        ({**MARKET, "secure_purchase_state": "broadcast"}, 0),
        ({**MARKET, "secure_purchase_state": None}, 1),
    ],
)
def test_a_listing_that_is_asked_for_may_be_gone(answer: Any, count: int) -> None:
    _gets(f"/market/escrow/{INSCRIPTION}", answer)
    assert len(OrdinalsWallet(BASE, "ordinalswallet").own_listings(VAULT, INSCRIPTION).entries) == count


@pytest.mark.parametrize(
    "answer",
    [{**MARKET, "inscription_id": "another"}, {**MARKET, "escrow_price": None}, [], {**MARKET, "escrow_price": 0}],
)
def test_strange_listing_that_is_asked_for_is_unread_and_spoils_no_other(answer: Any) -> None:
    _gets(f"/market/escrow/{INSCRIPTION}", answer)
    page = OrdinalsWallet(BASE, "ordinalswallet").own_listings(VAULT, f"{INSCRIPTION},other")
    assert (page.entries, page.following) == ((), "other")
    assert [each.key for each in page.unread] == [INSCRIPTION]


def test_a_draft_is_asked_for_and_comes_as_base64() -> None:
    _posts("/wallet/escrow-bulk", {"psbt": HEX})
    draft = OrdinalsWallet(BASE, "ordinalswallet").draft_listing(ASK)
    assert (draft.psbt, draft.secure) == (PSBT, ())
    assert _sent() == {
        "inscriptions": [INSCRIPTION],
        "from": VAULT,
        "prices": [2_500_000],
        "public_key": "02" + KEY,
        "receive_address": PAYOUT,
    }
    assert responses.calls[0].request.headers["x-ow-client"] == "bidkeeper"


@pytest.mark.parametrize(
    "psbt", [None, "", PSBT, "70736274ff0", "00" * 40, HEX.upper(), HEX + "00" * 70_000, HEX + "00" * 55_000]
)
def test_a_draft_that_is_no_psbt_in_hex_is_none(psbt: Any) -> None:
    _posts("/wallet/escrow-bulk", {"psbt": psbt})
    with pytest.raises(Unavailable):
        OrdinalsWallet(BASE, "ordinalswallet").draft_listing(ASK)


def test_a_draft_that_is_refused_by_its_body() -> None:
    _posts("/wallet/escrow-bulk", {"error": True, "code": "multi_inscriptions"})
    with pytest.raises(Refused):
        OrdinalsWallet(BASE, "ordinalswallet").draft_listing(ASK)


@pytest.mark.parametrize("answer", [{"success": True}, {"success": True, "escrow_id": "e1"}])
def test_a_signed_listing_is_sent_in_hex(answer: Any) -> None:
    _posts("/market/escrow-bulk", answer)
    OrdinalsWallet(BASE, "ordinalswallet").list_item(ORDER)
    assert _sent() == {"psbt": HEX}


@pytest.mark.parametrize(
    ("status", "body", "leaf"),
    [
        (200, {"success": False}, Unknown),
        (200, {"success": False, "message": "signature does not match"}, Refused),
        (200, {"error": True, "message": "already sold"}, Refused),
        (200, {}, Unknown),
        (200, [], Unknown),
        (200, {"success": "yes"}, Unknown),
        (400, {"error": True, "message": "Invalid Signature"}, Refused),
        (429, {}, RateLimited),
        (500, {"error": "db down"}, Unknown),
        (503, {"error": True, "message": "busy"}, Unknown),
    ],
)
def test_a_listing_whose_fate_the_answer_tells_or_not(status: int, body: Any, leaf: type[VenueError]) -> None:
    _posts("/market/escrow-bulk", body, status)
    with pytest.raises(leaf):
        OrdinalsWallet(BASE, "ordinalswallet").list_item(ORDER)


def test_what_is_signed_to_sign_in_is_what_the_venue_rebuilds() -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet", now_ms=lambda: NOW_MS, nonce=lambda: NONCE)
    (text,) = venue.sign_in_texts(PAIR).texts
    assert (text.id, text.address) == (SIGN_IN_ID, VAULT)
    assert text.message == (
        "Sign in to Ordinals Wallet\n\nThis proves you own this address. It does not move funds or cost a fee.\n\n"
        "Address: bc1pvault\nNonce: 0123456789abcdef0123456789abcdef\nIssued At: 1790441079359"
    )


def test_each_sign_in_has_a_nonce_of_its_own() -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet")
    assert venue.sign_in_texts(PAIR).reference != venue.sign_in_texts(PAIR).reference


def test_a_session_is_opened_and_takes_a_listing_back(clock: Clock) -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet", now_ms=clock, nonce=lambda: NONCE)
    _sign_in(venue, clock)
    assert _sent() == {"address": VAULT, "nonce": NONCE, "issued_at": NOW_MS, "signature": "SIG=="}
    _posts("/market/cancel-escrow", {"success": True})
    assert venue.delist(VAULT, INSCRIPTION, "") is True
    assert _sent() == {"inscription_id": INSCRIPTION, "signature": "ows1.secret"}


def test_without_a_session_nothing_is_sent(clock: Clock) -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet", now_ms=clock)
    with pytest.raises(SignInNeeded):
        venue.delist(VAULT, INSCRIPTION, "")
    _sign_in(venue, clock)
    with pytest.raises(SignInNeeded):
        venue.delist("bc1panother", INSCRIPTION, "")
    clock.now_ms += (DAY_S - 300) * 1000
    with pytest.raises(SignInNeeded):
        venue.delist(VAULT, INSCRIPTION, "")
    assert len(responses.calls) == 1


@pytest.mark.parametrize(
    ("answer", "is_gone"),
    [
        ({"success": True, "transition": "cancelled", "listing": {"escrow_id": "e", "state": "cancelled"}}, True),
        ({"success": True, "transition": "already_cancelled"}, True),
        ({"success": False}, False),
        ({"success": True, "transition": "in_flight"}, False),
    ],
)
def test_what_became_of_a_listing_that_was_taken_back(clock: Clock, answer: Any, is_gone: bool) -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet", now_ms=clock)
    _sign_in(venue, clock)
    _posts("/market/cancel-escrow", answer)
    assert venue.delist(VAULT, INSCRIPTION, "") is is_gone


@pytest.mark.parametrize(
    ("status", "body", "leaf"),
    [
        (404, {"error": True, "message": "not found"}, NotFound),
        (409, {"error": True, "code": "secure_purchase_in_flight", "message": "already processing"}, Refused),
        (503, {"error": True, "code": "listing_cancellation_unavailable", "message": "x"}, Unknown),
        (400, {"error": True, "message": "Invalid Signature"}, Refused),
        (200, {}, Unknown),
        (200, {"success": None}, Unknown),
    ],
)
def test_a_listing_that_is_not_taken_back(clock: Clock, status: int, body: Any, leaf: type[VenueError]) -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet", now_ms=clock)
    _sign_in(venue, clock)
    _posts("/market/cancel-escrow", body, status)
    with pytest.raises(leaf):
        venue.delist(VAULT, INSCRIPTION, "")


def test_a_session_that_is_refused_is_not_used_again(clock: Clock) -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet", now_ms=clock)
    _sign_in(venue, clock)
    _posts("/market/cancel-escrow", {"error": True, "code": "not_the_owner", "message": "Sign in with it."}, 401)
    with pytest.raises(AuthFailed):
        venue.delist(VAULT, INSCRIPTION, "")
    with pytest.raises(SignInNeeded):
        venue.delist(VAULT, INSCRIPTION, "")


@pytest.mark.parametrize(
    ("status", "body", "leaf"),
    [
        (401, {"error": True, "message": "Invalid wallet signature"}, AuthFailed),
        (503, {"error": True, "message": "try later"}, Unavailable),
        (200, {"token": "ows1.secret", "address": "bc1panother", "expires_at": 1_800_000_000}, Unavailable),
        (200, {"token": "", "address": VAULT, "expires_at": 1_800_000_000}, Unavailable),
        (200, {"token": "a\nheader: x", "address": VAULT, "expires_at": 1_800_000_000}, Unavailable),
        (200, {"token": "ows1.secret", "address": VAULT, "expires_at": "soon"}, Unavailable),
    ],
)
def test_a_session_that_is_not_opened(clock: Clock, status: int, body: Any, leaf: type[VenueError]) -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet", now_ms=clock)
    _posts("/auth/session", body, status)
    reference = venue.sign_in_texts(PAIR).reference
    with pytest.raises(leaf):
        venue.sign_in(SignInAnswer(PAIR, reference, {SIGN_IN_ID: "SIG=="}))
    with pytest.raises(SignInNeeded):
        venue.delist(VAULT, INSCRIPTION, "")


def test_a_sign_in_that_was_not_begun_here_is_not_sent() -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet")
    reference = venue.sign_in_texts(PAIR).reference
    with responses.RequestsMock():
        with pytest.raises(AuthFailed):
            venue.sign_in(SignInAnswer(PAIR, "another", {SIGN_IN_ID: "SIG=="}))
        with pytest.raises(AuthFailed):
            venue.sign_in(SignInAnswer(PAIR, reference, {"payment": "SIG=="}))


def test_a_token_is_not_shown(clock: Clock) -> None:
    venue = OrdinalsWallet(BASE, "ordinalswallet", now_ms=clock)
    _sign_in(venue, clock)
    assert "secret" not in repr(vars(venue))


@pytest.mark.parametrize("signed", ["c2lnbmVk", "not base64", PSBT[:8]])
def test_what_is_no_psbt_is_not_sent(signed: str) -> None:
    with responses.RequestsMock(), pytest.raises(Refused):
        OrdinalsWallet(BASE, "ordinalswallet").list_item(replace(ORDER, signed_psbt=signed))
