"""Checks of a listing that moves the item into an escrow before the sale; one small function a rule.

A listing has up to three PSBTs. The venue broadcasts none of them before there is a buyer:

- the transfer moves the item's output into the escrow. The signature covers all of it.
- the sale spends the escrow by its sale leaf, which the venue signs, too. Our signature is a plain listing's
  (SINGLE|ANYONECANPAY): it cannot be used without paying the output at its index.
- the recovery returns the item. Only an escrow that our key opens by key path has one.

The escrow is rebuilt from our own key and compared; no script, key or control block of the PSBTs is trusted. At
worst the venue moves the item to an output that our key alone can spend: at ord.net immediately, at Ordinals Wallet
after 144 blocks.

The PSBTs are approved together or not at all. A rule needs the results of earlier rules, so only the first broken rule
is reported, in the judgement of each PSBT.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from wallet.protocol import Finding, Form, Judgement, PolicyRefused
from wallet.psbt import fields
from wallet.psbt.check_listing import (
    Draft,
    amount_proof,
    dest_allow,
    inputs_cardinal,
    inputs_reserved,
    list_min,
    payout_of,
    sides,
)
from wallet.psbt.common import (
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
from wallet.psbt.decode import Map, Psbt, key_type
from wallet.psbt.script import TAPSCRIPT, Escrow, escrow_of, own_script
from wallet.psbt.transaction import ALL, DEFAULT, LISTING, Outpoint, TxOutput, compact
from wallet.terms import EscrowTerms

# The fee in sats that a transfer at Ordinals Wallet may pay: its size at the nodes' minimum rate.
TRANSFER_FEE = 12
# The maximum fee of a recovery, in sats: its size at a few sats per virtual byte.
MOST_RECOVERY_FEE = 1_000

_OTHER_SCRIPTS = frozenset({fields.IN_REDEEM_SCRIPT, fields.IN_WITNESS_SCRIPT})


class EscrowDrafts(Struct, frozen=True):
    """A venue's PSBTs for one listing; `recovery` is None if the escrow has a recovery leaf."""

    transfer: bytes
    sale: bytes
    recovery: bytes | None


class ApprovedEscrow(Struct, frozen=True):
    """PSBTs that passed every check. `held` is the escrow's output, which `sale` and `recovery` spend at input 0.

    `payout` is the output that the sale pays us.
    """

    escrow: Escrow
    transfer: ApprovedListing
    sale: Psbt
    recovery: Psbt | None
    recovery_sighash: int
    held: TxOutput
    payout: TxOutput

    @property
    def outpoint(self) -> Outpoint:
        """The escrow's output, once the transfer is in a block."""
        return Outpoint(self.transfer.psbt.transaction.txid(), 0)


def check_escrow(
    drafts: EscrowDrafts, intent: ListingIntent, facts: OutpointFacts | None, owner: Owner, terms: EscrowTerms
) -> ApprovedEscrow:
    """Approves the PSBTs of a listing at the venue of these terms, or raises PolicyRefused with the first broken rule.

    `owner` is a taproot key.
    """
    escrow = escrow_of(owner.public_key, terms)
    owner = replace(owner, scripts=owner.scripts | {escrow.script})
    draft = _transfer_draft(psbt_strict(drafts.transfer), intent, facts, owner)
    transfer = _transfer(draft, escrow, terms)
    sale = psbt_strict(drafts.sale)
    payout = _sale(sale, transfer, draft, escrow)
    recovery, sighash = _recovery(drafts.recovery, transfer, draft, escrow)
    return ApprovedEscrow(escrow, transfer, sale, recovery, sighash, transfer.payout, payout)


def _transfer_draft(psbt: Psbt, intent: ListingIntent, facts: OutpointFacts | None, owner: Owner) -> Draft:
    index = inputs_reserved(psbt, intent, owner)
    return Draft(psbt, index, _all_covered(psbt.inputs[index]), intent, facts, owner)


