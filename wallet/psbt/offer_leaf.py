"""The leaf of an offer's escrow: the script by which the venue's keys together pay a seller with it.

ord.net publishes its form ("Collection Offers"). Only what stands behind the data is enforced when the escrow is spent;
for what the data say there is the venue's word alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from wallet.co_signers import CoSigners
from wallet.psbt.transaction import Reader, WireError

_DATA_BEGIN, _DATA_END = b"\x00\x63", b"\x68"  # 0 IF … ENDIF: never run
_VERSION = b"ordnet-offer/v2"
_SHA256, _EQUALVERIFY = b"\xa8", b"\x88"
_CHECKSIG, _CHECKSIGADD, _CHECKSIGVERIFY = b"\xac", b"\xba", b"\xad"
_ONE_OF_TWO = b"\x51\x9d"  # 1 NUMEQUALVERIFY
_NUMBER_BYTES = 8
_HASH_BYTES = _KEY_BYTES = 32
_LONGEST_PUSH = 75  # bytes; a longer one has another way of writing


@dataclass(frozen=True, slots=True)
class OfferLeaf:
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
    root, criteria = (_push(reader, _HASH_BYTES) for _ in range(2))
    _take(reader, _DATA_END + _SHA256)
    secret = _push(reader, _HASH_BYTES)
    _take(reader, _EQUALVERIFY)
    buyer = _key(reader, _CHECKSIG)
    market = _key(reader, _CHECKSIGADD + _ONE_OF_TWO)
    gate = _key(reader, _CHECKSIGVERIFY)
    enclave = _key(reader, _CHECKSIG)
    reader.end()
    return OfferLeaf(price, expires, receive, root, criteria, secret, buyer, CoSigners(market, gate, enclave))


def _key(reader: Reader, operation: bytes) -> bytes:
    """Takes a key and what is done with it."""
    key = _push(reader, _KEY_BYTES)
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
