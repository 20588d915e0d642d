"""Signatures on listings and on their return, the terms under which a listing is judged, and judgements alone.

The facts are our own. If one of the PSBTs that are to be signed is wrong, none is signed.

A judgement is all that the signer's rules find in a venue's drafts, without a signature. It needs no grant, because it
permits nothing: an operator reads drafts before any task runs, and a user before starting one. Rules that depend on a
grant or on the pace of signatures are not judged.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping

from embit.ec import PrivateKey
from msgspec import Struct
from msgspec.structs import replace

from wallet import policy
from wallet.address import p2tr, sign_in_address
from wallet.keystore.keys import UserSecrets
from wallet.policy import HeldGrant
from wallet.protocol import (
    AskLowestListing,
    Finding,
    Form,
    JudgeListing,
    Judgement,
    Judgements,
    ListingToSign,
    LowestPrice,
    PolicyRefused,
    SignDelist,
    SignedListing,
    SignedPsbt,
    SignListing,
)
from wallet.psbt.check_escrow import EscrowDrafts, check_escrow, judge_escrow
from wallet.psbt.check_listing import SIGHASHES, check_delist, check_listing, judge_listing
from wallet.psbt.common import ApprovedListing, ListingIntent, OutpointFacts, Owner, psbt_strict
from wallet.psbt.decode import from_base64
from wallet.psbt.script import escrow_of, own_script
from wallet.psbt.sign import sign_escrow, sign_listing
from wallet.psbt.transaction import LISTING, SECURE_LISTING, Outpoint, Transaction, TxOutput, WireError
from wallet.signer.authority import Authority, Entry
from wallet.signer.ledger import ListingSignature, PayoutStore, is_gone, outputs_unique
from wallet.terms import Ceilings, all_terms


def intent_of(
    listing: ListingToSign, venue: str, min_price_sats: int, secrets: UserSecrets, ceilings: Ceilings
) -> ListingIntent:
    """Returns the listing's intent. `min_price_sats` is the task's; the installation's minimum holds as well."""
    return ListingIntent(
        inscription_id=listing.inscription_id,
        outpoint=Outpoint.parse(listing.outpoint),
        price_sats=listing.price,
        min_price_sats=max(1, min_price_sats, ceilings.least_listing),
        payout_address=secrets.public.payment,
        seller_fee_ppm=ceilings.seller_fee_ppm.get(venue, 0),
    )


def owner_of(secrets: UserSecrets) -> Owner:
    """Returns the owner: the vault's key. The user may be paid at the payment address or the vault."""
    vault, payment = secrets.vault.get_public_key().sec(), secrets.payment.get_public_key().sec()
    scripts = frozenset({own_script("p2tr", vault), own_script("p2wpkh", payment)})
    return Owner("p2tr", vault, scripts, scripts)


def escrow_addresses(secrets: UserSecrets, ceilings: Ceilings) -> dict[str, str]:
    """Returns the venue of each address of the user's escrows."""
    vault, known = secrets.vault.get_public_key().sec(), all_terms(ceilings.escrow_terms)
    return {p2tr(escrow_of(vault, terms).script[2:]): venue for venue, terms in known}


def drafts_to_sign(listing: ListingToSign, venue: str, ceilings: Ceilings) -> list[tuple[str, int]]:
    """Returns the PSBTs that promise a payout, each with its sighash; secure ones only if the operator enabled them."""
    drafts = [(psbt, SECURE_LISTING if at else LISTING) for at, psbt in enumerate(listing.drafts)]
    return drafts if venue in ceilings.secure_listings else drafts[:1]


def rivals_of(drafts: list[tuple[str, int]], outpoint: str, secrets: UserSecrets, payouts: PayoutStore) -> list[str]:
    """Returns the other outputs that were listed for the same payout as one of these drafts. Raises PolicyRefused."""
    script = own_script("p2wpkh", secrets.payment.get_public_key().sec())
    found = set()
    for psbt, sighash in drafts:
        for output in psbt_strict(raw_psbt(psbt)).transaction.outputs:
            if output.script == script:
                found.update(payouts.rivals(outpoint, output, sighash))
    return sorted(found)


def raw_psbt(psbt: str) -> bytes:
    """Returns the bytes of a PSBT in base64. Raises PolicyRefused."""
    try:
        return from_base64(psbt)
    except WireError as error:
        raise PolicyRefused("psbt-strict", str(error)) from None


class Promise(Struct, frozen=True):
    """The promise of a signature: a payment of the payout buys the contents of `outpoint`."""

    outpoint: str
    payout: TxOutput
    sighash: int


class Approved(Struct, frozen=True):
    """A listing that may be signed. `escrow` is the output (`txid:vout`) that its item would pass through, or ""."""

    promises: tuple[Promise, ...]
    transactions: tuple[Transaction, ...]
    escrow: str
    sign: Callable[[PrivateKey], tuple[str, ...]]


