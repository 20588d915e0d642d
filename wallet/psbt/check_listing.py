"""Checks of a venue's listing PSBT, one small function a rule, and of the PSBT that takes a listing back.

Each refusal has its rule's tag. The form of a venue's PSBT does not matter, only what the signature covers: our input
with its value, script and sequence, version and locktime, and with SINGLE|ANYONECANPAY the one output at our input's
index, with ALL|ANYONECANPAY all outputs. The signature cannot be used without paying that output. Other inputs and
outputs are other people's money, and anyone may add to them or change them later. At worst the item is lost, for no
less than its minimum price.

The PSBT is only compared with the intent, with facts from sources independent of the venue, and with our own keys. A
missing fact (None) is a refusal. Nothing here reads a clock, a file or a private key. `outputs_unique`
(wallet/signer/ledger.py) catches two listings that one payment would satisfy.

A delist PSBT must return all that its one input holds to the same script. The signature covers everything (DEFAULT), so
the transaction cannot be extended, cut, or given a fee above zero: at worst the sats lie in another output of the same
script, which no listing was signed for. So no source except the PSBT is needed: a false value or script makes the
signature invalid (BIP-341), and a listing can be taken back while all sources are down.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from core.fields import MAX_SATS
from wallet import address
from wallet.address import AddressError, parse
from wallet.protocol import Finding, Form, Judgement, PolicyRefused, Side
from wallet.psbt import fields
from wallet.psbt.common import (
    MOST_BLOCKS_BEHIND,
    ApprovedListing,
    ListingIntent,
    OutpointFacts,
    Owner,
    claimed,
    input_unsigned,
    key_path,
    named_sighash,
    psbt_strict,
    tx_form,
)
from wallet.psbt.decode import Map, Psbt
from wallet.psbt.script import own_script, script_of
from wallet.psbt.transaction import DEFAULT, LISTING, SECURE_LISTING, Outpoint, TxOutput, compact


class Draft(Struct, frozen=True):
    """A venue's PSBT and everything that it is compared with. `index` is the input that spends the item."""

    psbt: Psbt
    index: int
    sighash: int
    intent: ListingIntent
    facts: OutpointFacts | None
    owner: Owner

    @property
    def own(self) -> Map:
        """Returns the fields of our input."""
        return self.psbt.inputs[self.index]


def check_listing(
    raw: bytes, intent: ListingIntent, facts: OutpointFacts | None, sighash: int, owner: Owner
) -> ApprovedListing:
    """Approves the listing PSBT `raw` for a signature with LISTING or SECURE_LISTING, or raises PolicyRefused.

    The tag is of the first rule that it breaks.
    """
    psbt = psbt_strict(raw)
    draft = Draft(psbt, inputs_reserved(psbt, intent, owner), sighash, intent, facts, owner)
    for rule in RULES.values():
        rule(draft)
    spent: list[TxOutput | None] = [None] * len(psbt.inputs)
    spent[draft.index] = amount_proof(draft)
    return ApprovedListing(psbt, draft.index, sighash, tuple(spent), owner, payout_of(draft))


def inputs_reserved(psbt: Psbt, intent: ListingIntent, owner: Owner) -> int:
    """Returns the index of the one input that spends the intent's output. Refuses others that spend our coins."""
    inputs = psbt.transaction.inputs
    found = [at for at, item in enumerate(inputs) if item.outpoint == intent.outpoint]
    if len(found) != 1:
        raise PolicyRefused(
            "inputs-reserved", f"{len(found)} inputs instead of one spend the output that is to be listed"
        )
    # The signature does not cover other inputs, so a false claim costs nothing. But a venue that adds one of our coins
    # wants more than the item.
    for at, item in enumerate(psbt.inputs):
        if at != found[0] and _is_ours(item, inputs[at].outpoint, owner):
            raise PolicyRefused("inputs-reserved", "another input is ours")
    return found[0]


def _is_ours(item: Map, outpoint: Outpoint, owner: Owner) -> bool:
    """Tells whether another input claims to spend our coin. Refuses a claim that contradicts its outpoint."""
    try:
        return any(output.script in owner.scripts for output in claimed(item, outpoint))
    except PolicyRefused as refused:
        raise PolicyRefused("inputs-reserved", f"of another input: {refused.message}") from None


