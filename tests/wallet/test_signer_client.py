"""The client's reading of malformed answers: never an answer, and never a `no`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused, PeerUnavailable
from tests.shapes import replace
from tests.worlds.signer import BID, listing
from wallet.protocol import ListingToSign, SignedListing
from wallet.signer_client import SignerClient, SignerError, SignerLocked, SignerRefused, SignerUnavailable

LISTING = ListingToSign(**listing() | {"secure": tuple(listing()["secure"])})


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts an answer, or an error, in the place of the socket; gives back what is asked."""
    asked: list[dict[str, Any]] = []

    def put(answer: Any) -> list[dict[str, Any]]:
        def exchange(path: Path, peer: str, line: bytes, *, timeout: float) -> bytes:
            asked.append(json.loads(line) | {"timeout": timeout})
            if isinstance(answer, Exception):
                raise answer
            return json.dumps({"ok": answer}).encode() + b"\n"

        monkeypatch.setattr("core.call.exchange", exchange)
        return asked

    return put


CLIENT = SignerClient(Path("signer.sock"), timeout_s=2.0)


@pytest.mark.parametrize(
    "answer",
    [{}, {"psbt": 1, "secure": []}, {"psbt": "a"}, {"psbt": "a", "secure": [1]}, {"psbt": "a", "secure": None}],
)
def test_a_listings_answer_that_is_not_as_agreed_is_none(answer: dict[str, Any], answered: Any) -> None:
    answered(answer)
    with pytest.raises(SignerUnavailable, match="different versions"):
        CLIENT.sign_listing(1, 1, "s", LISTING)


@pytest.mark.parametrize("answer", [{}, {"rooms": None}, {"rooms": [{}]}, {"rooms": ["task"]}])
def test_rooms_that_are_not_as_agreed_are_none(answer: dict[str, Any], answered: Any) -> None:
    answered(answer)
    with pytest.raises(SignerUnavailable, match="different versions"):
        CLIENT.rooms(1, 1, "s")


def test_a_listings_answer_waits_for_the_facts_too(answered: Any) -> None:
    asked = answered({"psbt": "a", "secure": ["b"], "transfer": "t", "recovery": "r"})
    assert CLIENT.sign_listing(1, 2, "s", LISTING) == SignedListing("a", ("b",), "t", "r")
    assert asked[0]["timeout"] == 7.0
    assert asked[0]["listing"]["secure"] == list(LISTING.secure)
    answered({"signature": "s"})
    assert CLIENT.sign_challenge(1, 2, "s", "c") == "s"
    assert (asked[1]["timeout"], asked[1]["key"]) == (2.0, "payment")
    assert CLIENT.sign_brake("user", "venue", "c") == "s"
    assert asked[2] == {"op": "sign_brake", "user": "user", "venue": "venue", "challenge": "c", "timeout": 2.0}


@pytest.mark.parametrize("price", ["1", 1.0, True, []])
def test_a_price_that_is_no_whole_number_is_no_answer(price: Any, answered: Any) -> None:
    answered({"price": price})
    with pytest.raises(SignerUnavailable):
        CLIENT.lowest_listing("x")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PeerUnavailable("signer", "away"), SignerUnavailable),
        (PeerRefused("signer", "locked", "no keys"), SignerLocked),
        (PeerRefused("signer", "internal", "failed"), SignerUnavailable),
        (PeerRefused("signer", "unreadable", "what"), SignerUnavailable),
        (PeerRefused("signer", "list-min", "too low"), SignerRefused),
    ],
)
def test_only_a_rules_no_is_a_no(error: Exception, kind: type[SignerError], answered: Any) -> None:
    answered(error)
    for call in (
        lambda: CLIENT.sign_bid(1, 1, "s", BID),
        lambda: CLIENT.sign_listing(1, 1, "s", LISTING),
        lambda: CLIENT.sign_challenge(1, 1, "s", "c", key="vault"),
        lambda: CLIENT.sign_brake("user", "venue", "c"),
    ):
        with pytest.raises(SignerError) as raised:
            call()
        assert type(raised.value) is kind


def test_text_that_is_no_unicode_is_refused_before_it_is_sent(answered: Any) -> None:
    asked = answered({"message": "m", "signature": "s"})
    with pytest.raises(SignerRefused, match="sign_bid cannot be sent"):
        CLIENT.sign_bid(1, 1, "s", replace(BID, slug="\ud800"))
    assert asked == []
