"""The scripts of our own keys, and those of addresses."""

from __future__ import annotations

import functools
from typing import Literal

from wallet.address import Address
from wallet.hash160 import hash160

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
