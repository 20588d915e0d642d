"""Poisoned drafts of ord.net's preflights (see `simulator.listing.poison`)."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.psbt_write import SIGHASH_TYPE, TAP_LEAF_SCRIPT, Unsigned, spends
from simulator.bitcoin.transactions import script_of, spend
from simulator.engine import Engine
from simulator.listing.poison import NONE_ANYONECANPAY, THIEF, Poison
from simulator.money import coins
from simulator.ordnet.listings import Draft
from simulator.venues.scripts import practice_key, xonly

THIEFS_KEY = xonly(practice_key("the thief"))


def spoiled(shown: Unsigned, poison: Poison | None, payout: int, other: Coin) -> Unsigned:
    """Applies `poison` to `shown`. Output `payout` is the signer's, `other` one more coin of theirs."""
    tx, inputs, outputs = shown.tx, list(shown.inputs), list(shown.tx.vout)
    sources = list(tx.vin)
    paid = outputs[payout]
    match poison:
        case None | "escrow_theirs" | "escrow_short" | "sale_by_key" | "recovery_theirs":
            return shown
        case "wrong_payout":
            outputs[payout] = TransactionOutput(paid.value, THIEF)
        case "low_payout":
            outputs[payout] = TransactionOutput(paid.value - 1, paid.script_pubkey)
        case "other_outpoint":
            sources[0], inputs[0] = spend(other.outpoint), inputs[0] | spends(other.output)
        case "extra_input":
            stranger = TransactionOutput(600, THIEF)
            sources.append(spend(f"{hashlib.sha256(b'a strangers').hexdigest()}:0"))
            inputs.append(spends(stranger))
        case "sighash_none":
            inputs[0] = inputs[0] | {SIGHASH_TYPE: NONE_ANYONECANPAY.to_bytes(4, "little")}
        case "extra_output":
            outputs.append(TransactionOutput(1_000, THIEF))
        case "two_inputs":
            sources.append(spend(other.outpoint))
            inputs.append(spends(other.output))
    return replace(shown, tx=Transaction(tx.version, sources, outputs, tx.locktime), inputs=inputs)


def stolen_escrows(drafts: list[Draft], poison: Poison | None) -> list[Draft]:
    """Gives the escrows to the thief, as its internal key, under `escrow_theirs`."""
    if poison != "escrow_theirs":
        return drafts
    return [replace(each, passthrough=replace(each.passthrough, internal=THIEFS_KEY)) for each in drafts]


def spoiled_steps(transfer: Unsigned, sale: Unsigned, poison: Poison | None) -> tuple[Unsigned, Unsigned]:
    """Leaves a sat of the item to the network under `escrow_short`, and the leaf out under `sale_by_key`."""
    tx = transfer.tx
    if poison == "escrow_short":
        outputs = [TransactionOutput(tx.vout[0].value - 1, tx.vout[0].script_pubkey), *tx.vout[1:]]
        transfer = replace(transfer, tx=Transaction(tx.version, tx.vin, outputs, tx.locktime))
    if poison == "sale_by_key":
        first = {name: value for name, value in sale.inputs[0].items() if not name.startswith(TAP_LEAF_SCRIPT)}
        sale = replace(sale, inputs=[first])
    return transfer, sale


def stolen_recovery(shown: Unsigned, poison: Poison | None) -> Unsigned:
    """Sends the recovery to the thief under `recovery_theirs`."""
    if poison != "recovery_theirs":
        return shown
    outputs = [TransactionOutput(each.value, THIEF) for each in shown.tx.vout]
    return replace(shown, tx=Transaction(shown.tx.version, shown.tx.vin, outputs, shown.tx.locktime))


def indexes(asked: list[int], poison: Poison | None) -> list[int]:
    """Returns the inputs to be signed; under `two_inputs` one more."""
    return [*asked, asked[-1] + 1] if poison == "two_inputs" else asked


def another(engine: Engine, owner: str, used: set[str]) -> Coin:
    """Returns a coin of `owner` besides the `used` ones; a made-up one if there is none."""
    free = (coin for coin in coins(engine, owner) if coin.outpoint not in used)
    made_up = Coin(f"{hashlib.sha256(owner.encode()).hexdigest()}:0", 10_000, script_of(owner).data.hex())
    return next(free, made_up)
