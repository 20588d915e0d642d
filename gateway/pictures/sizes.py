"""The size that a picture claims in its own head: a browser takes memory by that, however few bytes there are.

Standard library only: heads are short, and a whole decoder would be one more door for strangers' files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gateway.pictures import avif
from gateway.pictures.avif import Unreadable, number
from markets.pictures import Media

MOST_PIXELS = 40_000_000  # of one frame: 160 MB once it is drawn
MOST_FRAMES = 1_000
MOST_PIXELS_PLAYED = 10 * MOST_PIXELS  # of all frames together
# Markers, chunks and blocks of one file: a real GIF of two megabytes and a thousand frames has ten thousand.
MOST_PARTS = 20_000
_FILL = re.compile(rb"\xff+")


class Size(NamedTuple):
    """The pixels that each frame may take, and the number of frames."""

    width: int
    height: int
    frames: int = 1

    @property
    def fits(self) -> bool:
        """Whether a browser may be asked to draw it."""
        pixels = self.width * self.height
        return pixels <= MOST_PIXELS and self.frames <= MOST_FRAMES and pixels * self.frames <= MOST_PIXELS_PLAYED


def size_of(media: Media, data: bytes) -> Size | None:
    """Reads the size that a picture of this type claims; None if its head has none."""
    try:
        found = _READERS[media](data)
    except (Unreadable, RecursionError):
        return None
    return found if found.width > 0 and found.height > 0 and found.frames > 0 else None


def _little(data: bytes, at: int, length: int) -> int:
    return number(data, at, length, "little")


def _png(data: bytes) -> Size:
    if data[8:16] != b"\x00\x00\x00\rIHDR":
        raise Unreadable
    width, height, frames, at = number(data, 16, 4), number(data, 20, 4), 1, 33
    for _ in range(MOST_PARTS):
        kind = data[at + 4 : at + 8]
        if kind in (b"IDAT", b""):
            return Size(width, height, frames)
        if kind == b"acTL":
            frames = max(frames, number(data, at + 8, 4))
        at += 12 + number(data, at, 4)
    raise Unreadable


def _jpeg(data: bytes) -> Size:
    at = 2
    for _ in range(MOST_PARTS):
        fill = _FILL.match(data, at)  # a marker begins with one 0xFF or more
        if fill is None:
            raise Unreadable
        at = fill.end()
        marker = number(data, at, 1)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return Size(number(data, at + 6, 2), number(data, at + 4, 2))
        if marker in (0xD9, 0xDA):  # the end, or the pixels, before any size
            raise Unreadable
        has_length = marker != 0x01 and not 0xD0 <= marker <= 0xD7
        at += 1 + (number(data, at + 1, 2) if has_length else 0)
    raise Unreadable


def _gif(data: bytes) -> Size:
    """Reads the canvas, which grows to a frame that is larger, and counts the frames of a file that may be cut off."""
    width, height, frames = _little(data, 6, 2), _little(data, 8, 2), 0
    at, left = 13 + _table(number(data, 10, 1)), MOST_PARTS
    try:
        while left > 0 and (kind := number(data, at, 1)) in (0x21, 0x2C):
            left -= 1
            if kind == 0x2C:
                width = max(width, _little(data, at + 1, 2) + _little(data, at + 5, 2))
                height = max(height, _little(data, at + 3, 2) + _little(data, at + 7, 2))
                frames += 1
                at += 11 + _table(number(data, at + 9, 1))
            else:
                at += 2
            while left > 0 and (length := number(data, at, 1)):
                left -= 1
                at += 1 + length
            at += 1
    except Unreadable:
        pass
    if left <= 0:
        raise Unreadable
    return Size(width, height, frames)


def _table(flags: int) -> int:
    """Returns the bytes of a GIF's table of colours."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(data: bytes) -> Size:
    sizes, frames, left = [(0, 0)], 0, [MOST_PARTS]
    for kind, at, end in _chunks(data, 12, len(data), left):
        if kind == b"ANMF":
            frames += 1
            sizes.append((_little(data, at + 6, 3) + 1, _little(data, at + 9, 3) + 1))
            sizes += [_webp_chunk(data, inner, where) for inner, where, _ in _chunks(data, at + 16, end, left)]
        else:
            sizes.append(_webp_chunk(data, kind, at))
    return Size(max(width for width, _ in sizes), max(height for _, height in sizes), max(1, frames))


def _chunks(data: bytes, at: int, end: int, left: list[int]) -> Iterator[tuple[bytes, int, int]]:
    """Yields the name, start and end of each chunk. Raises Unreadable when there are more than `left`."""
    while at + 8 <= end:
        left[0] -= 1
        if left[0] < 0:
            raise Unreadable
        length = _little(data, at + 4, 4)
        yield data[at : at + 4], at + 8, at + 8 + length
        at += 8 + length + length % 2


def _webp_chunk(data: bytes, kind: bytes, at: int) -> tuple[int, int]:
    if kind == b"VP8X":
        return _little(data, at + 4, 3) + 1, _little(data, at + 7, 3) + 1
    if kind == b"VP8L":
        bits = _little(data, at + 1, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(data, at + 6, 2) & 0x3FFF, _little(data, at + 8, 2) & 0x3FFF
    return 0, 0


_READERS: dict[Media, Callable[[bytes], Size]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
    "image/avif": lambda data: Size(*avif.size_of(data)),
}
