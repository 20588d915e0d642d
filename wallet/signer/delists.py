"""Signatures on PSBTs that take listings back: by the vault, under the right to cancel alone."""

from __future__ import annotations

import base64
import hashlib

from embit.ec import PrivateKey

from wallet import policy
from wallet.protocol import PolicyRefused, SignDelist, SignedPsbt
from wallet.psbt.decode import from_base64
from wallet.psbt.delist import check_delist
from wallet.psbt.listing import ApprovedListing, Owner
from wallet.psbt.script import own_script
from wallet.psbt.sign import sign_listing
from wallet.psbt.transaction import Outpoint, WireError
from wallet.signer.authority import Authority


class DelistSigner:
    """Signs PSBTs that return everything to the vault, so only their number is limited, with the challenges."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def sign_delist(self, asked: SignDelist) -> SignedPsbt:
        authority = self._authority
        grant = authority.live(asked, "cancel").grant
        policy.key_allowed(grant, "vault")
        vault = authority.unlocked().secrets_of(grant.user).vault
        approved = _checked(asked.psbt, asked.outpoint, vault)
        authority.may_cancel(grant.task)
        authority.recent.count("challenges", grant.task)
        signed = sign_listing(approved, vault)
        authority.audit.append(
            authority.clock(),
            {
                "operation": "delist",
                "task": grant.task,
                "token": grant.token,
                "user": grant.user,
                "inscription_id": grant.inscription_id,
                "outpoint": asked.outpoint,
                "draft_sha256": hashlib.sha256(asked.psbt.encode()).hexdigest(),
                "unsigned_txid": approved.psbt.transaction.txid()[::-1].hex(),
            },
        )
        return SignedPsbt(base64.b64encode(signed).decode())


def _checked(psbt: str, outpoint: str, vault: PrivateKey) -> ApprovedListing:
    public_key = vault.get_public_key().sec()
    scripts = frozenset({own_script("p2tr", public_key)})
    return check_delist(_raw(psbt), Outpoint.parse(outpoint), Owner("p2tr", public_key, scripts, scripts))


def _raw(psbt: str) -> bytes:
    try:
        return from_base64(psbt)
    except WireError as error:
        raise PolicyRefused("psbt-strict", str(error)) from None
