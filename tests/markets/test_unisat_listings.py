"""Listings at UniSat: put on, priced anew, taken back; each a draft, a signature and a confirmation."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import responses
from msgspec.structs import replace

from markets import base
from markets.orders import ListingOrder, ListingToDraft
from markets.unisat.adapter import UnisatMarket

pytestmark = pytest.mark.usefixtures("no_network")

BASE = "https://open-api.example"
INSCRIPTION = "ab" * 32 + "i0"
VAULT, PAYOUT = "bc1pvault", "bc1qpayout"
KEY = "cd" * 32
HEX = "70736274ff01000a0200000000000000000000"
PSBT = base64.b64encode(bytes.fromhex(HEX)).decode()
OTHER_HEX = "70736274ff01000a0200000000000000000001"
OTHER = base64.b64encode(bytes.fromhex(OTHER_HEX)).decode()
ASK = ListingToDraft(60_000, INSCRIPTION, VAULT, PAYOUT, KEY, "puppets")
LISTING = {
    "auctionId": "live1",
    "inscriptionId": INSCRIPTION,
    "marketType": "fixedPrice",
    "address": VAULT,
    "price": 50_000,
    "collectionId": "puppets",
}


@pytest.fixture
def venue() -> UnisatMarket:
    return UnisatMarket(BASE, "key", "unisat")


def _answers(step: str, data: Any, code: int = 0, msg: str = "ok", status: int = 200) -> None:
    body = {"code": code, "msg": msg, "data": data}
    responses.post(f"{BASE}/v3/market/collection/auction/{step}", json=body, status=status)


def _sent() -> tuple[str, Any]:
    request = responses.calls[-1].request
    return str(request.url).rpartition("/")[2], json.loads(request.body or "")


def _order(ask: ListingToDraft = ASK, unsigned: str = PSBT) -> ListingOrder:
    return ListingOrder(ask, "c2lnbmVk", unsigned, (), PAYOUT, "02" + "ef" * 32)


def _has_listed(venue: UnisatMarket) -> None:
    _answers("list", {"list": [LISTING], "total": 1})
    venue.own_listings(VAULT, None)


@pytest.mark.parametrize("psbt", [HEX, PSBT])
@pytest.mark.parametrize("more", [{"signIndexes": [0]}, {"signIndexes": [1]}, {}])
def test_an_inscription_is_put_on(venue: UnisatMarket, psbt: str, more: Any) -> None:
    _answers("create_put_on", {"auctionId": "a1", "psbt": psbt, **more})
    draft = venue.draft_listing(ASK)
    assert (draft.psbt, draft.secure) == (PSBT, ())
    assert _sent()[1] == {
        "nftType": "collection",
        "inscriptionId": INSCRIPTION,
        "initPrice": "60000",
        "unitPrice": "60000",
        "pubkey": "02" + KEY,
        "marketType": "fixedPrice",
        "btcAddress": PAYOUT,
    }
    _answers("confirm_put_on", {})
    venue.list_item(_order())
    assert _sent() == ("confirm_put_on", {"auctionId": "a1", "psbt": "c2lnbmVk", "fromBase64": True})


def test_what_was_put_on_is_priced_anew_and_not_put_on_again(venue: UnisatMarket) -> None:
    _answers("create_put_on", {"auctionId": "a1", "psbt": HEX, "signIndexes": [0]})
    _answers("confirm_put_on", None)
    venue.draft_listing(ASK)
    venue.list_item(_order())
    _answers("create_modify_price", {"psbt": OTHER_HEX, "signIndexes": [0]})
    _answers("confirm_modify_price", {})
    ask = replace(ASK, price=70_000)
    assert venue.draft_listing(ask).psbt == OTHER
    assert _sent() == ("create_modify_price", {"auctionId": "a1", "initPrice": "70000", "unitPrice": "70000"})
    venue.list_item(_order(ask, OTHER))
    assert _sent() == ("confirm_modify_price", {"auctionId": "a1", "psbt": "c2lnbmVk", "fromBase64": True})


def test_an_order_is_known_from_the_own_listings(venue: UnisatMarket) -> None:
    _has_listed(venue)
    _answers("create_modify_price", {"psbt": HEX, "signIndexes": [0]})
    venue.draft_listing(ASK)
    assert _sent()[1]["auctionId"] == "live1"


def test_an_order_that_is_gone_is_put_on_anew_the_next_time(venue: UnisatMarket) -> None:
    _has_listed(venue)
    _answers("create_modify_price", None, -100, "Order not exist")
    with pytest.raises(base.NotFound):
        venue.draft_listing(ASK)
    _answers("create_put_on", {"auctionId": "a2", "psbt": HEX, "signIndexes": [0]})
    venue.draft_listing(ASK)
    assert _sent()[0] == "create_put_on"


@pytest.mark.parametrize(
    "data",
    [
        {"auctionId": "a1", "psbt": HEX, "signIndexes": [-1]},
        {"auctionId": "a1", "psbt": HEX, "signIndexes": [0, 1]},
        {"auctionId": "a1", "psbt": HEX, "signIndexes": []},
        {"auctionId": "a1", "psbt": HEX, "signIndexes": "0"},
        {"auctionId": "a1", "psbt": "", "signIndexes": [0]},
        {"auctionId": "a1", "psbt": "00" * 40, "signIndexes": [0]},
        {"auctionId": "a1", "psbt": HEX + "00" * 70_000, "signIndexes": [0]},
        {"auctionId": None, "psbt": HEX, "signIndexes": [0]},
        {"psbt": HEX},
        [],
        None,
    ],
)
def test_a_draft_that_is_not_understood_is_none(venue: UnisatMarket, data: Any) -> None:
    _answers("create_put_on", data)
    with pytest.raises(base.Unavailable):
        venue.draft_listing(ASK)


@pytest.mark.parametrize(
    ("code", "msg", "leaf"),
    [
        (-132, "The lowest listing amount of satoshis is 1000", base.BelowMinimum),
        (-126, "Invalid NFT: multi inscriptions", base.Refused),
        (-160, "Inscription is already listed on the market", base.Refused),
        (-109, "Inscription not found, please try again later", base.NotFound),
        (-153, "The service is busy, please wait", base.Unavailable),
        (-1, "API key is invalid", base.AuthFailed),
    ],
)
def test_a_draft_that_is_refused(venue: UnisatMarket, code: int, msg: str, leaf: type[base.VenueError]) -> None:
    _answers("create_put_on", None, code, msg)
    with pytest.raises(leaf) as caught:
        venue.draft_listing(ASK)
    assert type(caught.value) is leaf


@pytest.mark.parametrize(
    ("code", "status", "leaf"),
    [
        (-112, 200, base.Refused),
        (-106, 200, base.Unknown),
        (-154, 200, base.Unknown),
        (-1, 200, base.Unknown),
        (7, 200, base.Unknown),
        (0, 500, base.Unknown),
        (0, 429, base.RateLimited),
    ],
)
def test_a_listing_whose_fate_the_answer_tells_or_not(
    venue: UnisatMarket, code: int, status: int, leaf: type[base.VenueError]
) -> None:
    _answers("create_put_on", {"auctionId": "a1", "psbt": HEX, "signIndexes": [0]})
    venue.draft_listing(ASK)
    _answers("confirm_put_on", {}, code, "said", status)
    with pytest.raises(leaf):
        venue.list_item(_order())


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"code": "0"}', '{"code": true}'])
def test_an_answer_without_a_code_leaves_the_fate_open(venue: UnisatMarket, body: str) -> None:
    _answers("create_put_on", {"auctionId": "a1", "psbt": HEX, "signIndexes": [0]})
    venue.draft_listing(ASK)
    responses.post(f"{BASE}/v3/market/collection/auction/confirm_put_on", body=body)
    with pytest.raises(base.Unknown):
        venue.list_item(_order())


def test_what_was_not_drafted_here_is_not_sent(venue: UnisatMarket) -> None:
    with responses.RequestsMock(), pytest.raises(base.Refused):
        venue.list_item(_order())


def test_a_draft_that_was_not_sent_may_be_sent_yet(venue: UnisatMarket) -> None:
    _answers("create_put_on", {"auctionId": "a1", "psbt": HEX, "signIndexes": [0]})
    _answers("confirm_put_on", {}, status=429)
    venue.draft_listing(ASK)
    with pytest.raises(base.RateLimited):
        venue.list_item(_order())
    responses.remove("POST", f"{BASE}/v3/market/collection/auction/confirm_put_on")
    _answers("confirm_put_on", {})
    venue.list_item(_order())
    assert _sent()[1]["auctionId"] == "a1"


OVER_THE_RATE = {"code": -2006, "msg": "exceeds rate limit", "data": None}


@pytest.mark.parametrize("status", [403, 200])
def test_draft_refused_for_the_rate_may_be_sent_yet(venue: UnisatMarket, status: int) -> None:
    _answers("create_put_on", {"auctionId": "a1", "psbt": HEX, "signIndexes": [0]})
    path = f"{BASE}/v3/market/collection/auction/confirm_put_on"
    responses.post(path, json=OVER_THE_RATE, status=status)
    venue.draft_listing(ASK)
    with pytest.raises(base.RateLimited):
        venue.list_item(_order())
    responses.remove("POST", path)
    _answers("confirm_put_on", {})
    venue.list_item(_order())
    assert _sent()[1]["auctionId"] == "a1"


@pytest.mark.parametrize(
    ("answer", "status"), [(OVER_THE_RATE, 403), (OVER_THE_RATE, 200), ({"code": -1, "msg": "bad api key"}, 200)]
)
def test_order_is_known_after_a_refusal_that_is_not_about_it(venue: UnisatMarket, answer: Any, status: int) -> None:
    """Forgotten, the inscription would be put on a second time instead of priced anew."""
    _has_listed(venue)
    path = f"{BASE}/v3/market/collection/auction/create_modify_price"
    responses.post(path, json=answer, status=status)
    with pytest.raises(base.VenueError):
        venue.draft_listing(ASK)
    responses.remove("POST", path)
    _answers("create_modify_price", {"psbt": HEX, "signIndexes": [0]})
    venue.draft_listing(ASK)
    assert _sent()[0] == "create_modify_price"


def test_a_draft_is_sent_once(venue: UnisatMarket) -> None:
    _answers("create_put_on", {"auctionId": "a1", "psbt": HEX, "signIndexes": [0]})
    _answers("confirm_put_on", {})
    venue.draft_listing(ASK)
    venue.list_item(_order())
    with pytest.raises(base.Refused):
        venue.list_item(_order())


def test_a_listing_is_taken_back_by_a_signature_alone(venue: UnisatMarket) -> None:
    _has_listed(venue)
    _answers("create_put_off", {"psbt": HEX, "txSize": 0, "nftSignIndexes": [0], "btcSignIndexes": []})
    assert venue.draft_delist(VAULT, INSCRIPTION).psbt == PSBT
    assert _sent()[1] == {"auctionId": "live1", "nftAddress": VAULT, "offChain": True}
    _answers("confirm_put_off", {"txid": ""})
    assert venue.delist(VAULT, INSCRIPTION, OTHER) is True
    body = {"auctionId": "live1", "psbt": OTHER, "fromBase64": True, "offChain": True}
    assert _sent() == ("confirm_put_off", body)
    with pytest.raises(base.NotFound):
        venue.draft_delist(VAULT, INSCRIPTION)


@pytest.mark.parametrize(
    "changed", [{"btcSignIndexes": [1]}, {"nftSignIndexes": [1]}, {"nftSignIndexes": []}, {"psbt": None}]
)
def test_a_transaction_is_no_way_to_take_it_back(venue: UnisatMarket, changed: Any) -> None:
    _has_listed(venue)
    _answers("create_put_off", {"psbt": HEX, "nftSignIndexes": [0], "btcSignIndexes": [], **changed})
    with pytest.raises(base.Unavailable):
        venue.draft_delist(VAULT, INSCRIPTION)


def test_a_message_takes_nothing_back(venue: UnisatMarket) -> None:
    _has_listed(venue)
    for signature in ("", "c2lnbmVk"):
        with pytest.raises(base.NotSupported):
            venue.delist(VAULT, INSCRIPTION, signature)
    assert len(responses.calls) == 1


@pytest.mark.parametrize(
    ("code", "leaf"),
    [(-100, base.NotFound), (-101, base.Refused), (-154, base.Unknown), (-112, base.Refused), (-1, base.Unknown)],
)
def test_a_listing_that_is_not_taken_back(venue: UnisatMarket, code: int, leaf: type[base.VenueError]) -> None:
    _has_listed(venue)
    _answers("confirm_put_off", None, code, "said")
    with pytest.raises(leaf):
        venue.delist(VAULT, INSCRIPTION, OTHER)


def test_of_an_unknown_order_nothing_is_sent(venue: UnisatMarket) -> None:
    with responses.RequestsMock():
        with pytest.raises(base.NotFound):
            venue.delist(VAULT, INSCRIPTION, OTHER)
        with pytest.raises(base.NotFound):
            venue.draft_delist(VAULT, INSCRIPTION)
