"""Readers of ord.net's request fields: slugs, addresses, keys, coins, signed steps."""

from __future__ import annotations

import re
from typing import Any

from embit.ec import ECError, PublicKey

from simulator.bitcoin.chain import belongs_to
from simulator.ordnet.funding import Spendable
from simulator.ordnet.offers import DEFAULT_HOURS, LIVES_HOURS
from simulator.ordnet.sessions import Session
from simulator.wire import MAX_SATS, bad, items, text, whole
from wallet import address

MAX_PSBT_TEXT = 200_000
MAX_UTXOS = 1_000
_SLUG = re.compile(r"[A-Za-z0-9_-]+")
_TXID = re.compile(r"[0-9a-f]{64}")
_PUBLIC_KEY = re.compile(r"(0[23])?[0-9a-f]{64}")


def slug_filter(value: str) -> str:
    """Reads a collection slug of a query, in lower case; empty for none. Raises ApiError(400)."""
    if value and not _SLUG.fullmatch(value):
        raise bad("Invalid collectionSlug")
    return value.lower()


def wallet_address(value: Any, name: str) -> str:
    """Reads a mainnet address that can sign. Raises ApiError(400)."""
    try:
        return address.sign_in_address(text(value, name))
    except address.AddressError as error:
        raise bad(f"{name}: {error}") from None


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


def utxos(value: Any, name: str) -> tuple[Spendable, ...]:
    """Reads the outpoints and sats of a list of `{txid, vout, valueSats}`. Raises ApiError(400)."""
    found = []
    for at, row in enumerate(items(value, name, MAX_UTXOS)):
        txid = text(row.get("txid"), f"{name}[{at}].txid")
        if not _TXID.fullmatch(txid):
            raise bad(f"{name}[{at}].txid must have 64 hex digits")
        vout = whole(row.get("vout"), f"{name}[{at}].vout", 0, 0xFFFFFFFF)
        found.append((f"{txid}:{vout}", whole(row.get("valueSats"), f"{name}[{at}].valueSats", 1, MAX_SATS)))
    if not found:
        raise bad(f"{name} is required")
    if len({outpoint for outpoint, _ in found}) < len(found):
        raise bad(f"{name}: an output stands twice")
    return tuple(found)


def utxo_row(outpoint: str, sats: int) -> dict[str, Any]:
    txid, vout = outpoint.split(":")
    return {"txid": txid, "vout": int(vout), "valueSats": sats}


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


def _is_internal(key: bytes, program: bytes) -> bool:
    try:
        return bytes(PublicKey.from_xonly(key).taproot_tweak().xonly()) == program
    except ECError:
        return False


def life_hours(body: dict[str, Any]) -> int:
    """Reads the life of an offer in hours. Raises ApiError(400)."""
    hours = whole(body.get("validityHours", DEFAULT_HOURS), "validityHours")
    if hours not in LIVES_HOURS:
        raise bad(f"validityHours must be one of {', '.join(map(str, LIVES_HOURS))}")
    return hours
