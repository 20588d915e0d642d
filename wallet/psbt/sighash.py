"""The digests that signatures of inputs cover: BIP-143 (segwit v0), BIP-341 (P2TR) and BIP-342 (its leaves).

Own code, because embit 0.8.0 hashes the wrong bytes for taproot with ANYONECANPAY and with SINGLE.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from wallet.address import hash160
from wallet.psbt.transaction import Transaction, TxOutput, encode_outpoint, sized

DEFAULT = 0x00
ALL = 0x01
NONE = 0x02
SINGLE = 0x03
ANYONECANPAY = 0x80

LISTING = SINGLE | ANYONECANPAY
SECURE_LISTING = ALL | ANYONECANPAY

_KNOWN = frozenset({DEFAULT, ALL, NONE, SINGLE, ALL | ANYONECANPAY, NONE | ANYONECANPAY, SINGLE | ANYONECANPAY})
_KEY_VERSION, _NO_CODESEPARATOR = b"\x00", b"\xff" * 4
_TAG = hashlib.sha256(b"TapSighash").digest()


def segwit_digest(transaction: Transaction, index: int, public_key: bytes, value: int, sighash: int) -> bytes:
    """Returns the digest that a P2WPKH input (bare or nested) signs by `public_key` (33 bytes) over `value` sats.

    Raises ValueError for a sighash without a meaning, and for SINGLE without an output at the same index.
    """
    return script_digest(transaction, index, b"\x76\xa9\x14" + hash160(public_key) + b"\x88\xac", value, sighash)


def script_digest(transaction: Transaction, index: int, script_code: bytes, value: int, sighash: int) -> bytes:
    """Returns the digest of any segwit v0 input, as `segwit_digest`; for P2WSH `script_code` is the witness script."""
    if sighash == DEFAULT:
        raise ValueError("only taproot has a default sighash")
    only_ours, outputs = _reading(transaction, index, sighash)
    own = transaction.inputs[index]
    prevouts = sequences = bytes(32)
    if not only_ours:
        prevouts = _twice(_outpoints(transaction))
        if outputs == ALL:
            sequences = _twice(_sequences(transaction))
    if outputs == ALL:
        paid = _twice(_all_outputs(transaction))
    elif outputs == SINGLE:
        paid = _twice(transaction.outputs[index].encode())
    else:
        paid = bytes(32)
    return _twice(
        _four(transaction.version)
        + prevouts
        + sequences
        + encode_outpoint(own.outpoint)
        + sized(script_code)
        + value.to_bytes(8, "little")
        + _four(own.sequence)
        + paid
        + _four(transaction.locktime)
        + _four(sighash)
    )


def taproot_digest(
    transaction: Transaction, index: int, spent: Sequence[TxOutput | None], sighash: int, leaf: bytes = b""
) -> bytes:
    """Returns the digest that a P2TR input signs without an annex: by key path, or for the leaf of this hash. `spent`
    are the inputs' outputs, in their order.

    With ANYONECANPAY only our own is used, the others may be None. Raises ValueError as `segwit_digest`, and when an
    output to be covered is missing.
    """
    only_ours, outputs = _reading(transaction, index, sighash)
    own, owned = transaction.inputs[index], spent[index]
    if len(spent) != len(transaction.inputs) or owned is None:
        raise ValueError("it is not known what the inputs spend")
    message = bytes([0, sighash]) + _four(transaction.version) + _four(transaction.locktime)
    if not only_ours:
        known = [output for output in spent if output is not None]
        if len(known) != len(spent):
            raise ValueError("it is not known what the inputs spend")
        message += _once(_outpoints(transaction))
        message += _once(b"".join(output.value.to_bytes(8, "little") for output in known))
        message += _once(b"".join(sized(output.script) for output in known))
        message += _once(_sequences(transaction))
    if outputs == ALL:
        message += _once(_all_outputs(transaction))
    # No annex; by key path, or by a tapscript that ran no OP_CODESEPARATOR.
    message += b"\x02" if leaf else b"\x00"
    if only_ours:
        message += encode_outpoint(own.outpoint) + owned.encode() + _four(own.sequence)
    else:
        message += _four(index)
    if outputs == SINGLE:
        message += _once(transaction.outputs[index].encode())
    if leaf:
        message += leaf + _KEY_VERSION + _NO_CODESEPARATOR
    return _once(_TAG + _TAG + message)


def _reading(transaction: Transaction, index: int, sighash: int) -> tuple[bool, int]:
    """Tells whether our input alone is covered, and which outputs are: ALL, NONE or SINGLE."""
    if sighash not in _KNOWN:
        raise ValueError(f"sighash {sighash:#x} has no meaning")
    outputs = sighash & 3 or ALL
    if outputs == SINGLE and index >= len(transaction.outputs):
        raise ValueError("SINGLE without an output at the same index")
    return bool(sighash & ANYONECANPAY), outputs


def _outpoints(transaction: Transaction) -> bytes:
    return _joined(encode_outpoint(item.outpoint) for item in transaction.inputs)


def _sequences(transaction: Transaction) -> bytes:
    return _joined(_four(item.sequence) for item in transaction.inputs)


def _all_outputs(transaction: Transaction) -> bytes:
    return _joined(output.encode() for output in transaction.outputs)


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join(parts)


def _four(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _once(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _twice(data: bytes) -> bytes:
    return _once(_once(data))
