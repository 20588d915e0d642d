"""The script of a bidding wallet, of any kind: our key must be part of it, and a coin's output must commit to it.

The other signers do not matter for safety: a signature covers all outputs, and these are ours.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from wallet.protocol import PolicyRefused
from wallet.psbt import fields
from wallet.psbt.decode import Map, key_type
from wallet.psbt.sighash import ALL, DEFAULT
from wallet.psbt.taproot import TAPSCRIPT, leaf_hash, output_script
from wallet.psbt.transaction import Reader, WireError, compact

_OP_CODESEPARATOR = 0xAB
_LARGEST_PUSH = 0x4B
_PUSH_LENGTHS = {0x4C: 1, 0x4D: 2, 0x4E: 4}  # bytes of the length behind OP_PUSHDATA1, 2 and 4

# Fields of an input before it is signed. Any other known field means that it is signed already, or is to be spent in
# another way.
_OF_ALL = {fields.IN_NON_WITNESS_UTXO, fields.IN_WITNESS_UTXO, fields.IN_SIGHASH_TYPE}
_OF_P2WSH = frozenset({*_OF_ALL, fields.IN_WITNESS_SCRIPT, 0x06})
_OF_LEAF = frozenset({*_OF_ALL, fields.IN_TAP_LEAF_SCRIPT, fields.IN_TAP_INTERNAL_KEY, fields.IN_TAP_MERKLE_ROOT, 0x16})


@dataclass(frozen=True, slots=True)
class WalletScript:
    """A script, and the output script `paid_to` that commits to it; `control_block` is a P2TR leaf's, else empty."""

    script: bytes
    paid_to: bytes
    control_block: bytes = b""

    @property
    def is_leaf(self) -> bool:
        """Whether it is a leaf of a taproot output."""
        return bool(self.control_block)

    @property
    def sighashes(self) -> tuple[int, ...]:
        """The sighashes that cover all; the first is the one of a PSBT that names none (BIP-174, BIP-371)."""
        return (DEFAULT, ALL) if self.is_leaf else (ALL,)

    @property
    def unsigned_fields(self) -> frozenset[int]:
        """The types of the fields that an input has before it is signed."""
        return _OF_LEAF if self.is_leaf else _OF_P2WSH


def wallet_script(item: Map, public_key: bytes) -> WalletScript:
    """Returns the script that an input is to be spent by, with our key (33 bytes) in it. Raises PolicyRefused."""
    leaves = [(key, value) for key, value in item.items() if key_type(key) == fields.IN_TAP_LEAF_SCRIPT]
    script = item.get(compact(fields.IN_WITNESS_SCRIPT))
    if len(leaves) + (script is not None) != 1:
        raise PolicyRefused("inputs-own", "an input has no script to be spent by, or several")
    try:
        if script is not None:
            found = WalletScript(script, p2wsh(script))
        else:
            found = _leaf(*leaves[0])
        if not has_key(found, public_key):
            raise PolicyRefused("inputs-own", "the script is none that our key is part of")
    except WireError as error:
        raise PolicyRefused("inputs-own", str(error)) from None
    return found


def has_key(wallet: WalletScript, public_key: bytes) -> bool:
    """Tells whether the script pushes our key (33 bytes; in a leaf its last 32). Raises WireError as `_pushes`."""
    return (public_key[1:] if wallet.is_leaf else public_key) in _pushes(wallet.script)


def p2wsh(witness_script: bytes) -> bytes:
    """Returns the script that pays to `witness_script`."""
    return b"\x00\x20" + hashlib.sha256(witness_script).digest()


def _leaf(key: bytes, value: bytes) -> WalletScript:
    """Reads the PSBT's field of a leaf: its control block in the key, script and version in the value."""
    control_block, script, version = key[1:], value[:-1], value[-1]
    if version != TAPSCRIPT or control_block[0] & 0xFE != TAPSCRIPT:
        raise WireError("a leaf of an unknown version")
    return WalletScript(script, output_script(leaf_hash(script), control_block), control_block)


def _pushes(script: bytes) -> list[bytes]:
    """Returns all that the script pushes. Raises WireError for one that is cut, or signs only its end."""
    reader, found = Reader(script), []
    while not reader.at_end():
        op = reader.number(1)
        if op == _OP_CODESEPARATOR:
            raise WireError("the script has an OP_CODESEPARATOR, with which a signature covers something else")
        if op <= _LARGEST_PUSH:
            found.append(reader.take(op))
        elif op in _PUSH_LENGTHS:
            found.append(reader.take(reader.number(_PUSH_LENGTHS[op])))
    return found
