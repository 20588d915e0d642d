"""Reads the type and size of a picture from its first bytes; the sender's content type is ignored.

A browser allocates memory for the size that a picture claims, even if the file is small. An AVIF decoder uses the
sequence header of the AV1 frames and ignores the size in the container's boxes. Only the standard library is used,
because headers are short and a whole decoder would expose more code to untrusted files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from markets.base import Instead, Media, NoPicture, Picture

MOST_PIXELS = 40_000_000  # of one frame: 160 MB once it is drawn
MOST_FRAMES = 1_000
MOST_PIXELS_PLAYED = 10 * MOST_PIXELS  # of all frames together
# Markers, chunks and blocks in one file; a real GIF of 2 MB and 1,000 frames has 10,000.
MOST_PARTS = 20_000
_FILL = re.compile(rb"\xff+")


class Size(NamedTuple):
    """The pixels that each frame may take, and the number of frames."""

    width: int
    height: int
    frames: int = 1

    @property
    def fits(self) -> bool:
        """Whether the picture is small enough for a browser."""
        pixels = self.width * self.height
        return pixels <= MOST_PIXELS and self.frames <= MOST_FRAMES and pixels * self.frames <= MOST_PIXELS_PLAYED


def size_of(media: Media, data: bytes) -> Size | None:
    """Returns the size that a picture of this type claims, or None if its header has no size."""
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
        fill = _FILL.match(data, at)  # a marker begins with one or more bytes 0xFF
        if fill is None:
            raise Unreadable
        at = fill.end()
        marker = number(data, at, 1)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return Size(number(data, at + 6, 2), number(data, at + 4, 2))
        if marker in (0xD9, 0xDA):  # end of image or start of pixels, with no size before it
            raise Unreadable
        has_length = marker != 0x01 and not 0xD0 <= marker <= 0xD7
        at += 1 + (number(data, at + 1, 2) if has_length else 0)
    raise Unreadable


def _gif(data: bytes) -> Size:
    """Returns the canvas, enlarged to the largest frame, and the number of frames; the file may be truncated."""
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
    """Yields the name, start and end of each chunk. Raises Unreadable if there are more than `left[0]` chunks."""
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
    "image/avif": lambda data: Size(*_avif_size(data)),
}

_MOST_BOXES, _MOST_PLACES, _MOST_UNITS = 10_000, 1_000, 20_000
_DEEPEST = 16  # levels of nested boxes; real files have seven
_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"iprp", b"ipco"}
# Items composed of other items; the header does not give their size.
_DERIVED = {b"grid", b"iovl", b"tmap"}
_SEQUENCE_HEADER = 1


class Unreadable(Exception):
    """The header has no readable size."""


def number(data: bytes, at: int, length: int, order: Literal["big", "little"] = "big") -> int:
    """Reads an unsigned integer of `length` bytes. Raises Unreadable if the data is too short."""
    part = data[at : at + length]
    if at < 0 or len(part) < length:
        raise Unreadable
    return int.from_bytes(part, order)


def _avif_size(data: bytes) -> tuple[int, int, int]:
    """Returns the greatest width and height of all items, tracks and frames, and the longest track's frame count.

    Raises Unreadable.
    """
    sizes, frames, kinds, found = [(0, 0)], 1, dict[int, bytes](), dict[bytes, list[tuple[int, int]]]()
    for kind, at, end in _boxes(data, 0, len(data), [_MOST_BOXES]):
        found.setdefault(kind, []).append((at, end))
        if kind == b"ispe":
            sizes.append((number(data, at + 4, 4), number(data, at + 8, 4)))
        elif kind == b"tkhd":
            sizes.append((number(data, end - 8, 4) >> 16, number(data, end - 4, 4) >> 16))
        elif kind == b"av01":
            sizes.append((number(data, at + 24, 2), number(data, at + 26, 2)))
        elif kind in (b"stsz", b"stz2"):
            frames = max(frames, number(data, at + 8, 4))
        elif kind == b"infe":
            wide = 2 if number(data, at, 1) > 2 else 0
            kinds[number(data, at + 4, 2 + wide)] = data[at + 8 + wide : at + 12 + wide]
    if _DERIVED & set(kinds.values()):
        raise Unreadable
    units = [_MOST_UNITS]
    for item, start, end in _items(data, found):
        if kinds.get(item) == b"av01":
            sizes += _frame_sizes(data, start, end, units)
    for start in _tracks(data, found):
        sizes += _frame_sizes(data, start, len(data), units)
    return max(width for width, _ in sizes), max(height for _, height in sizes), frames


def _boxes(data: bytes, at: int, end: int, left: list[int], depth: int = 1) -> Iterator[tuple[bytes, int, int]]:
    """Yields the name, start and end of each box; enters only boxes that may contain sizes."""
    if depth > _DEEPEST:
        raise Unreadable
    while at + 8 <= end:
        left[0] -= 1
        length, kind, head = number(data, at, 4), data[at + 4 : at + 8], 8
        if length == 1:
            length, head = number(data, at + 8, 8), 16
        last = end if length == 0 else at + length
        if left[0] < 0 or last > end or last < at + head:
            raise Unreadable
        yield kind, at + head, last
        # These boxes have a header (version, flags, number of entries) before their inner boxes.
        before = {b"meta": 4, b"stsd": 8, b"iinf": 6 if data[at + head : at + head + 1] == b"\0" else 8}
        if kind in before or kind in _CONTAINERS:
            yield from _boxes(data, at + head + before.get(kind, 0), last, left, depth + 1)
        at = last


def _items(data: bytes, found: dict[bytes, list[tuple[int, int]]]) -> Iterator[tuple[int, int, int]]:
    left = _MOST_PLACES
    for at, _ in found.get(b"iloc", ()):
        version = number(data, at, 1)
        of_offset, of_length = divmod(number(data, at + 4, 1), 16)
        of_base, of_index = divmod(number(data, at + 5, 1), 16)
        wide = 4 if version == 2 else 2
        count, at = number(data, at + 6, wide), at + 6 + wide
        for _ in range(count):
            left -= 1
            if left < 0:
                raise Unreadable
            item, at = number(data, at, wide), at + wide
            method = 0
            if version > 0:
                method, at = number(data, at, 2) & 15, at + 2
            base, at = number(data, at + 2, of_base), at + 2 + of_base
            if method == 1 and b"idat" in found:
                base += found[b"idat"][0][0]
            elif method != 0:
                raise Unreadable
            parts, at = number(data, at, 2), at + 2
            for _ in range(parts):
                left -= 1
                if left < 0:
                    raise Unreadable
                at += of_index if version > 0 else 0
                start = base + number(data, at, of_offset)
                length = number(data, at + of_offset, of_length) or len(data)
                at += of_offset + of_length
                yield item, start, min(start + length, len(data))


def _tracks(data: bytes, found: dict[bytes, list[tuple[int, int]]]) -> Iterator[int]:
    for name, length in ((b"stco", 4), (b"co64", 8)):
        for at, _ in found.get(name, ()):
            yield number(data, at + 8, length)


def _frame_sizes(data: bytes, at: int, end: int, left: list[int]) -> list[tuple[int, int]]:
    """Returns the sizes in these AV1 frames' sequence headers. Raises Unreadable if there is no sequence header."""
    sizes = list[tuple[int, int]]()
    while at < end:
        head = data[at : at + 1]
        left[0] -= 1
        if left[0] < 0:
            raise Unreadable
        if head[0] & 0x80:  # not the start of an AV1 unit, so the frames end here
            break
        kind, at, length = head[0] >> 3 & 15, at + (2 if head[0] & 4 else 1), len(data)
        if head[0] & 2:
            length, shift, is_more = 0, 0, True
            while is_more and shift < 56:
                part, at = number(data, at, 1), at + 1
                length, shift, is_more = length | (part & 0x7F) << shift, shift + 7, part > 0x7F
        if kind == _SEQUENCE_HEADER:
            sizes.append(_sequence(data[at : at + min(length, 256)]))
        at += length
    if not sizes:
        raise Unreadable
    return sizes


