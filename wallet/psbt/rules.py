"""Rules for the fields of a PSBT (BIP-174, 370, 371, 373), which `wallet/psbt/fields.py` names.

Each gets the key's bytes after its type, and the value; inside `no_key` the value alone. Each raises WireError.
"""

from __future__ import annotations

from collections.abc import Callable

from embit.util import secp256k1

from wallet.psbt.transaction import Reader, WireError, decode_stack

Rule = Callable[[bytes, bytes], object]

LOCKTIME_IS_A_TIME = 500_000_000

_DEEPEST_LEAF = 128


def no_key(check: Callable[[bytes], object]) -> Rule:
    """Makes a rule for a key that is the bare type; `check` judges the value."""

    def rule(key: bytes, value: bytes) -> None:
        if key:
            raise WireError("its key has bytes after the type")
        check(value)

    return rule


def length(*lengths: int) -> Callable[[bytes], None]:
    def check(value: bytes) -> None:
        if len(value) not in lengths:
            raise WireError(f"it has {len(value)} bytes")

    return check


def anything(value: bytes) -> None:
    """Accepts any bytes: scripts and free bytes are judged where they are used."""


def sized_key(*lengths: int) -> Rule:
    """Makes a rule for a hash in the key and any preimage as the value."""
    right = length(*lengths)

    def rule(key: bytes, value: bytes) -> None:
        right(key)

    return rule


def _public_key(key: bytes) -> None:
    """Requires a compressed or an uncompressed point of the curve; embit takes no hybrid one."""
    try:
        secp256k1.ec_pubkey_parse(key)
    except ValueError:
        raise WireError("a public key is misshapen or not on the curve") from None


def x_only(key: bytes) -> None:
    """Requires a public key of 32 bytes: with a mark before it, a compressed one."""
    _public_key(b"\x02" + key)


def _compressed(key: bytes) -> None:
    length(33)(key)
    _public_key(key)


def _path(value: bytes) -> None:
    """Requires a fingerprint, then steps of four bytes."""
    if not value or len(value) % 4:
        raise WireError("a derivation path is not a fingerprint and whole steps")


def xpub(key: bytes, value: bytes) -> None:
    """Requires a whole extended key (78 bytes): its last 33 are the public key, its fifth is the depth."""
    _compressed(key[45:])
    _path(value)
    if len(value) // 4 - 1 != key[4]:
        raise WireError("an extended public key is not as deep as its path")


def _der(signature: bytes) -> None:
    """Requires a DER signature with its sighash byte, the lengths as BIP-66 has them."""
    outer = Reader(signature[:-1])
    if len(signature) > 73 or outer.take(1) != b"\x30":
        raise WireError("an ECDSA signature is misshapen")
    reader = Reader(outer.sized())
    outer.end()
    for _ in range(2):
        if reader.take(1) != b"\x02":
            raise WireError("an ECDSA signature is misshapen")
        number = reader.sized()
        if not number or number[0] & 0x80 or (len(number) > 1 and not number[0] and not number[1] & 0x80):
            raise WireError("an ECDSA signature has a number that is negative or padded")
    reader.end()


def partial_sig(key: bytes, value: bytes) -> None:
    _public_key(key)
    _der(value)


def derivation(key: bytes, value: bytes) -> None:
    _public_key(key)
    _path(value)


def tap_script_sig(key: bytes, value: bytes) -> None:
    length(64)(key)
    x_only(key[:32])
    length(64, 65)(value)


def tap_leaf(key: bytes, value: bytes) -> None:
    """Requires a control block as the key, a script and its leaf version as the value."""
    depth, rest = divmod(len(key) - 33, 32)
    if rest or not 0 <= depth <= _DEEPEST_LEAF:
        raise WireError("a control block has a wrong length")
    if not value:
        raise WireError("a leaf script without a version")


def tap_derivation(key: bytes, value: bytes) -> None:
    x_only(key)
    reader = Reader(value)
    reader.take(32 * reader.compact())
    _path(reader.rest())


def tap_tree(value: bytes) -> None:
    """Requires leaves, depth first, of one whole tree: as in counting in binary, two of a depth are one above."""
    reader = Reader(value)
    open_depths: list[int] = []
    while not reader.at_end():
        depth, version = reader.number(1), reader.number(1)
        reader.sized()
        if depth > _DEEPEST_LEAF or version & 1:
            raise WireError("a leaf is too deep or its version odd")
        while open_depths and open_depths[-1] == depth:
            open_depths.pop()
            depth -= 1
        open_depths.append(depth)
    # A leaf that comes too late has no sibling, and neither have those below it.
    if open_depths != [0]:
        raise WireError("the leaves make no whole tree")


def participants(key: bytes, value: bytes) -> None:
    _compressed(key)
    if not value or len(value) % 33:
        raise WireError("participants must be whole public keys")
    for at in range(0, len(value), 33):
        _compressed(value[at : at + 33])


def musig(value_length: int) -> Rule:
    """Makes a rule for a key of participant, aggregate and, on a script path, leaf hash."""
    right = length(value_length)

    def rule(key: bytes, value: bytes) -> None:
        length(66, 98)(key)
        _compressed(key[:33])
        _compressed(key[33:66])
        right(value)

    return rule


def proprietary(key: bytes, value: bytes) -> None:
    """Requires an identifier and a subtype; the rest is free."""
    reader = Reader(key)
    reader.sized()
    reader.compact()


def witness(value: bytes) -> None:
    reader = Reader(value)
    decode_stack(reader)
    reader.end()


def compact_value(value: bytes) -> None:
    reader = Reader(value)
    reader.compact()
    reader.end()


def time(value: bytes) -> None:
    length(4)(value)
    if int.from_bytes(value, "little") < LOCKTIME_IS_A_TIME:
        raise WireError("a time to wait for is a height")


def height(value: bytes) -> None:
    length(4)(value)
    if not 0 < int.from_bytes(value, "little") < LOCKTIME_IS_A_TIME:
        raise WireError("a height to wait for is zero or a time")
