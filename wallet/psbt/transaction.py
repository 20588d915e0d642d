"""Bitcoin transactions as bytes (BIP-144, BIP-174), and the digests that signatures of their inputs cover.

Transactions are read strictly and written back the same: bytes that could be read in more than one way are an error.
Compact sizes are minimal, nothing is left over, and a length is checked against the remaining bytes before any are
taken.

Digests: BIP-143 (segwit v0), BIP-341 (P2TR) and BIP-342 (its leaves). Own code, because embit 0.8.0 hashes the wrong
bytes for taproot with ANYONECANPAY and with SINGLE.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from wallet.address import hash160

_WITNESS_MARK = b"\x00\x01"


class WireError(ValueError):
    """Malformed or non-canonical bytes; the message says why."""


class Outpoint(NamedTuple):
    """An output, named by the transaction that made it. `txid` is in wire order, the reverse of explorers'."""

    txid: bytes
    vout: int

    @classmethod
    def parse(cls, text: str) -> Outpoint:
        """Reads `txid:vout` as explorers and indexers write it, lower case. Raises WireError."""
        txid, _, vout = text.partition(":")
        if len(txid) != 64 or not set(txid) <= set("0123456789abcdef"):
            raise WireError("an outpoint's txid must be 64 lower-case hex digits")
        if not vout.isascii() or not vout.isdecimal() or str(int(vout[:11])) != vout or int(vout) > 0xFFFFFFFF:
            raise WireError("an outpoint's output must be a whole number below 2^32")
        return cls(bytes.fromhex(txid)[::-1], int(vout))

    def __str__(self) -> str:
        return f"{self.txid[::-1].hex()}:{self.vout}"


class TxInput(NamedTuple):
    """An input. `script_sig` is empty until it is signed."""

    outpoint: Outpoint
    script_sig: bytes
    sequence: int


class TxOutput(NamedTuple):
    """An output. `value` in sats is any 64-bit number, also one above the supply of bitcoin."""

    value: int
    script: bytes

    def encode(self) -> bytes:
        return self.value.to_bytes(8, "little") + sized(self.script)


class Transaction(Struct, frozen=True):
    """A transaction without its witnesses, which neither its txid nor any digest covers."""

    version: int
    inputs: tuple[TxInput, ...]
    outputs: tuple[TxOutput, ...]
    locktime: int

    def encode(self) -> bytes:
        """Returns the bytes that are hashed to the txid."""
        parts = [self.version.to_bytes(4, "little"), compact(len(self.inputs))]
        for item in self.inputs:
            parts += (encode_outpoint(item.outpoint), sized(item.script_sig), item.sequence.to_bytes(4, "little"))
        parts.append(compact(len(self.outputs)))
        parts += [output.encode() for output in self.outputs]
        parts.append(self.locktime.to_bytes(4, "little"))
        return b"".join(parts)

    def txid(self) -> bytes:
        """Returns the txid in the order of the wire."""
        return hashlib.sha256(hashlib.sha256(self.encode()).digest()).digest()


class Reader:
    """A reader that takes bytes from the front. Every method raises WireError when they end too early."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def take(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._raw):
            raise WireError("the bytes end too early")
        taken = self._raw[self._at : end]
        self._at = end
        return taken

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def compact(self) -> int:
        """Takes a compact size, which must have its shortest encoding."""
        first = self.number(1)
        if first < 0xFD:
            return first
        length = 2 << (first - 0xFD)
        value = self.number(length)
        if value < (0xFD, 1 << 16, 1 << 32)[first - 0xFD]:
            raise WireError("a compact size is longer than it needs to be")
        return value

    def sized(self) -> bytes:
        """Takes bytes with their compact size before them."""
        return self.take(self.compact())

    def rest(self) -> bytes:
        return self.take(len(self._raw) - self._at)

    def at_end(self) -> bool:
        return self._at == len(self._raw)

    def end(self) -> None:
        """Raises WireError unless everything was taken."""
        if not self.at_end():
            raise WireError("there are bytes left over")


def compact(value: int) -> bytes:
    """Encodes a compact size."""
    if value < 0xFD:
        return bytes([value])
    for mark, length in ((0xFD, 2), (0xFE, 4)):
        if value < 1 << 8 * length:
            return bytes([mark]) + value.to_bytes(length, "little")
    return b"\xff" + value.to_bytes(8, "little")


def sized(data: bytes) -> bytes:
    """Returns `data` with its compact size before it."""
    return compact(len(data)) + data


def encode_outpoint(outpoint: Outpoint) -> bytes:
    return outpoint.txid + outpoint.vout.to_bytes(4, "little")


def decode_output(raw: bytes) -> TxOutput:
    """Reads an output. Raises WireError."""
    reader = Reader(raw)
    output = _output(reader)
    reader.end()
    return output


def decode_unsigned(raw: bytes) -> Transaction:
    """Reads a transaction written without witnesses, as in a PSBT; it may have no inputs. Raises WireError."""
    reader = Reader(raw)
    version = reader.number(4)
    transaction = Transaction(version, _inputs(reader), _outputs(reader), reader.number(4))
    reader.end()
    return transaction


def decode_network(raw: bytes) -> Transaction:
    """Reads a transaction as the network relays it; its witnesses, if any, are dropped. Raises WireError."""
    return decode_witnessed(raw)[0]


def decode_witnessed(raw: bytes) -> tuple[Transaction, tuple[list[bytes], ...]]:
    """Reads a transaction as `decode_network`, and the witness of each input. Raises WireError."""
    if raw[4:6] != _WITNESS_MARK:
        transaction = decode_unsigned(raw)
        if not transaction.inputs:
            raise WireError("a transaction without inputs")
        return transaction, tuple([] for _ in transaction.inputs)
    reader = Reader(raw)
    version = reader.number(4)
    reader.take(len(_WITNESS_MARK))
    inputs, outputs = _inputs(reader), _outputs(reader)
    stacks = tuple(decode_stack(reader) for _ in inputs)
    if not any(stacks):
        raise WireError("a transaction is written with witnesses and has none")
    transaction = Transaction(version, inputs, outputs, reader.number(4))
    reader.end()
    return transaction, stacks


def decode_stack(reader: Reader) -> list[bytes]:
    """Reads the items of a witness."""
    return [reader.sized() for _ in range(reader.compact())]


def _inputs(reader: Reader) -> tuple[TxInput, ...]:
    return tuple(
        TxInput(Outpoint(reader.take(32), reader.number(4)), reader.sized(), reader.number(4))
        for _ in range(reader.compact())
    )


def _outputs(reader: Reader) -> tuple[TxOutput, ...]:
    return tuple(_output(reader) for _ in range(reader.compact()))


def _output(reader: Reader) -> TxOutput:
    return TxOutput(reader.number(8), reader.sized())


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
    only_ours, outputs = _coverage(transaction, index, sighash)
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
    are the outputs that the inputs spend, in their order.

    With ANYONECANPAY only our input's output is used; the others may be None. Raises ValueError as `segwit_digest`, and
    when an output to be covered is missing.
    """
    only_ours, outputs = _coverage(transaction, index, sighash)
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


def _coverage(transaction: Transaction, index: int, sighash: int) -> tuple[bool, int]:
    """Returns whether only our input is covered, and which outputs are: ALL, NONE or SINGLE."""
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