def approved(
    listing: ListingToSign,
    venue: str,
    intent: ListingIntent,
    facts: OutpointFacts | None,
    secrets: UserSecrets,
    ceilings: Ceilings,
) -> Approved:
    """Approves all PSBTs of a listing that are to be signed, or raises PolicyRefused with the first broken rule."""
    if listing.is_in_escrow:
        return _in_escrow(listing, venue, intent, facts, secrets, ceilings)
    owner = owner_of(secrets)
    forms = [
        check_listing(raw_psbt(psbt), intent, facts, sighash, owner)
        for psbt, sighash in drafts_to_sign(listing, venue, ceilings)
    ]
    return Approved(
        tuple(Promise(listing.outpoint, each.payout, each.sighash) for each in forms),
        tuple(each.psbt.transaction for each in forms),
        "",
        lambda key: _texts(sign_listing(each, key) for each in forms),
    )


def _in_escrow(
    listing: ListingToSign,
    venue: str,
    intent: ListingIntent,
    facts: OutpointFacts | None,
    secrets: UserSecrets,
    ceilings: Ceilings,
) -> Approved:
    terms = ceilings.escrow_terms.get(venue)
    if terms is None:
        raise PolicyRefused("escrow", f"listings in escrow are not signed at {venue}")
    if listing.secure:
        raise PolicyRefused("escrow", "a secure form goes with no escrow")
    found = check_escrow(escrow_drafts(listing), intent, facts, owner_of(secrets), terms)
    signed = (found.sale, found.transfer.psbt, *([found.recovery] if found.recovery else []))
    return Approved(
        (Promise(str(found.outpoint), found.payout, LISTING),),
        tuple(each.transaction for each in signed),
        str(found.outpoint),
        lambda key: _texts(sign_escrow(found, key)),
    )


def escrow_drafts(listing: ListingToSign) -> EscrowDrafts:
    """Returns the bytes of a listing's PSBTs. Raises PolicyRefused."""
    recovery = raw_psbt(listing.recovery) if listing.recovery else None
    return EscrowDrafts(raw_psbt(listing.transfer), raw_psbt(listing.psbt), recovery)