def _all_covered(own: Map) -> int:
    """Returns the input's sighash, DEFAULT if it names none. Refuses one that does not cover everything."""
    named = named_sighash(own)
    if named not in (None, DEFAULT, ALL):
        raise PolicyRefused("sighash-allowed", f"sighash {named:#x} does not cover all of the transaction")
    return named or DEFAULT


def _transfer(draft: Draft, escrow: Escrow, terms: EscrowTerms) -> ApprovedListing:
    list_min(draft)
    dest_allow(draft)
    amount_proof(draft)
    tip = inputs_cardinal(draft)
    psbt, own = draft.psbt, draft.own
    spent = _all_spent(draft)
    held = _item_flow(draft, escrow, terms)
    tx_form(psbt.transaction, tip)
    input_unsigned(own)
    key_path(own, draft.owner)
    return ApprovedListing(psbt, draft.index, draft.sighash, spent, draft.owner, held)


def _all_spent(draft: Draft) -> tuple[TxOutput, ...]:
    """Returns the outputs that the inputs claim to spend. The signature covers them: a false claim makes it invalid."""
    spent = []
    for item, source in zip(draft.psbt.inputs, draft.psbt.transaction.inputs, strict=True):
        said = claimed(item, source.outpoint)
        if not said or any(output != said[0] for output in said):
            raise PolicyRefused("amount-proof", "it is not said what an input spends, or said in two ways")
        spent.append(said[0])
    return tuple(spent)


def _item_flow(draft: Draft, escrow: Escrow, terms: EscrowTerms) -> TxOutput:
    """Returns the escrow's output, which must receive all of the item's sats (first in, first out).

    Other inputs and outputs are the venue's own; Ordinals Wallet's form has none.
    """
    outputs, inputs = draft.psbt.transaction.outputs, draft.psbt.transaction.inputs
    if draft.index != 0:
        raise PolicyRefused("item-flow", "the item is not the first input, so its sats go to another output")
    if not outputs or outputs[0].script != escrow.script:
        raise PolicyRefused("escrow", "the first output is not the escrow of our key")
    if terms.form == "ordinalswallet" and (len(inputs), len(outputs)) != (1, 1):
        raise PolicyRefused("outputs-known", f"{len(inputs)} inputs and {len(outputs)} outputs instead of one each")
    held, postage = outputs[0], amount_proof(draft).value
    most_fee = TRANSFER_FEE if terms.form == "ordinalswallet" else 0
    if postage - held.value not in (0, most_fee) or held.value < terms.least_sats:
        raise PolicyRefused("postage", f"{held.value} of {postage} sats come into the escrow")
    _item_kept(draft, held.value)
    return held


def _item_kept(draft: Draft, sats: int) -> None:
    """Refuses if the item may lie on one of the last sats, because those pay the fee."""
    at, postage = None if draft.facts is None else draft.facts.item_offset, amount_proof(draft).value
    if sats < postage and (at is None or at >= sats):
        raise PolicyRefused("item-flow", f"the item may lie on one of the last {postage - sats} sats, which are a fee")


def _sale(sale: Psbt, transfer: ApprovedListing, draft: Draft, escrow: Escrow) -> TxOutput:
    """Returns the payout."""
    own = _only_input(sale, transfer, "sale-input")
    _require_witness_utxo(own, transfer.payout)
    _sale_leaf(own, escrow)
    _known_output(own, escrow)
    payout = payout_of(replace(draft, psbt=sale, index=0, sighash=LISTING))
    least = draft.intent.least_payout(list_min(draft), amount_proof(draft).value)
    if payout.value < least:
        raise PolicyRefused("payout", f"the seller is paid {payout.value} sats instead of at least {least}")
    if named_sighash(own) != LISTING:
        raise PolicyRefused("sighash-allowed", f"the sale does not ask for sighash {LISTING:#x}")
    tx_form(sale.transaction, inputs_cardinal(draft), index=0)
    input_unsigned(own)
    return payout


