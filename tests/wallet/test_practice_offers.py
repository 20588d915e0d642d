"""Bids at the practice market's ord.net: its drafts are signed and it takes them; what a thief makes of them is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator import venue_scripts
from simulator.chain import Coin
from simulator.engine import Refusal
from simulator.poison import Poison, spoiled
from simulator.taproot import LeafOutput
from simulator.venue_scripts import OfferTerms, offer_output
from simulator.venues.ordnet.offers import Parent
from tests.shapes import replace
from tests.wallet.listings import PAYMENT, PAYOUT_ADDRESS, STRANGER
from tests.wallet.offers import COINS, EXPIRES_S, OWNERS, PAYMENT_SCRIPT, PRICE, VAULT_SCRIPT, Form, every_form, honest
from tests.worlds.signer import OfferDesk, asked_by, offer_desk, tag_of

PAYMENT_KEY = PAYMENT.get_public_key().sec()
OTHER = Coin("0f" * 32 + ":0", 70_000, PAYMENT_SCRIPT.hex())
TERMS = OfferTerms(PRICE, EXPIRES_S, VAULT_SCRIPT, b"\x01" * 32, b"\x02" * 32)
REFUSED: dict[Poison, str] = {
    "wrong_payout": "outputs-known",
    "low_payout": "fee-abs",
    "other_outpoint": "inputs-reserved",
    "extra_input": "inputs-reserved",
    "sighash_none": "sighash-allowed",
    "extra_output": "outputs-known",
    "two_inputs": "inputs-reserved",
}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[OfferDesk]:
    with offer_desk(tmp_path) as opened:
        yield opened


def parent(form: Form = "by the vault", terms: OfferTerms = TERMS) -> Parent:
    """Returns the practice market's funding parent of an offer on the coins that the desk knows."""
    spends = zip(honest().draft.spends, COINS, strict=True)
    coins = (Coin(f"{spend.txid[::-1].hex()}:{spend.vout}", sats, PAYMENT_SCRIPT.hex()) for spend, sats in spends)
    return Parent(
        offer_output(venue_scripts.xonly(OWNERS[form]), terms, b"\x03" * 32), PRICE, tuple(coins), PAYOUT_ADDRESS
    )


def asked(made: Parent, psbt: str | None = None) -> dict[str, Any]:
    drafted = made.to_sign(PAYMENT_KEY).encode() if psbt is None else psbt
    return asked_by(honest(), psbts=[drafted], leaf=made.offer.leaf.hex())


@every_form
def test_a_draft_of_the_practice_market_is_signed_and_taken(form: Form, desk: OfferDesk) -> None:
    made = parent(form)
    [signed] = desk.sign(asked(made))
    assert made.signed(signed, PAYMENT_KEY).txid().hex() == made.txid


@pytest.mark.parametrize("poison", sorted(REFUSED))
def test_a_poisoned_draft_is_refused(poison: Poison, desk: OfferDesk) -> None:
    made = parent()
    evil = spoiled(made.to_sign(PAYMENT_KEY), poison, made.comes_back, OTHER).encode()
    assert tag_of(desk.sign, asked(made, evil)) == REFUSED[poison]


@pytest.mark.parametrize("name", ["MARKET", "GATE", "ENCLAVE"])
def test_a_leaf_with_a_key_of_a_thief_is_refused(name: str, desk: OfferDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venue_scripts, name, STRANGER)
    assert tag_of(desk.sign, asked(parent())) == "leaf-keys"


@pytest.mark.parametrize(
    "terms",
    [replace(TERMS, price=PRICE - 5_000), replace(TERMS, receive=PAYMENT_SCRIPT), replace(TERMS, expires_s=2**40)],
)
def test_a_leaf_of_other_terms_is_refused(terms: OfferTerms, desk: OfferDesk) -> None:
    assert tag_of(desk.sign, asked(parent(terms=terms))) == "leaf-terms"


def test_an_escrow_of_a_leaf_that_was_not_told_is_refused(desk: OfferDesk) -> None:
    told, paid = parent(), parent(terms=replace(TERMS, criteria_hash=b"\x04" * 32))
    assert tag_of(desk.sign, asked(told, paid.to_sign(PAYMENT_KEY).encode())) == "outputs-known"


def test_an_escrow_that_the_thief_alone_takes_is_refused(desk: OfferDesk) -> None:
    made = parent()
    stolen = replace(made, offer=LeafOutput(venue_scripts.xonly(STRANGER), made.offer.leaf))
    assert tag_of(desk.sign, asked(stolen)) == "outputs-known"


def test_the_market_takes_no_other_funding_than_it_drafted(desk: OfferDesk) -> None:
    [signed] = desk.sign(asked(parent()))
    with pytest.raises(Refusal, match="not the one of the preflight"):
        parent(terms=replace(TERMS, expires_s=EXPIRES_S + 1)).signed(signed, PAYMENT_KEY)
