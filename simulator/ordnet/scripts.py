"""ord.net's outputs: the one that funds an offer, and the one that a listed inscription passes through.

From ord.net's technical documents "Collection Offers" and "Sale PSBT Construction"; the order of the four keys in the
offer's leaf is that of settlements on the chain.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from embit.ec import PrivateKey
from embit.script import Script

from simulator.bitcoin.taproot import LeafOutput

_IF, _ENDIF, _SHA256, _EQUALVERIFY = b"\x63", b"\x68", b"\xa8", b"\x88"
_CHECKSIG, _CHECKSIGADD, _CHECKSIGVERIFY = b"\xac", b"\xba", b"\xad"
_ONE, _TWO, _NUMEQUAL, _NUMEQUALVERIFY = b"\x51", b"\x52", b"\x9c", b"\x9d"


def practice_key(name: str) -> PrivateKey:
    """Derives one of the practice venue's keys; the real ones are the venue's alone."""
    return PrivateKey(hashlib.sha256(name.encode()).digest())


MARKET = practice_key("practice market ord.net")
GATE = practice_key("practice market ord.net gate")
ENCLAVE = practice_key("practice market ord.net enclave")


def fee_script() -> Script:
    """Returns the script that the practice venue's fees go to."""
    return Script(b"\x51\x20" + xonly(practice_key("practice market ord.net fees")))


def xonly(key: PrivateKey) -> bytes:
    return bytes(key.get_public_key().xonly())


@dataclass(frozen=True, slots=True)
class OfferTerms:
    """The terms in an offer's leaf: sats, seconds since the epoch, the buyer's ordinals script, and two hashes."""

    price: int
    expires_s: int
    receive: bytes
    eligible_root: bytes
    criteria_hash: bytes


def offer_output(buyer: bytes, terms: OfferTerms, secret_hash: bytes) -> LeafOutput:
    """Makes the output that funds an offer: the buyer alone may take it back, or the venue's keys together settle."""
    leaf = (
        b"\x00"
        + _IF
        + b"".join(
            map(
                _push,
                (
                    b"ordnet-offer/v2",
                    terms.price.to_bytes(8, "little"),
                    terms.expires_s.to_bytes(8, "little"),
                    terms.receive,
                    terms.eligible_root,
                    terms.criteria_hash,
                ),
            )
        )
        + _ENDIF
        + (_SHA256 + _push(secret_hash) + _EQUALVERIFY)
        + (_push(buyer) + _CHECKSIG + _push(xonly(MARKET)) + _CHECKSIGADD + _ONE + _NUMEQUALVERIFY)
        + (_push(xonly(GATE)) + _CHECKSIGVERIFY + _push(xonly(ENCLAVE)) + _CHECKSIG)
    )
    return LeafOutput(buyer, leaf)


def passthrough_output(seller: bytes) -> LeafOutput:
    """Makes tr(seller, multi_a(2, seller, ord.net)): the seller alone may take it back, both together sell."""
    leaf = _push(seller) + _CHECKSIG + _push(xonly(MARKET)) + _CHECKSIGADD + _TWO + _NUMEQUAL
    return LeafOutput(seller, leaf)


def announcement(offer: LeafOutput) -> Script:
    """Makes the OP_RETURN of a funding parent: internal key and merkle root, for the buyer to find the offer again."""
    return Script(b"\x6a" + _push(offer.internal + offer.leaf_hash))


def _push(data: bytes) -> bytes:
    assert 0 < len(data) < 76
    return bytes([len(data)]) + data
