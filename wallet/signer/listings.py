"""Signatures on listings: the vault signs a venue's PSBTs if all that they cover agrees with grant and facts.

The facts are our own. If one of the PSBTs that are to be signed is wrong, none is signed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from wallet import policy
from wallet.policy import HeldGrant
from wallet.protocol import AskLowestListing, ListingToSign, LowestPrice, SignedListing, SignListing
from wallet.psbt.listing import OutpointFacts
from wallet.signer.approved import Approved, approved
from wallet.signer.authority import Authority, Entry
from wallet.signer.listing_terms import drafts_to_sign, intent_of, rivals_of
from wallet.signer.payouts import is_gone, outputs_unique
from wallet.signer.signed import ListingSignature

# So many outputs are looked up beside the listed one; those found spent are forgotten, and the next try asks about
# others.
MOST_RIVALS = 3


class ListingSigner:
    """Signs listings. `facts` describe the listed output, and others that were listed for the same payout
    (`outputs-unique`), from a source independent of the venue; without them it refuses.
    """

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def outpoints_to_look_up(self, request: SignListing) -> tuple[str, ...]:
        """Returns the outputs that `sign_listing` needs facts of; none when the listing was signed before.

        Raises as `sign_listing` does: nothing is looked up without the right to list.
        """
        held, listing = self._asked(request)
        if self._known(held, listing):
            return ()
        authority, venue = self._authority, held.grant.venue
        secrets = authority.unlocked().secrets_of(held.grant.user)
        drafts = drafts_to_sign(listing, venue, authority.ceilings)
        return (listing.outpoint, *rivals_of(drafts, listing.outpoint, secrets, authority.ledger.payouts)[:MOST_RIVALS])

    def sign_listing(self, request: SignListing, facts: Mapping[str, OutpointFacts]) -> SignedListing:
        ledger = self._authority.ledger
        if gone := [outpoint for outpoint, each in facts.items() if is_gone(each)]:
            with ledger.transaction():  # of its own: a refusal leaves it done, and the next try asks about others
                for outpoint in gone:
                    ledger.payouts.forget(outpoint)
        with ledger.transaction():
            held, listing = self._asked(request)
            signed = self._known(held, listing) or self._signed(held, listing, facts)
        first, *others = signed.answer
        if not listing.is_in_escrow:
            return SignedListing(first, tuple(others))
        transfer, recovery = (*others, "")[:2]
        return SignedListing(first, (), transfer, recovery)

    def lowest_listing(self, request: AskLowestListing) -> LowestPrice:
        return LowestPrice(self._authority.ledger.signed.lowest_listing(request.outpoint))

    def _asked(self, request: SignListing) -> tuple[HeldGrant, ListingToSign]:
        held = self._authority.live(request, "list")
        policy.own_inscription(held.grant, request.listing.inscription_id)
        return held, request.listing

    def _known(self, held: HeldGrant, listing: ListingToSign) -> ListingSignature | None:
        """Returns the listing signed under this intent; refuses the intent with other fields."""
        known = self._authority.ledger.signed.listing(listing.intent)
        if known is not None:
            policy.intent_conflict(
                (held.grant.task, held.grant.user, listing.outpoint, listing.price, _drafts_hash(listing)),
                (known.task, known.user, known.outpoint, known.price, known.drafts_hash),
            )
        return known

    def _signed(self, held: HeldGrant, listing: ListingToSign, facts: Mapping[str, OutpointFacts]) -> ListingSignature:
        grant, authority, store = held.grant, self._authority, self._authority.ledger.signed
        secrets = authority.unlocked().secrets_of(grant.user)
        intent = intent_of(listing, grant.venue, grant.min_price_sats, secrets, authority.ceilings)
        found = approved(listing, grant.venue, intent, facts.get(listing.outpoint), secrets, authority.ceilings)
        payouts = authority.ledger.payouts
        for promise in found.promises:
            rivals = payouts.rivals(promise.outpoint, promise.payout, promise.sighash)
            # An escrow is made by spending the item's output, so the two are never in one transaction.
            outputs_unique(promise.payout, [each for each in rivals if each != listing.outpoint], facts)
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
            answer=found.sign(secrets.vault),
        )
        store.put_listing(signed)
        for promise in found.promises:
            payouts.put(promise.outpoint, promise.payout, promise.sighash, listing.outpoint)
        # Last before the commit: a crash here leaves an extra line in the log, and no signature the log does not have.
        authority.audit.append(now, _entry(signed, found))
        return signed


def _drafts_hash(listing: ListingToSign) -> str:
    # An escrow's as one more item, so that it is no secure listing's hash.
    drafts = list(listing.drafts)
    if listing.is_in_escrow:
        drafts.append(f"escrow {listing.transfer} {listing.recovery}")
    return hashlib.sha256("\n".join(drafts).encode()).hexdigest()


def _entry(signed: ListingSignature, found: Approved) -> Entry:
    """Returns the audit entry. `unsigned_txids`: of the transactions that were signed, in the order of the answer."""
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
        "payouts": [promise.payout.value for promise in found.promises],
        "is_secure": len(found.promises) > 1,
        "escrow": found.escrow,
        "unsigned_txids": [each.txid()[::-1].hex() for each in found.transactions],
    }