def _texts(psbts: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(base64.b64encode(psbt).decode() for psbt in psbts)


# At most this many rivals are looked up in addition to the listed output. Spent ones are deleted, so that the next try
# looks up others.
MOST_RIVALS = 3


class ListingSigner:
    """Signs listings. `facts` describe the listed output, and others that were listed for the same payout
    (`outputs-unique`), from a source independent of the venue; without facts it refuses.
    """

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def outpoints_to_look_up(self, request: SignListing) -> tuple[str, ...]:
        """Returns the outputs that `sign_listing` needs facts of, none if the listing was signed before.

        Raises as `sign_listing`, so that nothing is looked up without the right to list.
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
            with ledger.transaction():  # separate, so that a refusal does not undo it and the next try looks up others
                for outpoint in gone:
                    ledger.payouts.delete(outpoint)
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
            # An escrow is created by spending the item's output, so one transaction never spends both.
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
        # Logged just before the commit, so that a crash may leave a line without its signature, but never the reverse.
        authority.audit.append(now, _entry(signed, found))
        return signed


def _drafts_hash(listing: ListingToSign) -> str:
    # The escrow's PSBTs are one more item, so that the hash differs from a secure listing's.
    drafts = list(listing.drafts)
    if listing.is_in_escrow:
        drafts.append(f"escrow {listing.transfer} {listing.recovery}")
    return hashlib.sha256("\n".join(drafts).encode()).hexdigest()


def _entry(signed: ListingSignature, found: Approved) -> Entry:
    """Returns the audit entry. `unsigned_txids` are of the signed transactions, in the answer's order."""
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


class DelistSigner:
    """Signs PSBTs that return everything to the vault. Only their rate is limited, together with challenges."""

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
    return check_delist(raw_psbt(psbt), Outpoint.parse(outpoint), Owner("p2tr", public_key, scripts, scripts))


Facts = Mapping[str, OutpointFacts]
_Asked = tuple[UserSecrets, str, int, ListingToSign]


class ListingJudge:
    """Judges listings. `facts` are as for `ListingSigner`."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def outpoints_to_look_up(self, request: JudgeListing) -> tuple[str, ...]:
        """Returns the listed output, and others that were listed for the same payout. Raises as `judge`."""
        secrets, _, _, listing = self._asked(request)
        drafts = [(psbt, SIGHASHES[form]) for form, psbt in _forms(listing)]
        try:
            rivals = rivals_of(drafts, listing.outpoint, secrets, self._authority.ledger.payouts)
        except PolicyRefused:
            rivals = []  # the rule that refuses it reports this
        return (listing.outpoint, *rivals[:MOST_RIVALS])

    def judge(self, request: JudgeListing, facts: Facts) -> Judgements:
        """Judges each PSBT, the plain one first. Raises PolicyRefused or AddressError for an invalid request."""
        asked = self._asked(request)
        listing = asked[3]
        if listing.is_in_escrow:
            return Judgements(self._in_escrow(asked, facts))
        return Judgements(tuple(self._judged(form, psbt, asked, facts) for form, psbt in _forms(listing)))

    def _in_escrow(self, asked: _Asked, facts: Facts) -> tuple[Judgement, ...]:
        secrets, venue, least, listing = asked
        ceilings = self._authority.ceilings
        terms = ceilings.escrow_terms.get(venue)
        if terms is None:
            raise PolicyRefused("escrow", f"listings in escrow are not signed at {venue}")
        intent = intent_of(listing, venue, least, secrets, ceilings)
        drafts = EscrowDrafts(_bytes(listing.transfer), _bytes(listing.psbt), _bytes(listing.recovery) or None)
        judgements, found = judge_escrow(drafts, intent, facts.get(listing.outpoint), owner_of(secrets), terms)
        outpoint, payout = (str(found.outpoint), found.payout) if found else ("", None)
        judged = [self._with_ours(each, asked, facts, outpoint, payout) for each in judgements]
        is_signed = all(each.is_signed for each in judged)
        return tuple(replace(each, is_signed=is_signed) for each in judged)

    def _asked(self, request: JudgeListing) -> _Asked:
        user, keystore = sign_in_address(request.user), self._authority.unlocked()
        if user not in keystore.users:
            raise PolicyRefused("dest-allow", "no user of this signer signs in with this address")
        return keystore.secrets_of(user), request.venue, request.min_price_sats, request.listing

    def _judged(self, form: Form, psbt: str, asked: _Asked, facts: Facts) -> Judgement:
        secrets, venue, least, listing = asked
        intent = intent_of(listing, venue, least, secrets, self._authority.ceilings)
        known, owner = facts.get(listing.outpoint), owner_of(secrets)
        judgement, payout = judge_listing(_bytes(psbt), form, intent, known, owner)
        return self._with_ours(judgement, asked, facts, listing.outpoint, payout)

    def _with_ours(
        self, judgement: Judgement, asked: _Asked, facts: Facts, outpoint: str, payout: TxOutput | None
    ) -> Judgement:
        """Adds the findings of rules that do not depend on the draft alone; `outpoint` would be sold."""
        _, venue, _, listing = asked
        ceilings, play = self._authority.ceilings, self._authority.unlocked().is_play
        findings = [
            _finding("market", lambda: policy.market(venue, play=play)),
            _finding("op-allowed", lambda: _form_allowed(judgement.form, venue, ceilings)),
            *judgement.findings,
            _finding("list-lower", lambda: self._list_lower(listing)),
        ]
        if judgement.form in SIGHASHES:
            findings.append(self._outputs_unique(listing, judgement.form, outpoint, payout, facts))
        return replace(judgement, findings=tuple(findings), is_signed=all(each.holds for each in findings))

    def _outputs_unique(
        self, listing: ListingToSign, form: Form, outpoint: str, payout: TxOutput | None, facts: Facts
    ) -> Finding:
        if payout is None:
            return Finding("outputs-unique", None, "it waits for outputs-known")
        found = self._authority.ledger.payouts.rivals(outpoint, payout, SIGHASHES[form])
        rivals = [each for each in found if each != listing.outpoint]
        return _finding("outputs-unique", lambda: outputs_unique(payout, rivals, facts))

    def _list_lower(self, listing: ListingToSign) -> None:
        highest = self._authority.ledger.signed.highest_listing(listing.outpoint, self._authority.clock())
        policy.list_lower(listing.price, highest)


def _forms(listing: ListingToSign) -> list[tuple[Form, str]]:
    return [("secure" if at else "plain", psbt) for at, psbt in enumerate(listing.drafts)]


def _form_allowed(form: Form, venue: str, ceilings: Ceilings) -> None:
    """Refuses a secure form if the operator has not enabled them. `sign_listing` would leave it out."""
    if form == "secure" and venue not in ceilings.secure_listings:
        raise PolicyRefused(
            "op-allowed", f"secure listings are not signed at {venue}: the operator has not turned them on"
        )


def _bytes(psbt: str) -> bytes:
    """Returns the PSBT's bytes; b"" for an unreadable one, which a rule then refuses."""
    try:
        return raw_psbt(psbt)
    except PolicyRefused:
        return b""


def _finding(rule: str, check: Callable[[], None]) -> Finding:
    try:
        check()
    except PolicyRefused as refused:
        return Finding(rule, False, refused.message)
    return Finding(rule, True, "")
