"""Bech32 and bech32m texts of segwit addresses, checked strictly (BIP-173, BIP-350)."""

from __future__ import annotations

CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
MAX_LENGTH = 90

_BECH32, _BECH32M = 1, 0x2BC830A3
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_VALUES = {letter: value for value, letter in enumerate(CHARSET)}


def _reductions() -> tuple[int, ...]:
    table = []
    for top in range(32):
        folded = 0
        for bit, generator in enumerate(_GENERATORS):
            if top >> bit & 1:
                folded ^= generator
        table.append(folded)
    return tuple(table)


_REDUCE = _reductions()


def _checksum(prefix: str, values: list[int]) -> int:
    state = 1
    codes = [ord(letter) for letter in prefix]
    for value in [*[code >> 5 for code in codes], 0, *[code & 31 for code in codes], *values]:
        state = (state & 0x1FFFFFF) << 5 ^ value ^ _REDUCE[state >> 25]
    return state


def decode(text: str) -> tuple[str, int, bytes]:
    """Returns (prefix, witness version, program) of a segwit address in one case. Raises ValueError."""
    lower = text.lower()
    if text not in (lower, text.upper()):
        raise ValueError("it mixes upper and lower case")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"it is longer than {MAX_LENGTH} characters")
    prefix, separator, rest = lower.rpartition("1")
    # `lower()` turns a few letters beyond ASCII into ASCII ones, such as the Kelvin sign.
    if not separator or not prefix or not text.isascii() or any(not 33 <= ord(letter) <= 126 for letter in prefix):
        raise ValueError("it has no readable prefix")
    if len(rest) < 7:
        raise ValueError("it is too short")
    try:
        values = [_VALUES[letter] for letter in rest]
    except KeyError:
        raise ValueError("it has a letter that bech32 does not use") from None
    version = values[0]
    if _checksum(prefix, values) != (_BECH32M if version else _BECH32):
        raise ValueError("its checksum is wrong")
    program = _bytes(values[1:-6])
    if version > 16 or not 2 <= len(program) <= 40 or (version == 0 and len(program) not in (20, 32)):
        raise ValueError("it is no witness program")
    return prefix, version, program


def _bytes(values: list[int]) -> bytes:
    number = 0
    for value in values:
        number = number << 5 | value
    spare = len(values) * 5 % 8
    if spare > 4 or number & ((1 << spare) - 1):
        raise ValueError("its padding is wrong")
    return (number >> spare).to_bytes(len(values) * 5 // 8, "big")


def encode(prefix: str, version: int, program: bytes) -> str:
    """Returns the address of a witness program, lower case. `prefix` is lower case; the program is taken as it is."""
    length = -(-len(program) * 8 // 5)
    number = int.from_bytes(program, "big") << (length * 5 - len(program) * 8)
    values = [version, *[number >> 5 * (length - 1 - place) & 31 for place in range(length)]]
    state = _checksum(prefix, [*values, *[0] * 6]) ^ (_BECH32M if version else _BECH32)
    values += [state >> 5 * (5 - place) & 31 for place in range(6)]
    return prefix + "1" + "".join(CHARSET[value] for value in values)