def list_min(draft: Draft) -> int:
    price, least = draft.intent.price_sats, draft.intent.min_price_sats
    if price is None or least is None:
        raise PolicyRefused("list-min", "the price or its minimum is not known")
    if not 0 < least <= price <= MAX_SATS:
        raise PolicyRefused("list-min", f"price {price} is not from {least} to {MAX_SATS} sats")
    return price


def dest_allow(draft: Draft) -> bytes:
    """Returns the payout's script. Refuses an address off mainnet, or where this user may not be paid."""
    try:
        address = parse(draft.intent.payout_address)
    except AddressError as error:
        raise PolicyRefused("dest-allow", str(error)) from None
    if address.network != "mainnet":
        raise PolicyRefused("dest-allow", f"the payout address is of {address.network}")
    script = script_of(address)
    if script is None or script not in draft.owner.destinations:
        raise PolicyRefused("dest-allow", "the payout address is not one of this user's")
    return script


def inputs_confirmed(draft: Draft) -> OutpointFacts:
    facts = draft.facts
    if facts is None or facts.outpoint != draft.intent.outpoint:
        raise PolicyRefused("inputs-confirmed", "nothing is known of the output that is to be listed")
    if facts.is_unspent is not True or facts.is_confirmed is not True:
        raise PolicyRefused("inputs-confirmed", "the output is spent, not confirmed, or not known to be neither")
    return facts


def amount_proof(draft: Draft) -> TxOutput:
    """Returns the output our input spends; facts, our own key and the PSBT must agree on it."""
    facts, owner = inputs_confirmed(draft), draft.owner
    if facts.value_sats is None or facts.script is None:
        raise PolicyRefused("amount-proof", "the value or the script of the output is not known")
    spent = TxOutput(facts.value_sats, facts.script)
    if spent.script != own_script(owner.kind, owner.public_key) or spent.script not in owner.scripts:
        raise PolicyRefused("amount-proof", "the output is not held by our key")
    said = claimed(draft.own, facts.outpoint)
    if not said or any(output != spent for output in said):
        raise PolicyRefused("amount-proof", "the PSBT does not say what the input spends, or says it wrong")
    # A segwit v0 signature covers our amount only. Two requests with different false amounts could get two signatures
    # that together burn coins as fees, so the former transaction is required: its txid proves the amount.
    if owner.kind != "p2tr" and compact(fields.IN_NON_WITNESS_UTXO) not in draft.own:
        raise PolicyRefused("amount-proof", "the transaction that made the output is missing")
    return spent


def inputs_cardinal(draft: Draft) -> int:
    """Returns the chain's tip. The output must hold only the inscription, according to a current index."""
    facts = inputs_confirmed(draft)
    if facts.tip_height is None or facts.index_height is None:
        raise PolicyRefused("inputs-cardinal", "it is not known how far the index is behind")
    if facts.tip_height - facts.index_height > MOST_BLOCKS_BEHIND:
        raise PolicyRefused("inputs-cardinal", "the index is behind the chain")
    if facts.inscriptions != (draft.intent.inscription_id,):
        raise PolicyRefused("inputs-cardinal", "the output does not hold this inscription alone, or that is not known")
    if facts.runes != ():
        raise PolicyRefused("inputs-cardinal", "the output holds runes, or that is not known")
    return facts.tip_height


def _single_pair(draft: Draft) -> None:
    """Refuses SINGLE without an output at our index: its signature would cover no output, and give the item away."""
    if draft.sighash == LISTING and draft.index >= len(draft.psbt.transaction.outputs):
        raise PolicyRefused("single-pair", "there is no output at the index that SINGLE covers")


def payout_of(draft: Draft) -> TxOutput:
    """Returns the payout: the output that SINGLE covers, or with ALL the only output that pays us.

    A second output to us could satisfy another of our signatures.
    """
    _single_pair(draft)
    outputs, script = draft.psbt.transaction.outputs, dest_allow(draft)
    covered = outputs[draft.index : draft.index + 1] if draft.sighash == LISTING else outputs
    ours = [output for output in covered if output.script == script]
    if len(ours) != 1:
        raise PolicyRefused(
            "outputs-known", f"{len(ours)} of the outputs that the signature covers pay the payout address"
        )
    if ours[0].value > MAX_SATS:
        raise PolicyRefused("outputs-known", "the payout is more than there are bitcoin")
    return ours[0]


def _payout(draft: Draft) -> None:
    payout, least = payout_of(draft), draft.intent.least_payout(list_min(draft), amount_proof(draft).value)
    if payout.value < least:
        raise PolicyRefused("payout", f"the seller is paid {payout.value} sats instead of at least {least}")


