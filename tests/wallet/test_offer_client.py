"""Offers and sign-ins asked for over the real socket, with facts that the signer asks for over another."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shapes import replace
from tests.wallet.listings import output
from tests.wallet.offers import PAYMENT_SCRIPT, coin, honest, known, outpoint_of
from tests.worlds.signer import OFFER_GRANT, START_MS, asked_by, facts_of, offer
from tests.worlds.signer_process import House, facts_server, house, ok, wire
from wallet.bip322 import verify_ownership
from wallet.protocol import OfferToSign
from wallet.signer_client import SignerRefused

TEXT = "Sign in to ord.net at noon"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path) as running:
        yield running


def to_sign(**changes: Any) -> OfferToSign:
    fields = offer(**changes)
    return OfferToSign(**fields | {"psbts": tuple(fields["psbts"]), "coins": tuple(fields["coins"])})


def tell(request: dict[str, Any]) -> bytes:
    return ok(wire(facts_of(honest())[request["args"]["outpoint"]]))


def test_every_coin_is_asked_about_once_and_then_the_offer_is_signed(opened: House) -> None:
    opened.now_ms = START_MS
    secret = opened.client.grant(OFFER_GRANT)
    with facts_server(opened.facts_socket, tell) as came:
        signed = opened.client.sign_offer(17, 5, secret, to_sign())
        assert sorted(request["args"]["outpoint"] for request in came) == offer()["coins"]
        assert [base64.b64decode(psbt) for psbt in signed.psbts] == [honest().sign()]
        assert opened.client.sign_offer(17, 5, secret, to_sign()) == signed
        assert len(came) == len(offer()["coins"])
    assert opened.client.was_signed(to_sign().intent)


def test_a_coin_that_nothing_is_told_of_is_a_refusal(opened: House) -> None:
    secret = opened.client.grant(OFFER_GRANT)
    last = offer()["coins"][-1]

    def tell_less(request: dict[str, Any]) -> bytes:
        return b'{"error": {"message": "no"}}' if request["args"]["outpoint"] == last else tell(request)

    with facts_server(opened.facts_socket, tell_less), pytest.raises(SignerRefused) as refused:
        opened.client.sign_offer(17, 5, secret, to_sign())
    assert refused.value.tag == "inputs-confirmed"
    assert not opened.client.was_signed(to_sign().intent)


def test_who_lies_about_one_coin_and_then_about_the_other_gets_no_signature(opened: House) -> None:
    """Each signature would hold for its own amount (BIP-143): together they would burn 110,000 sats as a fee."""
    secret = opened.client.grant(OFFER_GRANT)
    coins = [coin(200_000, at=1), coin(200_000, at=2)]
    made_by = {str(outpoint_of(each)): wire(known(each, 200_000))["transaction"] for each in coins}
    for number, lies in enumerate(((200_000, 90_000), (90_000, 200_000)), start=1):
        drafted = honest()
        drafted.draft.spends = [
            replace(each, fields=[(b"\x01", output(sats, PAYMENT_SCRIPT))])
            for each, sats in zip(coins, lies, strict=True)
        ]
        drafted.intent = replace(drafted.intent, coins=frozenset(map(outpoint_of, coins)))
        told = {str(outpoint_of(each)): wire(known(each, sats)) for each, sats in zip(coins, lies, strict=True)}

        def tell_lies(request: dict[str, Any], told: dict[str, Any] = told) -> bytes:
            outpoint = request["args"]["outpoint"]
            return ok(told[outpoint] | {"transaction": made_by[outpoint]})

        asked = asked_by(drafted, number)
        bid = OfferToSign(**asked | {"psbts": tuple(asked["psbts"]), "coins": tuple(asked["coins"])})
        with facts_server(opened.facts_socket, tell_lies), pytest.raises(SignerRefused) as refused:
            opened.client.sign_offer(17, 5, secret, bid)
        assert refused.value.tag == "amount-proof"
        opened.facts_socket.unlink()


def test_without_a_source_of_facts_nothing_is_signed(opened: House) -> None:
    secret = opened.client.grant(OFFER_GRANT)
    with pytest.raises(SignerRefused) as refused:
        opened.client.sign_offer(17, 5, secret, to_sign())
    assert refused.value.tag == "inputs-confirmed"


def test_nobody_without_a_grant_has_facts_looked_up(opened: House) -> None:
    opened.client.grant(OFFER_GRANT)
    with facts_server(opened.facts_socket, tell) as came, pytest.raises(SignerRefused):
        opened.client.sign_offer(17, 5, "ab", to_sign())
    assert came == []


def test_a_sign_in(opened: House) -> None:
    client = opened.client
    secret = client.grant(replace(OFFER_GRANT, operations=("cancel",)))
    keys = client.addresses(OFFER_GRANT.user)
    for key, address in (("payment", keys.payment), ("vault", keys.vault)):
        signature = client.sign_sign_in(17, 5, secret, TEXT, key)  # type: ignore[arg-type]
        assert verify_ownership(address, TEXT, signature)
