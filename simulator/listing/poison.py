"""Listing drafts of a venue turned evil, which a seller's signer must refuse."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Literal, get_args

from embit.transaction import TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.transactions import script_of
from simulator.engine import Engine
from simulator.venues.listing import AskTerms, Draft

# The draft's fault: the payout goes to a stranger; it is a sat below the price; the input is another output of the
# seller's; a stranger's input is added; NONE instead of SINGLE or ALL is asked for; a stranger is paid besides; a
# second output of the seller's is to be signed away. The stranger's input and payment cost the seller nothing.
# Of escrows (ord.net) only: it is a stranger's; it gets a sat less than the item has; the item is to be sold without
# the escrow's leaf; the recovery goes to a stranger.
Poison = Literal[
    "wrong_payout",
    "low_payout",
    "other_outpoint",
    "extra_input",
    "sighash_none",
    "extra_output",
    "two_inputs",
    "escrow_theirs",
    "escrow_short",
    "sale_by_key",
    "recovery_theirs",
]
POISONS: frozenset[str] = frozenset(get_args(Poison))

NONE_ANYONECANPAY = 0x82
THIEF = script_of("the thief")


def poisoned(draft: Draft, poison: Poison | None, engine: Engine, terms: AskTerms) -> Draft:
    """Applies `poison` to `draft`; returns it unchanged without one."""
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
    """Returns another output of the seller's; a made-up one if there is none."""
    others = (each for each in engine.chain.unspent(terms.seller) if each.outpoint != coin.outpoint)
    return next(others, _made_up("the seller's", 10_000, coin.script))


def _made_up(name: str, value: int, script: str) -> Coin:
    return Coin(f"{hashlib.sha256(name.encode()).hexdigest()}:0", value, script)
