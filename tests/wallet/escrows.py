"""Listings in escrow as a venue would send them, honest and not, with what decides on them.

The escrows are written out here once more, with embit's arithmetic in Python instead of libsecp256k1.
"""

from __future__ import annotations

import copy
import hashlib
import struct
from dataclasses import dataclass, field
from typing import Literal

from embit.ec import PrivateKey
from embit.util import key as curve

from tests.shapes import replace
from tests.wallet import listings as ls
from wallet.psbt.check_escrow import ApprovedEscrow, EscrowDrafts, check_escrow
from wallet.psbt.common import ListingIntent, OutpointFacts, Owner
from wallet.psbt.sign import sign_escrow
from wallet.psbt.transaction import Outpoint
from wallet.terms import EscrowForm, EscrowTerms

FORMS: tuple[EscrowForm, ...] = ("ordnet", "ordinalswallet")
POSTAGE, ANCHOR = 10_000, 1_000
VAULT_SCRIPT = ls.script_by("p2tr", ls.VAULT)
OURS, THEIRS = ls.VAULT.get_public_key().xonly(), ls.VENUE.get_public_key().xonly()
NUMS = bytes.fromhex("50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0")
TERMS: dict[EscrowForm, EscrowTerms] = {form: EscrowTerms(form, THEIRS, 330) for form in FORMS}


def two_of_two(first: bytes, second: bytes) -> bytes:
    return b"\x20" + first + b"\xac\x20" + second + b"\xba\x52\x9c"


def after_blocks(blocks: bytes, key: bytes) -> bytes:
    return ls.with_size(blocks) + b"\xb2\x75\x20" + key + b"\xac"


def tap_leaf(script: bytes) -> bytes:
    return bytes(curve.TaggedHash("TapLeaf", b"\xc0" + ls.with_size(script)))


@dataclass(frozen=True)
class Tree:
    """An output of one leaf or two, with a control block for each."""

    internal: bytes
    leaves: tuple[bytes, ...]

    @property
    def root(self) -> bytes:
        hashes = sorted(map(tap_leaf, self.leaves))
        return hashes[0] if len(hashes) == 1 else bytes(curve.TaggedHash("TapBranch", b"".join(hashes)))

    @property
    def _key(self) -> tuple[bytes, bool]:
        found: tuple[bytes, bool] = curve.tweak_add_pubkey(
            self.internal, curve.TaggedHash("TapTweak", self.internal + self.root)
        )
        return found

    @property
    def script(self) -> bytes:
        return b"\x51\x20" + self._key[0]

    def block(self, at: int) -> bytes:
        beside = b"".join(tap_leaf(leaf) for leaf in self.leaves if leaf != self.leaves[at])
        return bytes([0xC0 | self._key[1]]) + self.internal + beside


def tree_of(form: EscrowForm, ours: bytes = OURS, theirs: bytes = THEIRS) -> Tree:
    """As the venues publish them."""
    if form == "ordnet":
        return Tree(ours, (two_of_two(ours, theirs),))
    return Tree(NUMS, (two_of_two(ours, theirs), after_blocks(b"\x90\x00", ours)))


@dataclass
class Case:
    """A listing in escrow with everything that decides on it. The parts may be changed."""

    form: EscrowForm
    transfer: ls.Draft
    sale: ls.Draft
    recovery: ls.Draft | None
    intent: ListingIntent
    facts: OutpointFacts | None
    owner: Owner
    terms: EscrowTerms = field(default_factory=lambda: TERMS["ordnet"])
    key: PrivateKey = ls.VAULT
    is_linked: bool = True  # sale and recovery name the transfer's txid, whatever became of it

    @property
    def tree(self) -> Tree:
        return tree_of(self.form)

    def drafts(self) -> EscrowDrafts:
        if self.is_linked:
            txid = hashlib.sha256(hashlib.sha256(self.transfer.unsigned()).digest()).digest()
            for each in (self.sale, self.recovery):
                if each is not None and each.spends:
                    each.spends[0].txid = txid
        recovery = None if self.recovery is None else self.recovery.encode()
        return EscrowDrafts(self.transfer.encode(), self.sale.encode(), recovery)

    def check(self) -> ApprovedEscrow:
        return check_escrow(self.drafts(), self.intent, self.facts, self.owner, self.terms)

    def sign(self) -> tuple[bytes, ...]:
        return sign_escrow(self.check(), self.key)

    def copy(self) -> Case:
        return copy.deepcopy(self)

    def hold(self, sats: int) -> None:
        """Moves so many sats into the escrow, and says so everywhere."""
        self.transfer.pays[0].value = sats
        for each in (self.sale, self.recovery):
            if each is not None:
                each.spends[0].put(b"\x01", ls.output(sats, self.tree.script))
        if self.recovery is not None:
            self.recovery.pays[0].value = sats


def honest(form: EscrowForm) -> Case:
    """Returns a listing that is right in every respect: ord.net's with an anchor, Ordinals Wallet's without."""
    tree = tree_of(form)
    made_by = ls.former(VAULT_SCRIPT, POSTAGE)
    item = ls.Spend(ls.txid_of(made_by), 1)
    item.fields = [(b"\x01", ls.output(POSTAGE, VAULT_SCRIPT)), (b"\x03", bytes(4)), (b"\x17", OURS)]
    transfer = ls.Draft([item], [ls.Pay(POSTAGE, tree.script)])
    if form == "ordnet":
        transfer.spends.append(ls.Spend(b"\xa0" * 32, 7, fields=[(b"\x01", ls.output(ANCHOR, ls.VENUE_SCRIPT))]))
        transfer.pays.append(ls.Pay(ANCHOR - 25, ls.VENUE_SCRIPT))
    held = (b"\x01", ls.output(POSTAGE, tree.script))
    about = [(b"\x17", tree.internal), (b"\x18", tree.root)]
    sold = ls.Spend(bytes(32), 0, sequence=0xFFFFFFFF)
    sold.fields = [held, (b"\x03", struct.pack("<I", 0x83)), (b"\x15" + tree.block(0), tree.leaves[0] + b"\xc0")]
    sold.fields += about
    recovery = None
    if form == "ordnet":
        back = ls.Spend(bytes(32), 0, fields=[held, (b"\x03", struct.pack("<I", 1)), *about])
        recovery = ls.Draft([back], [ls.Pay(POSTAGE, VAULT_SCRIPT)], version=3)
    outpoint = Outpoint(item.txid, item.vout)
    scripts = frozenset({VAULT_SCRIPT, ls.PAYOUT_SCRIPT})
    facts = OutpointFacts(
        outpoint, POSTAGE, VAULT_SCRIPT, True, True, (ls.INSCRIPTION,), (), ls.TIP, ls.TIP - 1, item_offset=0
    )
    return Case(
        form,
        transfer,
        ls.Draft([sold], [ls.Pay(ls.PRICE, ls.PAYOUT_SCRIPT)]),
        recovery,
        ListingIntent(ls.INSCRIPTION, outpoint, ls.PRICE, 200_000, ls.PAYOUT_ADDRESS),
        facts,
        Owner("p2tr", ls.VAULT.get_public_key().sec(), scripts, scripts),
        TERMS[form],
    )


def of_facts(case: Case, **values: object) -> None:
    assert case.facts is not None
    case.facts = replace(case.facts, **values)  # type: ignore[arg-type]


Which = Literal["transfer", "sale", "recovery"]
