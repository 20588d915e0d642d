"""Signatures on venues' texts: challenges and sign-ins."""

from __future__ import annotations

import hashlib

from wallet import policy
from wallet.address import sign_in_address
from wallet.keystore.keys import address_of, signed_by
from wallet.protocol import Grant, PolicyRefused, Signature, SignBrake, SignChallenge, SigningKey, SignSignIn
from wallet.signer.authority import Authority, Entry


class ChallengeSigner:
    """Signs challenges and sign-ins under the right to cancel: without a session nothing can be cancelled either.

    Nothing of it is stored in the ledger, so that no cancel needs room there: the audit log has room of its own.
    """

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def sign_challenge(self, asked: SignChallenge) -> Signature:
        grant = self._authority.live(asked, "cancel").grant
        policy.key_allowed(grant, asked.key)
        policy.challenge_template(asked.challenge)
        self._authority.may_cancel(grant.task)
        self._authority.recent.count("challenges", grant.task)
        return self._logged(grant.user, asked.key, asked.challenge, _under(grant, "challenge"))

    def sign_brake(self, asked: SignBrake) -> Signature:
        """Signs a challenge with the payment key of a user who has keys, without a grant.

        A challenge can only cancel, and a caller here may ask for a grant to cancel in any case.
        """
        user, authority = sign_in_address(asked.user), self._authority
        keystore = authority.unlocked()
        policy.market(asked.venue, play=keystore.is_play)
        if user not in keystore.users:
            raise PolicyRefused("dest-allow", "no user of this signer signs in with this address")
        policy.challenge_template(asked.challenge)
        authority.may_brake(user)
        authority.recent.count("brakes", user)
        return self._logged(user, "payment", asked.challenge, {"operation": "brake", "venue": asked.venue})

    def sign_sign_in(self, asked: SignSignIn) -> Signature:
        """Signs a sign-in with the payment or the vault key: a venue's session belongs to both addresses."""
        authority = self._authority
        grant = authority.live(asked, "cancel").grant
        policy.sign_in_template(grant, asked.text, address_of(authority.unlocked().secrets_of(grant.user), asked.key))
        authority.may_sign_in(grant.task)
        authority.recent.count("sign-ins", grant.task)
        return self._logged(grant.user, asked.key, asked.text, _under(grant, "sign-in"))

    def _logged(self, user: str, key: SigningKey, message: str, entry: Entry) -> Signature:
        """Signs the text; the log has its line before the signature leaves."""
        authority = self._authority
        secrets = authority.unlocked().secrets_of(user)
        signature = signed_by(secrets, key, message)
        digest = hashlib.sha256(message.encode()).hexdigest()
        about = {"user": user, "address": address_of(secrets, key), "message_sha256": digest}
        authority.audit.append(authority.clock(), entry | about)
        return Signature(signature)


def _under(grant: Grant, operation: str) -> Entry:
    return {"operation": operation, "task": grant.task, "token": grant.token}
