"""Learnt forms in words, for the operator who confirms them."""

from __future__ import annotations

from wallet.learnt.form import SIGHASHES, WHOSE, LearntForm, OutputForm
from wallet.learnt.laws import WHOLE, Law

_ROUNDED = {"down": "rounded down", "up": "rounded up", "nearest": "rounded to the nearest"}


def title(form: LearntForm) -> str:
    """Writes `satflow, plain listing (SINGLE|ANYONECANPAY 0x83)`."""
    return f"{form.venue}, {form.kind} listing ({SIGHASHES[form.sighash]})"


def in_words(form: LearntForm) -> list[str]:
    """Returns lines for a human: the inputs, and for each output whose it is and the law of its sats."""
    prices = ", ".join(f"{price:,}" for price in form.prices)
    hashes = ", ".join(f"{each[:8]}…" for each in form.drafts)
    drafts = "1 draft" if len(form.drafts) == 1 else f"{len(form.drafts)} drafts"
    return [title(form), f"  from {drafts} at {prices} sats; sha256 {hashes}", *body(form)]


def body(form: LearntForm) -> list[str]:
    """Returns the lines that are the same whichever drafts the form was learnt from."""
    lines = []
    for at, source in enumerate(form.inputs):
        whose = {"ours": "YOURS", "told": "somebody's", "silent": "not told"}[source.told]
        lines.append(f"  input {at}   {whose:<10}  sequence {source.sequence:#x}")
    for at, output in enumerate(form.outputs):
        mark = "   <- covered" if output.is_covered else ""
        lines.append(f"  output {at}  {_whose(output):<10}  {law_words(output.laws)}{mark}")
    locktime = "varies" if form.locktime is None else form.locktime
    lines.append(f"  version {form.version}, locktime {locktime}")
    return lines


def law_words(laws: tuple[Law, ...]) -> str:
    """Writes `price + postage, or price + 546`; `any sats` where no law is known."""
    return ", or ".join(_law(law) for law in sorted(laws, key=lambda law: abs(law.sats))) or "any sats"


def _law(law: Law) -> str:
    parts = []
    if law.quarters == WHOLE:
        parts.append("price")
    elif law.quarters:
        parts.append(f"{percent(law.quarters)} % of the price ({_ROUNDED[law.rounding]})")
    if law.has_postage:
        parts.append("postage")
    if law.sats > 0 or not parts:
        parts.append(f"{law.sats:,}")
    return " + ".join(parts) + (f" - {-law.sats:,}" if law.sats < 0 else "")


def percent(quarters: int) -> str:
    """Writes quarters of a basis point in percent, without zeros at the end: 39,000 is `97.5`."""
    whole, rest = divmod(quarters, WHOLE // 100)
    return f"{whole}.{rest * 25:04d}".rstrip("0").rstrip(".")


def _whose(output: OutputForm) -> str:
    if output.whose == "venue":
        return f"always {output.script}"
    return WHOSE.get(output.whose, "somebody's").upper() if output.whose in WHOSE else "somebody's, another each time"
