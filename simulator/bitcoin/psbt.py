"""A reader and a writer of version 0 PSBTs (BIP-174): the transaction, and the fields of each input.

embit's reader is not used: a count in a few hostile bytes makes it fill the memory, and it alters a sequence of 0.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass

from embit.transaction import Transaction, TransactionOutput, compact

MAX_BYTES = 64 * 1024
UNSIGNED_TX = b"\x00"
FINAL_SCRIPTWITNESS = b"\x08"
TAP_KEY_SIG = b"\x13"

Map = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Psbt:
    """The unsigned transaction with the fields of its inputs, by key."""

    tx: Transaction
    inputs: tuple[Map, ...]


def parse(text: str) -> Psbt:
    """Parses a PSBT in base64. Raises ValueError for anything else."""
    try:
        reader = _Reader(b64decode(text, validate=True))
    except binascii.Error:
        raise ValueError("it is not base64") from None
    if len(reader.data) > MAX_BYTES:
        raise ValueError("it is too long")
    if reader.take(5) != b"psbt\xff":
        raise ValueError("it does not begin as a PSBT")
    tx = _transaction(reader.map().get(UNSIGNED_TX, b""))
    inputs = tuple(reader.map() for _ in tx.vin)
    for _ in tx.vout:
        reader.map()
    if reader.at != len(reader.data):
        raise ValueError("something comes after its end")
    return Psbt(tx, inputs)


def _transaction(raw: bytes) -> Transaction:
    try:
        tx = Transaction.parse(raw)
        same = tx.serialize() == raw
    except Exception:
        # embit answers hostile bytes with any error that they happen to cause.
        raise ValueError("its transaction cannot be read") from None
    if not same or tx.is_segwit or not tx.vin:
        raise ValueError("its transaction is not an unsigned one")
    return tx


class _Reader:
    """A reader that takes bytes from the front. Raises ValueError when there are too few."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        taken = self.data[self.at : self.at + length]
        if len(taken) < length:
            raise ValueError("it ends too early")
        self.at += length
        return taken

    def sized(self) -> bytes:
        first = self.take(1)[0]
        width = {0xFD: 2, 0xFE: 4, 0xFF: 8}.get(first, 0)
        return self.take(int.from_bytes(self.take(width), "little") if width else first)

    def map(self) -> Map:
        found: Map = {}
        while key := self.sized():
            if key in found:
                raise ValueError("a field stands twice")
            found[key] = self.sized()
        return found


WITNESS_UTXO, SIGHASH_TYPE = b"\x01", b"\x03"
TAP_LEAF_SCRIPT, TAP_INTERNAL_KEY, TAP_MERKLE_ROOT = b"\x15", b"\x17", b"\x18"


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A PSBT to be signed: `inputs` are the fields of each input of `tx`, which has no signature."""

    tx: Transaction
    inputs: list[Map]

    def encode(self) -> str:
        """Returns the PSBT in base64."""
        written = b"psbt\xff" + _map({b"\x00": self.tx.serialize()})
        written += b"".join(map(_map, self.inputs)) + b"\x00" * len(self.tx.vout)
        return b64encode(written).decode()


def spends(output: TransactionOutput, sighash: int | None = None) -> Map:
    """Returns the fields of an input that spends `output`, to be signed with `sighash`."""
    fields = {WITNESS_UTXO: output.serialize()}
    return fields if sighash is None else fields | {SIGHASH_TYPE: sighash.to_bytes(4, "little")}


def _map(fields: Map) -> bytes:
    rows = (_sized(key) + _sized(value) for key, value in sorted(fields.items()))
    return b"".join(rows) + b"\x00"


def _sized(data: bytes) -> bytes:
    return bytes(compact.to_bytes(len(data))) + data
