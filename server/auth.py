"""Signing in: a challenge, its signature for a session, and the session's end."""

from __future__ import annotations

import base64
import secrets
import uuid

from models import sessions, users
from models.sessions import Challenge
from server.http import json_out
from server.http.api_errors import ApiError, invalid, too_many
from server.http.base import Handler, SignedIn
from server.http.callers import client_of, hash_of
from server.http.client_ip import budget_key
from server.schemas.auth import ChallengeBody, VerifyBody
from wallet.address import AddressError, sign_in_address
from wallet.bip322 import verify_ownership
from wallet.messages import compose_sign_in

_BAD_ADDRESS = "Invalid Bitcoin address format"
_BAD_PROOF = "Invalid signature or expired challenge"
_NO_SIGN_IN = "This challenge proves an ordinals address. To sign in, ask for one without a bearer token."
_ECDSA_BYTES, _ECDSA_HEADERS = 65, range(27, 43)  # a recoverable signature (BIP-137)


class SignInCall(Handler):
    """A call that anybody may make, though not too often."""

    def prepare(self) -> None:
        super().prepare()
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
            address = sign_in_address(text)
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
        challenge = proven(body.challenge_id, body.address, body.signature, self.now_ms)
        if challenge is None:
            raise ApiError(401, _BAD_PROOF, message=hint_of(body.signature))
        if challenge.user is not None:
            raise ApiError(401, _BAD_PROOF, message=_NO_SIGN_IN)
        self.require_whitelisted(challenge.address)  # it may have been taken off the list since the challenge
        user = users.find_or_create(challenge.address, self.services.settings.plans, self.now_ms)
        token = secrets.token_urlsafe(32)
        client = client_of(self.request.headers.get("User-Agent", ""))
        if not sessions.open_session(hash_of(token), user.id, self.now_ms, client, proof=challenge.id):
            raise ApiError(401, _BAD_PROOF)
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


def proven(challenge_id: str, address: str, signature: str, now_ms: int) -> Challenge | None:
    """Returns the usable challenge of this id, if `signature` proves that `address` is the one it was made for.

    Every failure counts as a bad try, whether the signature was well-formed or not; the caller marks it used.
    """
    if len(challenge_id) > 36:
        return None
    challenge = sessions.usable_challenge(challenge_id, now_ms)
    if challenge is None:
        return None
    if _same_address(address, challenge.address) and verify_ownership(challenge.address, challenge.message, signature):
        return challenge
    sessions.count_bad_try(challenge.id)
    return None


def hint_of(signature: str) -> str | None:
    """Returns advice for a proof of the older kind, which many wallets make unless told otherwise, else None."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except ValueError:
        return None
    is_ecdsa = len(raw) == _ECDSA_BYTES and raw[0] in _ECDSA_HEADERS
    return "This is not BIP-322; ask the wallet for bip322-simple." if is_ecdsa else None


def _same_address(text: str, address: str) -> bool:
    try:
        return sign_in_address(text) == address
    except AddressError:
        return False


class LogoutHandler(SignedIn):
    """POST /api/auth/logout"""

    def post(self) -> None:
        sessions.end_session(self.caller.token_hash)
        self.answer({"success": True})