def _only_input(psbt: Psbt, transfer: ApprovedListing, tag: str) -> Map:
    """Returns the fields of the only input, which must spend the escrow's output."""
    inputs = psbt.transaction.inputs
    if len(inputs) != 1 or inputs[0].outpoint != Outpoint(transfer.psbt.transaction.txid(), 0):
        raise PolicyRefused(tag, "the one input is not the first output of the transfer")
    return psbt.inputs[0]


def _require_witness_utxo(own: Map, held: TxOutput) -> None:
    """Refuses an input whose witness UTXO is not `held`, or that has a former transaction: there is none yet."""
    if own.get(compact(fields.IN_WITNESS_UTXO)) != held.encode() or compact(fields.IN_NON_WITNESS_UTXO) in own:
        raise PolicyRefused("amount-proof", "the PSBT does not say that the input spends the escrow, or says it wrong")


def _sale_leaf(own: Map, escrow: Escrow) -> None:
    """Refuses any leaf except the sale's. Its control block must match, too, because it names the sibling leaf."""
    leaves = {key: value for key, value in own.items() if key_type(key) == fields.IN_TAP_LEAF_SCRIPT}
    wanted = compact(fields.IN_TAP_LEAF_SCRIPT) + escrow.sale.control_block
    if leaves != {wanted: escrow.sale.script + bytes([TAPSCRIPT])}:
        raise PolicyRefused("sale-leaf", "the input does not carry the escrow's sale leaf alone")


def _known_output(own: Map, escrow: Escrow) -> None:
    """Refuses an internal key or merkle root that is not the escrow's, and scripts of other output types."""
    known = {fields.IN_TAP_INTERNAL_KEY: escrow.internal_key, fields.IN_TAP_MERKLE_ROOT: escrow.merkle_root}
    if any(own.get(compact(kind), value) != value for kind, value in known.items()):
        raise PolicyRefused("escrow", "the internal key or the merkle root is not the escrow's")
    if {key_type(key) for key in own} & _OTHER_SCRIPTS:
        raise PolicyRefused("escrow", "the input has a script that no taproot output is spent by")


def _recovery(raw: bytes | None, transfer: ApprovedListing, draft: Draft, escrow: Escrow) -> tuple[Psbt | None, int]:
    """Returns the recovery and its sighash. It must return everything, less its fee, to the item's former script."""
    if (raw is None) != (escrow.recovery is not None):
        raise PolicyRefused("recovery", "a recovery is missing, or is asked for where the escrow needs none")
    if raw is None:
        return None, DEFAULT
    psbt = psbt_strict(raw)
    own = _only_input(psbt, transfer, "recovery")
    _require_witness_utxo(own, transfer.payout)
    _known_output(own, escrow)
    if any(key_type(key) == fields.IN_TAP_LEAF_SCRIPT for key in own):
        raise PolicyRefused("key-path", "the recovery has a leaf to be spent by")
    outputs, home = psbt.transaction.outputs, own_script(draft.owner.kind, draft.owner.public_key)
    if len(outputs) != 1 or outputs[0].script != home:
        raise PolicyRefused("recovery", "the item does not all come back to where it was")
    fee = transfer.payout.value - outputs[0].value
    if not 0 <= fee <= MOST_RECOVERY_FEE:
        raise PolicyRefused("recovery", f"a fee of {fee} sats is not from 0 to {MOST_RECOVERY_FEE}")
    _item_kept(draft, outputs[0].value)
    sighash = _all_covered(own)
    tx_form(psbt.transaction, inputs_cardinal(draft))
    input_unsigned(own)
    return psbt, sighash


def judge_escrow(
    drafts: EscrowDrafts, intent: ListingIntent, facts: OutpointFacts | None, owner: Owner, terms: EscrowTerms
) -> tuple[list[Judgement], ApprovedEscrow | None]:
    """Judges sale, transfer and recovery. Also returns the approved escrow, None if a rule is broken."""
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
            inputs, outputs = (), ()  # `finding` has the reason
        paid = approved.payout.value if approved is not None and form == "sale" else None
        asked = least if form == "sale" else None
        found.append(Judgement(form, approved is not None, (finding,), inputs, outputs, paid, asked))
    return found, approved
