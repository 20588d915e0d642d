"""The script of a bidding wallet: a withdrawal needs the signatures of user and market."""

from __future__ import annotations

import hashlib

from embit import script
from embit.ec import PrivateKey, PublicKey
from embit.script import Script


def market_key(payment: str, ordinals: str) -> PrivateKey:
    """Derives the market's key, a different one for each pair of addresses."""
    return PrivateKey(hashlib.sha256(f"practice bidding wallet {payment} {ordinals}".encode()).digest())


def witness_script(payment: str, ordinals: str, public_key: str) -> Script:
    """Returns a script of two of two: the key (hex) of the payment address, and the market's."""
    theirs = PublicKey.parse(bytes.fromhex(public_key))
    return script.multisig(2, [theirs, market_key(payment, ordinals).get_public_key()])


def address_of(payment: str, ordinals: str, public_key: str) -> str:
    """Returns the P2WSH address, always the same one for a pair."""
    return str(script.p2wsh(witness_script(payment, ordinals, public_key)).address())
