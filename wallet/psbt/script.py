"""Output scripts: of our own keys, of addresses, of taproot leaves (BIP-341), of two kinds of escrow, and of
venues' bidding wallets.

An offer's escrow at ord.net pays by a leaf whose form it publishes ("Collection Offers"). Only the part after the data
is enforced when the escrow is spent; the data itself rests on the venue's claim.

A listing's escrow holds the item on its way to a buyer and is rebuilt from our own vault key. The venue signs such a
sale, too, so that no one can outbid a buyer who is already on the network. Two forms are known:

- ord.net: `tr(ours, multi_a(2, ours, venue))` (its document "Sale PSBT Construction"). Our key alone takes the item
  back, immediately, by key path.
- Ordinals Wallet, "passthrough v4": `tr(NUMS, {multi_a(2, ours, venue), <144> CSV DROP <ours> CHECKSIG})`. It has
  no key path; our key alone takes the item back 144 blocks after it arrived.

Of the venue's data only its key enters them, and that is pinned (wallet/terms.py).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from typing import Literal

from embit.util import secp256k1
from msgspec import Struct

from wallet.address import Address, hash160
from wallet.psbt import fields
from wallet.psbt.fields import x_only
from wallet.psbt.transaction import ALL, DEFAULT, Reader, WireError, sized
from wallet.terms import LOCK_BLOCKS, CoSigners, EscrowTerms

OwnKind = Literal["p2wpkh", "p2sh-p2wpkh", "p2tr"]


@functools.lru_cache(maxsize=1024)  # several rules need the same script, and a taproot tweak is slow
def own_script(kind: OwnKind, public_key: bytes) -> bytes:
    """Returns the script that pays `public_key` (33 bytes; for P2TR the untweaked internal key)."""
    if kind == "p2wpkh":
        return redeem_script(public_key)
    if kind == "p2sh-p2wpkh":
        return b"\xa9\x14" + hash160(redeem_script(public_key)) + b"\x87"
    from embit.ec import PublicKey  # here, because a manager never needs it

    output_key: bytes = PublicKey.parse(public_key).taproot_tweak(b"").xonly()
    return b"\x51\x20" + output_key


def redeem_script(public_key: bytes) -> bytes:
    """Returns the redeem script of a nested P2WPKH, which is the script of a bare P2WPKH."""
    return b"\x00\x14" + hash160(public_key)


def script_of(address: Address) -> bytes | None:
    """Returns the script of a P2WPKH, P2TR or P2SH address; None for the kinds that are never paid here."""
    if address.kind == "p2wpkh":
        return b"\x00\x14" + address.program
    if address.kind == "p2tr":
        return b"\x51\x20" + address.program
    if address.kind == "p2sh":
        return b"\xa9\x14" + address.program + b"\x87"
    return None


TAPSCRIPT = 0xC0
_KEY_BYTES = _HASH_BYTES = 32


def leaf_hash(script: bytes, version: int = TAPSCRIPT) -> bytes:
    """Returns the hash of a leaf, which its signatures cover."""
    return _tagged(b"TapLeaf", bytes([version]) + sized(script))


def output_script(leaf: bytes, control_block: bytes) -> bytes:
    """Returns the script of the output that has this leaf, by its control block. Raises WireError.

    The block is a leaf version with the output key's parity, the internal key, and the sibling hashes up to the root.
    The parity is not checked: a wrong one makes an invalid spend.
    """
    internal, path = control_block[1 : 1 + _KEY_BYTES], control_block[1 + _KEY_BYTES :]
    x_only(internal)
    root = leaf
    for at in range(0, len(path), _HASH_BYTES):
        root = branch_hash(root, path[at : at + _HASH_BYTES])
    return b"\x51\x20" + output_key(internal, root)[1:]


def branch_hash(one: bytes, other: bytes) -> bytes:
    """Returns the hash of two leaves or branches, given in either order."""
    return _tagged(b"TapBranch", b"".join(sorted((one, other))))


def output_key(internal: bytes, root: bytes) -> bytes:
    """Returns the key (33 bytes, the first its parity) of the output with this x-only internal key and merkle root."""
    tweak = _tagged(b"TapTweak", internal + root)
    point = secp256k1.ec_pubkey_add(secp256k1.ec_pubkey_parse(b"\x02" + internal), tweak)
    return bytes(secp256k1.ec_pubkey_serialize(point))


def _tagged(tag: bytes, data: bytes) -> bytes:
    head = hashlib.sha256(tag).digest()
    return hashlib.sha256(head + head + data).digest()


_DATA_BEGIN, _DATA_END = b"\x00\x63", b"\x68"  # 0 IF … ENDIF, which never runs
_VERSION = b"ordnet-offer/v2"
_SHA256, _EQUALVERIFY = b"\xa8", b"\x88"
_CHECKSIG, _CHECKSIGADD, _CHECKSIGVERIFY = b"\xac", b"\xba", b"\xad"
_ONE_OF_TWO = b"\x51\x9d"  # 1 NUMEQUALVERIFY
_NUMBER_BYTES = 8
_LEAF_HASH_BYTES = _LEAF_KEY_BYTES = 32
_LONGEST_PUSH = 75  # bytes; a longer push is encoded differently


class OfferLeaf(Struct, frozen=True):
    """The terms in a leaf: sats, seconds since the epoch, the script that the goods go to, and x-only keys.

    `eligible_root` and `criteria_hash` commit to the inscriptions that it may buy, without listing them.
    `secret_hash` commits to a secret of the venue.
    """

    price_sats: int
    expires_s: int
    receive_script: bytes
    eligible_root: bytes
    criteria_hash: bytes
    secret_hash: bytes
    buyer: bytes
    co_signers: CoSigners


def read_leaf(script: bytes) -> OfferLeaf:
    """Reads a leaf, which has only one encoding. Raises WireError."""
    reader = Reader(script)
    _take(reader, _DATA_BEGIN)
    if _take_push(reader) != _VERSION:
        raise WireError("the leaf is not an offer's of version 2")
    price, expires = (int.from_bytes(_take_push(reader, _NUMBER_BYTES), "little") for _ in range(2))
    receive = _take_push(reader)
    root, criteria = (_take_push(reader, _LEAF_HASH_BYTES) for _ in range(2))
    _take(reader, _DATA_END + _SHA256)
    secret = _take_push(reader, _LEAF_HASH_BYTES)
    _take(reader, _EQUALVERIFY)
    buyer = _key(reader, _CHECKSIG)
    market = _key(reader, _CHECKSIGADD + _ONE_OF_TWO)
    gate = _key(reader, _CHECKSIGVERIFY)
    enclave = _key(reader, _CHECKSIG)
    reader.end()
    return OfferLeaf(price, expires, receive, root, criteria, secret, buyer, CoSigners(market, gate, enclave))


def _key(reader: Reader, operation: bytes) -> bytes:
    """Takes a key and the operation after it."""
    key = _take_push(reader, _LEAF_KEY_BYTES)
    _take(reader, operation)
    return key


def _take_push(reader: Reader, length: int | None = None) -> bytes:
    pushed = reader.number(1)
    if not 0 < pushed <= _LONGEST_PUSH or length not in (None, pushed):
        raise WireError("the leaf has something else than an offer's has")
    return reader.take(pushed)


def _take(reader: Reader, operations: bytes) -> None:
    if reader.take(len(operations)) != operations:
        raise WireError("the leaf does something else than an offer's does")


# The point of BIP-341 without a known private key.
NUMS = bytes.fromhex("50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0")
RECOVERY_BLOCKS = LOCK_BLOCKS["ordinalswallet"]

_CSV, _DROP, _TWO, _NUMEQUAL = (bytes([op]) for op in (0xB2, 0x75, 0x52, 0x9C))


class Leaf(Struct, frozen=True):
    """A leaf of an escrow: its script, and the control block that a spend of it needs."""

    script: bytes
    control_block: bytes

    @property
    def hash(self) -> bytes:
        """The hash of the leaf, which its signatures cover."""
        return leaf_hash(self.script)


class Escrow(Struct, frozen=True):
    """An escrow of our key and a venue's. If `recovery` is None, our key takes the item back by key path."""

    script: bytes
    internal_key: bytes
    merkle_root: bytes
    sale: Leaf
    recovery: Leaf | None


