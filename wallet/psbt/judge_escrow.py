"""The rules of `check_escrow` on a listing in escrow, for a report and no signature.

The PSBTs stand or fall together, and a rule needs those before it: so the first that is broken is told, with each PSBT.
"""

from __future__ import annotations

from dataclasses import replace

from wallet.escrow_terms import EscrowTerms
from wallet.protocol import Finding, Form, Judgement, PolicyRefused
from wallet.psbt.check_escrow import ApprovedEscrow, EscrowDrafts, check_escrow
from wallet.psbt.common import psbt_strict
from wallet.psbt.escrow import escrow_of
from wallet.psbt.judge_listing import sides
from wallet.psbt.listing import ListingIntent, OutpointFacts, Owner


def judge_escrow(
    drafts: EscrowDrafts, intent: ListingIntent, facts: OutpointFacts | None, owner: Owner, terms: EscrowTerms
) -> tuple[list[Judgement], ApprovedEscrow | None]:
    """Judges sale, transfer and recovery; returns them approved, too, if they are."""
    approved: ApprovedEscrow | None = None
    try:
        approved = check_escrow(drafts, intent, facts, owner, terms)
        finding = Finding("escrow", True, "")
    except PolicyRefused as refused:
        finding = Finding(refused.tag, False, refused.message)
    owner = replace(owner, scripts=owner.scripts | {escrow_of(owner.public_key, terms).script})
    least = None
    if facts is not None and facts.value_sats is not None and intent.price_sats is not None:
        least = intent.least_payout(intent.price_sats, facts.value_sats)
    forms: tuple[tuple[Form, bytes | None], ...] = (
        ("sale", drafts.sale),
        ("transfer", drafts.transfer),
        ("recovery", drafts.recovery),
    )
    found = []
    for form, raw in forms:
        if raw is None:
            continue
        try:
            inputs, outputs = sides(psbt_strict(raw), 0, form, owner)
        except PolicyRefused:
            inputs, outputs = (), ()  # the finding says so
        paid = approved.payout.value if approved is not None and form == "sale" else None
        asked = least if form == "sale" else None
        found.append(Judgement(form, approved is not None, (finding,), inputs, outputs, paid, asked))
    return found, approved
