"""The transaction of a version 2 PSBT, put together from its fields (BIP-370)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wallet.psbt import fields
from wallet.psbt.transaction import Outpoint, Transaction, TxInput, TxOutput, WireError, compact

Map = Mapping[bytes, bytes]

_NO_SEQUENCE = b"\xff\xff\xff\xff"


def transaction_of_v2(top: Map, inputs: Sequence[Map], outputs: Sequence[Map]) -> Transaction:
    """Builds the transaction. Raises WireError when a field is missing or the inputs need different locktimes."""
    version = _needed(top, fields.GLOBAL_TX_VERSION)
    return Transaction(
        int.from_bytes(version, "little"),
        tuple(_input(item) for item in inputs),
        tuple(_output(item) for item in outputs),
        _locktime(top, inputs),
    )


def _input(item: Map) -> TxInput:
    vout = int.from_bytes(_needed(item, fields.IN_OUTPUT_INDEX), "little")
    sequence = item.get(compact(fields.IN_SEQUENCE), _NO_SEQUENCE)
    return TxInput(Outpoint(_needed(item, fields.IN_PREVIOUS_TXID), vout), b"", int.from_bytes(sequence, "little"))


def _output(item: Map) -> TxOutput:
    return TxOutput(int.from_bytes(_needed(item, fields.OUT_AMOUNT), "little"), _needed(item, fields.OUT_SCRIPT))


def _locktime(top: Map, inputs: Sequence[Map]) -> int:
    """Returns the latest locktime that an input needs, in the one unit that all can have; heights before times."""
    heights = [item.get(compact(fields.IN_HEIGHT_LOCKTIME)) for item in inputs]
    times = [item.get(compact(fields.IN_TIME_LOCKTIME)) for item in inputs]
    waiting = [(height, time) for height, time in zip(heights, times, strict=True) if height or time]
    if not waiting:
        return int.from_bytes(top.get(compact(fields.GLOBAL_FALLBACK_LOCKTIME), b""), "little")
    for unit in range(2):
        wanted = [pair[unit] for pair in waiting]
        if None not in wanted:
            return max(int.from_bytes(value or b"", "little") for value in wanted)
    raise WireError("one input waits for a height, another for a time")


def _needed(item: Map, kind: int) -> bytes:
    value = item.get(compact(kind))
    if value is None:
        raise WireError(f"a version 2 PSBT without the field of type {kind}")
    return value
