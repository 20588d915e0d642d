"""Pixel art as a PNG file (W3C's PNG specification): a palette of at most 16 colours, four bits a pixel."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BITS, _BY_PALETTE = 4, 3
MOST_COLOURS = 1 << _BITS

Colour = tuple[int, int, int]


def png(rows: Sequence[bytes], palette: Sequence[Colour], scale: int) -> bytes:
    """Returns the file of a picture whose `rows` hold one palette number a cell; a cell is `scale` pixels wide and
    high. Raises ValueError for more colours than there can be.
    """
    if len(palette) > MOST_COLOURS:
        raise ValueError(f"more than {MOST_COLOURS} colours")
    width, height = len(rows[0]) * scale, len(rows) * scale
    lines = b"".join(_line(row, scale) * scale for row in rows)
    head = struct.pack(">IIBBBBB", width, height, _BITS, _BY_PALETTE, 0, 0, 0)
    colours = b"".join(map(bytes, palette))
    parts = ((b"IHDR", head), (b"PLTE", colours), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _line(row: bytes, scale: int) -> bytes:
    """Returns a line's pixels, two in a byte, behind the byte that says: not filtered."""
    pixels = [cell for cell in row for _ in range(scale)]
    pixels += [0] * (len(pixels) % 2)
    return bytes([0, *(high << _BITS | low for high, low in zip(pixels[::2], pixels[1::2], strict=True))])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
