"""Taproot's outputs and signatures (BIP-341, BIP-342): an output that a leaf spends, alone in its tree or beside one.

embit's own digest is wrong for ANYONECANPAY and for SINGLE, which sign a listing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from embit.ec import ECError, PublicKey, SchnorrSig
from embit.hashes import tagged_hash
from embit.script import Script
from embit.transaction import Transaction, TransactionOutput, compact
from embit.util import secp256k1

LEAF_VERSION = 0xC0


@dataclass(frozen=True, slots=True)
class LeafOutput:
    """An output with the leaf that it is spent by: `internal` is the x-only key that may spend it alone.

    `beside` is the hash of the tree's other leaf, empty when there is none.
    """

    internal: bytes
    leaf: bytes
    beside: bytes = b""

    @property
    def leaf_hash(self) -> bytes:
        """The hash of the leaf."""
        return hash_of(self.leaf)

    @property
    def root(self) -> bytes:
        """The merkle root."""
        if not self.beside:
            return self.leaf_hash
        return bytes(tagged_hash("TapBranch", b"".join(sorted((self.leaf_hash, self.beside)))))

    def _tweaked(self) -> bytes:
        """Returns the output key with its parity in front (02 or 03)."""
        tweak = tagged_hash("TapTweak", self.internal + self.root)
        point = secp256k1.ec_pubkey_parse(b"\x02" + self.internal)
        return bytes(secp256k1.ec_pubkey_serialize(secp256k1.ec_pubkey_add(point, tweak)))

    @property
    def script(self) -> Script:
        return Script(b"\x51\x20" + self._tweaked()[1:])

    @property
    def leaf_script(self) -> Script:
        return Script(self.leaf)

    @property
    def control_block(self) -> bytes:
        return bytes([LEAF_VERSION | (self._tweaked()[0] & 1)]) + self.internal + self.beside


def hash_of(leaf: bytes) -> bytes:
    """Returns the hash of a leaf."""
    return bytes(tagged_hash("TapLeaf", bytes([LEAF_VERSION]) + compact.to_bytes(len(leaf)) + leaf))


ALL_ANYONECANPAY = 0x81
SINGLE_ANYONECANPAY = 0x83
# The sighash by a signature's length and last byte: DEFAULT is not written out, ALL is.
_WHOLE = {(64, b""): 0x00, (65, b"\x01"): 0x01}


def digest(tx: Transaction, index: int, spent: TransactionOutput, sighash: int, leaf_hash: bytes = b"") -> bytes:
    """Returns the 32 bytes that input `index` signs, without annex; `spent` is the output that it spends.

    By key path, or with the 32 bytes of `leaf_hash` for the script of that leaf.

    Raises ValueError for any other sighash, and when SINGLE has no output to cover.
    """
    if sighash not in (ALL_ANYONECANPAY, SINGLE_ANYONECANPAY):
        raise ValueError("only ALL|ANYONECANPAY and SINGLE|ANYONECANPAY are known here")
    if sighash == SINGLE_ANYONECANPAY and index >= len(tx.vout):
        raise ValueError("SINGLE without an output at the input's index")
    own = tx.vin[index]
    message = b"\x00" + bytes([sighash]) + tx.version.to_bytes(4, "little") + tx.locktime.to_bytes(4, "little")
    if sighash == ALL_ANYONECANPAY:
        message += _sha256(*(output.serialize() for output in tx.vout))
    message += (b"\x02" if leaf_hash else b"\x00") + own.txid[::-1] + own.vout.to_bytes(4, "little")
    message += spent.serialize() + own.sequence.to_bytes(4, "little")
    if sighash == SINGLE_ANYONECANPAY:
        message += _sha256(tx.vout[index].serialize())
    if leaf_hash:
        message += leaf_hash + b"\x00" + b"\xff\xff\xff\xff"
    return bytes(tagged_hash("TapSighash", message))


def is_signed(tx: Transaction, index: int, spent: TransactionOutput, signature: bytes, sighash: int) -> bool:
    """Tells whether `signature` (64 bytes and the sighash) is by the key in the P2TR output `spent`, with `sighash`."""
    script = spent.script_pubkey.data
    if len(signature) != 65 or signature[64] != sighash or len(script) != 34 or script[:2] != b"\x51\x20":
        return False
    try:
        key = PublicKey.from_xonly(script[2:])
        return bool(key.schnorr_verify(SchnorrSig(signature[:64]), digest(tx, index, spent, sighash)))
    except (ECError, ValueError):
        return False


def whole_digest(
    tx: Transaction, index: int, spent: Sequence[TransactionOutput], sighash: int = 0, leaf: bytes = b""
) -> bytes:
    """Returns the 32 bytes that a signature of all of `tx` is over, with DEFAULT or ALL: by key path, or for `leaf`."""
    scripts, values = [output.script_pubkey for output in spent], [output.value for output in spent]
    path = {"ext_flag": 1, "script": Script(leaf), "leaf_version": LEAF_VERSION} if leaf else {}
    return bytes(tx.sighash_taproot(index, scripts, values, sighash=sighash, **path))


def is_whole_signed(
    tx: Transaction,
    index: int,
    spent: Sequence[TransactionOutput],
    signature: bytes,
    key: bytes | None = None,
    leaf: bytes = b"",
) -> bool:
    """Tells whether all of `tx` is signed at input `index`, with DEFAULT or ALL.

    The signer is the x-only `key` for the script `leaf`, or else the key in the P2TR output that is spent.
    """
    sighash = _WHOLE.get((len(signature), signature[64:]))
    script = spent[index].script_pubkey
    if sighash is None or script.script_type() != "p2tr":
        return False
    try:
        signer = PublicKey.from_xonly(key or script.data[2:])
        return bool(signer.schnorr_verify(SchnorrSig(signature[:64]), whole_digest(tx, index, spent, sighash, leaf)))
    except (ECError, ValueError):
        return False


def is_owner_signed(tx: Transaction, spent: TransactionOutput, signature: bytes) -> bool:
    """Tells whether the key in the P2TR output `spent` signed all of `tx`, which has one input."""
    return len(tx.vin) == 1 and is_whole_signed(tx, 0, [spent], signature)


def _sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