def escrow_at(script: bytes, public_key: bytes, terms: Iterable[EscrowTerms]) -> Escrow | None:
    """Returns the escrow of our `public_key` whose output has this script; None if no terms match."""
    found = (escrow_of(public_key, each) for each in terms)
    return next((escrow for escrow in found if escrow.script == script), None)


def escrow_of(public_key: bytes, terms: EscrowTerms) -> Escrow:
    """Returns the escrow of our `public_key` (33 bytes, the untweaked vault key) at the venue of these terms."""
    ours = public_key[1:]
    sale = _push(ours) + _CHECKSIG + _push(terms.cosigner) + _CHECKSIGADD + _TWO + _NUMEQUAL
    if terms.form == "ordnet":
        return _ordnet(ours, sale)
    return _ordinalswallet(ours, sale)


def _ordnet(ours: bytes, sale: bytes) -> Escrow:
    root = leaf_hash(sale)
    key = output_key(ours, root)
    return Escrow(_p2tr(key), ours, root, Leaf(sale, _block(key, ours)), None)


def _ordinalswallet(ours: bytes, sale: bytes) -> Escrow:
    recovery = _push(RECOVERY_BLOCKS.to_bytes(2, "little")) + _CSV + _DROP + _push(ours) + _CHECKSIG
    root = branch_hash(leaf_hash(sale), leaf_hash(recovery))
    key = output_key(NUMS, root)
    return Escrow(
        _p2tr(key),
        NUMS,
        root,
        Leaf(sale, _block(key, NUMS, leaf_hash(recovery))),
        Leaf(recovery, _block(key, NUMS, leaf_hash(sale))),
    )


