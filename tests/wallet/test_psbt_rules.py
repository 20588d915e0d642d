"""Fields one by one that no published vector or named attack touches: a rule takes its limit and nothing past it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.wallet.listings import VAULT
from wallet.psbt import fields
from wallet.psbt.transaction import WireError

COMPRESSED = VAULT.get_public_key().sec()
X_ONLY = COMPRESSED[1:]
NO_POINT = b"\xff" * 32
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32 + "01")
FINGERPRINT = b"\x01\x02\x03\x04"


def uncompressed(mark: int) -> bytes:
    """Returns the vault's key in 65 bytes; 6 and 7 are the hybrid marks, which bare libsecp256k1 takes."""
    x = int.from_bytes(COMPRESSED[1:], "big")
    prime = 2**256 - 2**32 - 977
    y = pow(x**3 + 7, (prime + 1) // 4, prime)
    if y % 2 != COMPRESSED[0] % 2:
        y = prime - y
    return bytes([mark]) + x.to_bytes(32, "big") + y.to_bytes(32, "big")


def der(first: bytes, second: bytes, sighash: bytes = b"\x01") -> bytes:
    """Returns a signature of these two numbers, its lengths right."""
    numbers = b"".join(b"\x02" + bytes([len(number)]) + number for number in (first, second))
    return b"\x30" + bytes([len(numbers)]) + numbers + sighash


def leaves(*depths: int, version: int = 0xC0) -> bytes:
    """Returns a tree's leaves of these depths, each with a script of one byte."""
    return b"".join(bytes([depth, version, 1, 0x51]) for depth in depths)


def xpub(depth: int, key: bytes = COMPRESSED) -> bytes:
    return b"\x04\x88\xb2\x1e" + bytes([depth]) + bytes(40) + key


HYBRID = 6 + uncompressed(4)[-1] % 2
NO_KEYS = (
    *(uncompressed(mark) for mark in (HYBRID, 2, 3, 5)),
    *(bytes([mark]) + X_ONLY for mark in (0, 1, 4, 5)),
    *(COMPRESSED[:-1], COMPRESSED + b"\0", uncompressed(4) + b"\0", uncompressed(4)[:-1]),
    *(b"\x02" + NO_POINT, b"\x04" + NO_POINT * 2, b""),
)
KEYS = (COMPRESSED, bytes([5 - COMPRESSED[0]]) + X_ONLY, uncompressed(4))
OTHER = b"\x02" + NO_POINT  # no key, though it has the length of one
NUMBERS = [
    (b"\x01", b"\x01"),
    (b"\x00", b"\x7f"),
    (b"\x7f\xff", b"\x00\x80"),
    (b"\x00" + b"\xff" * 32, b"\x00" + b"\x80" * 32),
]
NO_SIGNATURES = [
    *(b"", b"\x30", b"\x31" + DER[1:], DER[:-1], DER[:-2] + b"\x01", DER + b"\x01", b"\x30\x00\x01"),
    *(b"\x30\x45" + DER[2:], b"\x30\x43" + DER[2:], b"\x30\x45" + DER[2:-1] + b"\x00\x01"),
    *(b"\x30\x22" + DER[2:36] + b"\x01", b"\x30\x44\x03" + DER[3:], DER.replace(b"\x02\x20\x22", b"\x03\x20\x22")),
    *(der(b"", b"\x01"), der(b"\x01", b""), der(b"\x80", b"\x01"), der(b"\x01", b"\xff"), der(b"\x00\x01", b"\x01")),
    *(der(b"\x01", b"\x00\x7f"), der(b"\x00\x00\x80", b"\x01"), der(b"\x01" * 34, b"\x01" * 33)),
]
TREES = [(0,), (1, 1), (1, 2, 2), (2, 2, 1), (2, 2, 2, 2), (2, 3, 3, 1), (*range(1, 129), 128)]
NO_TREES = [
    *((), (1,), (0, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1), (2, 1, 1), (2, 1, 2), (2, 2), (1, 2), (2, 2, 2)),
    *((1, 1, 1, 1), (*range(1, 130), 129)),
]
TAP_KEY = X_ONLY + bytes(32)
PAIR = COMPRESSED * 2


def number(value: int) -> bytes:
    return value.to_bytes(4, "little")


def only(values: Iterable[bytes]) -> list[tuple[bytes]]:
    return [(value,) for value in values]


Given = list[tuple[bytes, ...]]
# What is read, by which rule, what it takes, and what it refuses.
TABLE: dict[str, tuple[Callable[..., object], Given, Given]] = {
    "a field without a key": (
        fields.no_key(fields.length(4)),
        [(b"", b"abcd")],
        [(b"\0", b"abcd"), (b"", b"abc")],
    ),
    "one of two lengths": (fields.length(64, 65), only(map(bytes, (64, 65))), only(map(bytes, (0, 63, 66)))),
    "a key of a length": (fields.sized_key(20), [(bytes(20), b"any preimage")], [(bytes(32), b"any preimage")]),
    "a time": (
        fields.time,
        only(map(number, (500_000_000, 0xFFFFFFFF))),
        only([number(499_999_999), number(1), number(500_000_000) + b"\0", number(0xFFFFFFFF) + b"\0", bytes(4)]),
    ),
    "a height": (
        fields.height,
        only(map(number, (499_999_999, 1))),
        only([number(500_000_000), number(0xFFFFFFFF), number(499_999_999) + b"\0", number(1) + b"\0", bytes(4)]),
    ),
    "the key of a signature": (fields.partial_sig, [(key, DER) for key in KEYS], [(key, DER) for key in NO_KEYS]),
    "the key of a path": (
        fields.derivation,
        [(key, FINGERPRINT) for key in KEYS],
        [(key, FINGERPRINT) for key in NO_KEYS],
    ),
    "an x-only key": (fields.x_only, [(X_ONLY,)], only([b"", X_ONLY[:-1], COMPRESSED, X_ONLY * 2, NO_POINT])),
    "a signature": (
        fields.partial_sig,
        [(COMPRESSED, der(*pair)) for numbers in NUMBERS for pair in (numbers, numbers[::-1])],
        [(COMPRESSED, wrong) for wrong in NO_SIGNATURES],
    ),
    "a path": (
        fields.derivation,
        [(COMPRESSED, FINGERPRINT + bytes(4 * steps)) for steps in (0, 1, 5)],
        [(COMPRESSED, wrong) for wrong in (b"", FINGERPRINT[:3], FINGERPRINT + b"\0", FINGERPRINT + bytes(3))],
    ),
    "an extended key as deep as its path": (
        fields.xpub,
        [(xpub(depth), FINGERPRINT + bytes(4 * depth)) for depth in (0, 1, 3)],
        [
            *((xpub(depth + 1), FINGERPRINT + bytes(4 * depth)) for depth in (0, 1, 3)),
            *((xpub(depth), FINGERPRINT + bytes(4 * depth + more)) for depth in (0, 1, 3) for more in (4, 1)),
            *((key, FINGERPRINT) for key in (xpub(0)[:-1], xpub(0) + b"\0", xpub(0, OTHER), xpub(0, uncompressed(4)))),
            (xpub(0), b""),
        ],
    ),
    "a signature by a script path": (
        fields.tap_script_sig,
        [(TAP_KEY, bytes(64)), (TAP_KEY, bytes(65)), (X_ONLY + NO_POINT, bytes(64))],
        [(TAP_KEY, bytes(63)), (TAP_KEY, bytes(66))]
        + [(key, bytes(64)) for key in (TAP_KEY[:-1], TAP_KEY + b"\0", NO_POINT + bytes(32))],
    ),
    "a control block of at most 128 steps": (
        fields.tap_leaf,
        [(bytes(33 + 32 * depth), b"\xc0") for depth in (0, 1, 128)],
        [(bytes(33 + 32 * depth), b"") for depth in (0, 1, 128)]
        + [(bytes(size), b"\xc0") for size in (0, 1, 32, 34, 64, 66, 33 + 32 * 129)],
    ),
    "a taproot derivation": (
        fields.tap_derivation,
        [
            (X_ONLY, bytes([count]) + bytes(32 * count) + FINGERPRINT + more)
            for count in (0, 1, 3)
            for more in (b"", bytes(4))
        ],
        [
            *((X_ONLY, bytes([count]) + bytes(32 * count)) for count in (0, 1, 3)),
            *((X_ONLY, bytes([count]) + bytes(32 * count) + FINGERPRINT + b"\0") for count in (0, 1, 3)),
            *((X_ONLY, b"\x01" + bytes(31)), (X_ONLY, b""), (NO_POINT, b"\0" + FINGERPRINT)),
        ],
    ),
    "leaves of one whole tree": (
        fields.tap_tree,
        only([*(leaves(*depths) for depths in TREES), leaves(0, version=0xFE)]),
        only(leaves(*depths) for depths in NO_TREES)
        + only([leaves(0, version=0xC1), leaves(0)[:-1], leaves(0) + b"\0"]),
    ),
    "participants": (
        fields.participants,
        [(COMPRESSED, COMPRESSED * count) for count in (1, 2, 3)],
        [
            *((COMPRESSED, COMPRESSED * count + b"\x02") for count in (1, 2, 3)),
            *((COMPRESSED, wrong) for wrong in (b"", COMPRESSED[:-1], OTHER, COMPRESSED + OTHER, OTHER + COMPRESSED)),
            *((key, COMPRESSED) for key in (b"", X_ONLY, OTHER, uncompressed(4))),
        ],
    ),
    **{
        f"MuSig2 of {size} bytes": (
            fields.musig(size),
            [(key, bytes(size)) for key in (PAIR, PAIR + bytes(32), PAIR + NO_POINT)],
            [(key, bytes(size + d)) for key in (PAIR, PAIR + bytes(32), PAIR + NO_POINT) for d in (-1, 1)]
            + [(key, bytes(size)) for key in (COMPRESSED, COMPRESSED * 3, PAIR + b"\0")]
            + [
                (key + leaf, bytes(size))
                for key in (OTHER + COMPRESSED, COMPRESSED + OTHER)
                for leaf in (b"", bytes(32))
            ],
        )
        for size in (66, 32)
    },
    "a proprietary key": (
        fields.proprietary,
        [(key, b"") for key in (b"\x02ab\x00", b"\x00\x07", b"\x02ab\x00and more")],
        [(key, b"") for key in (b"", b"\x02a", b"\x02ab")],
    ),
    "a witness": (
        fields.witness,
        only(stacks := (b"\x00", b"\x01\x00", b"\x02\x01a\x02bc")),
        only(wrong for stack in stacks for wrong in (stack + b"\0", stack[:-1])),
    ),
    "a count": (
        fields.compact_value,
        only(counts := (b"\x00", b"\xfc", b"\xfd\xfd\x00")),
        only(wrong for count in counts for wrong in (count + b"\0", count[:-1])),
    ),
}


@pytest.mark.parametrize("what", TABLE)
def test_a_rule_takes_its_limit_and_nothing_past_it(what: str) -> None:
    rule, right, wrong = TABLE[what]
    for given in right:
        rule(*given)
    for given in wrong:
        with pytest.raises(WireError):
            rule(*given)
