"""The script of a bidding wallet: both its user and the market must sign what leaves it."""

from __future__ import annotations

import hashlib

from embit import script
from embit.ec import PrivateKey, PublicKey
from embit.script import Script


def market_key(payment: str, ordinals: str) -> PrivateKey:
    """The market's half, another one for each pair of addresses."""
    return PrivateKey(hashlib.sha256(f"practice bidding wallet {payment} {ordinals}".encode()).digest())


def witness_script(payment: str, ordinals: str, public_key: str) -> Script:
    """Two of two: the key (hex) of the payment address, and the market's."""
    theirs = PublicKey.parse(bytes.fromhex(public_key))
    return script.multisig(2, [theirs, market_key(payment, ordinals).get_public_key()])


def address_of(payment: str, ordinals: str, public_key: str) -> str:
    """The P2WSH address; the same pair has always the same one."""
    return str(script.p2wsh(witness_script(payment, ordinals, public_key)).address())
