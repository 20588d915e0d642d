"""Check that a signature proves ownership of an address: BIP-322 simple proofs, read strictly.

The only importer of the package `bip322`. It accepts mainnet P2WPKH, P2TR by key path and P2SH-P2WPKH with a bare
witness, with or without the prefix `smp`. The package alone is looser: it accepts any network and signatures that were
altered after signing, and does not know the prefix.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import logging
from typing import NamedTuple

import bip322 as library

from wallet.address import Address, AddressError, hash160, parse, sign_in_address

log = logging.getLogger(__name__)

# P2WPKH and nested proofs need at most 147 characters with the prefix.
MAX_SIGNATURE = 256
_PREFIX = "smp"
_SIGHASH_ALL = 0x01

# Calls that ended without the library's verdict, mostly panics of its Rust code; the log shows their number.
_panics = itertools.count(1)


def verify_ownership(address: str, message: str, signature: str) -> bool:
    """Tells whether `signature` (base64) over exactly `message` is by the key of `address`.

    Returns False for any invalid input and never raises. Takes some 50 µs and holds the GIL, so call it directly: a
    thread gains nothing.
    """
    if not (isinstance(address, str) and isinstance(message, str) and isinstance(signature, str)):
        return False
    if len(signature) > MAX_SIGNATURE:
        return False
    try:
        owner = parse(sign_in_address(address))
        stack = _decode(signature.removeprefix(_PREFIX))
        message.encode()
    except (AddressError, ValueError):
        return False
    items = _items(stack)
    if items is None or not _well_formed(owner, items) or not _has_own_key(owner, items):
        return False
    return _library_accepts(owner.text, message, base64.b64encode(stack).decode())


def self_test() -> None:
    """Raises RuntimeError unless this installation's library accepts honest proofs and refuses forged ones.

    Forged proofs also go straight to the library: versions before 0.3.0 accept them (GHSA-5chw-87w3-j9cv), and the
    checks here would hide such a version.
    """
    for proof in _HONEST:
        if not verify_ownership(proof.address, _SELF_TEST_MESSAGE, proof.signature):
            raise RuntimeError(f"BIP-322 self-test: an honest proof of {proof.address} is refused")
    for proof in _FORGED:
        if _library_accepts(proof.address, _SELF_TEST_MESSAGE, proof.signature):
            raise RuntimeError(
                "BIP-322 self-test: a stranger's signature is taken as a proof: install the package bip322==0.3.0"
            )
        if verify_ownership(proof.address, _SELF_TEST_MESSAGE, proof.signature):
            raise RuntimeError(f"BIP-322 self-test: a stranger's proof of {proof.address} is taken")


def _decode(text: str) -> bytes:
    """Decodes base64 strictly: Python alone accepts unused bits and extra padding. Raises ValueError."""
    raw = binascii.a2b_base64(text, strict_mode=True)
    if base64.b64encode(raw).decode() != text:
        raise ValueError("not canonical base64")
    return raw


def _items(stack: bytes) -> list[bytes] | None:
    """Returns the items of a witness stack with one-byte lengths and nothing after it, else None."""
    if not stack:
        return None
    items: list[bytes] = []
    at = 1
    for _ in range(stack[0]):
        if at >= len(stack) or stack[at] >= 0xFD:
            return None
        end = at + 1 + stack[at]
        items.append(stack[at + 1 : end])
        at = end
    return items if at == len(stack) else None


def _well_formed(owner: Address, items: list[bytes]) -> bool:
    if owner.kind == "p2tr":
        if len(items) != 1:
            return False
        signature = items[0]
        return len(signature) == 64 or (len(signature) == 65 and signature[-1] == _SIGHASH_ALL)
    if len(items) != 2:
        return False
    signature, key = items
    return 9 <= len(signature) <= 73 and signature[-1] == _SIGHASH_ALL and len(key) == 33


def _has_own_key(owner: Address, items: list[bytes]) -> bool:
    """Tells whether the witness key is the address's key. A P2TR address has its key, the others only a hash."""
    if owner.kind == "p2tr":
        return True
    key_hash = hash160(items[1])
    if owner.kind == "p2sh":
        return hash160(b"\x00\x14" + key_hash) == owner.program
    return key_hash == owner.program


def _library_accepts(address: str, message: str, signature: str) -> bool:
    try:
        # `is None`, because it returns None for a valid signature (older versions a bool) and raises otherwise.
        return library.verify_simple_encoded(address, message, signature) is None
    except library.VerificationError:
        return False
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        # A Rust panic is a BaseException, which would otherwise leave the HTTP request without an answer.
        log.error("BIP-322 library failed with %.60s, %d so far", type(error).__name__, next(_panics))
        return False


class _Proof(NamedTuple):
    address: str
    signature: str


# Made with two throwaway keys: the owner of the three addresses, and a stranger.
_SELF_TEST_MESSAGE = "Bidkeeper self-test"
_HONEST = (
    _Proof(
        "bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75",
        "AkcwRAIgXKseLgwsHThzsAb4kdEjIjk3UXNfd1aD6mbWQHas9j4CIEIxoq78Vezn32KoLbGzpbtSLmCJdMRC43IT0hlyzzZ5ASEC"
        "9rFggTNZ1dhDbpvSOClkHdbYVZjwxkyYGipYz/FZtf8=",
    ),
    _Proof(
        "bc1pr5tl40fulfznkxw64j577qfx2927zlrydv2e9qwdzffgd3pnadcsk3hs39",
        "AUAt5B9XiXgP9ABOrimTJrau85UpcPVJP0osQT/9cTSZQ4m+Kxh0+TVFjvLspEtnl1ctOtXhv/+2QULlfEPsxV80",
    ),
    _Proof(
        "38PJDqHxw5D7u6pMf3sdGTPYusHjhkLipK",
        "AkcwRAIgf4NhI3JOTqQ4cjewv6VCUlY/OWmRLPN3FkBAvmZttDUCID7tFhVRRBGA8qGSDJv03vc3L0o6sua7bE6lMtwSIRpqASEC"
        "9rFggTNZ1dhDbpvSOClkHdbYVZjwxkyYGipYz/FZtf8=",
    ),
)
_FORGED = (
    _Proof(
        "bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75",
        "AkcwRAIgAKAMpZchruHZgy4D+VzyES6FDD0dCVZrh2NYJ7c4MQgCIGXxt6ylFatXj6re0vF5gD8fJ0xMtOQQcTckNK6GZgr5ASEC"
        "sYInyF7WRnI3h3stGYuVuvIBmMWpcuPdd/4aP43D+8g=",
    ),
    _Proof(
        "38PJDqHxw5D7u6pMf3sdGTPYusHjhkLipK",
        "AkcwRAIgDeJVqIgI+BGp58uN6HitO7cxwSZTZnSE+zO7ZYsLKAECIFj/Dgxrzmia6A4Qv+Ynvm8pZNs7JnZLDvQ8jfI6k+pSASEC"
        "sYInyF7WRnI3h3stGYuVuvIBmMWpcuPdd/4aP43D+8g=",
    ),
)
