"""Signing in to ord.net: what is signed, who holds a session, when it ends, and that its token stays inside."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import responses

from markets.base import AuthFailed, RateLimited, Refused, SignInNeeded, Unavailable, VenueError
from markets.orders import Pair, SignInAnswer
from markets.ordnet.adapter import OrdNet
from markets.parse import Page
from tests.markets import ordnet_examples as ex

pytestmark = pytest.mark.usefixtures("no_network")

FLOORS = {"success": True, "data": []}


@pytest.fixture
def watch() -> ex.Watch:
    return ex.Watch()


def test_texts_to_sign_are_for_both_addresses() -> None:
    ex.answers("POST", "/auth/challenge", ex.CHALLENGE)
    texts = OrdNet(ex.BASE, "ordnet").sign_in_texts(ex.PAIR)
    assert ex.asked() == {"ordinalsAddress": ex.ORDINALS, "paymentAddress": ex.PAYMENT}
    assert texts.reference == ex.CHALLENGE["authRequestId"]
    assert [(text.id, text.address) for text in texts.texts] == list(
        zip(ex.SIGNATURES, (ex.ORDINALS, ex.PAYMENT), strict=True)
    )
    assert texts.texts[0].message == "Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: 12)"


FIRST, SECOND = ex.CHALLENGE["challenges"]


@pytest.mark.parametrize(
    "challenges",
    [
        [],
        [{**FIRST, "address": "bc1pmallory"}],  # type: ignore[dict-item]
        [{**FIRST, "address": ex.PAYMENT}],  # type: ignore[dict-item]
        [{**FIRST, "role": "admin"}],  # type: ignore[dict-item]
        [{**FIRST, "message": ""}],  # type: ignore[dict-item]
        [{**FIRST, "message": "a\x00b"}],  # type: ignore[dict-item]
        [{**FIRST, "message": "a" * 2001}],  # type: ignore[dict-item]
        [{**FIRST, "challengeId": None}],  # type: ignore[dict-item]
        [FIRST, SECOND, SECOND],
        {"0": FIRST},
    ],
)
def test_strange_challenges_are_not_handed_on(challenges: Any) -> None:
    ex.answers("POST", "/auth/challenge", {**ex.CHALLENGE, "challenges": challenges})
    with pytest.raises(Unavailable, match="understand"):
        OrdNet(ex.BASE, "ordnet").sign_in_texts(ex.PAIR)


def test_signatures_are_sent_in_hex_with_their_addresses() -> None:
    adapter = OrdNet(ex.BASE, "ordnet", clock=ex.Watch())
    ex.answers("POST", "/auth/verify", ex.SESSION)
    adapter.sign_in(ex.ANSWER)
    assert ex.asked() == {
        "authRequestId": ex.CHALLENGE["authRequestId"],
        "verifications": [
            {"challengeId": "22222222-2222-2222-2222-222222222222", "signature": "0141", "address": ex.ORDINALS},
            {"challengeId": "33333333-3333-3333-3333-333333333333", "signature": "0241", "address": ex.PAYMENT},
        ],
    }


@pytest.mark.parametrize(
    "signatures", [{"a:payment": "not base64!"}, {"a:admin": "AUE="}, {"a": "AUE="}, {"a:payment": ""}]
)
def test_what_is_no_signature_is_not_sent(signatures: dict[str, str]) -> None:
    with pytest.raises(Refused, match="signature"):
        OrdNet(ex.BASE, "ordnet").sign_in(SignInAnswer(ex.PAIR, "x", signatures))
    assert not responses.calls


def test_a_session_asks_with_its_token(watch: ex.Watch) -> None:
    adapter = ex.signed_in(watch)
    ex.answers("GET", "/collection-stats/floors", FLOORS)
    adapter.floors(["wizards"], "ordinals")
    assert responses.calls[0].request.headers["Authorization"] == f"Bearer {ex.TOKEN}"


def test_signing_in_asks_without_a_token() -> None:
    adapter = ex.signed_in()
    ex.answers("POST", "/auth/challenge", ex.CHALLENGE)
    adapter.sign_in_texts(ex.PAIR)
    assert "Authorization" not in responses.calls[0].request.headers


@pytest.mark.parametrize(
    "session",
    [
        {**ex.SESSION, "walletBindings": [ex.OTHER_BINDING]},
        {**ex.SESSION, "walletBindings": []},
        {**ex.SESSION, "walletBindings": None},
        {**ex.SESSION, "sessionToken": ""},
        {**ex.SESSION, "sessionToken": "two words"},
        {**ex.SESSION, "sessionToken": "a\r\nX-Other: b"},
        {**ex.SESSION, "sessionToken": 7},
        {**ex.SESSION, "expiresAt": None},
        {**ex.SESSION, "expiresAt": "soon"},
        {**ex.SESSION, "expiresAt": "2026-05-08T18:00:10.000Z"},
    ],
)
def test_a_session_that_is_none_of_ours_is_not_held(session: Any) -> None:
    adapter = OrdNet(ex.BASE, "ordnet", clock=ex.Watch())
    ex.answers("POST", "/auth/verify", session)
    with pytest.raises(Unavailable, match="understand"):
        adapter.sign_in(ex.ANSWER)
    with pytest.raises(SignInNeeded):
        adapter.floors(["wizards"], "ordinals")


@pytest.mark.parametrize(
    "status, leaf",
    [(401, AuthFailed), (403, AuthFailed), (409, Refused), (410, Refused), (429, RateLimited), (503, Unavailable)],
)
def test_how_a_sign_in_fails(status: int, leaf: type[VenueError]) -> None:
    ex.answers("POST", "/auth/verify", {"error": "Trading API wallet eligibility"}, status=status)
    with pytest.raises(leaf) as caught:
        OrdNet(ex.BASE, "ordnet").sign_in(ex.ANSWER)
    assert type(caught.value) is leaf


def test_without_a_session_nothing_is_sent() -> None:
    adapter = OrdNet(ex.BASE, "ordnet")
    calls = [
        lambda: adapter.floors(["wizards"], "ordinals"),
        lambda: adapter.asks("wizards", None),
        lambda: adapter.bids("wizards", "ordinals", None),
        lambda: adapter.traits("wizards"),
        lambda: adapter.sales("wizards", "ordinals", None),
        lambda: adapter.own_bids(ex.PAYMENT, None, ["wizards"]),
        lambda: adapter.own_listings(ex.ORDINALS, None),
        lambda: adapter.item("1i0"),
        lambda: adapter.cancel(ex.PAYMENT, [f"wizards:{ex.OFFER_ID}"], ""),
    ]
    for call in calls:
        with pytest.raises(SignInNeeded):
            call()
    assert not responses.calls


def test_a_session_ends_before_its_token_does(watch: ex.Watch) -> None:
    adapter = ex.signed_in(watch)
    ex.answers("GET", "/collection-stats/floors", FLOORS)
    watch.now_s += 3600 - 31
    adapter.floors(["wizards"], "ordinals")
    watch.now_s += 2
    with pytest.raises(SignInNeeded):
        adapter.floors(["wizards"], "ordinals")


def test_a_wallet_is_served_in_its_own_session_only(watch: ex.Watch) -> None:
    adapter = ex.signed_in(watch)
    with pytest.raises(SignInNeeded):
        adapter.own_bids("bc1qother", None, ["wizards"])  # of the same profile, but it has not signed in
    ex.answers("GET", "/collection/wizards/my/sent-collection-offers", ex.book())
    assert adapter.own_bids(ex.PAYMENT, None, ["wizards"]) == Page((), None)


def test_a_token_that_is_not_taken_any_more_is_forgotten(watch: ex.Watch) -> None:
    adapter = ex.signed_in(watch)
    ex.answers("GET", "/collection-stats/floors", {"error": "Invalid or expired bearer session token"}, status=401)
    for _ in range(2):
        with pytest.raises(SignInNeeded):
            adapter.floors(["wizards"], "ordinals")
    assert len(responses.calls) == 1


def test_a_write_with_a_dead_token_was_not_taken(watch: ex.Watch) -> None:
    adapter = ex.signed_in(watch)
    path = f"/collection/wizards/collection-offers/{ex.OFFER_ID}/cancel"
    ex.answers("POST", path, {"error": "Invalid or expired bearer session token"}, status=401)
    with pytest.raises(SignInNeeded):
        adapter.cancel(ex.PAYMENT, [f"wizards:{ex.OFFER_ID}"], "")
    ex.answers("POST", "/auth/verify", ex.SESSION)
    adapter.sign_in(ex.ANSWER)
    responses.replace("POST", ex.BASE + path, json={"offerId": ex.OFFER_ID, "status": "cancelled"})
    assert adapter.cancel(ex.PAYMENT, [f"wizards:{ex.OFFER_ID}"], "") is True
    assert ex.asked() == {"walletBindingId": ex.BINDING_ID}


def test_a_new_session_takes_the_place_of_the_old_one(watch: ex.Watch) -> None:
    adapter = ex.signed_in(watch)
    ex.answers("POST", "/auth/verify", {**ex.SESSION, "sessionToken": "newer", "expiresAt": "2026-05-08T19:30:00.000Z"})
    adapter.sign_in(ex.ANSWER)
    ex.answers("GET", "/collection-stats/floors", FLOORS)
    adapter.floors(["wizards"], "ordinals")
    assert responses.calls[-1].request.headers["Authorization"] == "Bearer newer"


def test_a_refusal_of_the_old_token_does_not_end_the_new_session(watch: ex.Watch) -> None:
    adapter = ex.signed_in(watch)

    def renewed_meanwhile(request: Any) -> tuple[int, dict[str, str], str]:
        adapter.sign_in(ex.ANSWER)
        return 401, {}, '{"error": "Invalid or expired bearer session token"}'

    ex.answers("POST", "/auth/verify", {**ex.SESSION, "sessionToken": "newer"})
    responses.add_callback("GET", ex.BASE + "/collection-stats/floors", renewed_meanwhile)
    with pytest.raises(SignInNeeded):
        adapter.floors(["wizards"], "ordinals")
    responses.replace("GET", ex.BASE + "/collection-stats/floors", json=FLOORS)
    assert adapter.floors(["wizards"], "ordinals") == {}
    assert responses.calls[-1].request.headers["Authorization"] == "Bearer newer"


def test_what_a_wallet_does_is_done_in_its_own_session(watch: ex.Watch) -> None:
    adapter = ex.signed_in(watch)
    other = Pair("bc1qother", ex.PAIR.payment_pubkey, "bc1pother", ex.PAIR.ordinals_pubkey)
    later = {**ex.SESSION, "sessionToken": "others", "expiresAt": "2026-05-08T19:30:00.000Z"}
    ex.answers("POST", "/auth/verify", later)
    adapter.sign_in(SignInAnswer(other, "x", ex.SIGNATURES))
    own = "/collection/wizards/my/sent-collection-offers"
    offers = "/collection/wizards/collection-offers"
    ex.answers("GET", own, ex.book())
    ex.answers("POST", offers + "/preflight", ex.PREFLIGHT)
    ex.answers("POST", offers + "/submit", {"status": "active", "offers": [ex.MADE]})
    ex.answers("POST", f"{offers}/{ex.OFFER_ID}/cancel", {"offerId": ex.OFFER_ID, "status": "cancelled"})
    responses.calls.reset()
    adapter.own_bids(ex.PAYMENT, None, ["wizards"])
    adapter.place(ex.order(adapter.draft_bid(ex.ask())))
    adapter.cancel(ex.PAYMENT, [f"wizards:{ex.OFFER_ID}"], "")
    sent = [call.request for call in responses.calls]
    assert [request.headers["Authorization"] for request in sent] == [f"Bearer {ex.TOKEN}"] * 4
    assert [ex.asked(number)["walletBindingId"] for number in (1, 2, 3)] == [ex.BINDING_ID] * 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 429, 500, 503, 302])
def test_a_token_is_in_no_error_and_no_log(status: int, watch: ex.Watch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    adapter = ex.signed_in(watch)
    ex.answers("GET", "/listings", {"error": "no"}, status=status)
    with pytest.raises(VenueError) as caught:
        adapter.asks("wizards", None)
    assert ex.TOKEN not in repr(caught.value) + caplog.text + repr(vars(adapter))
    assert ex.TOKEN not in repr(adapter._sessions.any()) if status != 401 else True
