"""Drafts as a malicious venue would make them; a seller's or a buyer's signer must refuse them."""

from __future__ import annotations

import hashlib
from typing import Literal, get_args

from embit.transaction import Transaction, TransactionOutput
from msgspec.structs import replace

from simulator.chain import Coin, script_of, spend
from simulator.engine import Engine
from simulator.holdings import coins
from simulator.listing import AskTerms, Draft
from simulator.taproot import SIGHASH_TYPE, TAP_LEAF_SCRIPT, Unsigned, spends
from simulator.venue_scripts import practice_key, xonly

# The faults of a draft: the payout goes to a stranger; it is a sat too low; the input is another output of the seller;
# a stranger's input is added; the sighash is NONE instead of SINGLE or ALL; a stranger is paid as well; a second output
# of the seller is to be signed. The stranger's input and payment cost the seller nothing. Only with escrows (ord.net):
# the escrow is a stranger's; it gets a sat less than the item has; the sale does not use the escrow's leaf; the
# recovery goes to a stranger.
OfAny = Literal[
    "wrong_payout", "low_payout", "other_outpoint", "extra_input", "sighash_none", "extra_output", "two_inputs"
]
OfEscrows = Literal["escrow_theirs", "escrow_short", "sale_by_key", "recovery_theirs"]
Poison = OfAny | OfEscrows
POISONS = frozenset((*get_args(OfAny), *get_args(OfEscrows)))

NONE_ANYONECANPAY = 0x82
THIEF = script_of("the thief")
THIEFS_KEY = xonly(practice_key("the thief"))


def poisoned(draft: Draft, poison: Poison | None, engine: Engine, terms: AskTerms) -> Draft:
    """Applies `poison` to `draft`; None changes nothing."""
    payout = draft.outputs[0]
    match poison:
        case None | "escrow_theirs" | "escrow_short" | "sale_by_key" | "recovery_theirs":
            return draft
        case "wrong_payout":
            return replace(draft, outputs=(TransactionOutput(payout.value, THIEF),))
        case "low_payout":
            short = min(payout.value, terms.price) - 1
            return replace(draft, outputs=(TransactionOutput(short, payout.script_pubkey),))
        case "other_outpoint":
            return replace(draft, coins=(_other(draft.coins[0], engine, terms),))
        case "extra_input":
            return replace(draft, coins=(*draft.coins, _made_up("a stranger's", 600, THIEF.data.hex())))
        case "sighash_none":
            return replace(draft, sighash=NONE_ANYONECANPAY)
        case "extra_output":
            return replace(draft, outputs=(payout, TransactionOutput(1_000, THIEF)))
        case "two_inputs":
            return replace(draft, coins=(*draft.coins, _other(draft.coins[0], engine, terms)), to_sign=(0, 1))


def poisoned_outputs(outputs: list[TransactionOutput], poison: Poison | None) -> list[TransactionOutput]:
    """Applies `poison` to the outputs of a withdrawal; returns them unchanged if it concerns something else."""
    first, rest = outputs[0], outputs[1:]
    match poison:
        case "wrong_payout":
            return [TransactionOutput(first.value, THIEF), *rest]
        case "low_payout":
            return [TransactionOutput(first.value // 2, first.script_pubkey), *rest]
        case "extra_output":
            return [*outputs, TransactionOutput(1_000, THIEF)]
        case _:
            return outputs


def _other(coin: Coin, engine: Engine, terms: AskTerms) -> Coin:
    others = (each for each in engine.chain.unspent(terms.seller) if each.outpoint != coin.outpoint)
    return next(others, _made_up("the seller's", 10_000, coin.script))


def _made_up(name: str, value: int, script: str) -> Coin:
    return Coin(f"{hashlib.sha256(name.encode()).hexdigest()}:0", value, script)


def spoiled(shown: Unsigned, poison: Poison | None, payout: int, other: Coin) -> Unsigned:
    """Applies `poison` to `shown`. Output `payout` is the signer's, `other` is another coin of the signer."""
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


def paying(shown: Unsigned, outputs: list[TransactionOutput]) -> Unsigned:
    return replace(shown, tx=Transaction(shown.tx.version, shown.tx.vin, outputs, shown.tx.locktime))


def without_leaf(shown: Unsigned) -> Unsigned:
    """Returns `shown` without the leaf that its first input spends."""
    first = {name: value for name, value in shown.inputs[0].items() if not name.startswith(TAP_LEAF_SCRIPT)}
    return replace(shown, inputs=[first, *shown.inputs[1:]])


def indexes(asked: list[int], poison: Poison | None) -> list[int]:
    """Returns the inputs to sign; `two_inputs` adds one."""
    return [*asked, asked[-1] + 1] if poison == "two_inputs" else asked


def another(engine: Engine, owner: str, used: set[str]) -> Coin:
    """Returns a coin of `owner` that is not in `used`, or a made-up coin."""
    free = (coin for coin in coins(engine, owner) if coin.outpoint not in used)
    made_up = Coin(f"{hashlib.sha256(owner.encode()).hexdigest()}:0", 10_000, script_of(owner).data.hex())
    return next(free, made_up)
