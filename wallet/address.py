"""Bitcoin addresses: base58, bech32, the hash of a public key, and the settings' addresses in their normal form.

Two texts that pay the same script become one text here. Otherwise an upper-case copy of an address would be a second
account, or pass a whitelist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from core import fields
from core.errors import BidkeeperError, SettingsError
from core.settings import Settings

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
MAX_LENGTH = 90

_BASE58_VALUES = {letter: value for value, letter in enumerate(ALPHABET)}


def decode_check(text: str) -> bytes:
    """Returns the bytes of `text` without their checksum. Raises ValueError."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"it is longer than {MAX_LENGTH} characters")
    number = 0
    try:
        for letter in text:
            number = number * 58 + _BASE58_VALUES[letter]
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


CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

_BECH32, _BECH32M = 1, 0x2BC830A3
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_VALUES = {letter: value for value, letter in enumerate(CHARSET)}


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
        values = [_BECH32_VALUES[letter] for letter in rest]
    except KeyError:
        raise ValueError("it has a letter that bech32 does not use") from None
    version = values[0]
    if _checksum(prefix, values) != (_BECH32M if version else _BECH32):
        raise ValueError("its checksum is wrong")
    program = _bytes(values[1:-6])
    if version > 16 or not 2 <= len(program) <= 40 or (version == 0 and len(program) not in (20, 32)):
        raise ValueError("it is not a witness program")
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
    """Returns the address of a witness program, lower case. `prefix` must be lower case; the program is not checked."""
    length = -(-len(program) * 8 // 5)
    number = int.from_bytes(program, "big") << (length * 5 - len(program) * 8)
    values = [version, *[number >> 5 * (length - 1 - place) & 31 for place in range(length)]]
    state = _checksum(prefix, [*values, *[0] * 6]) ^ (_BECH32M if version else _BECH32)
    values += [state >> 5 * (5 - place) & 31 for place in range(6)]
    return prefix + "1" + "".join(CHARSET[value] for value in values)


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


Kind = Literal["p2wpkh", "p2tr", "p2sh", "p2pkh", "p2wsh", "p2a", "witness"]
Network = Literal["mainnet", "testnet", "regtest"]
SIGN_IN_KINDS: tuple[Kind, ...] = ("p2wpkh", "p2tr", "p2sh")

_PREFIXES: dict[str, Network] = {"bc": "mainnet", "tb": "testnet", "bcrt": "regtest"}
_VERSIONS: dict[int, tuple[Kind, Network]] = {
    0: ("p2pkh", "mainnet"),
    5: ("p2sh", "mainnet"),
    111: ("p2pkh", "testnet"),
    196: ("p2sh", "testnet"),
}
_WITNESS: dict[tuple[int, int], Kind] = {(0, 20): "p2wpkh", (0, 32): "p2wsh", (1, 32): "p2tr", (1, 2): "p2a"}


class AddressError(BidkeeperError):
    """A text that is not an accepted address; the message says why without repeating it."""


class Address(Struct, frozen=True):
    """One address. `text` is its normal form; `program` the witness program, script hash or key hash.

    `kind` is "witness" for witness versions that are not defined yet.
    """

    text: str
    kind: Kind
    program: bytes
    network: Network


@lru_cache(maxsize=128)  # the rules of one listing read the same address four times
def parse(text: str) -> Address:
    """Reads an address of any kind and network. Raises AddressError."""
    if len(text) > MAX_LENGTH:
        raise AddressError(f"not an address: it is longer than {MAX_LENGTH} characters")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise AddressError("not an address: it has a blank or a character that addresses do not use")
    try:
        if text.lower().startswith(("bc1", "tb1", "bcrt1")):
            return _segwit(text)
        return _older(text)
    except ValueError as error:
        raise AddressError(f"not an address: {error}") from None


def sign_in_address(text: str) -> str:
    """Returns the normal form of a mainnet P2WPKH, P2TR or P2SH address, else AddressError."""
    address = parse(text)
    if address.network != "mainnet":
        raise AddressError(f"a {address.network} address; a mainnet address is needed")
    if address.kind not in SIGN_IN_KINDS:
        raise AddressError("this type of address cannot sign here; use one that starts with bc1q, bc1p or 3")
    return address.text


def pasted_sign_in_address(text: str) -> str:
    """Returns the normal form of a sign-in address as people paste it (`core.fields`), else AddressError."""
    try:
        return sign_in_address(fields.address(text))
    except fields.PasteError as error:
        raise AddressError(f"not an address: it {error}") from None


def p2wpkh(key_hash: bytes) -> str:
    """Returns the mainnet address of a 20-byte HASH160 of a compressed public key."""
    return _encoded(0, key_hash, 20)


def p2tr(output_key: bytes) -> str:
    """Returns the mainnet address of a 32-byte x-only output key (already tweaked)."""
    return _encoded(1, output_key, 32)


def _encoded(version: int, program: bytes, length: int) -> str:
    if len(program) != length:
        raise ValueError(f"the program must have {length} bytes, not {len(program)}")
    return encode("bc", version, program)


def _segwit(text: str) -> Address:
    prefix, version, program = decode(text)
    network = _PREFIXES.get(prefix)
    if network is None:
        raise ValueError("its prefix is of no network")
    return Address(text.lower(), _WITNESS.get((version, len(program)), "witness"), program, network)


def _older(text: str) -> Address:
    body = decode_check(text)
    if len(body) != 21 or body[0] not in _VERSIONS:
        raise ValueError("it is of no known type")
    kind, network = _VERSIONS[body[0]]
    return Address(text, kind, body[1:], network)


def with_normal_addresses(settings: Settings) -> Settings:
    """Returns the settings with every address normalised. Raises SettingsError, with one line for each invalid one."""
    problems: list[str] = []
    whitelist = _normal("BIDKEEPER_WHITELIST", settings.whitelist - {"*"}, problems) | settings.whitelist & {"*"}
    admins = _normal("BIDKEEPER_ADMINS", settings.admins, problems)
    if problems:
        raise SettingsError(problems)
    return replace(settings, whitelist=whitelist, admins=admins)


def _normal(setting: str, texts: frozenset[str], problems: list[str]) -> frozenset[str]:
    found = set()
    for text in sorted(texts):
        try:
            found.add(pasted_sign_in_address(text))
        except AddressError as error:
            problems.append(f"{setting}: {text[:100]}: {error}")
    return frozenset(found)