def _sighash_allowed(draft: Draft) -> None:
    """Refuses a sighash other than the draft's. A PSBT that names none asks for ALL or DEFAULT (BIP-174)."""
    if named_sighash(draft.own) != draft.sighash:
        raise PolicyRefused("sighash-allowed", f"the input does not ask for sighash {draft.sighash:#x}")


def _tx_form(draft: Draft) -> None:
    tx_form(draft.psbt.transaction, inputs_cardinal(draft), index=draft.index)


# The rules in their order, after the PSBT is read and our input found. A rule that needs the result of an earlier one
# raises the earlier rule's tag.
RULES: dict[str, Callable[[Draft], object]] = {
    "list-min": list_min,
    "dest-allow": dest_allow,
    "inputs-confirmed": inputs_confirmed,
    "amount-proof": amount_proof,
    "inputs-cardinal": inputs_cardinal,
    "single-pair": _single_pair,
    "outputs-known": payout_of,
    "payout": _payout,
    "sighash-allowed": _sighash_allowed,
    "tx-form": _tx_form,
    "input-signed": lambda draft: input_unsigned(draft.own),
    "key-path": lambda draft: key_path(draft.own, draft.owner),
}

SIGHASHES: dict[Form, int] = {"plain": LISTING, "secure": SECURE_LISTING, "sale": LISTING}
# The first of these rules to fail ends the judgement, because the others then have nothing to check.
_READING = ("psbt-size", "psbt-strict", "inputs-reserved")
_WITNESS_VERSIONS = {0x00: 0, 0x51: 1}


def judge_listing(
    raw: bytes, form: Form, intent: ListingIntent, facts: OutpointFacts | None, owner: Owner
) -> tuple[Judgement, TxOutput | None]:
    """Judges `raw` by every rule of `check_listing`. Also returns the payout, None if `outputs-known` fails."""
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
    """Returns the findings of the reading rules: one has failed, and later ones are not judged."""
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
    """Returns inputs and outputs; with an `index`, those that its signature would cover are marked."""
    transaction, is_all = psbt.transaction, form in ("transfer", "recovery")
    inputs = []
    for at, source in enumerate(transaction.inputs):
        is_covered = index is not None and (is_all or at == index)
        inputs.append(_side(_claimed_output(psbt, at), owner, is_covered=is_covered, outpoint=str(source.outpoint)))
    outputs = [
        _side(output, owner, is_covered=index is not None and (is_all or form == "secure" or at == index))
        for at, output in enumerate(transaction.outputs)
    ]
    return tuple(inputs), tuple(outputs)


def _claimed_output(psbt: Psbt, at: int) -> TxOutput | None:
    """Returns the output that input `at` claims to spend; None without a claim, or with a contradictory one."""
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
    return address.encode("bc", version, script[2:])


def check_delist(raw: bytes, outpoint: Outpoint, owner: Owner) -> ApprovedListing:
    """Approves the PSBT `raw` that takes back the listing of `outpoint`, or raises PolicyRefused.

    `owner` is a taproot key. The tag is of the first rule that it breaks.
    """
    psbt = psbt_strict(raw)
    inputs, outputs = psbt.transaction.inputs, psbt.transaction.outputs
    if len(inputs) != 1 or inputs[0].outpoint != outpoint:
        raise PolicyRefused("inputs-reserved", "the one input is not the output that is listed")
    own, script = psbt.inputs[0], own_script(owner.kind, owner.public_key)
    said = claimed(own, outpoint)
    if not said or any(output != said[0] for output in said) or said[0].script != script:
        raise PolicyRefused("amount-proof", "the PSBT does not say that our key holds what is listed")
    if len(outputs) != 1 or outputs[0].script != script:
        raise PolicyRefused("outputs-known", "it does not all go back to where it is")
    if outputs[0].value != said[0].value:
        raise PolicyRefused("payout", f"{outputs[0].value} sats come back instead of {said[0].value}")
    if named_sighash(own) not in (None, DEFAULT):
        raise PolicyRefused("sighash-allowed", "the input asks for another sighash than DEFAULT")
    tx_form(psbt.transaction, tip=0)
    input_unsigned(own)
    key_path(own, owner)
    return ApprovedListing(psbt, 0, DEFAULT, (said[0],), owner, outputs[0])
