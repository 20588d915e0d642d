"""A writer of version 0 PSBTs (BIP-174): the unsigned transaction, and the fields of each input."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass

from embit.transaction import Transaction, TransactionOutput, compact

from simulator.bitcoin.psbt import Map

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