def _block(key: bytes, internal: bytes, sibling: bytes = b"") -> bytes:
    return bytes([TAPSCRIPT | key[0] & 1]) + internal + sibling


def _p2tr(key: bytes) -> bytes:
    return b"\x51\x20" + key[1:]


def _push(data: bytes) -> bytes:
    return bytes([len(data)]) + data


_OP_CODESEPARATOR = 0xAB
_LARGEST_PUSH = 0x4B
_PUSH_LENGTHS = {0x4C: 1, 0x4D: 2, 0x4E: 4}  # bytes of the length behind OP_PUSHDATA1, 2 and 4

# Fields of an unsigned input. Any other known field means that it is signed already, or is spent in another way.
_OF_ALL = {fields.IN_NON_WITNESS_UTXO, fields.IN_WITNESS_UTXO, fields.IN_SIGHASH_TYPE}
_OF_P2WSH = frozenset({*_OF_ALL, fields.IN_WITNESS_SCRIPT, 0x06})
_OF_LEAF = frozenset({*_OF_ALL, fields.IN_TAP_LEAF_SCRIPT, fields.IN_TAP_INTERNAL_KEY, fields.IN_TAP_MERKLE_ROOT, 0x16})


class WalletScript(Struct, frozen=True):
    """A script, and the output script `paid_to` that commits to it; `control_block` is a P2TR leaf's, else empty."""

    script: bytes
    paid_to: bytes
    control_block: bytes = b""

    @property
    def is_leaf(self) -> bool:
        """Whether it is a leaf of a taproot output."""
        return bool(self.control_block)

    @property
    def sighashes(self) -> tuple[int, ...]:
        """The sighashes that cover everything, first the default of a PSBT that names none (BIP-174, BIP-371)."""
        return (DEFAULT, ALL) if self.is_leaf else (ALL,)

    @property
    def unsigned_fields(self) -> frozenset[int]:
        """The types of the fields that an input has before it is signed."""
        return _OF_LEAF if self.is_leaf else _OF_P2WSH


def has_key(wallet: WalletScript, public_key: bytes) -> bool:
    """Tells whether the script pushes our key (33 bytes; in a leaf its last 32). Raises WireError as `_pushes`."""
    return (public_key[1:] if wallet.is_leaf else public_key) in _pushes(wallet.script)


def p2wsh(witness_script: bytes) -> bytes:
    """Returns the script that pays to `witness_script`."""
    return b"\x00\x20" + hashlib.sha256(witness_script).digest()


def _pushes(script: bytes) -> list[bytes]:
    """Returns the data that the script pushes. Raises WireError for a truncated script or OP_CODESEPARATOR."""
    reader, found = Reader(script), []
    while not reader.at_end():
        op = reader.number(1)
        if op == _OP_CODESEPARATOR:
            raise WireError("the script has an OP_CODESEPARATOR, with which a signature covers something else")
        if op <= _LARGEST_PUSH:
            found.append(reader.take(op))
        elif op in _PUSH_LENGTHS:
            found.append(reader.take(reader.number(_PUSH_LENGTHS[op])))
    return found
