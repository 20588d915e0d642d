"""Scripts: of our own keys, of addresses, of taproot leaves (BIP-341), and of an offer's escrow.

ord.net publishes the form of an offer's escrow ("Collection Offers"). Only the part after the data is enforced
when the escrow is spent; the data itself rests on the venue's claim.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Literal

from msgspec import Struct

from wallet.address import Address, hash160
from wallet.psbt.rules import x_only
from wallet.psbt.transaction import Reader, WireError, sized
from wallet.terms import CoSigners

OwnKind = Literal["p2wpkh", "p2sh-p2wpkh", "p2tr"]


@functools.lru_cache(maxsize=1024)  # several rules ask for the same one, and a taproot tweak takes time
def own_script(kind: OwnKind, public_key: bytes) -> bytes:
    """Returns the script that pays `public_key` (33 bytes; for P2TR the untweaked internal key)."""
    if kind == "p2wpkh":
        return redeem_script(public_key)
    if kind == "p2sh-p2wpkh":
        return b"\xa9\x14" + hash160(redeem_script(public_key)) + b"\x87"
    from embit.ec import PublicKey  # which managers do without

    output_key: bytes = PublicKey.parse(public_key).taproot_tweak(b"").xonly()
    return b"\x51\x20" + output_key


def redeem_script(public_key: bytes) -> bytes:
    """Returns the redeem script of a nested P2WPKH: the script of the bare one."""
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
    """Returns the hash of a leaf, which a signature for it covers."""
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
    """Returns the hash of two leaves or branches, in whichever order they are given."""
    return _tagged(b"TapBranch", b"".join(sorted((one, other))))


def output_key(internal: bytes, root: bytes) -> bytes:
    """Returns the key (33 bytes, the first its parity) of the output with this x-only internal key and merkle root."""
    from embit.util import secp256k1  # which managers need for the proof of a purchase only

    tweak = _tagged(b"TapTweak", internal + root)
    point = secp256k1.ec_pubkey_add(secp256k1.ec_pubkey_parse(b"\x02" + internal), tweak)
    return bytes(secp256k1.ec_pubkey_serialize(point))


def _tagged(tag: bytes, data: bytes) -> bytes:
    head = hashlib.sha256(tag).digest()
    return hashlib.sha256(head + head + data).digest()


_DATA_BEGIN, _DATA_END = b"\x00\x63", b"\x68"  # 0 IF … ENDIF: never run
_VERSION = b"ordnet-offer/v2"
_SHA256, _EQUALVERIFY = b"\xa8", b"\x88"
_CHECKSIG, _CHECKSIGADD, _CHECKSIGVERIFY = b"\xac", b"\xba", b"\xad"
_ONE_OF_TWO = b"\x51\x9d"  # 1 NUMEQUALVERIFY
_NUMBER_BYTES = 8
_LEAF_HASH_BYTES = _LEAF_KEY_BYTES = 32
_LONGEST_PUSH = 75  # bytes; a longer one has another way of writing


class OfferLeaf(Struct, frozen=True):
    """The terms in a leaf: sats, seconds since the epoch, the script that the goods go to, and x-only keys.

    `eligible_root` and `criteria_hash` stand for the inscriptions that it is for, which cannot be read from them.
    `secret_hash` is of a secret of the venue's.
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
    """Reads a leaf, which has one way of writing. Raises WireError."""
    reader = Reader(script)
    _take(reader, _DATA_BEGIN)
    if _push(reader) != _VERSION:
        raise WireError("the leaf is not an offer's of version 2")
    price, expires = (int.from_bytes(_push(reader, _NUMBER_BYTES), "little") for _ in range(2))
    receive = _push(reader)
    root, criteria = (_push(reader, _LEAF_HASH_BYTES) for _ in range(2))
    _take(reader, _DATA_END + _SHA256)
    secret = _push(reader, _LEAF_HASH_BYTES)
    _take(reader, _EQUALVERIFY)
    buyer = _key(reader, _CHECKSIG)
    market = _key(reader, _CHECKSIGADD + _ONE_OF_TWO)
    gate = _key(reader, _CHECKSIGVERIFY)
    enclave = _key(reader, _CHECKSIG)
    reader.end()
    return OfferLeaf(price, expires, receive, root, criteria, secret, buyer, CoSigners(market, gate, enclave))


def _key(reader: Reader, operation: bytes) -> bytes:
    """Takes a key and what is done with it."""
    key = _push(reader, _LEAF_KEY_BYTES)
    _take(reader, operation)
    return key


def _push(reader: Reader, length: int | None = None) -> bytes:
    pushed = reader.number(1)
    if not 0 < pushed <= _LONGEST_PUSH or length not in (None, pushed):
        raise WireError("the leaf has something else than an offer's has")
    return reader.take(pushed)


def _take(reader: Reader, operations: bytes) -> None:
    if reader.take(len(operations)) != operations:
        raise WireError("the leaf does something else than an offer's does")
