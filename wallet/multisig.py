"""The script of a bidding wallet: some number of its keys must sign."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from wallet.psbt.transaction import Reader, WireError

_OP_1, _OP_16 = 0x51, 0x60
_CHECKMULTISIG = 0xAE
_KEY_BYTES = 33


class Multisig(NamedTuple):
    """A script that needs `required` signatures of the compressed `keys`, in this order."""

    required: int
    keys: tuple[bytes, ...]


def decode(script: bytes) -> Multisig:
    """Reads `OP_m <key> ... OP_n OP_CHECKMULTISIG` with compressed keys. Raises WireError for every other script."""
    reader = Reader(script)
    required, keys = _small(reader.number(1)), []
    while (op := reader.number(1)) == _KEY_BYTES:
        keys.append(reader.take(_KEY_BYTES))
    if _small(op) != len(keys) or reader.number(1) != _CHECKMULTISIG or required > len(keys):
        raise WireError("a multisig script does not count its keys right")
    reader.end()
    if any(key[0] not in (2, 3) for key in keys) or len(set(keys)) != len(keys):
        raise WireError("a multisig script has a key twice, or one that is not compressed")
    return Multisig(required, tuple(keys))


def p2wsh(witness_script: bytes) -> bytes:
    """Returns the script that pays to `witness_script`."""
    return b"\x00\x20" + hashlib.sha256(witness_script).digest()


def _small(op: int) -> int:
    if not _OP_1 <= op <= _OP_16:
        raise WireError("a multisig script has an operation of another kind")
    return op - _OP_1 + 1
