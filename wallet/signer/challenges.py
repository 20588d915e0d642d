"""BIP-322 simple signatures of our own keys, and those on venues' texts: challenges and sign-ins.

Only SIGHASH_ALL (P2WPKH) and SIGHASH_DEFAULT (P2TR) are made: embit 0.8.0 computes a wrong taproot digest for
ANYONECANPAY and SINGLE.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Literal

from embit import hashes, script
from embit.ec import PrivateKey
from embit.transaction import SIGHASH, Transaction, TransactionInput, TransactionOutput
from embit.util import secp256k1

from wallet import policy
from wallet.address import sign_in_address
from wallet.bip322 import verify_ownership
from wallet.keystore.keys import UserSecrets
from wallet.protocol import Grant, PolicyRefused, Signature, SignBrake, SignChallenge, SigningKey, SignSignIn
from wallet.signer.authority import Authority, Entry

SigningKind = Literal["p2wpkh", "p2tr"]

_TAG = "BIP0322-signed-message"
_OP_RETURN = script.Script(b"\x6a")


def require_libsecp256k1() -> None:
    """Raises RuntimeError when embit fell back to curve arithmetic in Python, which is slow and leaks by its timing."""
    for name in ("ec_pubkey_create", "ecdsa_sign", "schnorrsig_sign"):
        if getattr(secp256k1, name).__module__ != "embit.util.ctypes_secp256k1":
            raise RuntimeError("libsecp256k1 could not be loaded: embit has no build of it for this machine")


def sign_message(private_key: PrivateKey, kind: SigningKind, message: str) -> str:
    """Signs `message` for the P2WPKH or (key path, untweaked internal key given) P2TR address of `private_key`.

    Returns the base64 of the witness stack, without the `smp` prefix. The same arguments give the same text.
    Raises UnicodeEncodeError when the message is not valid Unicode.
    """
    text = message.encode()
    if kind == "p2wpkh":
        return _witness(*_p2wpkh_items(private_key, text))
    return _witness(_p2tr_item(private_key, text))


def _p2wpkh_items(private_key: PrivateKey, message: bytes) -> tuple[bytes, bytes]:
    public_key = private_key.get_public_key()
    script_pubkey = script.p2wpkh(public_key)
    to_sign = _to_sign(script_pubkey, message)
    digest = to_sign.sighash_segwit(0, script.p2pkh_from_p2wpkh(script_pubkey), 0, SIGHASH.ALL)
    signature: bytes = private_key.sign(digest).serialize()
    return signature + bytes([SIGHASH.ALL]), public_key.sec()


def _p2tr_item(private_key: PrivateKey, message: bytes) -> bytes:
    script_pubkey = script.p2tr(private_key.get_public_key())
    to_sign = _to_sign(script_pubkey, message)
    digest = to_sign.sighash_taproot(0, [script_pubkey], [0], SIGHASH.DEFAULT)
    signature: bytes = private_key.taproot_tweak(b"").schnorr_sign(digest).serialize()
    return signature


def _to_sign(script_pubkey: script.Script, message: bytes) -> Transaction:
    """Builds BIP-322's virtual spend of the virtual output that commits to the message."""
    commitment = hashes.tagged_hash(_TAG, message)
    to_spend = Transaction(
        version=0,
        vin=[TransactionInput(bytes(32), 0xFFFFFFFF, script.Script(b"\x00\x20" + commitment), sequence=0)],
        vout=[TransactionOutput(0, script_pubkey)],
        locktime=0,
    )
    return Transaction(
        version=0,
        vin=[TransactionInput(to_spend.txid(), 0, sequence=0)],
        vout=[TransactionOutput(0, _OP_RETURN)],
        locktime=0,
    )


def _witness(*items: bytes) -> str:
    stack = bytes([len(items)]) + b"".join(bytes([len(item)]) + item for item in items)
    return base64.b64encode(stack).decode()


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
        policy.sign_in_template(grant, asked.text, _address(authority.unlocked().secrets_of(grant.user), asked.key))
        authority.may_sign_in(grant.task)
        authority.recent.count("sign-ins", grant.task)
        return self._logged(grant.user, asked.key, asked.text, _under(grant, "sign-in"))

    def _logged(self, user: str, key: SigningKey, message: str, entry: Entry) -> Signature:
        """Signs the text; the log has its line before the signature leaves."""
        authority = self._authority
        secrets = authority.unlocked().secrets_of(user)
        signature = signed_by(secrets, key, message)
        digest = hashlib.sha256(message.encode()).hexdigest()
        about = {"user": user, "address": _address(secrets, key), "message_sha256": digest}
        authority.audit.append(authority.clock(), entry | about)
        return Signature(signature)


def _under(grant: Grant, operation: str) -> Entry:
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
