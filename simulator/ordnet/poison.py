"""Poisoned drafts of ord.net's preflights (see `simulator.listing.poison`)."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.psbt_write import SIGHASH_TYPE, Unsigned, spends
from simulator.bitcoin.transactions import script_of, spend
from simulator.engine import Engine
from simulator.listing.poison import NONE_ANYONECANPAY, THIEF, Poison
from simulator.money import coins
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


def indexes(asked: list[int], poison: Poison | None) -> list[int]:
    """Returns the inputs to be signed; under `two_inputs` one more."""
    return [*asked, asked[-1] + 1] if poison == "two_inputs" else asked


def another(engine: Engine, owner: str, used: set[str]) -> Coin:
    """Returns a coin of `owner` besides the `used` ones; a made-up one if there is none."""
    free = (coin for coin in coins(engine, owner) if coin.outpoint not in used)
    made_up = Coin(f"{hashlib.sha256(owner.encode()).hexdigest()}:0", 10_000, script_of(owner).data.hex())
    return next(free, made_up)
