"""A taproot output that is spent by a leaf of its tree (BIP-341): alone there, or beside one other."""

from __future__ import annotations

from dataclasses import dataclass

from embit.hashes import tagged_hash
from embit.script import Script
from embit.transaction import compact
from embit.util import secp256k1

LEAF_VERSION = 0xC0


@dataclass(frozen=True, slots=True)
class LeafOutput:
    """An output with the leaf that it is spent by: `internal` is the x-only key that may spend it alone.

    `beside` is the hash of the tree's other leaf, empty when there is none.
    """

    internal: bytes
    leaf: bytes
    beside: bytes = b""

    @property
    def leaf_hash(self) -> bytes:
        """The hash of the leaf."""
        return hash_of(self.leaf)

    @property
    def root(self) -> bytes:
        """The merkle root."""
        if not self.beside:
            return self.leaf_hash
        return bytes(tagged_hash("TapBranch", b"".join(sorted((self.leaf_hash, self.beside)))))

    def _tweaked(self) -> bytes:
        """Returns the output key with its parity in front (02 or 03)."""
        tweak = tagged_hash("TapTweak", self.internal + self.root)
        point = secp256k1.ec_pubkey_parse(b"\x02" + self.internal)
        return bytes(secp256k1.ec_pubkey_serialize(secp256k1.ec_pubkey_add(point, tweak)))

    @property
    def script(self) -> Script:
        return Script(b"\x51\x20" + self._tweaked()[1:])

    @property
    def leaf_script(self) -> Script:
        return Script(self.leaf)

    @property
    def control_block(self) -> bytes:
        return bytes([LEAF_VERSION | (self._tweaked()[0] & 1)]) + self.internal + self.beside


def hash_of(leaf: bytes) -> bytes:
    """Returns the hash of a leaf."""
    return bytes(tagged_hash("TapLeaf", bytes([LEAF_VERSION]) + compact.to_bytes(len(leaf)) + leaf))
