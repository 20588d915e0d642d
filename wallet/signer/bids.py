"""Bids: composed here from the worker's numbers, within the grant and the ceilings, signed once for each intent."""

from __future__ import annotations

import hashlib

from wallet import policy
from wallet.policy import HeldGrant
from wallet.protocol import BidMessage, SignBid, SignedBid
from wallet.signer.authority import Authority, Entry
from wallet.signer.challenges import signed_by
from wallet.signer.signed import BidSignature


class BidSigner:
    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def sign_bid(self, asked: SignBid) -> SignedBid:
        with self._authority.ledger.transaction():
            signed = self._signed(self._authority.live(asked, "bid"), asked.bid)
        return SignedBid(signed.message, signed.signature)

    def _signed(self, held: HeldGrant, bid: BidMessage) -> BidSignature:
        """Returns the bid's signature: the stored one if the intent was signed, else a new one, stored and audited."""
        grant, authority, store = held.grant, self._authority, self._authority.ledger.signed
        secrets = authority.unlocked().secrets_of(grant.user)
        message = policy.msg_template(grant, bid, secrets.public)
        known = store.bid(bid.intent)
        if known is not None:
            policy.intent_conflict((grant.task, grant.user, message), (known.task, known.user, known.message))
            return known
        now = authority.clock()
        policy.max_bid(grant, bid.price)
        policy.expiry_max(grant, authority.ceilings, bid.expires_ms, now)
        authority.within_ceilings(grant, bid.price, now)
        authority.rates(grant, now, bid.price)
        signed = BidSignature(
            intent=bid.intent,
            task=grant.task,
            token=grant.token,
            user=grant.user,
            price=bid.price,
            expires_ms=bid.expires_ms,
            created_ms=now,
            message=message,
            message_hash=hashlib.sha256(message.encode()).hexdigest(),
            signature=signed_by(secrets, "payment", message),
        )
        store.put_bid(signed)
        # Last before the commit: a crash here leaves an extra line in the log, and no signature the log does not have.
        authority.audit.append(now, _entry(signed, bid))
        return signed


def _entry(signed: BidSignature, bid: BidMessage) -> Entry:
    return {
        "operation": "bid",
        "intent": signed.intent,
        "task": signed.task,
        "token": signed.token,
        "user": signed.user,
        "slug": bid.slug,
        "price": bid.price,
        "quantity": bid.quantity,
        "expires_ms": bid.expires_ms,
        "message_sha256": signed.message_hash,
    }
