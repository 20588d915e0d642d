"""The signature of a listing, from BIP-341: a taproot input's that leaves the other inputs open.

embit's own digest is wrong for ANYONECANPAY and for SINGLE.
"""

from __future__ import annotations

import hashlib

from embit.ec import ECError, PublicKey, SchnorrSig
from embit.hashes import tagged_hash
from embit.transaction import Transaction, TransactionOutput

ALL_ANYONECANPAY = 0x81
SINGLE_ANYONECANPAY = 0x83
# By length and last byte of a signature: embit's digest is right for these two.
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


def is_owner_signed(tx: Transaction, spent: TransactionOutput, signature: bytes) -> bool:
    """Tells whether the key in the P2TR output `spent` signed all of `tx`, which has one input, with DEFAULT or ALL."""
    script = spent.script_pubkey
    if script.script_type() != "p2tr" or len(tx.vin) != 1 or (len(signature), signature[64:]) not in _WHOLE:
        return False
    message = tx.sighash_taproot(0, [script], [spent.value], sighash=_WHOLE[len(signature), signature[64:]])
    try:
        return bool(PublicKey.from_xonly(script.data[2:]).schnorr_verify(SchnorrSig(signature[:64]), message))
    except ECError:
        return False


def _sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
