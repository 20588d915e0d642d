"""The size that an AVIF claims: by the boxes of its container, and by the AV1 frames themselves.

A decoder takes memory by the sequence header of the frames, whatever the container says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

_MOST_BOXES, _MOST_PLACES, _MOST_UNITS = 10_000, 1_000, 20_000
_DEEPEST = 16  # boxes in boxes; real files have seven
_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"iprp", b"ipco"}
# Items that are made of others: their size is not in the head.
_DERIVED = {b"grid", b"iovl", b"tmap"}
_SEQUENCE_HEADER = 1


class Unreadable(Exception):
    """The end of a reading: this head has no size."""


def number(data: bytes, at: int, length: int, order: Literal["big", "little"] = "big") -> int:
    """Reads a whole number of `length` bytes. Raises Unreadable."""
    part = data[at : at + length]
    if at < 0 or len(part) < length:
        raise Unreadable
    return int.from_bytes(part, order)


def size_of(data: bytes) -> tuple[int, int, int]:
    """Returns the greatest width and height of all items, tracks and frames, and the frames of the longest track.

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
    """Yields the name, start and end of each box and of those inside, as far as sizes may be there."""
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
        # Before the boxes inside: a version with flags, and the number of entries.
        before = {b"meta": 4, b"stsd": 8, b"iinf": 6 if data[at + head : at + head + 1] == b"\0" else 8}
        if kind in before or kind in _CONTAINERS:
            yield from _boxes(data, at + head + before.get(kind, 0), last, left, depth + 1)
        at = last


def _items(data: bytes, found: dict[bytes, list[tuple[int, int]]]) -> Iterator[tuple[int, int, int]]:
    """Yields the id, start and end of each part of each item."""
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
    """Yields the start of each track's frames."""
    for name, length in ((b"stco", 4), (b"co64", 8)):
        for at, _ in found.get(name, ()):
            yield number(data, at + 8, length)


def _frame_sizes(data: bytes, at: int, end: int, left: list[int]) -> list[tuple[int, int]]:
    """Returns the sizes in the sequence headers of these AV1 frames, of which at least one must have one."""
    sizes = list[tuple[int, int]]()
    while at < end:
        head = data[at : at + 1]
        left[0] -= 1
        if left[0] < 0:
            raise Unreadable
        if head[0] & 0x80:  # no unit of AV1 begins so: something else follows the frames
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
