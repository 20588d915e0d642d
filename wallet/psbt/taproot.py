"""Taproot scripts: leaves, and the output that a control block leads to (BIP-341)."""

from __future__ import annotations

import hashlib

from wallet.psbt.rules import x_only
from wallet.psbt.transaction import sized

TAPSCRIPT = 0xC0
_KEY_BYTES = _HASH_BYTES = 32


def leaf_hash(script: bytes, version: int = TAPSCRIPT) -> bytes:
    """Returns the hash of a leaf, which a signature for it covers."""
    return _tagged(b"TapLeaf", bytes([version]) + sized(script))


def output_script(leaf: bytes, control_block: bytes) -> bytes:
    """Returns the script of the output that has this leaf, by its control block. Raises WireError.

    The block is a leaf version with the output key's parity, the internal key, and the hashes beside the way up. The
    parity is not looked at: a wrong one makes a spend that is worth nothing.
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
