"""HASH160 (RIPEMD-160 of SHA-256), also where OpenSSL comes without RIPEMD-160."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

_LEFT_WORDS = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8),
    (3, 10, 14, 4, 9, 15, 8, 1, 2, 7, 0, 6, 13, 11, 5, 12),
    (1, 9, 11, 10, 0, 8, 12, 4, 13, 3, 7, 15, 14, 5, 6, 2),
    (4, 0, 5, 9, 7, 12, 2, 10, 14, 1, 3, 8, 11, 6, 15, 13),
)
_RIGHT_WORDS = (
    (5, 14, 7, 0, 9, 2, 11, 4, 13, 6, 15, 8, 1, 10, 3, 12),
    (6, 11, 3, 7, 0, 13, 5, 10, 14, 15, 8, 12, 4, 9, 1, 2),
    (15, 5, 1, 3, 7, 14, 6, 9, 11, 8, 12, 2, 10, 0, 4, 13),
    (8, 6, 4, 1, 3, 11, 15, 0, 5, 12, 2, 13, 9, 7, 10, 14),
    (12, 15, 10, 4, 1, 5, 8, 7, 6, 2, 13, 14, 0, 3, 9, 11),
)
_LEFT_SHIFTS = (
    (11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    (7, 6, 8, 13, 11, 9, 7, 15, 7, 12, 15, 9, 11, 7, 13, 12),
    (11, 13, 6, 7, 14, 9, 13, 15, 14, 8, 13, 6, 5, 12, 7, 5),
    (11, 12, 14, 15, 14, 15, 9, 8, 9, 14, 5, 6, 8, 6, 5, 12),
    (9, 15, 5, 11, 6, 8, 13, 12, 5, 12, 13, 14, 11, 8, 5, 6),
)
_RIGHT_SHIFTS = (
    (8, 9, 9, 11, 13, 15, 15, 5, 7, 7, 8, 11, 14, 14, 12, 6),
    (9, 13, 15, 7, 12, 8, 9, 11, 7, 7, 12, 7, 6, 15, 13, 11),
    (9, 7, 15, 11, 8, 6, 6, 14, 12, 13, 5, 14, 13, 13, 7, 5),
    (15, 5, 8, 11, 14, 14, 6, 14, 6, 9, 12, 9, 12, 5, 15, 8),
    (8, 5, 12, 9, 12, 5, 14, 6, 8, 13, 6, 5, 15, 13, 11, 11),
)
_LEFT_ADDED = (0, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E)
_RIGHT_ADDED = (0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0)
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_MIX: tuple[Callable[[int, int, int], int], ...] = (
    lambda x, y, z: x ^ y ^ z,
    lambda x, y, z: x & y | ~x & z,
    lambda x, y, z: (x | ~y) ^ z,
    lambda x, y, z: x & z | y & ~z,
    lambda x, y, z: x ^ (y | ~z),
)
_WORD = 0xFFFFFFFF

_State = tuple[int, int, int, int, int]


def _rotate(value: int, places: int) -> int:
    value &= _WORD
    return (value << places | value >> (32 - places)) & _WORD


def _line(state: _State, block: tuple[int, ...], *, left: bool) -> _State:
    words, shifts, added = (
        (_LEFT_WORDS, _LEFT_SHIFTS, _LEFT_ADDED) if left else (_RIGHT_WORDS, _RIGHT_SHIFTS, _RIGHT_ADDED)
    )
    a, b, c, d, e = state
    for stage in range(5):
        mix = _MIX[stage if left else 4 - stage]
        for word, shift in zip(words[stage], shifts[stage], strict=True):
            turned = _rotate(a + mix(b, c, d) + block[word] + added[stage], shift) + e
            a, b, c, d, e = e, turned & _WORD, b, _rotate(c, 10), d
    return a, b, c, d, e


def own_ripemd160(data: bytes) -> bytes:
    """Returns RIPEMD-160 of `data`, computed in Python, some hundred times slower than OpenSSL's."""
    padded = data + b"\x80" + bytes(-(len(data) + 9) % 64) + (len(data) * 8).to_bytes(8, "little")
    state: _State = _START
    for start in range(0, len(padded), 64):
        block = tuple(int.from_bytes(padded[at : at + 4], "little") for at in range(start, start + 64, 4))
        left, right = _line(state, block, left=True), _line(state, block, left=False)
        a, b, c, d, e = ((state[(i + 1) % 5] + left[(i + 2) % 5] + right[(i + 3) % 5]) & _WORD for i in range(5))
        state = (a, b, c, d, e)
    return b"".join(word.to_bytes(4, "little") for word in state)


def _openssl_has_it() -> bool:
    try:
        hashlib.new("ripemd160", b"", usedforsecurity=False)
    except ValueError:
        return False
    return True


OPENSSL_HAS_IT = _openssl_has_it()


def hash160(data: bytes) -> bytes:
    """Returns RIPEMD-160 of SHA-256 of `data`, 20 bytes."""
    digest = hashlib.sha256(data).digest()
    if OPENSSL_HAS_IT:
        return hashlib.new("ripemd160", digest, usedforsecurity=False).digest()
    return own_ripemd160(digest)
