"""Signatures on listings: the vault signs a venue's PSBTs if each one agrees with grant, facts and template.

The facts are our own. If one of a listing's PSBTs is wrong, none is signed.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from wallet import policy, protocol
from wallet.keystore.keys import UserSecrets
from wallet.policy import HeldGrant, PolicyRefused
from wallet.protocol import ListingToSign
from wallet.psbt.check_listing import check_listing
from wallet.psbt.decode import from_base64
from wallet.psbt.listing import ApprovedListing, ListingIntent, OutpointFacts, Owner
from wallet.psbt.listing_template import TEMPLATES, Form
from wallet.psbt.script import own_script
from wallet.psbt.sign import sign_listing
from wallet.psbt.transaction import Outpoint, WireError
from wallet.signer.authority import Answer, Authority
from wallet.signer.signed import ListingSignature


class ListingSigner:
    """Signs listings. `facts` describe the listed output, from a source independent of the venue; without them it
    refuses.
    """

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def outpoints_to_look_up(self, request: Answer) -> tuple[str, ...]:
        """Returns the output that `sign_listing` needs facts of, none when the listing was signed before.

        Raises as `sign_listing` does: nothing is looked up without the right to list.
        """
        held, listing = self._asked(request)
        return () if self._known(held, listing) else (listing.outpoint,)

    def sign_listing(self, request: Answer, facts: Mapping[str, OutpointFacts]) -> Answer:
        with self._authority.ledger.transaction():
            held, listing = self._asked(request)
            signed = self._known(held, listing) or self._signed(held, listing, facts.get(listing.outpoint))
        return {"psbt": signed.answer[0], "secure": list(signed.answer[1:])}

    def lowest_listing(self, request: Answer) -> Answer:
        (outpoint,) = protocol.take(request, "outpoint")
        return {"price": self._authority.ledger.signed.lowest_listing(protocol.read_outpoint(outpoint))}

    def _asked(self, request: Answer) -> tuple[HeldGrant, ListingToSign]:
        task, token, secret, given = protocol.take(request, "task", "token", "secret", "listing")
        listing = protocol.read_listing(given)
        held = self._authority.live(task, token, secret, "list")
        policy.own_inscription(held.grant, listing.inscription_id)
        return held, listing

    def _known(self, held: HeldGrant, listing: ListingToSign) -> ListingSignature | None:
        """Returns the listing signed under this intent; refuses the intent with other fields."""
        known = self._authority.ledger.signed.listing(listing.intent)
        if known is not None:
            policy.intent_conflict(
                (held.grant.task, held.grant.user, listing.outpoint, listing.price, _drafts_hash(listing)),
                (known.task, known.user, known.outpoint, known.price, known.drafts_hash),
            )
        return known

    def _signed(self, held: HeldGrant, listing: ListingToSign, facts: OutpointFacts | None) -> ListingSignature:
        grant, authority, store = held.grant, self._authority, self._authority.ledger.signed
        secrets = authority.unlocked().secrets_of(grant.user)
        intent = ListingIntent(
            venue=grant.venue,
            inscription_id=grant.inscription_id,
            outpoint=Outpoint.parse(listing.outpoint),
            price_sats=listing.price,
            min_price_sats=max(1, grant.min_price_sats, authority.ceilings.least_listing),
            payout_address=secrets.public.payment,
        )
        owner = _owner(secrets)
        approved = [_approved(listing.psbt, "listing", intent, facts, owner)]
        approved += [_approved(psbt, "secure", intent, facts, owner) for psbt in listing.secure]
        now = authority.clock()
        policy.list_lower(listing.price, store.highest_listing(listing.outpoint, now))
        authority.rates(grant, now)
        signed = ListingSignature(
            intent=listing.intent,
            task=grant.task,
            token=grant.token,
            user=grant.user,
            inscription_id=grant.inscription_id,
            outpoint=listing.outpoint,
            price=listing.price,
            created_ms=now,
            drafts_hash=_drafts_hash(listing),
            answer=tuple(base64.b64encode(sign_listing(each, secrets.vault)).decode() for each in approved),
        )
        store.put_listing(signed)
        # Last before the commit: a crash here leaves an extra line in the log, and no signature the log does not have.
        authority.audit.append(now, _entry(signed, approved))
        return signed


def _owner(secrets: UserSecrets) -> Owner:
    """Makes the owner: the vault holds the listed output; payment address and vault may be paid."""
    vault, payment = secrets.vault.get_public_key().sec(), secrets.payment.get_public_key().sec()
    scripts = frozenset({own_script("p2tr", vault), own_script("p2wpkh", payment)})
    return Owner("p2tr", vault, scripts, scripts)


def _approved(
    psbt: str, form: Form, intent: ListingIntent, facts: OutpointFacts | None, owner: Owner
) -> ApprovedListing:
    try:
        raw = from_base64(psbt)
    except WireError as error:
        raise PolicyRefused("psbt-strict", str(error)) from None
    return check_listing(raw, intent, facts, TEMPLATES.get((intent.venue, form)), owner)


def _drafts_hash(listing: ListingToSign) -> str:
    return hashlib.sha256("\n".join((listing.psbt, *listing.secure)).encode()).hexdigest()


def _entry(signed: ListingSignature, approved: list[ApprovedListing]) -> Answer:
    """Returns the audit entry. `unsigned_txids`: of the transactions as they were signed, in the order of the PSBTs."""
    return {
        "operation": "list",
        "intent": signed.intent,
        "task": signed.task,
        "token": signed.token,
        "user": signed.user,
        "inscription_id": signed.inscription_id,
        "outpoint": signed.outpoint,
        "price": signed.price,
        "drafts_sha256": signed.drafts_hash,
        "payouts": [each.payout_sats for each in approved],
        "unsigned_txids": [each.psbt.transaction.txid()[::-1].hex() for each in approved],
    }
