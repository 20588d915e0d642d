"""The outputs that a listing's item passes through on its way to a buyer, rebuilt from our own vault key.

The venue signs such a sale, too, so that no one can outbid a buyer who is already on the network. Two forms are known:

- ord.net: `tr(ours, multi_a(2, ours, venue))` (its document "Sale PSBT Construction"). Our key alone takes the item
  back, immediately, by key path.
- Ordinals Wallet, "passthrough v4": `tr(NUMS, {multi_a(2, ours, venue), <144> CSV DROP <ours> CHECKSIG})`. It has
  no key path; our key alone takes the item back 144 blocks after it arrived.

Nothing of what a venue says goes into them but its key, which is pinned (wallet/terms.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from wallet.psbt.script import TAPSCRIPT, branch_hash, leaf_hash, output_key
from wallet.terms import LOCK_BLOCKS, EscrowTerms

# The point of BIP-341 without a known private key.
NUMS = bytes.fromhex("50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0")
RECOVERY_BLOCKS = LOCK_BLOCKS["ordinalswallet"]

_CHECKSIG, _CHECKSIGADD, _CSV, _DROP, _TWO, _NUMEQUAL = (bytes([op]) for op in (0xAC, 0xBA, 0xB2, 0x75, 0x52, 0x9C))


class Leaf(Struct, frozen=True):
    """A script of an escrow, with the control block that a spend by it shows."""

    script: bytes
    control_block: bytes

    @property
    def hash(self) -> bytes:
        """The hash of the leaf, which a signature for it covers."""
        return leaf_hash(self.script)


class Escrow(Struct, frozen=True):
    """An output of our key and a venue's. `recovery` None: our key takes the item back by key path."""

    script: bytes
    internal_key: bytes
    merkle_root: bytes
    sale: Leaf
    recovery: Leaf | None


def escrow_at(script: bytes, public_key: bytes, terms: Iterable[EscrowTerms]) -> Escrow | None:
    """Returns the escrow of our `public_key` whose output has this script; None when none of these terms gives it."""
    found = (escrow_of(public_key, each) for each in terms)
    return next((escrow for escrow in found if escrow.script == script), None)


def escrow_of(public_key: bytes, terms: EscrowTerms) -> Escrow:
    """Returns the escrow of our `public_key` (33 bytes, the untweaked vault key) at the venue of these terms."""
    ours = public_key[1:]
    sale = _push(ours) + _CHECKSIG + _push(terms.cosigner) + _CHECKSIGADD + _TWO + _NUMEQUAL
    if terms.form == "ordnet":
        return _ordnet(ours, sale)
    return _ordinalswallet(ours, sale)


def _ordnet(ours: bytes, sale: bytes) -> Escrow:
    root = leaf_hash(sale)
    key = output_key(ours, root)
    return Escrow(_p2tr(key), ours, root, Leaf(sale, _block(key, ours)), None)


def _ordinalswallet(ours: bytes, sale: bytes) -> Escrow:
    recovery = _push(RECOVERY_BLOCKS.to_bytes(2, "little")) + _CSV + _DROP + _push(ours) + _CHECKSIG
    root = branch_hash(leaf_hash(sale), leaf_hash(recovery))
    key = output_key(NUMS, root)
    return Escrow(
        _p2tr(key),
        NUMS,
        root,
        Leaf(sale, _block(key, NUMS, leaf_hash(recovery))),
        Leaf(recovery, _block(key, NUMS, leaf_hash(sale))),
    )


def _block(key: bytes, internal: bytes, beside: bytes = b"") -> bytes:
    return bytes([TAPSCRIPT | key[0] & 1]) + internal + beside


def _p2tr(key: bytes) -> bytes:
    return b"\x51\x20" + key[1:]


def _push(data: bytes) -> bytes:
    return bytes([len(data)]) + data
