"""Readers of ord.net's keys and signed steps, and the steps themselves."""

from __future__ import annotations

import re
from typing import Any

from embit.ec import ECError, PublicKey

from simulator.bitcoin.keys import belongs_to
from simulator.venues.routes import MAX_PSBT_TEXT
from simulator.venues.sessions import Session
from simulator.wire import bad, text
from wallet import address

_PUBLIC_KEY = re.compile(r"(0[23])?[0-9a-f]{64}")


def ordinals_key(body: dict[str, Any], session: Session) -> bytes:
    """Reads the x-only key of the session's ordinals address, out of 64 or 66 hex digits. Raises ApiError(400)."""
    given = text(body.get("ordinalsPublicKey"), "ordinalsPublicKey").lower()
    if not _PUBLIC_KEY.fullmatch(given):
        raise bad("ordinalsPublicKey must be an x-only or a compressed public key in hex")
    key = bytes.fromhex(given[-64:])
    found = address.parse(session.ordinals)
    if found.kind == "p2tr" and not _is_internal(key, found.program):
        raise bad("ordinalsPublicKey is not the key of the ordinals address")
    return key


def payment_key(body: dict[str, Any], session: Session) -> bytes:
    """Reads the compressed key of the session's payment address. Raises ApiError(400)."""
    given = text(body.get("paymentPublicKey"), "paymentPublicKey").lower()
    if not _PUBLIC_KEY.fullmatch(given):
        raise bad("paymentPublicKey must be a public key in hex")
    found = address.parse(session.payment)
    taproot = found.kind == "p2tr"
    if not (_is_internal(bytes.fromhex(given[-64:]), found.program) if taproot else belongs_to(given, session.payment)):
        raise bad("paymentPublicKey is not the key of the payment address")
    return bytes.fromhex(given)


def _is_internal(key: bytes, program: bytes) -> bool:
    try:
        return bytes(PublicKey.from_xonly(key).taproot_tweak().xonly()) == program
    except ECError:
        return False


def step(at: int, signer: str, inputs: list[dict[str, Any]], psbt: str) -> dict[str, Any]:
    """Makes a step: a PSBT to sign, and the signing of its inputs."""
    return {"stepIndex": at, "signerAddress": signer, "inputsToSign": inputs, "psbtBase64": psbt}


def signed_step(value: Any, name: str) -> str:
    """Reads the PSBT of a signed step, as text. Raises ApiError(400)."""
    if not isinstance(value, dict):
        raise bad(f"{name} must be an object")
    if not isinstance(value.get("inputsToSign"), list) or not isinstance(value.get("signerAddress"), str):
        raise bad(f"{name} needs signerAddress and inputsToSign")
    return text(value.get("psbtBase64"), f"{name}.psbtBase64", MAX_PSBT_TEXT)
