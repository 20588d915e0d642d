"""The content of the practice inscriptions: mostly pictures, and some of what else people inscribe."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping
from typing import Literal, NamedTuple

from simulator.wallets import Item

Kind = Literal["picture", "svg", "text", "large"]
_OTHERS: tuple[Kind, ...] = ("svg", "text", "large")
_MEDIA: Mapping[Kind, str] = {"svg": "image/svg+xml", "text": "text/plain;charset=utf-8"}
_ONE_IN = 24  # inscriptions that are no picture
_LARGE = 2_300_000
_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">'
    '<rect width="10" height="10" fill="#{}"/><circle cx="5" cy="5" r="3" fill="#fff"/></svg>'
)
# A picture's cells a side, the pixels of a cell's side, and its colours.
_SIDE, _CELL, _COLOURS = 12, 16, 4


class Content(NamedTuple):
    """An inscription's content and its type."""

    media: str
    data: bytes


def kind_of(inscription: str) -> Kind:
    """Returns the kind of an inscription's content, by its id."""
    drawn = int.from_bytes(hashlib.sha256(f"kind {inscription}".encode()).digest()[:4])
    if drawn % _ONE_IN:
        return "picture"
    return _OTHERS[drawn // _ONE_IN % len(_OTHERS)]


def media_of(inscription: str) -> str:
    """Returns the type of an inscription's content."""
    return _MEDIA.get(kind_of(inscription), "image/png")


def content_of(item: Item) -> Content:
    """Returns the content of an inscription, always the same."""
    kind = kind_of(item.id)
    if kind == "svg":
        return Content(_MEDIA[kind], _SVG.format(item.id[:6]).encode())
    if kind == "text":
        return Content(_MEDIA[kind], f"{item.name or 'gm'}\n".encode())
    # A large one has bytes behind its end, as large as some that are inscribed.
    return Content("image/png", _picture(item.id) + bytes(_LARGE if kind == "large" else 0))


def _picture(inscription: str) -> bytes:
    """Returns a PNG of coloured cells, the same on both sides, all drawn from the inscription's id."""
    drawn = hashlib.shake_256(f"looks {inscription}".encode()).digest(3 * _COLOURS + _SIDE * _SIDE // 2)
    palette, cells = drawn[: 3 * _COLOURS], drawn[3 * _COLOURS :]
    lines = b""
    for at in range(0, len(cells), _SIDE // 2):
        half = [cell % _COLOURS for cell in cells[at : at + _SIDE // 2]]
        pixels = bytes(cell for cell in half + half[::-1] for _ in range(_CELL))
        lines += (b"\0" + pixels) * _CELL  # a line begins with its filter, none
    # Eight bits a pixel, each the number of a colour.
    head = struct.pack(">IIBBBBB", _SIDE * _CELL, _SIDE * _CELL, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
