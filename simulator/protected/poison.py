"""Poisoned drafts of protected listings (see `simulator.venues.poison`)."""

from __future__ import annotations

from dataclasses import replace

from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.leaf_output import LEAF_VERSION, LeafOutput
from simulator.bitcoin.psbt_write import SIGHASH_TYPE, TAP_LEAF_SCRIPT, Unsigned
from simulator.engine import Engine
from simulator.protected.listings import Draft
from simulator.venues.poison import THIEFS_KEY, Poison, another
from simulator.venues.poison import spoiled as spoiled_half
from simulator.venues.scripts import recovery_leaf, sale_output

# The evils of the step that moves the inscription; the others are of the one that sells it.
_OF_THE_TRANSFER = frozenset({"other_outpoint", "two_inputs", "extra_output", "extra_input"})


def spoiled(made: Draft, poison: Poison | None, engine: Engine) -> tuple[Unsigned, Unsigned]:
    """Returns the PSBTs of transfer and sale with `poison` applied."""
    transfer, sale = made.to_sign()
    match poison:
        case "escrow_theirs":
            held = TransactionOutput(made.held.value, sale_output(THIEFS_KEY).script)
            return _paying(transfer, held), sale
        case "escrow_short":
            return _paying(transfer, TransactionOutput(made.held.value - 1, made.held.script_pubkey)), sale
        case "sale_by_key" | "recovery_theirs":
            return transfer, _by_another_leaf(sale, made, poison)
        case None:
            return transfer, sale
    other = another(engine, made.terms.seller, {made.coin.outpoint})
    if poison in _OF_THE_TRANSFER:
        transfer = spoiled_half(transfer, poison, 0, other)
    else:
        sale = spoiled_half(sale, poison, 0, other)
    return transfer, sale


def _paying(shown: Unsigned, output: TransactionOutput) -> Unsigned:
    tx = shown.tx
    return replace(shown, tx=Transaction(tx.version, tx.vin, [output, *tx.vout[1:]], tx.locktime))


def _by_another_leaf(sale: Unsigned, made: Draft, poison: Poison) -> Unsigned:
    """Asks for a signature by the recovery leaf under `recovery_theirs`, or without any leaf."""
    fields = {name: value for name, value in sale.inputs[0].items() if not name.startswith(TAP_LEAF_SCRIPT)}
    if poison == "recovery_theirs":
        leaf = recovery_leaf(made.seller)
        back = LeafOutput(made.escrow.internal, leaf, made.escrow.leaf_hash)
        fields[TAP_LEAF_SCRIPT + back.control_block] = leaf + bytes([LEAF_VERSION])
        assert SIGHASH_TYPE in fields
    return replace(sale, inputs=[fields])
