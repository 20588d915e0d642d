"""Base58check texts of the older addresses."""

from __future__ import annotations

import hashlib

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
MAX_LENGTH = 90

_VALUES = {letter: value for value, letter in enumerate(ALPHABET)}


def decode_check(text: str) -> bytes:
    """Returns the bytes of `text` without their checksum. Raises ValueError."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"it is longer than {MAX_LENGTH} characters")
    number = 0
    try:
        for letter in text:
            number = number * 58 + _VALUES[letter]
    except KeyError:
        raise ValueError("it has a letter that base58 does not use") from None
    zeros = len(text) - len(text.lstrip(ALPHABET[0]))
    raw = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    if len(raw) < 5:
        raise ValueError("it is too short")
    body, checksum = raw[:-4], raw[-4:]
    if hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4] != checksum:
        raise ValueError("its checksum is wrong")
    return body
