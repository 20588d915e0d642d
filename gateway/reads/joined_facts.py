"""The join of several sources' facts of one output; doubt is None."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markets.outpoint_facts import Confirmation, Indexed, OutpointFacts, Spending
from wallet.psbt.transaction import TxOutput

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class OnChain:
    """A mempool server's facts; None is a fact it does not give."""

    made: TxOutput | None
    confirmation: Confirmation | None
    spending: Spending | None
    tip_height: int | None


def joined(outpoint: str, on_chain: OnChain, indexes: Sequence[Indexed]) -> OutpointFacts:
    made, spending, tip = on_chain.made, on_chain.spending, on_chain.tip_height
    heights = [index.height for index in indexes if index.height is not None]
    if tip is not None and heights and max(heights) > tip + 1:
        tip = None  # a block may come between two questions, but a tip that lags is no tip
    confirmation = on_chain.confirmation
    is_confirmed = (
        None
        if confirmation is None
        else _agreed([confirmation.is_in_block, *(index.is_confirmed for index in indexes)])
    )
    is_unspent = None if spending is None else not spending.is_spent
    if is_unspent and made is None:
        is_unspent = None  # servers also call an output unspent that they do not know
    if is_unspent and any(index.is_spent for index in indexes):
        is_unspent = None  # one of them is wrong
    return OutpointFacts(
        outpoint=outpoint,
        value=None if made is None else _agreed([made.value, *(index.value for index in indexes)]),
        script=None if made is None else _agreed([made.script.hex(), *(index.script for index in indexes)]),
        is_unspent=is_unspent,
        is_confirmed=is_confirmed,
        inscriptions=_agreed(index.inscriptions for index in indexes),
        runes=_agreed(index.runes for index in indexes),
        tip_height=tip,
        index_height=min(heights, default=None),
        spent_by=None if spending is None else spending.txid,
        is_spent_in_block=spending is not None and spending.is_in_block,
        item_offset=_agreed(index.item_offset for index in indexes),
        height=confirmation.height if confirmation is not None and is_confirmed else None,
    )


def _agreed(said: Iterable[Value | None]) -> Value | None:
    """Returns the value that all sources agree on that know it, else None."""
    known = {each for each in said if each is not None}
    return known.pop() if len(known) == 1 else None
