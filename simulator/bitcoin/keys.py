"""The addresses that a public key pays from."""

from __future__ import annotations

import re

from wallet import address
from wallet.hash160 import hash160

_COMPRESSED = re.compile(r"0[23][0-9a-fA-F]{64}")


def belongs_to(public_key: str, payment: str) -> bool:
    """Tells whether `payment` is the P2WPKH or nested P2WPKH address of a compressed key in hex."""
    if not _COMPRESSED.fullmatch(public_key):
        return False
    key_hash = hash160(bytes.fromhex(public_key))
    found = address.parse(payment)
    if found.kind == "p2wpkh":
        return found.program == key_hash
    return found.kind == "p2sh" and found.program == hash160(b"\x00\x14" + key_hash)
