"""Every known BIP-322 proof through POST /api/auth/verify: published ones, and some made here."""

from __future__ import annotations

import base64
import uuid

import pytest

from models.users import Challenge
from tests import postgresql
from tests.vectors import load
from tests.wallet import proofs
from tests.worlds.service import START_MS, Service
from wallet.keystore.keys import sign_message

# Honest proofs in other spellings, which people paste and the verifier alone refuses (tests/wallet/test_bip322.py):
# with a line end (twice), in the alphabet of URLs, in hex.
SPELLINGS = ("v191", "v345", "v346", "v348")


async def verdict(service: Service, address: str, message: str, signature: str) -> str:
    challenge_id = str(uuid.uuid4())
    Challenge.create(
        id=challenge_id,
        address=address,
        message=message,
        client_ip="127.0.0.1",
        expires_ms=START_MS + 1000,
    )
    body = {"challengeId": challenge_id, "address": address, "signature": signature}
    answer = await service.api("POST", "/api/auth/verify", body)
    assert answer.status in (200, 401), answer.text
    return "accept" if answer.status == 200 else "reject"


@pytest.mark.slow
async def test_published_vectors_get_the_verdict_of_the_policy(service: Service) -> None:
    vectors = load("bip322")["vectors"]
    assert len(vectors) > 200
    expected = {vector["id"]: vector["policy_core"] for vector in vectors} | dict.fromkeys(SPELLINGS, "accept")
    assert len(expected) == len(vectors)
    # A challenge is only ever made for a normal address: the vectors' others cannot be in the table. Nor has a text of
    # ours a NUL, in whose place PostgreSQL keeps another character.
    wrong = [
        vector["id"]
        for vector in vectors
        if not (postgresql.is_wanted() and "\0" in vector["message"])
        and await verdict(service, vector["address"], vector["message"], vector["signature"]) != expected[vector["id"]]
    ]
    assert wrong == []


def own_vectors() -> list[tuple[str, str, str, str, str]]:
    """(what, address, message, signature, verdict)"""
    key, stranger, message = proofs.OWNER, proofs.STRANGER, "Sign in to Bidkeeper at here\nNonce: 00"
    wpkh = sign_message(key, "p2wpkh", message)
    tap = sign_message(key, "p2tr", message)
    raw, tap_raw = base64.b64decode(wpkh), base64.b64decode(tap)

    def text(data: bytes) -> str:
        return base64.b64encode(data).decode()

    owner, owner_tap, nested = proofs.p2wpkh_address(key), proofs.p2tr_address(key), proofs.nested_address(key)
    script = proofs.p2wpkh_script(key)
    return [
        ("p2wpkh", owner, message, wpkh, "accept"),
        ("p2wpkh with smp", owner, message, "smp" + wpkh, "accept"),
        ("p2tr", owner_tap, message, tap, "accept"),
        ("p2tr with smp", owner_tap, message, "smp" + tap, "accept"),
        ("nested", nested, message, proofs.nested_proof(key, message), "accept"),
        ("smp twice", owner, message, "smpsmp" + wpkh, "reject"),
        ("ful", owner, message, "ful" + wpkh, "reject"),
        ("another message", owner, message + ".", wpkh, "reject"),
        ("a stranger's", owner, message, sign_message(stranger, "p2wpkh", message), "reject"),
        ("a stranger's p2tr", owner_tap, message, sign_message(stranger, "p2tr", message), "reject"),
        ("forged key", owner, message, proofs.ecdsa_proof(stranger, script, script, message), "reject"),
        ("p2tr proof for p2wpkh", owner, message, tap, "reject"),
        ("trailing byte", owner, message, text(raw + b"\x00"), "reject"),
        ("second p2tr item", owner_tap, message, text(b"\x02" + tap_raw[1:] + b"\x01\x50"), "reject"),
        ("p2tr 65 bytes with 0", owner_tap, message, text(b"\x01\x41" + tap_raw[2:] + b"\x00"), "reject"),
        ("unpadded", owner, message, wpkh.rstrip("="), "accept"),
        ("blank inside", owner, message, wpkh[:9] + " " + wpkh[9:], "accept"),
        ("hex", owner, message, raw.hex(), "accept"),
        ("lone surrogate", owner, message, "AA\ud800", "reject"),
        ("nul", owner, message, wpkh + "\x00", "reject"),
    ]


@pytest.mark.parametrize("vector", own_vectors(), ids=lambda vector: vector[0])
async def test_own_vectors_get_their_verdict(service: Service, vector: tuple[str, str, str, str, str]) -> None:
    what, address, message, signature, expected = vector
    if what == "lone surrogate":
        answer = await service.api(
            "POST", "/api/auth/verify", {"challengeId": "x", "address": address, "signature": signature}
        )
        assert answer.status == 400
        return
    assert await verdict(service, address, message, signature) == expected
