"""ord.net's base handler, its sign-in, and readers of its requests' fields."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, Literal, TypeVar

from simulator.engine import Market
from simulator.handler import (
    MAX_PSBT_TEXT,
    Routes,
    VenueHandler,
    belongs_to,
    named,
    peek,
    picked,
    same,
    sign_in_address,
)
from simulator.holdings import coins
from simulator.sessions import Desk, Session
from simulator.venue_scripts import ORDNET, is_internal
from simulator.wire import ApiError, bad, iso, items, text
from wallet import address

Bucket = Literal["read", "write"]
# Requests in one window: of one IP address, and of one profile.
LIMITS: dict[Bucket, tuple[int, int]] = {"read": (60, 30), "write": (20, 8)}
SIGN_INS_BY_IP, SIGN_INS_BY_ADDRESS = 20, 5
# Minimum confirmed sats at the payment address of a wallet that signs in.
LEAST_CONFIRMED = 1_000_000
MAX_SIGNATURE = 8192
PREFIX = "/ordnet"
_PUBLIC_KEY = re.compile(r"(0[23])?[0-9a-f]{64}")
SLUG = "collection/([^/]+)"

Row = TypeVar("Row")


class OrdnetHandler(VenueHandler):
    """The base handler: needs a bearer token of `/auth/verify`; answers errors as {"error": text}."""

    dialect = ORDNET
    bucket: Bucket = "read"

    @property
    def desk(self) -> Desk:
        return self.world.ordnet

    def error_body(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        return {"error": text}

    def admit(self) -> None:
        by_ip, by_profile = LIMITS[self.bucket]
        self.desk.windows.admit(f"{self.bucket} ip", self.request.remote_ip or "", by_ip)
        session = self._bearer()
        if session is None:
            given = self.request.headers.get("Authorization", "")
            raise ApiError(401, "Invalid or expired bearer session token" if given else "Bearer session token required")
        self.desk.windows.admit(f"{self.bucket} profile", session.profile_id, by_profile)

    def _bearer(self) -> Session | None:
        kind, _, token = self.request.headers.get("Authorization", "").partition(" ")
        return self.desk.find(token.strip()) if kind.lower() == "bearer" else None

    @property
    def session(self) -> Session:
        """The session of this request, which `admit` has required."""
        found = self._bearer()
        if found is None:
            raise ApiError(401, "Invalid or expired bearer session token")
        return found

    def payer_of_flow(self) -> str:
        return self.desk.payer(peek(self.request.body, "authRequestId")) or "(nobody)"

    def payer(self) -> str:
        found = self._bearer()
        return found.payment if found else "(nobody)"

    def market(self) -> Market:
        found = self.engine.market("ordinals", self.path_args[0])
        if found is None:
            raise ApiError(404, "Collection not found")
        return found

    def bound(self, body: dict[str, Any]) -> Session:
        """Returns the session if the request names its wallet binding. Raises ApiError(403) if it names another."""
        session = self.session
        if text(body.get("walletBindingId"), "walletBindingId") != session.binding_id:
            raise ApiError(403, "walletBindingId is not one of this session")
        return session

    def page(self, rows: list[Row], keys: list[list[Any]], default: int, filters: str) -> tuple[list[Row], Any]:
        """Returns the rows of the requested page, and the answer's `pagination`.

        `keys` are the rows' sort keys, in order; a cursor made for other `filters` is refused.
        """
        size = self.query_whole("limit", default, 1, 100)
        cursor = self.get_query_argument("cursor", "")
        start = 0
        if cursor:
            after = _after(cursor, filters)
            start = next((at for at, key in enumerate(keys) if key > after), len(rows))
        end = start + size
        more = end < len(rows)
        following = base64.urlsafe_b64encode(json.dumps([filters, keys[end - 1]]).encode()).decode() if more else None
        shown = rows[start:end]
        return shown, {"pageSize": len(shown), "hasNext": more, "nextCursor": following}


def _after(cursor: str, filters: str) -> list[Any]:
    try:
        said, key = json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise bad("Invalid cursor") from None
    if said != filters or not isinstance(key, list):
        raise bad("Invalid cursor")
    return key


routes = Routes(PREFIX, OrdnetHandler)


# Sign-in: a challenge for each address of a wallet, and a bearer token for valid answers


def _admit_anyone(call: OrdnetHandler) -> None:
    """Limits a step of the sign-in by its caller; it needs no bearer token."""
    call.desk.windows.admit(type(call).__name__, call.request.remote_ip or "", SIGN_INS_BY_IP)


def _limit(call: OrdnetHandler, payment: str) -> None:
    call.desk.windows.admit(f"{type(call).__name__} address", payment, SIGN_INS_BY_ADDRESS)


@routes.post("auth/challenge", "challenge", named("paymentAddress"), admit=_admit_anyone)
def challenge(call: OrdnetHandler) -> dict[str, Any]:
    body = call.body()
    ordinals = sign_in_address(body.get("ordinalsAddress"), "ordinalsAddress")
    payment = sign_in_address(body.get("paymentAddress"), "paymentAddress")
    _limit(call, payment)
    flow = call.desk.begin(ordinals, payment)
    rows = [picked(each, "challengeId=challenge_id message address role") for each in flow.challenges]
    return {"authRequestId": flow.request_id, "challenges": rows}


@routes.post("auth/verify", "challenge", OrdnetHandler.payer_of_flow, admit=_admit_anyone)
def verify(call: OrdnetHandler) -> dict[str, Any]:
    body = call.body()
    request_id = text(body.get("authRequestId"), "authRequestId")
    rows = items(body.get("verifications"), "verifications", 2)
    answers = {
        text(row.get("challengeId"), f"verifications[{at}].challengeId"): (
            sign_in_address(row.get("address"), f"verifications[{at}].address"),
            text(row.get("signature"), f"verifications[{at}].signature", MAX_SIGNATURE),
        )
        for at, row in enumerate(rows)
    }
    if not answers or len(answers) < len(rows):
        raise bad("verifications: one entry for each challenge")
    flow = call.desk.flow(request_id)
    _limit(call, flow.payment)
    call.desk.check(flow, answers)
    chain = call.engine.chain
    held = sum(coin.value for coin in coins(call.engine, flow.payment) if chain.confirmations(coin.txid))
    if held < LEAST_CONFIRMED:
        raise ApiError(403, "The payment address must hold at least 0.01 BTC confirmed")
    session = call.desk.open(flow)
    return _who(session) | {"sessionToken": session.token, "expiresAt": iso(session.ends_ms)}


routes.get("me", "challenge", OrdnetHandler.payer)(lambda call: _who(call.session))


def _who(session: Session) -> dict[str, Any]:
    profile = {"id": session.profile_id, **same(None, "username displayName bio avatarUrl bannerUrl")}
    binding = picked(session, "walletBindingId=binding_id ordinalsAddress=ordinals paymentAddress=payment")
    binding |= {"label": "Wallet", "provider": "unknown", "isPublic": False}
    return {"profile": profile, "walletBindings": [binding]}


def ordinals_key(body: dict[str, Any], session: Session) -> bytes:
    """Reads the x-only key of the session's ordinals address from 64 or 66 hex digits. Raises ApiError(400)."""
    given = text(body.get("ordinalsPublicKey"), "ordinalsPublicKey").lower()
    if not _PUBLIC_KEY.fullmatch(given):
        raise bad("ordinalsPublicKey must be an x-only or a compressed public key in hex")
    key = bytes.fromhex(given[-64:])
    found = address.parse(session.ordinals)
    if found.kind == "p2tr" and not is_internal(key, found.program):
        raise bad("ordinalsPublicKey is not the key of the ordinals address")
    return key


