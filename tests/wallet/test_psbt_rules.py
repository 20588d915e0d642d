"""Fields one by one, where no published vector and no named attack looks."""

from __future__ import annotations

import pytest

from tests.wallet.listings import VAULT
from wallet import psbt_rules as rules
from wallet.transaction import WireError

LATER = (1_700_000_000).to_bytes(4, "little")
BLOCK = (900_000).to_bytes(4, "little")
COMPRESSED = VAULT.get_public_key().sec()
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32 + "01")


def uncompressed(mark: int) -> bytes:
    """The vault's key in 65 bytes; 6 and 7 are the hybrid marks, which libsecp256k1 takes."""
    x = int.from_bytes(COMPRESSED[1:], "big")
    prime = 2**256 - 2**32 - 977
    y = pow(x**3 + 7, (prime + 1) // 4, prime)
    if y % 2 != COMPRESSED[0] % 2:
        y = prime - y
    return bytes([mark]) + x.to_bytes(32, "big") + y.to_bytes(32, "big")


def test_times_and_heights_have_four_bytes() -> None:
    rules.time(LATER)
    rules.height(BLOCK)
    for more in (b"\0", b"\0\0\0\0"):
        with pytest.raises(WireError):
            rules.time(LATER + more)
        with pytest.raises(WireError):
            rules.height(BLOCK + more)


def test_a_public_key_is_compressed_or_not_and_nothing_else() -> None:
    rules.partial_sig(COMPRESSED, DER)
    rules.partial_sig(uncompressed(4), DER)
    hybrid = 6 + uncompressed(4)[-1] % 2
    for wrong in (uncompressed(hybrid), uncompressed(2), b"\x04" + COMPRESSED[1:], COMPRESSED[:-1], b""):
        with pytest.raises(WireError):
            rules.partial_sig(wrong, DER)
