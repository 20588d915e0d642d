"""The known fields of a PSBT (BIP-174, 370, 371, 373), and the rule for the shape of each.

A field is a key and a value; the key is a type (a compact size) and more bytes. A rule gets the key's bytes after the
type, and the value; inside `no_key` the value alone. Each raises WireError. The reader keeps fields of other types.
"""

from __future__ import annotations

from collections.abc import Callable

from embit.util import secp256k1

from wallet.psbt.transaction import Reader, WireError, decode_network, decode_output, decode_stack

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
    """Accepts any bytes: scripts and free-form values are checked where they are used."""


def sized_key(*lengths: int) -> Rule:
    """Makes a rule for a hash in the key and any preimage as the value."""
    right = length(*lengths)

    def rule(key: bytes, value: bytes) -> None:
        right(key)

    return rule


def _public_key(key: bytes) -> None:
    """Requires a compressed or uncompressed point of the curve; embit rejects hybrid encodings."""
    try:
        secp256k1.ec_pubkey_parse(key)
    except ValueError:
        raise WireError("a public key is misshapen or not on the curve") from None


def x_only(key: bytes) -> None:
    """Requires an x-only public key: 32 bytes, a compressed key without its prefix byte."""
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
    """Requires the leaves of one whole tree, depth first: two siblings merge into a node one level up."""
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
    # A misplaced leaf never gets a sibling, so that its depth is left over.
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
    """Requires an identifier and a subtype; further bytes are free."""
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


PROPRIETARY = 0xFC

GLOBAL_UNSIGNED_TX = 0x00
GLOBAL_TX_VERSION = 0x02
GLOBAL_FALLBACK_LOCKTIME = 0x03
GLOBAL_INPUT_COUNT = 0x04
GLOBAL_OUTPUT_COUNT = 0x05
GLOBAL_VERSION = 0xFB

IN_NON_WITNESS_UTXO = 0x00
IN_WITNESS_UTXO = 0x01
IN_PARTIAL_SIG = 0x02
IN_SIGHASH_TYPE = 0x03
IN_REDEEM_SCRIPT = 0x04
IN_WITNESS_SCRIPT = 0x05
IN_FINAL_SCRIPTSIG = 0x07
IN_FINAL_SCRIPTWITNESS = 0x08
IN_PREVIOUS_TXID = 0x0E
IN_OUTPUT_INDEX = 0x0F
IN_SEQUENCE = 0x10
IN_TIME_LOCKTIME = 0x11
IN_HEIGHT_LOCKTIME = 0x12
IN_TAP_KEY_SIG = 0x13
IN_TAP_SCRIPT_SIG = 0x14
IN_TAP_LEAF_SCRIPT = 0x15
IN_TAP_INTERNAL_KEY = 0x17
IN_TAP_MERKLE_ROOT = 0x18
MUSIG2 = (0x1A, 0x1B, 0x1C)  # participants, public nonce, partial signature

OUT_AMOUNT = 0x03
OUT_SCRIPT = 0x04

GLOBAL: dict[int, Rule] = {
    GLOBAL_UNSIGNED_TX: no_key(anything),  # read by the decoder
    0x01: xpub,
    GLOBAL_TX_VERSION: no_key(length(4)),
    GLOBAL_FALLBACK_LOCKTIME: no_key(length(4)),
    GLOBAL_INPUT_COUNT: no_key(compact_value),
    GLOBAL_OUTPUT_COUNT: no_key(compact_value),
    0x06: no_key(length(1)),  # flags: what may still be changed
    GLOBAL_VERSION: no_key(length(4)),
    PROPRIETARY: proprietary,
}

INPUT: dict[int, Rule] = {
    IN_NON_WITNESS_UTXO: no_key(decode_network),
    IN_WITNESS_UTXO: no_key(decode_output),
    IN_PARTIAL_SIG: partial_sig,
    IN_SIGHASH_TYPE: no_key(length(4)),
    IN_REDEEM_SCRIPT: no_key(anything),
    IN_WITNESS_SCRIPT: no_key(anything),
    0x06: derivation,
    IN_FINAL_SCRIPTSIG: no_key(anything),
    IN_FINAL_SCRIPTWITNESS: no_key(witness),
    0x09: no_key(anything),  # proof of reserves
    0x0A: sized_key(20),  # preimages, by RIPEMD-160, SHA-256, HASH160 and HASH256
    0x0B: sized_key(32),
    0x0C: sized_key(20),
    0x0D: sized_key(32),
    IN_PREVIOUS_TXID: no_key(length(32)),
    IN_OUTPUT_INDEX: no_key(length(4)),
    IN_SEQUENCE: no_key(length(4)),
    IN_TIME_LOCKTIME: no_key(time),
    IN_HEIGHT_LOCKTIME: no_key(height),
    IN_TAP_KEY_SIG: no_key(length(64, 65)),
    IN_TAP_SCRIPT_SIG: tap_script_sig,
    IN_TAP_LEAF_SCRIPT: tap_leaf,
    0x16: tap_derivation,
    IN_TAP_INTERNAL_KEY: no_key(x_only),
    IN_TAP_MERKLE_ROOT: no_key(length(32)),
    MUSIG2[0]: participants,
    MUSIG2[1]: musig(66),
    MUSIG2[2]: musig(32),
    PROPRIETARY: proprietary,
}

OUTPUT: dict[int, Rule] = {
    0x00: no_key(anything),  # redeem script
    0x01: no_key(anything),  # witness script
    0x02: derivation,
    OUT_AMOUNT: no_key(length(8)),
    OUT_SCRIPT: no_key(anything),
    0x05: no_key(x_only),
    0x06: no_key(tap_tree),
    0x07: tap_derivation,
    0x08: participants,
    PROPRIETARY: proprietary,
}

# Fields that only one of the two versions may have.
ONLY_V0_GLOBAL = frozenset({GLOBAL_UNSIGNED_TX})
ONLY_V2_GLOBAL = frozenset({GLOBAL_TX_VERSION, GLOBAL_FALLBACK_LOCKTIME, GLOBAL_INPUT_COUNT, GLOBAL_OUTPUT_COUNT, 0x06})
ONLY_V2_INPUT = frozenset({IN_PREVIOUS_TXID, IN_OUTPUT_INDEX, IN_SEQUENCE, IN_TIME_LOCKTIME, IN_HEIGHT_LOCKTIME})
ONLY_V2_OUTPUT = frozenset({OUT_AMOUNT, OUT_SCRIPT})
