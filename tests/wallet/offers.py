"""Funding PSBTs of offers as a venue would send them, honest and not, with what they are to be checked against."""

from __future__ import annotations

import copy
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from tests.wallet.listings import (
    PAYMENT,
    STRANGER,
    TIP,
    VAULT,
    Draft,
    Pay,
    Spend,
    former,
    output,
    script_by,
    size,
    txid_of,
    with_size,
)
from wallet.policy import PolicyRefused
from wallet.psbt.check_offer import check_offer
from wallet.psbt.decode import decode
from wallet.psbt.listing import OutpointFacts, Owner
from wallet.psbt.offer import ApprovedOffer, OfferIntent
from wallet.psbt.offer_template import OFFER_TEMPLATES, OfferTemplate
from wallet.psbt.sign import sign_offer
from wallet.psbt.transaction import Outpoint

Form = Literal["play", "with fees"]
FORMS: tuple[Form, ...] = ("play", "with fees")

VENUE = "simulator-ordnet"
PRICE = 250_000
COINS = (200_000, 90_000)  # sats
FEE = 1_250  # of the form with fees: a two hundredth of the price
PAYMENT_SCRIPT = script_by("p2wpkh", PAYMENT)
VAULT_SCRIPT = script_by("p2tr", VAULT)
MERKLE_ROOT = b"\x2d" * 32
VAULT_X = VAULT.get_public_key().xonly()
# By embit, as the venue makes it: the vault's key, tweaked by the venue's leaves.
ESCROW_SCRIPT = b"\x51\x20" + VAULT.get_public_key().taproot_tweak(MERKLE_ROOT).xonly()
ANNOUNCEMENT = b"\x6a\x40" + VAULT_X + MERKLE_ROOT
WSH_ESCROW = b"\x00\x20" + b"\x3c" * 32
STRANGER_PAYMENT = script_by("p2wpkh", STRANGER)

# Nothing that is bounded is bounded twice at the same amount here: 10 sat/vB are 2,200 sats and 0.8 % are 2,000.
WITH_FEES = OfferTemplate(
    VENUE,
    frozenset({"p2tr", "p2wsh"}),
    max_inputs=3,
    buyer_fee_ppm=20_000,
    max_fee_rate=10,
    max_fee_sats=2_100,
    max_fee_ppm=8_000,
)
TEMPLATES: dict[Form, OfferTemplate] = {"play": OFFER_TEMPLATES[VENUE], "with fees": WITH_FEES}


@dataclass
class Offer:
    """A funding PSBT with everything else that decides on it. The parts may be changed; `template` is the venue's."""

    form: Form
    draft: Draft
    intent: OfferIntent
    facts: dict[Outpoint, OutpointFacts]
    template: OfferTemplate | None
    owner: Owner

    @property
    def first(self) -> Spend:
        return self.draft.spends[0]

    @property
    def escrow(self) -> Pay:
        return self.draft.pays[0]

    @property
    def change(self) -> Pay:
        return self.draft.pays[-1]

    def check(self) -> ApprovedOffer:
        return check_offer(self.draft.encode(), self.intent, self.facts, self.template, self.owner)

    def sign(self) -> bytes:
        return sign_offer(self.check(), PAYMENT)

    def tag(self) -> str:
        try:
            self.check()
        except PolicyRefused as refused:
            return refused.tag
        return "signed"

    def of_facts(self, **values: Any) -> None:
        """Changes what is known of the first coin."""
        outpoint = outpoint_of(self.first)
        self.facts[outpoint] = replace(self.facts[outpoint], **values)


def outpoint_of(spend: Spend) -> Outpoint:
    return Outpoint(spend.txid, spend.vout)


def coin(sats: int, script: bytes = PAYMENT_SCRIPT, at: int = 1, *, whole: bool = False) -> Spend:
    """Returns a coin of ours as a PSBT names it; with `whole` also by the transaction that made it."""
    made_by = former(script, sats, at)
    fields = [(b"\x01", output(sats, script))]
    return Spend(txid_of(made_by), at, fields=[(b"\x00", made_by), *fields] if whole else fields)


def known(spend: Spend, sats: int, script: bytes = PAYMENT_SCRIPT) -> OutpointFacts:
    return OutpointFacts(outpoint_of(spend), sats, script, True, True, (), (), TIP, TIP - 1)


def owner() -> Owner:
    public_key = PAYMENT.get_public_key().sec()
    return Owner("p2wpkh", public_key, frozenset({PAYMENT_SCRIPT, VAULT_SCRIPT}), frozenset({PAYMENT_SCRIPT}))


def honest(form: Form = "play", coins: tuple[int, ...] = COINS, price: int = PRICE) -> Offer:
    """Returns an offer that is right in every respect; the coins are told apart by their values."""
    spends = [coin(sats) for sats in coins]
    fee = FEE if form == "with fees" else 0
    pays = [Pay(price, ESCROW_SCRIPT), Pay(sum(coins) - price - fee, PAYMENT_SCRIPT)]
    if form == "play":
        pays.insert(1, Pay(0, ANNOUNCEMENT))
    return Offer(
        form,
        Draft(spends, pays, version=3 if form == "play" else 2),
        OfferIntent(VENUE, price, frozenset(map(outpoint_of, spends)), VAULT.get_public_key().sec()),
        {outpoint_of(spend): known(spend, sats) for spend, sats in zip(spends, coins, strict=True)},
        TEMPLATES[form],
        owner(),
    )


def copied(offer: Offer) -> Offer:
    return replace(offer, draft=copy.deepcopy(offer.draft), facts=dict(offer.facts))


def network(signed: bytes) -> bytes:
    """Returns the network transaction that a signed PSBT makes, as a venue would put it together."""
    psbt = decode(signed)
    transaction = psbt.transaction
    parts = [struct.pack("<I", transaction.version), b"\0\x01", size(len(transaction.inputs))]
    for item in transaction.inputs:
        parts += [item.outpoint.txid, struct.pack("<I", item.outpoint.vout), b"\0", struct.pack("<I", item.sequence)]
    parts.append(size(len(transaction.outputs)))
    parts += [output(paid.value, paid.script) for paid in transaction.outputs]
    for fields in psbt.inputs:
        [(public_key, signature)] = _partial_sigs(fields)
        parts.append(b"\x02" + with_size(signature) + with_size(public_key))
    return b"".join(parts) + struct.pack("<I", transaction.locktime)


def _partial_sigs(fields: Any) -> Iterator[tuple[bytes, bytes]]:
    for name, value in fields.items():
        if name[:1] == b"\x02":
            yield name[1:], value
