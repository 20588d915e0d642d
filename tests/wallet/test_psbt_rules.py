"""Fields one by one that no published vector or named attack touches: a rule takes its limit and nothing past it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.wallet.listings import VAULT
from wallet.psbt import rules
from wallet.psbt.transaction import WireError

COMPRESSED = VAULT.get_public_key().sec()
X_ONLY = COMPRESSED[1:]
NO_POINT = b"\xff" * 32
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32 + "01")
FINGERPRINT = b"\x01\x02\x03\x04"


def refused(rule: Callable[..., object], *given: bytes) -> None:
    with pytest.raises(WireError):
        rule(*given)


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


def test_a_field_without_a_key_has_none_and_its_value_is_looked_at() -> None:
    rule = rules.no_key(rules.length(4))
    rule(b"", b"abcd")
    refused(rule, b"\0", b"abcd")
    refused(rule, b"", b"abc")


def test_lengths_are_those_that_are_named() -> None:
    either = rules.length(64, 65)
    for size in (64, 65):
        either(bytes(size))
    for size in (0, 63, 66):
        refused(either, bytes(size))
    rules.sized_key(20)(bytes(20), b"any preimage")
    refused(rules.sized_key(20), bytes(32), b"any preimage")


def test_times_and_heights_have_four_bytes_and_part_at_five_hundred_million() -> None:
    for value, right, wrong in (
        (500_000_000, rules.time, rules.height),
        (0xFFFFFFFF, rules.time, rules.height),
        (499_999_999, rules.height, rules.time),
        (1, rules.height, rules.time),
    ):
        written = value.to_bytes(4, "little")
        right(written)
        refused(wrong, written)
        refused(right, written + b"\0")
    for rule in (rules.time, rules.height):
        refused(rule, bytes(4))


def test_a_public_key_is_compressed_or_not_and_nothing_else() -> None:
    for right in (COMPRESSED, bytes([5 - COMPRESSED[0]]) + X_ONLY, uncompressed(4)):
        rules.partial_sig(right, DER)
        rules.derivation(right, FINGERPRINT)
    hybrid = 6 + uncompressed(4)[-1] % 2
    for wrong in (
        *(uncompressed(mark) for mark in (hybrid, 2, 3, 5)),
        *(bytes([mark]) + X_ONLY for mark in (0, 1, 4, 5)),
        COMPRESSED[:-1],
        COMPRESSED + b"\0",
        uncompressed(4) + b"\0",
        uncompressed(4)[:-1],
        b"\x02" + NO_POINT,
        b"\x04" + NO_POINT * 2,
        b"",
    ):
        refused(rules.partial_sig, wrong, DER)
        refused(rules.derivation, wrong, FINGERPRINT)


def test_an_x_only_key_is_a_point_without_its_mark() -> None:
    rules.x_only(X_ONLY)
    for wrong in (b"", X_ONLY[:-1], COMPRESSED, X_ONLY * 2, NO_POINT):
        refused(rules.x_only, wrong)


@pytest.mark.parametrize(
    "numbers",
    [
        (b"\x01", b"\x01"),
        (b"\x00", b"\x7f"),
        (b"\x7f\xff", b"\x00\x80"),
        (b"\x00" + b"\xff" * 32, b"\x00" + b"\x80" * 32),
    ],
)
def test_signatures_of_every_length_are_read(numbers: tuple[bytes, bytes]) -> None:
    rules.partial_sig(COMPRESSED, der(*numbers))
    rules.partial_sig(COMPRESSED, der(*numbers[::-1]))


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"\x30",
        b"\x31" + DER[1:],
        DER[:-1],
        DER[:-2] + b"\x01",
        DER + b"\x01",
        b"\x30\x45" + DER[2:],
        b"\x30\x43" + DER[2:],
        b"\x30\x45" + DER[2:-1] + b"\x00\x01",
        b"\x30\x00\x01",
        b"\x30\x22" + DER[2:36] + b"\x01",
        der(b"", b"\x01"),
        der(b"\x01", b""),
        der(b"\x80", b"\x01"),
        der(b"\x01", b"\xff"),
        der(b"\x00\x01", b"\x01"),
        der(b"\x01", b"\x00\x7f"),
        der(b"\x00\x00\x80", b"\x01"),
        der(b"\x01" * 34, b"\x01" * 33),
        DER.replace(b"\x02\x20\x22", b"\x03\x20\x22"),
        b"\x30\x44\x03" + DER[3:],
    ],
)
def test_what_is_no_signature_in_its_one_way_of_writing_is_refused(wrong: bytes) -> None:
    refused(rules.partial_sig, COMPRESSED, wrong)


def test_a_path_is_a_fingerprint_and_whole_steps() -> None:
    for steps in (0, 1, 5):
        rules.derivation(COMPRESSED, FINGERPRINT + bytes(4 * steps))
    for wrong in (b"", FINGERPRINT[:3], FINGERPRINT + b"\0", FINGERPRINT + bytes(3)):
        refused(rules.derivation, COMPRESSED, wrong)


def test_an_extended_key_is_as_deep_as_its_path() -> None:
    def xpub(depth: int, key: bytes = COMPRESSED) -> bytes:
        return b"\x04\x88\xb2\x1e" + bytes([depth]) + bytes(40) + key

    for depth in (0, 1, 3):
        rules.xpub(xpub(depth), FINGERPRINT + bytes(4 * depth))
        refused(rules.xpub, xpub(depth + 1), FINGERPRINT + bytes(4 * depth))
        refused(rules.xpub, xpub(depth), FINGERPRINT + bytes(4 * depth + 4))
        refused(rules.xpub, xpub(depth), FINGERPRINT + bytes(4 * depth + 1))
    refused(rules.xpub, xpub(0)[:-1], FINGERPRINT)
    refused(rules.xpub, xpub(0) + b"\0", FINGERPRINT)
    refused(rules.xpub, xpub(0, b"\x02" + NO_POINT), FINGERPRINT)
    refused(rules.xpub, xpub(0, uncompressed(4)), FINGERPRINT)
    refused(rules.xpub, xpub(0), b"")


def test_a_script_paths_signature_names_a_key_and_a_leaf() -> None:
    key = X_ONLY + bytes(32)
    for size in (64, 65):
        rules.tap_script_sig(key, bytes(size))
    for size in (63, 66):
        refused(rules.tap_script_sig, key, bytes(size))
    refused(rules.tap_script_sig, key[:-1], bytes(64))
    refused(rules.tap_script_sig, key + b"\0", bytes(64))
    refused(rules.tap_script_sig, NO_POINT + bytes(32), bytes(64))
    rules.tap_script_sig(X_ONLY + NO_POINT, bytes(64))


def test_a_control_block_is_of_whole_steps_and_at_most_128() -> None:
    for depth in (0, 1, 128):
        rules.tap_leaf(bytes(33 + 32 * depth), b"\xc0")
        refused(rules.tap_leaf, bytes(33 + 32 * depth), b"")
    for size in (0, 1, 32, 34, 64, 66, 33 + 32 * 129):
        refused(rules.tap_leaf, bytes(size), b"\xc0")


def test_a_taproot_derivation_has_its_leaves_and_then_a_path() -> None:
    for count in (0, 1, 3):
        written = bytes([count]) + bytes(32 * count)
        rules.tap_derivation(X_ONLY, written + FINGERPRINT)
        rules.tap_derivation(X_ONLY, written + FINGERPRINT + bytes(4))
        refused(rules.tap_derivation, X_ONLY, written)
        refused(rules.tap_derivation, X_ONLY, written + FINGERPRINT + b"\0")
    refused(rules.tap_derivation, X_ONLY, b"\x01" + bytes(31))
    refused(rules.tap_derivation, X_ONLY, b"")
    refused(rules.tap_derivation, NO_POINT, b"\0" + FINGERPRINT)


@pytest.mark.parametrize(
    "depths", [(0,), (1, 1), (1, 2, 2), (2, 2, 1), (2, 2, 2, 2), (2, 3, 3, 1), (*range(1, 129), 128)]
)
def test_leaves_that_make_one_whole_tree_are_taken(depths: tuple[int, ...]) -> None:
    rules.tap_tree(leaves(*depths))


@pytest.mark.parametrize(
    "depths",
    [
        (),
        (1,),
        (0, 0),
        (0, 1, 1),
        (1, 1, 0),
        (1, 1, 1),
        (2, 1, 1),
        (2, 1, 2),
        (2, 2),
        (1, 2),
        (2, 2, 2),
        (1, 1, 1, 1),
        (*range(1, 130), 129),
    ],
)
def test_leaves_that_make_none_are_refused(depths: tuple[int, ...]) -> None:
    refused(rules.tap_tree, leaves(*depths))


def test_a_leafs_version_is_even_and_its_script_whole() -> None:
    rules.tap_tree(leaves(0, version=0xFE))
    refused(rules.tap_tree, leaves(0, version=0xC1))
    refused(rules.tap_tree, leaves(0)[:-1])
    refused(rules.tap_tree, leaves(0) + b"\0")


def test_participants_are_whole_compressed_keys() -> None:
    for count in (1, 2, 3):
        rules.participants(COMPRESSED, COMPRESSED * count)
        refused(rules.participants, COMPRESSED, COMPRESSED * count + b"\x02")
    other = b"\x02" + NO_POINT
    for wrong in (b"", COMPRESSED[:-1], other, COMPRESSED + other, other + COMPRESSED):
        refused(rules.participants, COMPRESSED, wrong)
    for key in (b"", X_ONLY, other, uncompressed(4)):
        refused(rules.participants, key, COMPRESSED)


@pytest.mark.parametrize("size", [66, 32])
def test_musig_fields_name_two_keys_and_perhaps_a_leaf(size: int) -> None:
    rule, other = rules.musig(size), b"\x02" + NO_POINT
    for key in (COMPRESSED * 2, COMPRESSED * 2 + bytes(32), COMPRESSED * 2 + NO_POINT):
        rule(key, bytes(size))
        refused(rule, key, bytes(size - 1))
        refused(rule, key, bytes(size + 1))
    for key in (COMPRESSED, COMPRESSED * 3, COMPRESSED * 2 + b"\0", other + COMPRESSED, COMPRESSED + other):
        refused(rule, key, bytes(size))
    refused(rule, other + COMPRESSED + bytes(32), bytes(size))
    refused(rule, COMPRESSED + other + bytes(32), bytes(size))


def test_a_proprietary_key_has_an_identifier_and_a_subtype() -> None:
    for key in (b"\x02ab\x00", b"\x00\x07", b"\x02ab\x00and more"):
        rules.proprietary(key, b"")
    for key in (b"", b"\x02a", b"\x02ab"):
        refused(rules.proprietary, key, b"")


def test_a_witness_and_a_count_leave_nothing_over() -> None:
    for stack in (b"\x00", b"\x01\x00", b"\x02\x01a\x02bc"):
        rules.witness(stack)
        refused(rules.witness, stack + b"\0")
        refused(rules.witness, stack[:-1])
    for count in (b"\x00", b"\xfc", b"\xfd\xfd\x00"):
        rules.compact_value(count)
        refused(rules.compact_value, count + b"\0")
        refused(rules.compact_value, count[:-1])
