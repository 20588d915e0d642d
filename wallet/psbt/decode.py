"""PSBTs (BIP-174, and BIP-370's version 2) as bytes: read strictly, written back byte for byte.

Strict: duplicates, leftovers, a second spelling of a field and anything that its BIP forbids are errors. Unknown and
proprietary fields are kept, so that an encoded PSBT equals the decoded one; `without_unknown` drops them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from wallet.psbt import fields
from wallet.psbt.fields import Rule
from wallet.psbt.transaction import (
    Outpoint,
    Reader,
    Transaction,
    TxInput,
    TxOutput,
    WireError,
    compact,
    decode_unsigned,
    sized,
)

MAGIC = b"psbt\xff"

# Values by whole key (type and further bytes), in the PSBT's order.
Map = Mapping[bytes, bytes]


class Psbt(Struct, frozen=True):
    """A PSBT. `transaction` is unsigned: its script_sigs are empty. Each input and output has a map of fields."""

    version: int
    transaction: Transaction
    fields: Map
    inputs: tuple[Map, ...]
    outputs: tuple[Map, ...]


def decode(raw: bytes) -> Psbt:
    """Reads a PSBT. Raises WireError for bytes that are not a valid PSBT."""
    reader = Reader(raw)
    if reader.take(len(MAGIC)) != MAGIC:
        raise WireError("it does not begin as a PSBT")
    top = _map(reader, "global", fields.GLOBAL)
    version = int.from_bytes(top.get(_key(fields.GLOBAL_VERSION), b""), "little")
    if version == 0:
        transaction = _transaction_of_v0(top)
        counts = len(transaction.inputs), len(transaction.outputs)
    elif version == 2:
        _only(top, "global", fields.ONLY_V0_GLOBAL)
        counts = _count(top, fields.GLOBAL_INPUT_COUNT), _count(top, fields.GLOBAL_OUTPUT_COUNT)
    else:
        raise WireError(f"PSBT version {version} is not known")
    # A false count fails at the first missing map, because no memory is reserved beforehand.
    inputs = tuple(_map(reader, "input", fields.INPUT) for _ in range(counts[0]))
    outputs = tuple(_map(reader, "output", fields.OUTPUT) for _ in range(counts[1]))
    reader.end()
    if version == 0:
        for item in inputs:
            _only(item, "input", fields.ONLY_V2_INPUT)
        for item in outputs:
            _only(item, "output", fields.ONLY_V2_OUTPUT)
    else:
        transaction = transaction_of_v2(top, inputs, outputs)
    return Psbt(version, transaction, top, inputs, outputs)


def decode_base64(text: str) -> Psbt:
    """Reads a PSBT from strict base64. Raises WireError."""
    return decode(from_base64(text))


def from_base64(text: str) -> bytes:
    """Decodes canonical base64; Python alone accepts other spellings. Raises WireError."""
    try:
        raw = binascii.a2b_base64(text)
    except ValueError:
        raise WireError("not base64") from None
    if base64.b64encode(raw).decode() != text:
        raise WireError("not canonical base64")
    return raw


def encode(psbt: Psbt) -> bytes:
    """Encodes the PSBT. A version 0 transaction is encoded anew, so that `psbt_strict` sees if it was misread."""
    top = dict(psbt.fields)
    if psbt.version == 0:
        top[_key(fields.GLOBAL_UNSIGNED_TX)] = psbt.transaction.encode()
    parts = [MAGIC]
    for item in (top, *psbt.inputs, *psbt.outputs):
        for key, value in item.items():
            parts += (sized(key), sized(value))
        parts.append(b"\x00")
    return b"".join(parts)


def without_unknown(psbt: Psbt) -> Psbt:
    """Returns the PSBT without its unknown and proprietary fields."""
    return replace(
        psbt,
        fields=_known(psbt.fields, fields.GLOBAL),
        inputs=tuple(_known(item, fields.INPUT) for item in psbt.inputs),
        outputs=tuple(_known(item, fields.OUTPUT) for item in psbt.outputs),
    )


def key_type(key: bytes) -> int:
    return Reader(key).compact()


def _known(item: Map, rules: Mapping[int, Rule]) -> Map:
    return {
        key: value for key, value in item.items() if (kind := key_type(key)) in rules and kind != fields.PROPRIETARY
    }


def _key(kind: int) -> bytes:
    return compact(kind)


def _map(reader: Reader, where: str, rules: Mapping[int, Rule]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    while key := reader.sized():
        value = reader.sized()
        if key in found:
            raise WireError(f"a field of type {key_type(key)} comes twice in the {where} map")
        found[key] = value
        split = Reader(key)
        kind = split.compact()
        if kind in rules:
            try:
                rules[kind](split.rest(), value)
            except WireError as error:
                raise WireError(f"the field of type {kind} in the {where} map: {error}") from None
    return found


def _transaction_of_v0(top: Map) -> Transaction:
    _only(top, "global", fields.ONLY_V2_GLOBAL)
    written = top.get(_key(fields.GLOBAL_UNSIGNED_TX))
    if written is None:
        raise WireError("the unsigned transaction is missing")
    transaction = decode_unsigned(written)
    if any(item.script_sig for item in transaction.inputs):
        raise WireError("the unsigned transaction has a script_sig")
    return transaction


def _count(top: Map, kind: int) -> int:
    written = top.get(_key(kind))
    if written is None:
        raise WireError("a version 2 PSBT must count its inputs and outputs")
    return Reader(written).compact()


def _only(item: Map, where: str, foreign: frozenset[int]) -> None:
    """Raises WireError when the map has a field that is `foreign` to its version."""
    for key in item:
        if key_type(key) in foreign:
            raise WireError(f"a field of type {key_type(key)} in the {where} map is of the other PSBT version")


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
    """Returns the latest locktime that an input needs: a height if all such inputs have one, else a time."""
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
