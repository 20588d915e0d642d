"""The signature of a taproot input that leaves the other inputs open, from BIP-341: what a listing is signed with.

embit's own digest is wrong for ANYONECANPAY and for SINGLE.
"""

from __future__ import annotations

import hashlib

from embit.ec import ECError, PublicKey, SchnorrSig
from embit.hashes import tagged_hash
from embit.transaction import Transaction, TransactionOutput

ALL_ANYONECANPAY = 0x81
SINGLE_ANYONECANPAY = 0x83


def digest(tx: Transaction, index: int, spent: TransactionOutput, sighash: int) -> bytes:
    """The 32 bytes that input `index` signs, without annex or script path; `spent` is the output that it spends.

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
    message += b"\x00" + own.txid[::-1] + own.vout.to_bytes(4, "little")
    message += spent.serialize() + own.sequence.to_bytes(4, "little")
    if sighash == SINGLE_ANYONECANPAY:
        message += _sha256(tx.vout[index].serialize())
    return bytes(tagged_hash("TapSighash", message))


def is_signed(tx: Transaction, index: int, spent: TransactionOutput, signature: bytes, sighash: int) -> bool:
    """Whether `signature` (64 bytes and the sighash) is that of the key in the P2TR output `spent`, with `sighash`."""
    script = spent.script_pubkey.data
    if len(signature) != 65 or signature[64] != sighash or len(script) != 34 or script[:2] != b"\x51\x20":
        return False
    try:
        key = PublicKey.from_xonly(script[2:])
        return bool(key.schnorr_verify(SchnorrSig(signature[:64]), digest(tx, index, spent, sighash)))
    except (ECError, ValueError):
        return False


def _sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
