"""Judgements of listings: all that the signer's rules find in a venue's drafts, and no signature.

They need no grant, since nothing can be done with one: an operator looks at drafts before any task runs, and a user
before one is started. Rules that hang on a grant or on the pace of signatures are not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from wallet import policy
from wallet.address import sign_in_address
from wallet.keystore.keys import UserSecrets
from wallet.protocol import Finding, Form, JudgeListing, Judgement, Judgements, ListingToSign, PolicyRefused
from wallet.psbt.check_escrow import EscrowDrafts, judge_escrow
from wallet.psbt.check_listing import SIGHASHES, judge_listing
from wallet.psbt.common import OutpointFacts
from wallet.psbt.transaction import TxOutput
from wallet.signer.authority import Authority
from wallet.signer.listings import MOST_RIVALS, intent_of, owner_of, raw_psbt, rivals_of
from wallet.signer.payouts import outputs_unique
from wallet.terms import Ceilings

Facts = Mapping[str, OutpointFacts]
_Asked = tuple[UserSecrets, str, int, ListingToSign]


class ListingJudge:
    """Judges listings. `facts` are those of `ListingSigner`."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def outpoints_to_look_up(self, request: JudgeListing) -> tuple[str, ...]:
        """Returns the listed output, and others that were listed for the same payout. Raises as `judge` does."""
        secrets, _, _, listing = self._asked(request)
        drafts = [(psbt, SIGHASHES[form]) for form, psbt in _forms(listing)]
        try:
            rivals = rivals_of(drafts, listing.outpoint, secrets, self._authority.ledger.payouts)
        except PolicyRefused:
            rivals = []  # the rule that finds this reports it
        return (listing.outpoint, *rivals[:MOST_RIVALS])

    def judge(self, request: JudgeListing, facts: Facts) -> Judgements:
        """Judges each PSBT, the plain one first. Raises PolicyRefused or AddressError for an invalid question."""
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
        """Adds the findings of the rules that do not hang on the draft alone; `outpoint` is what would be sold."""
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
    """Refuses a secure form where the operator has not turned them on; a signature would leave it out."""
    if form == "secure" and venue not in ceilings.secure_listings:
        raise PolicyRefused(
            "op-allowed", f"secure listings are not signed at {venue}: the operator has not turned them on"
        )


def _bytes(psbt: str) -> bytes:
    """Returns the PSBT's bytes; none for an unreadable one, which a rule then refuses."""
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
