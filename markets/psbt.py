"""A PSBT as a venue sends it, in base64 or hex, and as a venue wants it back. Its contents are for the signer.

Some venues read only final witnesses (BIP-174). A signer leaves a taproot key signature beside its input (BIP-371); the
witness of a key path is just that signature.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from markets.base import LONGEST_PSBT
from markets.wire import Unreadable

_HEX = re.compile(r"70736274ff([0-9a-f]{2})+", re.ASCII)
_BASE64 = re.compile(r"cHNidP8[A-Za-z0-9+/]+={0,2}", re.ASCII)


def in_base64(value: Any) -> str:
    """Reads a PSBT in hex or base64; returns base64. Raises Unreadable for any other text, or a long one."""
    if isinstance(value, str) and len(value) <= 2 * LONGEST_PSBT and _HEX.fullmatch(value):
        value = base64.b64encode(bytes.fromhex(value)).decode()
    if not is_base64(value):
        raise Unreadable("a PSBT is neither hex nor base64 of a fair length")
    assert isinstance(value, str)
    return value


def is_base64(value: Any) -> bool:
    """Tells whether it is a PSBT in base64."""
    return isinstance(value, str) and len(value) <= LONGEST_PSBT and _BASE64.fullmatch(value) is not None


_MAGIC = b"psbt\xff"
_UNSIGNED_TX, _FINAL_WITNESS, _KEY_SIGNATURE = b"\x00", b"\x08", b"\x13"

_Map = list[tuple[bytes, bytes]]


def with_witnesses(psbt: str) -> str:
    """Returns `psbt` (version 0, base64) with a final witness in each input that has a key signature and none yet.

    Raises ValueError if it is no PSBT.
    """
    raw = base64.b64decode(psbt, validate=True)
    if not raw.startswith(_MAGIC):
        raise ValueError("not a PSBT")
    maps = list(_maps(raw, len(_MAGIC)))
    inputs = _inputs(dict(maps[0]).get(_UNSIGNED_TX, b"")) if maps else 0
    if len(maps) <= inputs:
        raise ValueError("a PSBT without all of its inputs")
    for each in maps[1 : 1 + inputs]:
        fields = dict(each)
        signature = fields.get(_KEY_SIGNATURE)
        if signature is not None and _FINAL_WITNESS not in fields:
            each.append((_FINAL_WITNESS, b"\x01" + _with_length(signature)))
            each.sort(key=lambda pair: pair[0])
    written = b"".join(
        b"".join(_with_length(key) + _with_length(value) for key, value in each) + b"\0" for each in maps
    )
    return base64.b64encode(_MAGIC + written).decode()


def _maps(raw: bytes, at: int) -> Iterator[_Map]:
    found: _Map = []
    while at < len(raw):
        key, at = _taken(raw, at)
        if not key:
            yield found
            found = []
            continue
        value, at = _taken(raw, at)
        found.append((key, value))
    if found or at != len(raw):
        raise ValueError("a PSBT that ends too early")


def _taken(raw: bytes, at: int) -> tuple[bytes, int]:
    """Returns the bytes whose length stands at `at`, and their end, which may lie behind the end of all."""
    length, at = _number(raw, at)
    return raw[at : at + length], at + length


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """Returns a compact size and where it ends."""
    if at >= len(raw):
        raise ValueError("a PSBT that ends too early")
    width = {0xFD: 2, 0xFE: 4, 0xFF: 8}.get(raw[at], 0)
    if not width:
        return raw[at], at + 1
    return int.from_bytes(raw[at + 1 : at + 1 + width], "little"), at + 1 + width


def _with_length(value: bytes) -> bytes:
    size = len(value)
    if size < 0xFD:
        return bytes([size]) + value
    return (
        b"\xfd" + size.to_bytes(2, "little") + value if size < 1 << 16 else b"\xfe" + size.to_bytes(4, "little") + value
    )


def _inputs(unsigned_tx: bytes) -> int:
    """Counts the inputs of a transaction: the number behind its version."""
    return _number(unsigned_tx, 4)[0]
