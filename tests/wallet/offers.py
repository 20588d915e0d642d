"""Funding PSBTs of offers as a venue would send them, honest and not, with what they are to be checked against."""

from __future__ import annotations

import copy
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from embit.ec import PrivateKey, PublicKey
from embit.hashes import tagged_hash

from simulator.venue_scripts import ENCLAVE, GATE, MARKET, xonly
from tests.shapes import replace
from tests.wallet import listings as ls
from wallet.protocol import PolicyRefused
from wallet.psbt.check_offer import ApprovedOffer, OfferIntent, check_offer
from wallet.psbt.common import OutpointFacts, Owner
from wallet.psbt.decode import decode
from wallet.psbt.sign import sign_offer
from wallet.psbt.transaction import Outpoint
from wallet.terms import CoSigners

Form = Literal["by the vault", "by the payment key"]  # whose key may take the escrow back
FORMS: tuple[Form, ...] = ("by the vault", "by the payment key")
every_form = pytest.mark.parametrize("form", FORMS)

VENUE = "simulator-ordnet"
PRICE = 250_000
COINS = (200_000, 90_000)  # sats
EXPIRES_S = 1_800_003_600
PAYMENT_SCRIPT = ls.script_by("p2wpkh", ls.PAYMENT)
VAULT_SCRIPT = ls.script_by("p2tr", ls.VAULT)
STRANGER_PAYMENT = ls.script_by("p2wpkh", ls.STRANGER)
OWNERS: dict[Form, PrivateKey] = {"by the vault": ls.VAULT, "by the payment key": ls.PAYMENT}


@dataclass
class Leaf:
    """The leaf that a venue would tell, written out without any check; `raw` stands for all of it."""

    buyer: bytes
    price: int = PRICE
    expires_s: int = EXPIRES_S + 20
    receive: bytes = VAULT_SCRIPT
    eligible: bytes = b"\x2d" * 32
    criteria: bytes = b"\x2e" * 32
    secret: bytes = b"\x2f" * 32
    market: bytes = xonly(MARKET)
    gate: bytes = xonly(GATE)
    enclave: bytes = xonly(ENCLAVE)
    version: bytes = b"ordnet-offer/v2"
    raw: bytes | None = None

    def script(self) -> bytes:
        if self.raw is not None:
            return self.raw
        numbers = struct.pack("<Q", self.price % 2**64), struct.pack("<Q", self.expires_s % 2**64)
        data = (self.version, *numbers, self.receive, self.eligible, self.criteria)
        return (
            (b"\x00\x63" + b"".join(map(ls.with_size, data)) + b"\x68")
            + (b"\xa8" + ls.with_size(self.secret) + b"\x88")
            + (ls.with_size(self.buyer) + b"\xac" + ls.with_size(self.market) + b"\xba\x51\x9d")
            + (ls.with_size(self.gate) + b"\xad" + ls.with_size(self.enclave) + b"\xac")
        )

    def root(self) -> bytes:
        return bytes(tagged_hash("TapLeaf", b"\xc0" + ls.with_size(self.script())))


@dataclass
class Offer:
    """A funding PSBT with everything else that decides on it. Parts may be changed; `fund` makes outputs fit."""

    form: Form
    draft: ls.Draft
    leaf: Leaf
    intent: OfferIntent
    facts: dict[Outpoint, OutpointFacts]
    owner: Owner

    @property
    def first(self) -> ls.Spend:
        return self.draft.spends[0]

    @property
    def escrow(self) -> ls.Pay:
        return self.draft.pays[0]

    @property
    def announcement(self) -> ls.Pay:
        return self.draft.pays[1]

    @property
    def change(self) -> ls.Pay:
        return self.draft.pays[-1]

    def fund(self, internal: bytes | None = None) -> None:
        """Pays to the escrow of the leaf, by embit; it is the buyer's, or `internal`'s (x-only)."""
        key = self.leaf.buyer if internal is None else internal
        self.escrow.script = b"\x51\x20" + PublicKey.from_xonly(key).taproot_tweak(self.leaf.root()).xonly()
        self.announcement.script = b"\x6a\x40" + key + self.leaf.root()

    def check(self) -> ApprovedOffer:
        return check_offer(self.draft.encode(), self.leaf.script(), self.intent, self.facts, self.owner)

    def sign(self) -> bytes:
        return sign_offer(self.check(), ls.PAYMENT)

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


