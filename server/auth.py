"""Signing in: a challenge, its signature for a session, and the session's end."""

from __future__ import annotations

import base64
import secrets
import uuid
from typing import Literal

from core import pasted
from core.errors import BidkeeperError
from models import sessions, users
from models.sessions import MAX_TRIES, Challenge
from server.http import json_out
from server.http.api_errors import ApiError, invalid, too_many
from server.http.base import Handler, SignedIn
from server.http.callers import client_of, hash_of
from server.http.client_ip import budget_key
from server.schemas.auth import ChallengeBody, VerifyBody
from wallet.address import AddressError, pasted_sign_in_address
from wallet.bip322 import verify_ownership
from wallet.messages import compose_sign_in

_BAD_ADDRESS = "Invalid Bitcoin address format"
_BAD_PROOF = "Invalid signature or expired challenge"
_NO_SIGN_IN = "This challenge proves an ordinals address. To sign in, ask for one without a bearer token."
_ECDSA_BYTES, _ECDSA_HEADERS = 65, range(27, 43)  # a recoverable signature (BIP-137)


class Unproven(BidkeeperError):
    """A refused proof. The message continues the name of its `part` and says what to do.

    A challenge that is unknown, used, expired or worn out has one message, so that nobody learns which.
    """

    def __init__(self, part: Literal["challenge", "address", "signature"], words: str) -> None:
        super().__init__(words)
        self.part = part

    def detail(self, field: str) -> str:
        """Returns the fault as a detail of `field`, which holds the signature."""
        return f"{field}: {self}" if self.part == "signature" else f"{field}: its {self.part} {self}"


_NO_CHALLENGE = f"is unknown, used, expired or had {MAX_TRIES} wrong proofs; ask for a new one and sign its text"


class SignInCall(Handler):
    """A call that anybody may make, though not too often."""

    def admit(self) -> None:
        super().admit()
        wait_s = self.services.budget.take(budget_key(self.client_ip))
        if wait_s:
            raise too_many("Too many sign-in calls", wait_s, "Wait, then try again.")

    def require_whitelisted(self, address: str) -> None:
        """Raises ApiError (403) unless `address` may sign in."""
        if not self.services.entitlements.may_sign_in(address):
            raise ApiError(
                403,
                "Address not whitelisted for beta access",
                message="This address is not approved for the beta. Please contact the admin to get access.",
            )

    def offer(self, address: str, user_id: int | None, name: str, approves: str | None = None) -> None:
        """Answers a new challenge for `address`, whose text names the service by `name`. Raises ApiError (429)."""
        expires_ms = self.now_ms + 1000 * self.services.settings.challenge_seconds
        challenge_id = str(uuid.uuid4())
        message = compose_sign_in(name, address, json_out.iso(expires_ms), secrets.token_hex(16))
        sessions.open_challenge(
            challenge_id,
            address,
            message,
            self.client_ip,
            now_ms=self.now_ms,
            expires_ms=expires_ms,
            user_id=user_id,
            approves=approves,
        )
        expires_at = json_out.seconds(expires_ms)
        self.answer({"challengeId": challenge_id, "message": message, "expiresAt": expires_at})


class ChallengeHandler(SignInCall):
    """POST /api/auth/challenge"""

    def post(self) -> None:
        text = self.body(ChallengeBody, _BAD_ADDRESS).address
        try:
            address = pasted_sign_in_address(text)
        except AddressError as error:
            raise invalid([f"address: {error}"], _BAD_ADDRESS) from None
        self.offer(address, *self._purpose(address))

    def _purpose(self, address: str) -> tuple[int | None, str]:
        """Returns the user that the challenge is bound to, and the service's name in its text. Raises ApiError (403).

        When a signed-in user asks for another address, it proves an ordinals address and is no sign-in.
        """
        name = self.services.settings.sign_in_name
        found = self.whoever_calls()
        if found is not None and found.api_token is None and found.user.address != address:
            return found.user.id, f"{name} (only to prove that this is an ordinals address of {found.user.address})"
        self.require_whitelisted(address)
        return None, name


class VerifyHandler(SignInCall):
    """POST /api/auth/verify"""

    def post(self) -> None:
        body = self.body(VerifyBody, "Missing or invalid fields")
        try:
            challenge = proven(body.challenge_id, body.address, body.signature, self.now_ms)
        except Unproven as error:
            raise _refused(error) from None
        if challenge.user is not None:
            raise ApiError(401, _BAD_PROOF, message=_NO_SIGN_IN)
        self.require_whitelisted(challenge.address)  # it may have been taken off the list since the challenge
        user = users.find_or_create(challenge.address, self.services.settings.plans, self.now_ms)
        token = secrets.token_urlsafe(32)
        client = client_of(self.request.headers.get("User-Agent", ""))
        if not sessions.open_session(hash_of(token), user.id, self.now_ms, client, proof=challenge.id):
            raise _refused(Unproven("challenge", _NO_CHALLENGE))
        subscription = users.subscription_of(user.id)
        self.answer(
            {
                "token": token,
                "user": {
                    "id": user.id,
                    "address": user.address,
                    "ordinalsAddress": user.ordinals_address,
                    "plan": subscription.plan if subscription else "",
                    "isAdmin": self.services.entitlements.is_admin(user.address),
                },
            }
        )


def _refused(error: Unproven) -> ApiError:
    return ApiError(401, _BAD_PROOF, message=f"The {error.part} {error}.")


def proven(challenge_id: str, address: str, signature: str, now_ms: int) -> Challenge:
    """Returns the usable challenge of this id, if `signature` proves that `address` is the one it was made for.

    Otherwise it raises Unproven. Every failure counts as a bad try, whether the signature was well-formed or not; the
    caller marks the challenge used.
    """
    challenge = sessions.usable_challenge(challenge_id, now_ms) if len(challenge_id) <= 36 else None
    if challenge is None:
        raise Unproven("challenge", _NO_CHALLENGE)
    try:
        _verify(challenge, address, signature)
    except Unproven:
        sessions.count_bad_try(challenge.id)
        raise
    return challenge


def _verify(challenge: Challenge, address: str, signature: str) -> None:
    if not _same_address(address, challenge.address):
        raise Unproven("address", "is not the one of the challenge; request a new challenge for this address")
    try:
        read = pasted.signature(signature)
    except pasted.PasteError as error:
        raise Unproven("signature", str(error)) from None
    if not verify_ownership(challenge.address, challenge.message, read):
        raise Unproven("signature", _fault_of(read))


def _fault_of(signature: str) -> str:
    """Returns the fault of a refused signature. Many wallets sign by ECDSA unless asked for BIP-322."""
    raw = base64.b64decode(signature.removeprefix("smp"))
    if len(raw) == _ECDSA_BYTES and raw[0] in _ECDSA_HEADERS:
        return "is not BIP-322; ask the wallet for bip322-simple"
    return (
        "is not by this address over the challenge's text; sign that text, unchanged, with this address in the wallet"
    )


def _same_address(text: str, address: str) -> bool:
    try:
        return pasted_sign_in_address(text) == address
    except AddressError:
        return False


class LogoutHandler(SignedIn):
    """POST /api/auth/logout"""

    takes_body = False

    def post(self) -> None:
        sessions.end_session(self.caller.token_hash)
        self.answer({"success": True})
