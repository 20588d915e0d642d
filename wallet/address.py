"""Bitcoin addresses: one parser and one normal form for every address that comes in.

Two texts that pay the same script must become one text here, else an upper-case copy of an address is a second account
or slips past a whitelist.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from core import pasted
from core.errors import BidkeeperError
from wallet import base58, bech32

Kind = Literal["p2wpkh", "p2tr", "p2sh", "p2pkh", "p2wsh", "p2a", "witness"]
Network = Literal["mainnet", "testnet", "regtest"]

MAX_LENGTH = 90
SIGN_IN_KINDS: tuple[Kind, ...] = ("p2wpkh", "p2tr", "p2sh")

_PREFIXES: dict[str, Network] = {"bc": "mainnet", "tb": "testnet", "bcrt": "regtest"}
_VERSIONS: dict[int, tuple[Kind, Network]] = {
    0: ("p2pkh", "mainnet"),
    5: ("p2sh", "mainnet"),
    111: ("p2pkh", "testnet"),
    196: ("p2sh", "testnet"),
}
_WITNESS: dict[tuple[int, int], Kind] = {(0, 20): "p2wpkh", (0, 32): "p2wsh", (1, 32): "p2tr", (1, 2): "p2a"}


class AddressError(BidkeeperError):
    """A text that is no address, or none that is taken here; the message says why and repeats no input."""


@dataclass(frozen=True, slots=True)
class Address:
    """One address. `text` is its normal form; `program` the witness program, script hash or key hash.

    `kind` is "witness" for witness versions without a meaning yet.
    """

    text: str
    kind: Kind
    program: bytes
    network: Network


@lru_cache(maxsize=128)  # one listing's rules read the same address four times
def parse(text: str) -> Address:
    """Reads an address of any kind and network. Raises AddressError."""
    if len(text) > MAX_LENGTH:
        raise AddressError(f"not an address: it is longer than {MAX_LENGTH} characters")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise AddressError("not an address: it has a blank or a character that addresses do not use")
    try:
        if text.lower().startswith(("bc1", "tb1", "bcrt1")):
            return _segwit(text)
        return _older(text)
    except ValueError as error:
        raise AddressError(f"not an address: {error}") from None


def sign_in_address(text: str) -> str:
    """Returns the normal form of a mainnet P2WPKH, P2TR or P2SH address, else AddressError."""
    address = parse(text)
    if address.network != "mainnet":
        raise AddressError(f"a {address.network} address; a mainnet address is needed")
    if address.kind not in SIGN_IN_KINDS:
        raise AddressError("this type of address cannot sign here; use one that starts with bc1q, bc1p or 3")
    return address.text


def pasted_sign_in_address(text: str) -> str:
    """Returns the normal form of a sign-in address as people paste it (`core.pasted`), else AddressError."""
    try:
        return sign_in_address(pasted.address(text))
    except pasted.PasteError as error:
        raise AddressError(f"not an address: it {error}") from None


def p2wpkh(key_hash: bytes) -> str:
    """Returns the mainnet address of a 20-byte HASH160 of a compressed public key."""
    return _encoded(0, key_hash, 20)


def p2tr(output_key: bytes) -> str:
    """Returns the mainnet address of a 32-byte x-only output key (already tweaked)."""
    return _encoded(1, output_key, 32)


def _encoded(version: int, program: bytes, length: int) -> str:
    if len(program) != length:
        raise ValueError(f"the program must have {length} bytes, not {len(program)}")
    return bech32.encode("bc", version, program)


def _segwit(text: str) -> Address:
    prefix, version, program = bech32.decode(text)
    network = _PREFIXES.get(prefix)
    if network is None:
        raise ValueError("its prefix is of no network")
    return Address(text.lower(), _WITNESS.get((version, len(program)), "witness"), program, network)


def _older(text: str) -> Address:
    body = base58.decode_check(text)
    if len(body) != 21 or body[0] not in _VERSIONS:
        raise ValueError("it is of no known type")
    kind, network = _VERSIONS[body[0]]
    return Address(text, kind, body[1:], network)
