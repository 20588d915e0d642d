"""Listing PSBTs as a venue would send them, honest and not, with what they are to be checked against.

Written out with `struct` alone and without any check, so that whatever a liar may send can be written.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import struct
from dataclasses import dataclass, field
from typing import Literal

from embit import script
from embit.ec import PrivateKey

from wallet.psbt.check_listing import check_listing
from wallet.psbt.common import ApprovedListing, ListingIntent, OutpointFacts, Owner
from wallet.psbt.script import OwnKind
from wallet.psbt.sign import sign_listing
from wallet.psbt.transaction import LISTING, SECURE_LISTING, Outpoint

Form = Literal["listing", "secure", "paired at 2", "secure with fee", "price alone", "fee deducted", "OKX"]
Pairs = list[tuple[bytes, bytes]]

KINDS: tuple[OwnKind, ...] = ("p2tr", "p2wpkh", "p2sh-p2wpkh")
FORMS: tuple[Form, ...] = ("listing", "secure", "paired at 2", "secure with fee", "price alone", "fee deducted", "OKX")

PRICE = 250_000
POSTAGE = 10_000
TIP = 900_000
INSCRIPTION = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799i0"


def key(name: str) -> PrivateKey:
    return PrivateKey(hashlib.sha256(name.encode()).digest())


VAULT, PAYMENT, ORDINALS, STRANGER, VENUE = (
    key(name) for name in ("the vault", "the payment key", "the ordinals wallet", "a stranger", "the venue")
)


@functools.cache
def script_by(kind: OwnKind, private_key: PrivateKey) -> bytes:
    """By embit, not by the code under test."""
    public_key = private_key.get_public_key()
    if kind == "p2tr":
        made = script.p2tr(public_key)
    else:
        made = script.p2wpkh(public_key)
        if kind == "p2sh-p2wpkh":
            made = script.p2sh(made)
    return bytes(made.data)


PAYOUT_SCRIPT = script_by("p2wpkh", PAYMENT)
STRANGER_SCRIPT = script_by("p2tr", STRANGER)
VENUE_SCRIPT = script_by("p2wpkh", VENUE)
PLACEHOLDER_SCRIPT = script_by("p2tr", VENUE)
PAYOUT_ADDRESS = str(script.Script(PAYOUT_SCRIPT).address())


@dataclass(frozen=True)
class Shape:
    """An honest listing of one form: `others` are the outputs beside the payout, which is at `index`."""

    sighash: int
    payout: int
    index: int = 0
    others: tuple[tuple[int, bytes], ...] = ()
    placeholders: tuple[tuple[bytes, int, int, bytes], ...] = ()  # txid, vout, value, script
    fee_ppm: int = 0


_OF_VENUE = tuple((bytes([0xA0 + n]) * 32, n, 600, PLACEHOLDER_SCRIPT) for n in range(2))
# What is published of it: msigner's form returns the postage and may deduct a fee, OKX's has two inputs and outputs of
# nothing before ours.
SHAPES: dict[Form, Shape] = {
    "listing": Shape(LISTING, PRICE + POSTAGE),
    "secure": Shape(SECURE_LISTING, PRICE + POSTAGE),
    "paired at 2": Shape(
        LISTING, PRICE + POSTAGE, index=2, others=((2_500, PLACEHOLDER_SCRIPT),) * 2, placeholders=_OF_VENUE
    ),
    "secure with fee": Shape(
        SECURE_LISTING, 245_000, others=((5_000, VENUE_SCRIPT),), placeholders=_OF_VENUE[:1], fee_ppm=20_000
    ),
    "price alone": Shape(LISTING, PRICE),
    "fee deducted": Shape(LISTING, 245_000 + POSTAGE, fee_ppm=20_000),
    "OKX": Shape(
        LISTING,
        PRICE,
        index=2,
        others=((0, PLACEHOLDER_SCRIPT),) * 2,
        placeholders=((bytes(32), 0, 0, b""), (bytes(32), 1, 0, b"")),
    ),
}


def size(value: int) -> bytes:
    if value < 0xFD:
        return struct.pack("<B", value)
    if value <= 0xFFFF:
        return struct.pack("<BH", 0xFD, value)
    if value <= 0xFFFFFFFF:
        return struct.pack("<BI", 0xFE, value)
    return struct.pack("<BQ", 0xFF, value)


def with_size(data: bytes) -> bytes:
    return size(len(data)) + data


def output(value: int, paid: bytes) -> bytes:
    return struct.pack("<Q", value % 2**64) + with_size(paid)


def former(paid: bytes, value: int = POSTAGE, at: int = 1, *, witness: bool = True) -> bytes:
    """Makes a transaction whose output `at` pays this."""
    body = b"\x01" + b"\x77" * 32 + struct.pack("<I", 3) + b"\x00" + b"\xff" * 4
    body += size(at + 1) + b"".join(output(1_000 + n, b"\x51\x20" + bytes([n]) * 32) for n in range(at))
    body += output(value, paid)
    if witness:
        return b"\x02\0\0\0\x00\x01" + body + b"\x01" + with_size(b"\x30" * 64) + b"\0\0\0\0"
    return b"\x02\0\0\0" + body + b"\0\0\0\0"


def txid_of(raw: bytes) -> bytes:
    """Of a transaction written by `former`, which has its witness in its last bytes."""
    if raw[4] == 0:
        raw = raw[:4] + raw[6 : -4 - 66] + raw[-4:]
    return hashlib.sha256(hashlib.sha256(raw).digest()).digest()


@dataclass
class Spend:
    txid: bytes
    vout: int
    script_sig: bytes = b""
    sequence: int = 0xFFFFFFFD
    fields: Pairs = field(default_factory=list)

    def put(self, kind: bytes, value: bytes) -> None:
        self.drop(kind)
        self.fields.append((kind, value))

    def drop(self, kind: bytes) -> None:
        self.fields = [pair for pair in self.fields if pair[0] != kind]

    def get(self, kind: bytes) -> bytes:
        return dict(self.fields)[kind]


@dataclass
class Pay:
    value: int
    script: bytes
    fields: Pairs = field(default_factory=list)


@dataclass
class Draft:
    """A PSBT in parts. `transaction` and `raw` replace what the parts would give."""

    spends: list[Spend]
    pays: list[Pay]
    version: int = 2
    locktime: int = 0
    fields: Pairs = field(default_factory=list)
    magic: bytes = b"psbt\xff"
    tail: bytes = b""
    transaction: bytes | None = None
    raw: bytes | None = None

    def unsigned(self) -> bytes:
        parts = [struct.pack("<I", self.version), size(len(self.spends))]
        for spend in self.spends:
            parts += [spend.txid, struct.pack("<I", spend.vout), with_size(spend.script_sig)]
            parts.append(struct.pack("<I", spend.sequence))
        parts.append(size(len(self.pays)))
        parts += [output(pay.value, pay.script) for pay in self.pays]
        return b"".join(parts) + struct.pack("<I", self.locktime)

    def encode(self) -> bytes:
        if self.raw is not None:
            return self.raw
        top = [(b"\x00", self.unsigned() if self.transaction is None else self.transaction), *self.fields]
        maps = [top, *(spend.fields for spend in self.spends), *(pay.fields for pay in self.pays)]
        body = b"".join(b"".join(with_size(k) + with_size(v) for k, v in pairs) + b"\0" for pairs in maps)
        return self.magic + body + self.tail


@dataclass
class Case:
    """A listing PSBT with everything else that decides on it. The parts may be changed."""

    kind: OwnKind
    form: Form
    draft: Draft
    intent: ListingIntent
    facts: OutpointFacts | None
    owner: Owner
    key: PrivateKey = VAULT

    @property
    def own(self) -> Spend:
        return self.draft.spends[SHAPES[self.form].index]

    @property
    def payout(self) -> Pay:
        return self.draft.pays[SHAPES[self.form].index]

    @property
    def sighash(self) -> int:
        return SHAPES[self.form].sighash

    def check(self) -> ApprovedListing:
        return check_listing(self.draft.encode(), self.intent, self.facts, self.sighash, self.owner)

    def sign(self) -> bytes:
        return sign_listing(self.check(), self.key)

    def copy(self) -> Case:
        changeable = copy.deepcopy(self.draft)
        return Case(self.kind, self.form, changeable, self.intent, self.facts, self.owner, self.key)


def honest(kind: OwnKind = "p2tr", form: Form = "listing") -> Case:
    """Returns a listing that is right in every respect."""
    shape = SHAPES[form]
    listed = script_by(kind, VAULT)
    made_by = former(listed)
    own = Spend(txid_of(made_by), 1)
    if kind == "p2tr":
        own.fields = [
            (b"\x01", output(POSTAGE, listed)),
            (b"\x03", struct.pack("<I", shape.sighash)),
            (b"\x17", VAULT.get_public_key().xonly()),
        ]
    else:
        own.fields = [
            (b"\x00", made_by),
            (b"\x01", output(POSTAGE, listed)),
            (b"\x03", struct.pack("<I", shape.sighash)),
        ]
    if kind == "p2sh-p2wpkh":
        own.fields.append((b"\x04", script_by("p2wpkh", VAULT)))
    spends = [
        Spend(txid, vout, fields=[(b"\x01", output(value, paid))]) for txid, vout, value, paid in shape.placeholders
    ]
    spends.insert(shape.index, own)
    pays = [Pay(value, paid) for value, paid in shape.others]
    pays.insert(shape.index, Pay(shape.payout, PAYOUT_SCRIPT))
    outpoint = Outpoint(own.txid, own.vout)
    scripts = frozenset({listed, PAYOUT_SCRIPT})
    return Case(
        kind,
        form,
        Draft(spends, pays),
        ListingIntent(INSCRIPTION, outpoint, PRICE, 200_000, PAYOUT_ADDRESS, shape.fee_ppm),
        OutpointFacts(outpoint, POSTAGE, listed, True, True, (INSCRIPTION,), (), TIP, TIP - 1),
        Owner(kind, VAULT.get_public_key().sec(), scripts, scripts | {script_by("p2tr", ORDINALS)}),
    )


VAULT_SCRIPT = script_by("p2tr", VAULT)
ITEM_POSTAGE = 546
_SCRIPTS = frozenset({VAULT_SCRIPT, PAYOUT_SCRIPT})
OWNER = Owner("p2tr", VAULT.get_public_key().sec(), _SCRIPTS, _SCRIPTS)


@dataclass(frozen=True)
class Item:
    number: int

    @property
    def outpoint(self) -> Outpoint:
        return Outpoint(hashlib.sha256(b"item %d" % self.number).digest(), self.number % 3)

    @property
    def inscription_id(self) -> str:
        return f"{self.number:064x}i0"

    @property
    def facts(self) -> OutpointFacts:
        return OutpointFacts(
            self.outpoint, ITEM_POSTAGE, VAULT_SCRIPT, True, True, (self.inscription_id,), (), TIP, TIP, False
        )

    def intent(self, price: int) -> ListingIntent:
        return ListingIntent(self.inscription_id, self.outpoint, price, 1, PAYOUT_ADDRESS)

    def draft(self, sighash: int, pays: list[Pay], *, at: int = 0, version: int = 2) -> Draft:
        """Makes a draft with this item's input at index `at`, and strangers' before it."""
        spends = [Spend(bytes([0x90 + n]) * 32, n) for n in range(at)]
        fields = [(b"\x01", output(ITEM_POSTAGE, VAULT_SCRIPT)), (b"\x03", struct.pack("<I", sighash))]
        spends.append(Spend(self.outpoint.txid, self.outpoint.vout, fields=fields))
        return Draft(spends, pays, version)
