"""The size that a picture claims in its own head: a browser takes memory by that, however few bytes there are.

Standard library only: heads are short, and a whole decoder would be one more door for strangers' files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from markets.pictures import Media

MOST_PIXELS = 40_000_000  # of one frame: 160 MB once it is drawn
MOST_FRAMES = 1_000
MOST_PIXELS_PLAYED = 10 * MOST_PIXELS  # of all frames together
_MOST_BOXES = 10_000
_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"iprp", b"ipco"}
# AVIF items that are made of others: their size is not in the head.
_DERIVED = {b"grid", b"iovl", b"tmap"}


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


class _Unreadable(Exception):
    """The end of a reading: no size is to be found in this head."""


def size_of(media: Media, data: bytes) -> Size | None:
    """Reads the size that a picture of this type claims; None if its head has none."""
    try:
        found = _READERS[media](data)
    except _Unreadable:
        return None
    return found if found.width > 0 and found.height > 0 and found.frames > 0 else None


def _number(data: bytes, at: int, length: int, *, is_little: bool = False) -> int:
    part = data[at : at + length]
    if len(part) < length:
        raise _Unreadable
    return int.from_bytes(part, "little" if is_little else "big")


def _little(data: bytes, at: int, length: int) -> int:
    return _number(data, at, length, is_little=True)


def _png(data: bytes) -> Size:
    if data[8:16] != b"\x00\x00\x00\rIHDR":
        raise _Unreadable
    width, height, frames, at = _number(data, 16, 4), _number(data, 20, 4), 1, 33
    while (kind := data[at + 4 : at + 8]) not in (b"IDAT", b""):
        if kind == b"acTL":
            frames = _number(data, at + 8, 4)
        at += 12 + _number(data, at, 4)
    return Size(width, height, frames)


def _jpeg(data: bytes) -> Size:
    at = 2
    while True:
        if _number(data, at, 1) != 0xFF:
            raise _Unreadable
        marker = _number(data, at + 1, 1)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return Size(_number(data, at + 7, 2), _number(data, at + 5, 2))
        if marker in (0xD9, 0xDA):  # the end, or the pixels, before any size
            raise _Unreadable
        has_length = marker != 0x01 and not 0xD0 <= marker <= 0xD7
        at += 1 if marker == 0xFF else 2 + (_number(data, at + 2, 2) if has_length else 0)


def _gif(data: bytes) -> Size:
    """Reads the canvas, which grows to a frame that is larger, and counts the frames of a file that may be cut off."""
    width, height, frames = _little(data, 6, 2), _little(data, 8, 2), 0
    at = 13 + _table(_number(data, 10, 1))
    try:
        while (kind := _number(data, at, 1)) in (0x21, 0x2C):
            if kind == 0x2C:
                width = max(width, _little(data, at + 1, 2) + _little(data, at + 5, 2))
                height = max(height, _little(data, at + 3, 2) + _little(data, at + 7, 2))
                frames += 1
                at += 11 + _table(_number(data, at + 9, 1))
            else:
                at += 2
            while length := _number(data, at, 1):
                at += 1 + length
            at += 1
    except _Unreadable:
        pass
    return Size(width, height, frames)


def _table(flags: int) -> int:
    """Returns the bytes of a GIF's table of colours."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(data: bytes) -> Size:
    sizes, frames = [(0, 0)], 0
    for kind, at, end in _chunks(data, 12, len(data)):
        if kind == b"ANMF":
            frames += 1
            sizes.append((_little(data, at + 6, 3) + 1, _little(data, at + 9, 3) + 1))
            sizes += [_webp_chunk(data, inner, where) for inner, where, _ in _chunks(data, at + 16, end)]
        else:
            sizes.append(_webp_chunk(data, kind, at))
    return Size(max(width for width, _ in sizes), max(height for _, height in sizes), max(1, frames))


def _chunks(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yields the name, start and end of each chunk."""
    while at + 8 <= end:
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


def _avif(data: bytes) -> Size:
    """Reads the greatest size of all its items and tracks. The frames are those of its longest track."""
    sizes, frames = [(0, 0)], 1
    for kind, at, end in _boxes(data, 0, len(data), [_MOST_BOXES]):
        if kind == b"ispe":
            sizes.append((_number(data, at + 4, 4), _number(data, at + 8, 4)))
        elif kind == b"tkhd":
            sizes.append((_number(data, end - 8, 4) >> 16, _number(data, end - 4, 4) >> 16))
        elif kind == b"av01":
            sizes.append((_number(data, at + 24, 2), _number(data, at + 26, 2)))
        elif kind in (b"stsz", b"stz2"):
            frames = max(frames, _number(data, at + 8, 4))
        elif kind == b"infe" and data[at + 8 : at + 12] in _DERIVED:
            raise _Unreadable
    return Size(max(width for width, _ in sizes), max(height for _, height in sizes), frames)


def _boxes(data: bytes, at: int, end: int, left: list[int]) -> Iterator[tuple[bytes, int, int]]:
    """Yields the name, start and end of each box and of those inside, as far as sizes may be there."""
    while at + 8 <= end:
        left[0] -= 1
        if left[0] < 0:
            raise _Unreadable
        length, kind, head = _number(data, at, 4), data[at + 4 : at + 8], 8
        if length == 1:
            length, head = _number(data, at + 8, 8), 16
        last = end if length == 0 else at + length
        if (length != 0 and length < head) or last > end:
            raise _Unreadable
        yield kind, at + head, last
        # Before the boxes inside: a version with flags, and the number of entries.
        before = {b"meta": 4, b"stsd": 8, b"iinf": 8 if data[at + head : at + head + 1] != b"\0" else 6}
        if kind in before or kind in _CONTAINERS:
            yield from _boxes(data, at + head + before.get(kind, 0), last, left)
        at = last


_READERS: dict[Media, Callable[[bytes], Size]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
    "image/avif": _avif,
}
