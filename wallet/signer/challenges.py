"""Signatures of a user's own keys on venues' texts: challenges (a harmless line before a cancel) and sign-ins."""

from __future__ import annotations

import hashlib

from wallet import policy, protocol
from wallet.address import sign_in_address
from wallet.bip322 import verify_ownership
from wallet.keystore.keys import UserSecrets
from wallet.protocol import Grant, PolicyRefused, SigningKey
from wallet.signer.authority import Answer, Authority
from wallet.signer.signing import sign_message


class ChallengeSigner:
    """Signs challenges and sign-ins under the right to cancel: without a session nothing can be cancelled either.

    Nothing of it is stored in the ledger, so that no cancel needs room there: the audit log has room of its own.
    """

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def sign_challenge(self, request: Answer) -> Answer:
        """Signs a challenge. Without `key` the payment key signs."""
        named = {"key": "payment", **request}
        task, token, secret, challenge, key = protocol.take(named, "task", "token", "secret", "challenge", "key")
        challenge, key = protocol.venue_text("challenge", challenge), protocol.read_signing_key(key)
        grant = self._authority.live(task, token, secret, "cancel").grant
        policy.key_allowed(grant, key)
        policy.challenge_template(challenge)
        self._authority.may_cancel(grant.task)
        self._authority.recent.count("challenges", grant.task)
        return self._logged(grant.user, key, challenge, _under(grant, "challenge"))

    def sign_brake(self, request: Answer) -> Answer:
        """Signs a challenge with the payment key of a user who has keys, without a grant.

        A challenge can only cancel, and a caller here may ask for a grant to cancel in any case.
        """
        user, venue, challenge = protocol.take(request, "user", "venue", "challenge")
        user, venue = sign_in_address(protocol.text("user", user)), protocol.text("venue", venue)
        challenge = protocol.venue_text("challenge", challenge)
        authority = self._authority
        keystore = authority.unlocked()
        policy.market(venue, play=keystore.is_play)
        if user not in keystore.users:
            raise PolicyRefused("dest-allow", "no user of this signer signs in with this address")
        policy.challenge_template(challenge)
        authority.may_brake(user)
        authority.recent.count("brakes", user)
        return self._logged(user, "payment", challenge, {"operation": "brake", "venue": venue})

    def sign_sign_in(self, request: Answer) -> Answer:
        """Signs a sign-in with the payment or the vault key: a venue's session belongs to both addresses."""
        task, token, secret, text, key = protocol.take(request, "task", "token", "secret", "text", "key")
        text, key = protocol.venue_text("text", text), protocol.read_signing_key(key)
        authority = self._authority
        grant = authority.live(task, token, secret, "cancel").grant
        policy.sign_in_template(grant, text, _address(authority.unlocked().secrets_of(grant.user), key))
        authority.may_sign_in(grant.task)
        authority.recent.count("sign-ins", grant.task)
        return self._logged(grant.user, key, text, _under(grant, "sign-in"))

    def _logged(self, user: str, key: SigningKey, message: str, entry: Answer) -> Answer:
        """Signs the text; the log has its line before the signature leaves."""
        authority = self._authority
        secrets = authority.unlocked().secrets_of(user)
        signature = signed_by(secrets, key, message)
        digest = hashlib.sha256(message.encode()).hexdigest()
        about = {"user": user, "address": _address(secrets, key), "message_sha256": digest}
        authority.audit.append(authority.clock(), entry | about)
        return {"signature": signature}


def _under(grant: Grant, operation: str) -> Answer:
    return {"operation": operation, "task": grant.task, "token": grant.token}


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
