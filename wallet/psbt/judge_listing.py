"""The rules of `check_listing` one by one, for a report of all that they find and no signature."""

from __future__ import annotations

from wallet import bech32
from wallet.protocol import Finding, Form, Judgement, PolicyRefused, Side
from wallet.psbt.check_listing import RULES, Draft, inputs_reserved, payout_of
from wallet.psbt.common import claimed, psbt_strict
from wallet.psbt.decode import Psbt
from wallet.psbt.listing import ListingIntent, OutpointFacts, Owner
from wallet.psbt.sighash import LISTING, SECURE_LISTING
from wallet.psbt.transaction import TxOutput

SIGHASHES: dict[Form, int] = {"plain": LISTING, "secure": SECURE_LISTING, "sale": LISTING}
# The first of these that does not hold ends the judgement: without it there is nothing for the others to check.
_READING = ("psbt-size", "psbt-strict", "inputs-reserved")
_WITNESS_VERSIONS = {0x00: 0, 0x51: 1}


def judge_listing(
    raw: bytes, form: Form, intent: ListingIntent, facts: OutpointFacts | None, owner: Owner
) -> tuple[Judgement, TxOutput | None]:
    """Judges the PSBT `raw` by every rule of `check_listing`; returns the payout, too, if there is just one."""
    psbt: Psbt | None = None
    try:
        psbt = psbt_strict(raw)
        draft = Draft(psbt, inputs_reserved(psbt, intent, owner), SIGHASHES[form], intent, facts, owner)
    except PolicyRefused as refused:
        findings = [*_read_until(refused), *(_waiting(name, refused) for name in RULES)]
        inputs, outputs = sides(psbt, None, form, owner) if psbt else ((), ())
        return Judgement(form, False, tuple(findings), inputs, outputs, None, None), None
    findings = [Finding(name, True, "") for name in _READING] + [_finding(name, draft) for name in RULES]
    inputs, outputs = sides(draft.psbt, draft.index, form, owner)
    is_signed = all(finding.holds for finding in findings)
    held = {finding.rule for finding in findings if finding.holds}
    payout = payout_of(draft) if "outputs-known" in held else None
    least = None
    if held >= {"list-min", "amount-proof"} and facts is not None and intent.price_sats is not None:
        least = intent.least_payout(intent.price_sats, facts.value_sats or 0)
    sats = payout.value if payout else None
    return Judgement(form, is_signed, tuple(findings), inputs, outputs, sats, least), payout


def _read_until(refused: PolicyRefused) -> list[Finding]:
    """Returns the findings of the reading rules: one did not hold, those after it wait for it."""
    findings, tag = [], refused.tag if refused.tag in _READING else _READING[-1]
    for name in _READING:
        if name == tag:
            findings.append(Finding(name, False, refused.message))
        elif _READING.index(name) < _READING.index(tag):
            findings.append(Finding(name, True, ""))
        else:
            findings.append(_waiting(name, refused))
    return findings


def _finding(name: str, draft: Draft) -> Finding:
    try:
        RULES[name](draft)
    except PolicyRefused as refused:
        return Finding(name, False, refused.message) if refused.tag == name else _waiting(name, refused)
    return Finding(name, True, "")


def _waiting(name: str, refused: PolicyRefused) -> Finding:
    return Finding(name, None, f"it waits for {refused.tag}")


def sides(psbt: Psbt, index: int | None, form: Form, owner: Owner) -> tuple[tuple[Side, ...], tuple[Side, ...]]:
    """Returns inputs and outputs. With an `index` those that a signature would cover are marked."""
    transaction, is_all = psbt.transaction, form in ("transfer", "recovery")
    inputs = []
    for at, source in enumerate(transaction.inputs):
        is_covered = index is not None and (is_all or at == index)
        inputs.append(_side(_told(psbt, at), owner, is_covered=is_covered, outpoint=str(source.outpoint)))
    outputs = [
        _side(output, owner, is_covered=index is not None and (is_all or form == "secure" or at == index))
        for at, output in enumerate(transaction.outputs)
    ]
    return tuple(inputs), tuple(outputs)


def _told(psbt: Psbt, at: int) -> TxOutput | None:
    """Returns the output that input `at` spends by the draft's word; None when it names none, or lies."""
    try:
        said = claimed(psbt.inputs[at], psbt.transaction.inputs[at].outpoint)
    except PolicyRefused:
        return None
    return said[0] if said else None


def _side(output: TxOutput | None, owner: Owner, *, is_covered: bool, outpoint: str = "") -> Side:
    if output is None:
        return Side(None, "", "", is_ours=False, is_covered=is_covered, outpoint=outpoint)
    is_ours = output.script in owner.scripts | owner.destinations
    return Side(output.value, output.script.hex(), _address(output.script), is_ours, is_covered, outpoint)


def _address(script: bytes) -> str:
    """Returns the mainnet address of P2WPKH, P2WSH or P2TR; else ""."""
    version = _WITNESS_VERSIONS.get(script[0]) if script else None
    if version is None or len(script) not in (22, 34) or script[1] != len(script) - 2:
        return ""
    return bech32.encode("bc", version, script[2:])
