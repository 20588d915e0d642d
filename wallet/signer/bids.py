"""Signatures on bids, and on venues' texts: challenges and sign-ins.

A bid is a message, or an offer, which PSBTs pay for. The facts of an offer's coins are our own. Offers count like any
other bid.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping

from wallet import policy
from wallet.address import sign_in_address
from wallet.keystore.keys import UserSecrets, address_of, signed_by
from wallet.policy import HeldGrant
from wallet.protocol import (
    BidMessage,
    Grant,
    OfferToSign,
    PolicyRefused,
    RequestError,
    Signature,
    SignBid,
    SignBrake,
    SignChallenge,
    SignedBid,
    SignedOffer,
    SigningKey,
    SignOffer,
    SignSignIn,
)
from wallet.psbt.check_offer import ApprovedOffer, OfferIntent, check_offer
from wallet.psbt.common import OutpointFacts, Owner
from wallet.psbt.decode import from_base64
from wallet.psbt.script import own_script
from wallet.psbt.sign import sign_offer
from wallet.psbt.transaction import Outpoint, WireError
from wallet.signer.authority import Authority, Entry
from wallet.signer.ledger import BidSignature
from wallet.terms import SETTING, CoSigners


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
        # Logged just before the commit, so that a crash may leave a line without its signature, but never the reverse.
        authority.audit.append(now, _bid_entry(signed, bid))
        return signed


def _bid_entry(signed: BidSignature, bid: BidMessage) -> Entry:
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


Facts = Mapping[str, OutpointFacts]


class OfferSigner:
    """Signs offers. `facts` are by coin (`txid:vout`), from a source independent of the venue; without facts it
    refuses.
    """

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def outpoints_to_look_up(self, request: SignOffer) -> tuple[str, ...]:
        """Returns the coins that `sign_offer` needs facts of, none if the offer was signed before.

        Raises as `sign_offer`, so that nothing is looked up without the right to bid.
        """
        held, offer = self._asked(request)
        return () if self._known(held, offer) else offer.coins

    def sign_offer(self, request: SignOffer, facts: Facts) -> SignedOffer:
        with self._authority.ledger.transaction():
            held, offer = self._asked(request)
            signed = self._known(held, offer) or self._signed(held, offer, facts)
        return SignedOffer(tuple(json.loads(signed.signature)))

    def _asked(self, request: SignOffer) -> tuple[HeldGrant, OfferToSign]:
        offer = request.offer
        if len(set(offer.coins)) != len(offer.coins):
            raise RequestError("coins must be different ones")
        held = self._authority.live(request, "bid")
        _co_signers(self._authority, held.grant.venue)
        policy.offer_terms(held.grant, offer)
        return held, offer

    def _known(self, held: HeldGrant, offer: OfferToSign) -> BidSignature | None:
        """Returns the signature made under this intent; refuses the intent with other fields."""
        known = self._authority.ledger.signed.bid(offer.intent)
        if known is not None:
            policy.intent_conflict(
                (held.grant.task, held.grant.user, _message(held, offer)), (known.task, known.user, known.message)
            )
        return known

    def _signed(self, held: HeldGrant, offer: OfferToSign, facts: Facts) -> BidSignature:
        grant, authority, store = held.grant, self._authority, self._authority.ledger.signed
        secrets = authority.unlocked().secrets_of(grant.user)
        price, now = offer.price, authority.clock()
        policy.max_bid(grant, price)
        policy.expiry_max(grant, authority.ceilings, offer.expires_ms, now)
        authority.within_ceilings(grant, price, now)
        authority.rates(grant, now, price)
        approved = _approved(offer, _co_signers(authority, grant.venue), facts, secrets)
        message = _message(held, offer)
        signed = BidSignature(
            intent=offer.intent,
            task=grant.task,
            token=grant.token,
            user=grant.user,
            price=price,
            expires_ms=offer.expires_ms,
            created_ms=now,
            message=message,
            message_hash=hashlib.sha256(message.encode()).hexdigest(),
            signature=json.dumps([base64.b64encode(sign_offer(approved, secrets.payment)).decode()]),
        )
        store.put_bid(signed)
        # Logged just before the commit, so that a crash may leave a line without its signature, but never the reverse.
        authority.audit.append(now, _offer_entry(signed, offer, approved))
        return signed


def _owner(secrets: UserSecrets) -> Owner:
    """Returns the owner: the payment address pays, and receives the change."""
    payment, vault = (key.get_public_key().sec() for key in (secrets.payment, secrets.vault))
    script = own_script("p2wpkh", payment)
    return Owner("p2wpkh", payment, frozenset({script, own_script("p2tr", vault)}), frozenset({script}))


def _co_signers(authority: Authority, venue: str) -> CoSigners:
    found = authority.ceilings.co_signers.get(venue)
    if found is None:
        raise PolicyRefused("op-allowed", f"no co-signers of escrows at {venue} are known: {SETTING} sets ord.net's")
    return found


def _approved(offer: OfferToSign, co_signers: CoSigners, facts: Facts, secrets: UserSecrets) -> ApprovedOffer:
    """Approves the one PSBT that pays for an offer. A second PSBT would escrow the price twice."""
    if len(offer.psbts) != 1:
        raise PolicyRefused("op-allowed", f"{len(offer.psbts)} PSBTs to pay for one offer")
    try:
        raw = from_base64(offer.psbts[0])
    except WireError as error:
        raise PolicyRefused("psbt-strict", str(error)) from None
    payment, vault = (key.get_public_key().sec() for key in (secrets.payment, secrets.vault))
    intent = OfferIntent(
        price_sats=offer.price,
        expires_ms=offer.expires_ms,
        coins=frozenset(Outpoint.parse(coin) for coin in offer.coins),
        receive_script=own_script("p2tr", vault),
        internal_keys=frozenset({payment[1:], vault[1:]}),
        co_signers=co_signers,
    )
    known = {Outpoint.parse(coin): each for coin, each in facts.items()}
    return check_offer(raw, bytes.fromhex(offer.leaf), intent, known, _owner(secrets))


def _message(held: HeldGrant, offer: OfferToSign) -> str:
    """Returns all terms of an offer as JSON, which cannot pass as a bid's text."""
    trait = list(offer.trait) if offer.trait else None
    drafts = hashlib.sha256("\n".join(offer.psbts).encode()).hexdigest()
    fields = [held.grant.venue, offer.slug, trait, offer.price, offer.quantity, offer.expires_ms, drafts, offer.leaf]
    return json.dumps(["offer", *fields, sorted(offer.coins)])


