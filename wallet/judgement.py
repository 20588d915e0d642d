"""Judgements of drafts that are not signed, in words: each rule's finding, and the cover of the signature to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wallet.protocol import LISTING_INTENT_DIGITS, Form, Judgement, ListingToSign, Side

_NO_INTENT = "0" * LISTING_INTENT_DIGITS
_COVER: dict[Form, str] = {
    "plain": "input {at} and output {at}. Anybody can add inputs and outputs",
    "secure": "input {at} and all outputs. Anybody can add inputs",
    "transfer": "all inputs and outputs",
    "sale": "input {at} and output {at}. The venue, which must sign, too, can add inputs and outputs",
    "recovery": "all inputs and outputs",
}
_NAMES: dict[Form, str] = {
    "plain": "plain listing (SINGLE|ANYONECANPAY 0x83)",
    "secure": "secure listing (ALL|ANYONECANPAY 0x81)",
    "transfer": "transfer of a listing's item into its escrow (ALL or DEFAULT)",
    "sale": "sale out of that escrow (SINGLE|ANYONECANPAY 0x83, by its leaf)",
    "recovery": "recovery out of that escrow (ALL or DEFAULT)",
}


def to_judge(
    inscription_id: str,
    outpoint: str,
    price: int,
    psbt: str,
    secure: Iterable[str],
    transfer: str = "",
    recovery: str = "",
) -> ListingToSign:
    """Makes the listing of a draft that is only judged: it uses no intent up."""
    return ListingToSign(_NO_INTENT, inscription_id, outpoint, price, psbt, tuple(secure), transfer, recovery)


def verdict(judgements: Sequence[Judgement]) -> str:
    """Returns in a line whether a listing would be signed, by the judgement of its plain form, which comes first."""
    plain = judgements[0]
    wrong = [finding for finding in plain.findings if finding.holds is False]
    if plain.is_signed or not wrong:
        return "the signer would sign it" if plain.is_signed else "the signer cannot judge it"
    return f"the signer would refuse it ({wrong[0].rule}: {wrong[0].why})"


def in_words(judgement: Judgement) -> list[str]:
    """Returns lines for a human: inputs, outputs, the promise that a signature would be, and each rule."""
    lines = [_NAMES[judgement.form]]
    ours = None
    for at, side in enumerate(judgement.inputs):
        lines.append(f"  input {at}   {_side(side, 'yours')}   {side.outpoint}")
        ours = at if side.is_covered and ours is None else ours
    for at, side in enumerate(judgement.outputs):
        mark = "   <- covered" if side.is_covered else ""
        lines.append(f"  output {at}  {_side(side, 'YOURS')}{mark}")
    if ours is not None:
        lines.append(f"  a signature would cover {_COVER[judgement.form].format(at=ours)}. It is good until")
        lines.append(f"  {judgement.inputs[ours].outpoint} is spent.")
    if judgement.least_sats is not None:
        lines.append(f"  you get {_sats(judgement.payout_sats)}, and must get {_sats(judgement.least_sats)} at least")
    lines += [
        f"  {finding.rule}: {'NO' if finding.holds is False else 'not judged'}: {finding.why}"
        for finding in judgement.findings
        if finding.holds is not True
    ]
    lines.append("  every rule holds: it would be signed" if judgement.is_signed else "  it would NOT be signed")
    return lines


def _side(side: Side, ours: str) -> str:
    whose = ours if side.is_ours else "somebody's"
    return f"{whose:<10} {side.address or side.script or 'an unknown script'}  {_sats(side.sats)}"


def _sats(sats: int | None) -> str:
    return "unknown sats" if sats is None else f"{sats:,} sats"
