"""Signatures of a user's own keys on venues' texts: challenges (a harmless line before a cancel) and sign-ins."""

from __future__ import annotations

import hashlib

from wallet import policy, protocol
from wallet.bip322 import verify_ownership
from wallet.keystore.keys import UserSecrets
from wallet.protocol import Grant, SigningKey
from wallet.signer.authority import Answer, Authority
from wallet.signer.signing import sign_message


class ChallengeSigner:
    """Signs challenges and sign-ins under the right to cancel: without a session nothing can be cancelled either."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

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
                "user": grant.user,
                "address": _address(secrets, key),
                "message_sha256": hashlib.sha256(message.encode()).hexdigest(),
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


def _address(secrets: UserSecrets, key: SigningKey) -> str:
    return secrets.public.vault if key == "vault" else secrets.public.payment
