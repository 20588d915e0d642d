"""The purchase of a listing at ord.net: the venue signs the sale together with the seller."""

from __future__ import annotations

from collections.abc import Callable

from embit.script import Witness
from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.leaf_output import LeafOutput
from simulator.listing.sale_transaction import SELLER_AT
from simulator.orders import Order
from simulator.rules import Refusal
from simulator.venues.listing import SignedSale
from simulator.venues.scripts import DEFAULT, MARKET, holds_for_leaf


def opener(ask: Order, sale: SignedSale) -> Callable[[Transaction, list[TransactionOutput]], Witness]:
    """Makes the witness of the seller's input, by script path: both signatures, the leaf, the control block."""
    output = LeafOutput(*map(bytes.fromhex, ask.papers[1:3]))

    def opened(made: Transaction, spent: list[TransactionOutput]) -> Witness:
        value = spent[SELLER_AT].value
        if not holds_for_leaf(made, SELLER_AT, output, value, output.internal, sale.signature):
            raise Refusal("the seller's signature does not hold in the sale")
        scripts, values = [each.script_pubkey for each in spent], [each.value for each in spent]
        digest = made.sighash_taproot(SELLER_AT, scripts, values, DEFAULT, ext_flag=1, script=output.leaf_script)
        market = MARKET.schnorr_sign(digest).serialize()
        return Witness([market, sale.signature, output.leaf, output.control_block])

    return opened
