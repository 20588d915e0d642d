"""Checks of a sign-in proof, without HTTP and database."""

from __future__ import annotations

from collections.abc import Iterator

from embit.ec import PrivateKey

from bench.timing import Row, median_seconds
from wallet import address
from wallet.bip322 import verify_ownership
from wallet.signer.challenges import sign_message


def rows() -> Iterator[Row]:
    key = PrivateKey(b"\x07" * 32)
    who = address.p2wpkh(address.hash160(key.get_public_key().sec()))
    signature = sign_message(key, "p2wpkh", "bench")
    seconds = median_seconds(lambda: verify_ownership(who, "bench", signature), calls=2_000)
    yield Row("verify_ownership, P2WPKH, one core", f"{1 / seconds:,.0f}/s", aim=">= 8,000/s")
