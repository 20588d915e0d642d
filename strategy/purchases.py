"""The proof of a purchase: chain data that confirm a fill that a marketplace reports.

A marketplace reports which inscription a bid bought. Only a ProvenPurchase allows that inscription to be listed
automatically, and sets its cost. `prove` makes one, and models/ledger/purchases.py reads it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

NOT_SHOWN = "the chain does not show that this bid bought it"
MOST_MOVES = 2  # a marketplace moves the item into its own script first, and then sends it on
SETTLED_BLOCKS = 6  # a block this deep is not reorganised
BLOCK_CLOCK_S = 7_200  # a block's timestamp may be wrong by this much (BIP 113)
# backing: coins that pay for this bid; own: our other coins; receiver: addresses that hold the user's items.
Holder = Literal["backing", "own", "receiver", "other"]


class ProvenPurchase(Struct, frozen=True):
    """A purchase that the chain shows: the order bought the inscription in transaction `txid`, in `block` at `height`.

    `outpoint` (txid:vout) is the output by which the item reached the order's address, in `arrival_block`. `cost_sats`
    is the total that left our scripts, fees included, and at least the order's price.
    """

    order_id: int
    inscription_id: str
    outpoint: str
    txid: str
    block: str
    height: int
    arrival_block: str
    cost_sats: int


class NotShown(Exception):
    """A final refusal: the chain contradicts this purchase. The message gives the reason."""


class NotYetShown(Exception):
    """A temporary refusal: the chain, or an index, does not show enough yet. The message says what is missing."""


class Claim(Struct, frozen=True):
    """A fill that a marketplace reports. `receive` is the script (hex) that the order names for the item."""

    order_id: int
    inscription_id: str
    price_sats: int
    placed_ms: int
    receive: str


class SpentCoin(Struct, frozen=True):
    """An output that a transaction spends; `script` in hex. If it is ours, `sats` is the value that left us.

    `is_newer`: the coin was created after the bid was signed, whatever its block's timestamp says.
    """

    outpoint: str
    sats: int
    script: str
    holder: Holder
    is_newer: bool = False


class MadeOutput(Struct, frozen=True):
    """An output that a transaction makes; `script` in hex."""

    sats: int
    script: str
    holder: Holder


class Move(Struct, frozen=True):
    """A transaction that moved the item from the coin `item_from` to its output `item_to`.

    `spent` are our other coins that it spends. `block`, `height` and `time_s` (Unix seconds) are None until it is in a
    block.
    """

    txid: str
    block: str | None
    height: int | None
    time_s: int | None
    item_from: SpentCoin
    item_to: int
    spent: tuple[SpentCoin, ...]
    outputs: tuple[MadeOutput, ...]

    @property
    def is_paid_by_backing(self) -> bool:
        return any(coin.holder == "backing" for coin in self.spent)

    @property
    def others(self) -> tuple[MadeOutput, ...]:
        """The outputs except the item's."""
        return self.outputs[: self.item_to] + self.outputs[self.item_to + 1 :]

    @property
    def left_sats(self) -> int:
        """The sats that left our scripts.

        Change to a script counts only up to the sats that it paid, because a marketplace may write our key into a
        script that it alone can spend.
        """
        paid, returned = Counter[str](), Counter[str]()
        for coin in self.spent:
            paid[coin.script] += coin.sats
        for output in self.others:
            returned[output.script] += output.sats
        return sum(max(0, sats - returned[script]) for script, sats in paid.items())


def prove(claim: Claim, moves: Sequence[Move]) -> ProvenPurchase:
    """Proves the claim from the item's last moves, newest first. Raises NotShown or NotYetShown.

    A transaction proves only one order: models/ refuses to store a second proof by it.
    """
    paid = next((at for at, move in enumerate(moves[:MOST_MOVES]) if move.is_paid_by_backing), None)
    if paid is None:
        raise NotShown("no transaction that brought it spends the coins behind this bid")
    through, arrival = moves[: paid + 1], moves[0]
    if arrival.outputs[arrival.item_to].script != claim.receive:
        raise NotShown("it is not at the address that this bid names")
    if any(move.item_from.holder != "other" for move in through):
        raise NotShown("it came from an address of the user's own")
    if any(_brings_more(move) for move in through):
        raise NotShown("its transaction brings more than one item, so its own price is not known")
    cost_sats = sum(move.left_sats for move in through)
    if cost_sats < claim.price_sats:
        raise NotShown(f"only {cost_sats} sats left our addresses for it, and the bid was {claim.price_sats}")
    bought = moves[paid]
    if bought.block is None or bought.height is None or bought.time_s is None or arrival.block is None:
        raise NotYetShown("the transaction that bought it is in no block yet")
    # Coins of a bidding wallet back later bids, too, so only the block's time separates an older purchase from this
    # one.
    is_newer = any(coin.holder == "backing" and coin.is_newer for coin in bought.spent)
    if bought.time_s < claim.placed_ms // 1000 - (BLOCK_CLOCK_S if is_newer else 0):
        raise NotShown("it was bought before this bid was placed")
    outpoint = f"{arrival.txid}:{arrival.item_to}"
    found = (bought.txid, bought.block, bought.height, arrival.block)
    return ProvenPurchase(claim.order_id, claim.inscription_id, outpoint, *found, cost_sats)


def _brings_more(move: Move) -> bool:
    """Tells whether the transaction may deliver another item: to an address for items, or to the item's own script."""
    own = move.outputs[move.item_to].script
    return any(output.holder == "receiver" or output.script == own for output in move.others)