def _offer_entry(signed: BidSignature, offer: OfferToSign, approved: ApprovedOffer) -> Entry:
    """Returns the audit entry. `unsigned_txid` is the funding transaction's, `inputs` are its coins."""
    transaction = approved.psbt.transaction
    return {
        "operation": "offer",
        "intent": signed.intent,
        "task": signed.task,
        "token": signed.token,
        "user": signed.user,
        "slug": offer.slug,
        "price": signed.price,
        "quantity": offer.quantity,
        "expires_ms": signed.expires_ms,
        "message_sha256": signed.message_hash,
        "inputs": [str(item.outpoint) for item in transaction.inputs],
        "escrow_script": approved.escrow.script.hex(),
        "escrow": approved.escrow.value,
        "change": approved.change_sats,
        "unsigned_txid": transaction.txid()[::-1].hex(),
    }


class ChallengeSigner:
    """Signs challenges and sign-ins under the right to cancel, because a cancel needs a session.

    Nothing is stored in the ledger, so that a cancel needs no space there: the audit log has reserved space.
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

        A challenge can only cancel, and any caller could get a grant to cancel.
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
        """Signs a sign-in with the payment or the vault key, because a venue's session belongs to both addresses."""
        authority = self._authority
        grant = authority.live(asked, "cancel").grant
        policy.sign_in_template(grant, asked.text, address_of(authority.unlocked().secrets_of(grant.user), asked.key))
        authority.may_sign_in(grant.task)
        authority.recent.count("sign-ins", grant.task)
        return self._logged(grant.user, asked.key, asked.text, _under(grant, "sign-in"))

    def _logged(self, user: str, key: SigningKey, message: str, entry: Entry) -> Signature:
        """Signs the text, and logs it before the signature leaves."""
        authority = self._authority
        secrets = authority.unlocked().secrets_of(user)
        signature = signed_by(secrets, key, message)
        digest = hashlib.sha256(message.encode()).hexdigest()
        about = {"user": user, "address": address_of(secrets, key), "message_sha256": digest}
        authority.audit.append(authority.clock(), entry | about)
        return Signature(signature)


def _under(grant: Grant, operation: str) -> Entry:
    return {"operation": operation, "task": grant.task, "token": grant.token}