def outpoint_of(spend: ls.Spend) -> Outpoint:
    return Outpoint(spend.txid, spend.vout)


def coin(sats: int, script: bytes = PAYMENT_SCRIPT, at: int = 1, *, whole: bool = False) -> ls.Spend:
    """Returns a coin of ours as a PSBT names it; with `whole` also by the transaction that made it."""
    made_by = ls.former(script, sats, at)
    fields = [(b"\x01", ls.output(sats, script))]
    return ls.Spend(ls.txid_of(made_by), at, fields=[(b"\x00", made_by), *fields] if whole else fields)


def known(spend: ls.Spend, sats: int, script: bytes = PAYMENT_SCRIPT) -> OutpointFacts:
    return OutpointFacts(outpoint_of(spend), sats, script, True, True, (), (), ls.TIP, ls.TIP - 1)


def owner() -> Owner:
    public_key = ls.PAYMENT.get_public_key().sec()
    return Owner("p2wpkh", public_key, frozenset({PAYMENT_SCRIPT, VAULT_SCRIPT}), frozenset({PAYMENT_SCRIPT}))


def honest(form: Form = "by the vault", coins: tuple[int, ...] = COINS, price: int = PRICE) -> Offer:
    """Returns an offer that is right in every respect; the coins are told apart by their values."""
    spends = [coin(sats) for sats in coins]
    pays = [ls.Pay(price, b""), ls.Pay(0, b""), ls.Pay(sum(coins) - price, PAYMENT_SCRIPT)]
    leaf = Leaf(xonly(OWNERS[form]), price=price)
    made = Offer(
        form,
        ls.Draft(spends, pays, version=3),
        leaf,
        OfferIntent(
            price,
            EXPIRES_S * 1000,
            frozenset(map(outpoint_of, spends)),
            VAULT_SCRIPT,
            frozenset(map(xonly, OWNERS.values())),
            CoSigners(leaf.market, leaf.gate, leaf.enclave),
        ),
        {outpoint_of(spend): known(spend, sats) for spend, sats in zip(spends, coins, strict=True)},
        owner(),
    )
    made.fund()
    return made


def copied(offer: Offer) -> Offer:
    return replace(offer, draft=copy.deepcopy(offer.draft), leaf=replace(offer.leaf), facts=dict(offer.facts))


def network(signed: bytes) -> bytes:
    """Returns the network transaction that a signed PSBT makes, as a venue would put it together."""
    psbt = decode(signed)
    transaction = psbt.transaction
    parts = [struct.pack("<I", transaction.version), b"\0\x01", ls.size(len(transaction.inputs))]
    for item in transaction.inputs:
        parts += [item.outpoint.txid, struct.pack("<I", item.outpoint.vout), b"\0", struct.pack("<I", item.sequence)]
    parts.append(ls.size(len(transaction.outputs)))
    parts += [ls.output(paid.value, paid.script) for paid in transaction.outputs]
    for fields in psbt.inputs:
        [(public_key, signature)] = _partial_sigs(fields)
        parts.append(b"\x02" + ls.with_size(signature) + ls.with_size(public_key))
    return b"".join(parts) + struct.pack("<I", transaction.locktime)


def _partial_sigs(fields: Any) -> Iterator[tuple[bytes, bytes]]:
    for name, value in fields.items():
        if name[:1] == b"\x02":
            yield name[1:], value
