"""RIPEMD-160 in Python, for machines whose OpenSSL has none."""

from __future__ import annotations

import hashlib

import pytest

from wallet import address as module
from wallet.address import hash160, own_ripemd160

# From the algorithm's authors (Dobbertin, Bosselaers, Preneel).
DIGESTS = [
    (b"", "9c1185a5c5e9fc54612808977ee8f548b2258d31"),
    (b"a", "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe"),
    (b"abc", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
    (b"message digest", "5d0689ef49d2fae572b881b123a85ffa21595f36"),
    (b"abcdefghijklmnopqrstuvwxyz", "f71c27109c692c1b56bbdceb5b9d2865b3708dbc"),
    (b"1234567890" * 8, "9b752e45573d4b39f4dbd3323cab82bf63326bfb"),
]


@pytest.mark.parametrize(("data", "digest"), DIGESTS)
def test_known_digests(data: bytes, digest: str) -> None:
    assert own_ripemd160(data).hex() == digest


@pytest.mark.skipif(not module.OPENSSL_HAS_IT, reason="this OpenSSL has no RIPEMD-160 to compare with")
@pytest.mark.parametrize("length", [54, 55, 56, 57, 63, 64, 65, 119, 120, 128])
def test_lengths_around_a_block_agree_with_openssl(length: int) -> None:
    data = bytes(range(length))
    assert own_ripemd160(data) == hashlib.new("ripemd160", data).digest()


@pytest.mark.parametrize("openssl", [True, False])
def test_hash160_of_a_published_key(openssl: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPENSSL_HAS_IT", openssl and module.OPENSSL_HAS_IT)
    generator = bytes.fromhex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
    assert hash160(generator).hex() == "751e76e8199196d454941c45d1b3a323f1433bd6"