def payment_key(body: dict[str, Any], session: Session) -> bytes:
    """Reads the compressed key of the session's payment address. Raises ApiError(400)."""
    given = text(body.get("paymentPublicKey"), "paymentPublicKey").lower()
    if not _PUBLIC_KEY.fullmatch(given):
        raise bad("paymentPublicKey must be a public key in hex")
    found = address.parse(session.payment)
    taproot = found.kind == "p2tr"
    if not (is_internal(bytes.fromhex(given[-64:]), found.program) if taproot else belongs_to(given, session.payment)):
        raise bad("paymentPublicKey is not the key of the payment address")
    return bytes.fromhex(given)


def step(at: int, signer: str, inputs: list[dict[str, Any]], psbt: str) -> dict[str, Any]:
    return {"stepIndex": at, "signerAddress": signer, "inputsToSign": inputs, "psbtBase64": psbt}


def signed_step(value: Any, name: str) -> str:
    """Reads the PSBT of a signed step, as text. Raises ApiError(400)."""
    if not isinstance(value, dict):
        raise bad(f"{name} must be an object")
    if not isinstance(value.get("inputsToSign"), list) or not isinstance(value.get("signerAddress"), str):
        raise bad(f"{name} needs signerAddress and inputsToSign")
    return text(value.get("psbtBase64"), f"{name}.psbtBase64", MAX_PSBT_TEXT)
