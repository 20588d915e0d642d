"""The output that a protected listing's item passes through, from Ordinals Wallet's client ("passthrough v4").

tr(NUMS, {multi_a(2, seller, venue), <144> CSV DROP <seller> CHECKSIG}): both together sell, and the seller alone takes
the item back 144 blocks after it came there.
"""

from __future__ import annotations

import hashlib

from embit.ec import PrivateKey

from simulator.bitcoin.taproot import LeafOutput, hash_of

# The practice venue's key for sales; the real one is the venue's alone.
COSIGNER = PrivateKey(hashlib.sha256(b"practice market Ordinals Wallet co-signer").digest())
# The point whose private key nobody knows (BIP-341).
NOBODY = bytes.fromhex("50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0")
LOCK_BLOCKS = 144


def cosigner() -> bytes:
    """Returns the x-only key of the venue."""
    return bytes(COSIGNER.get_public_key().xonly())


def sale_output(seller: bytes) -> LeafOutput:
    """Makes the escrow of the x-only key `seller`, to be spent by its sale leaf."""
    leaf = b"\x20" + seller + b"\xac\x20" + cosigner() + b"\xba\x52\x9c"
    return LeafOutput(NOBODY, leaf, hash_of(recovery_leaf(seller)))


def recovery_leaf(seller: bytes) -> bytes:
    """Makes the script by which the seller alone takes the item back."""
    return b"\x02" + LOCK_BLOCKS.to_bytes(2, "little") + b"\xb2\x75\x20" + seller + b"\xac"
