"""Signatures of a user's own keys on venues' texts: challenges (a harmless line before a cancel) and sign-ins."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

from wallet import policy, protocol
from wallet.address import sign_in_address
from wallet.bip322 import verify_ownership
from wallet.keystore.keys import UserSecrets
from wallet.policy import PolicyRefused
from wallet.protocol import Grant, SigningKey
from wallet.signer.authority import Answer, Authority
from wallet.signer.signed import MINUTE_MS
from wallet.signer.signing import sign_message


class ChallengeSigner:
    """Signs challenges and sign-ins under the right to cancel: without a session nothing can be cancelled either.

    `steady_ms` is a clock in milliseconds that no change of the time moves: it counts brakes, which are never refused
    because the wall clock was set back.
    """

    def __init__(self, authority: Authority, steady_ms: Callable[[], int]) -> None:
        self._authority = authority
        self._steady_ms = steady_ms
        self._brakes: deque[tuple[int, str]] = deque()  # of the last minute: when and for which user

    def sign_challenge(self, request: Answer) -> Answer:
        """Signs a challenge. Without `key` the payment key signs."""
        named = {"key": "payment", **request}
        task, token, secret, challenge, key = protocol.take(named, "task", "token", "secret", "challenge", "key")
        challenge, key = protocol.venue_text("challenge", challenge), protocol.read_signing_key(key)
        with self._authority.ledger.transaction():
            grant = self._authority.live(task, token, secret, "cancel").grant
            policy.key_allowed(grant, key)
            policy.challenge_template(challenge)
            return self._signed(grant, key, challenge, "challenge")

    def sign_brake(self, request: Answer) -> Answer:
        """Signs a challenge with the payment key of a user who has keys, without a grant.

        A challenge can only cancel, and a caller here may ask for a grant to cancel in any case. Nothing of it is
        stored in the ledger, so that a brake needs no room there: its ceilings are counted in memory.
        """
        user, venue, challenge = protocol.take(request, "user", "venue", "challenge")
        user, venue = sign_in_address(protocol.text("user", user)), protocol.text("venue", venue)
        challenge = protocol.venue_text("challenge", challenge)
        authority, steady_ms = self._authority, self._steady_ms()
        keystore, most = authority.unlocked(), authority.ceilings
        policy.market(venue, play=keystore.is_play)
        if user not in keystore.users:
            raise PolicyRefused("dest-allow", "no user of this signer signs in with this address")
        policy.challenge_template(challenge)
        while self._brakes and self._brakes[0][0] <= steady_ms - MINUTE_MS:
            self._brakes.popleft()
        of_user = sum(braked == user for _, braked in self._brakes)
        policy.velocity_brakes("the user", most.brakes_of_user, of_user)
        policy.velocity_brakes("the installation", most.brakes, len(self._brakes))
        secrets = keystore.secrets_of(user)
        signature = signed_by(secrets, "payment", challenge)
        self._brakes.append((steady_ms, user))
        entry = {"operation": "brake", "venue": venue, **_about(user, secrets, "payment", challenge)}
        authority.audit.append(authority.clock(), entry)
        return {"signature": signature}

    def sign_sign_in(self, request: Answer) -> Answer:
        """Signs a sign-in with the payment or the vault key: a venue's session belongs to both addresses."""
        task, token, secret, text, key = protocol.take(request, "task", "token", "secret", "text", "key")
        text, key = protocol.venue_text("text", text), protocol.read_signing_key(key)
        authority = self._authority
        with authority.ledger.transaction():
            grant = authority.live(task, token, secret, "cancel").grant
            policy.sign_in_template(grant, text, _address(authority.unlocked().secrets_of(grant.user), key))
            return self._signed(grant, key, text, "sign-in")

    def _signed(self, grant: Grant, key: SigningKey, message: str, operation: str) -> Answer:
        authority = self._authority
        now, store = authority.clock(), authority.ledger.signed
        authority.challenge_rates(grant.task, now)
        secrets = authority.unlocked().secrets_of(grant.user)
        signature = signed_by(secrets, key, message)
        store.put_challenge(grant.task, now)
        authority.audit.append(
            now,
            {
                "operation": operation,
                "task": grant.task,
                "token": grant.token,
                **_about(grant.user, secrets, key, message),
            },
        )
        return {"signature": signature}


def signed_by(secrets: UserSecrets, key: SigningKey, message: str) -> str:
    """Returns the base64 BIP-322 signature of `message`, verified: a faulty one could give the key away.

    Raises RuntimeError when it does not verify.
    """
    if key == "vault":
        signature = sign_message(secrets.vault, "p2tr", message)
    else:
        signature = sign_message(secrets.payment, "p2wpkh", message)
    if not verify_ownership(_address(secrets, key), message, signature):
        raise RuntimeError("the signature just made does not verify: nothing is handed out")
    return signature


def _about(user: str, secrets: UserSecrets, key: SigningKey, message: str) -> Answer:
    return {
        "user": user,
        "address": _address(secrets, key),
        "message_sha256": hashlib.sha256(message.encode()).hexdigest(),
    }


def _address(secrets: UserSecrets, key: SigningKey) -> str:
    return secrets.public.vault if key == "vault" else secrets.public.payment