def _sequence(data: bytes) -> tuple[int, int]:
    """Returns the greatest width and height of frames after this sequence header (AV1, 5.5)."""
    bits, at = int.from_bytes(data), 8 * len(data)

    def take(count: int) -> int:
        nonlocal at
        at -= count
        if at < 0:
            raise Unreadable
        return bits >> at & (1 << count) - 1

    take(4)
    if take(1):
        take(5)
    else:
        has_model, of_delay = 0, 0
        if take(1):  # timing
            take(64)
            if take(1):
                zeros = 0
                while not take(1):
                    zeros += 1
                take(zeros)
            if has_model := take(1):
                of_delay = take(5) + 1
                take(42)
        has_delay = take(1)
        for _ in range(take(5) + 1):
            take(12)
            if take(5) > 7:
                take(1)
            if has_model and take(1):
                take(2 * of_delay + 1)
            if has_delay and take(1):
                take(4)
    of_width, of_height = take(4) + 1, take(4) + 1
    return take(of_width) + 1, take(of_height) + 1


_HEADS: tuple[tuple[bytes, Media], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_AVIF = (b"avif", b"avis")
_LOOKED_AT = 4_096  # bytes
_WEBM = b"\x1aE\xdf\xa3"


def judged(data: bytes) -> Picture | NoPicture:
    """Returns the picture, or the reason why the bytes may not be shown in a browser."""
    media = media_of(data)
    if media is None:
        return NoPicture(instead_of(data))
    size = size_of(media, data)
    if size is None:
        return NoPicture("file")
    return Picture(media, data) if size.fits else NoPicture("too_large")


def media_of(data: bytes) -> Media | None:
    """Returns the type of a picture that cannot contain scripts (PNG, JPEG, GIF, WebP, AVIF), or None."""
    for head, media in _HEADS:
        if data.startswith(head):
            return media
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/avif" if any(brand in _AVIF for brand in _brands(data)) else None


def instead_of(data: bytes) -> Instead:
    """Classifies content that is not a supported picture."""
    if _brands(data) or data.startswith(_WEBM):
        return "video"
    try:
        # The last character may be incomplete where the sample ends.
        start = data[:_LOOKED_AT].decode("utf-8-sig", "strict" if len(data) <= _LOOKED_AT else "ignore")
    except UnicodeDecodeError:
        return "file"
    words = start.lstrip().lower()
    if "<svg" in words and words.startswith(("<svg", "<?xml", "<!--", "<!doctype svg")):
        return "svg"
    if words.startswith(("<!doctype html", "<html", "<head", "<body", "<script")):
        return "html"
    return "text" if words and all(letter.isprintable() or letter.isspace() for letter in words) else "file"


def _brands(data: bytes) -> list[bytes]:
    """Returns the brands of an ISO media file (AVIF pictures and most videos); empty for other files."""
    if data[4:8] != b"ftyp":
        return []
    end = min(int.from_bytes(data[:4]), 256)
    return [data[8:12], *(data[at : at + 4] for at in range(16, end - 3, 4))]
