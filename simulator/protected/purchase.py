"""The purchase of a protected listing: the venue signs the sale together with the seller."""

from __future__ import annotations

from collections.abc import Callable

from embit.script import Witness
from embit.transaction import Transaction, TransactionOutput

from simulator.listing.sale_transaction import SELLER_AT
from simulator.orders import Order
from simulator.rules import Refusal
from simulator.venues.listing import SignedSale
from simulator.venues.scripts import COSIGNER, DEFAULT, holds_for_leaf, sale_output


def opener(ask: Order, sale: SignedSale) -> Callable[[Transaction, list[TransactionOutput]], Witness]:
    """Makes the witness of the seller's input, by the sale leaf: both signatures, the leaf, the control block."""
    seller = bytes.fromhex(ask.papers[1])
    escrow = sale_output(seller)

    def opened(made: Transaction, spent: list[TransactionOutput]) -> Witness:
        if not holds_for_leaf(made, SELLER_AT, escrow, spent[SELLER_AT].value, seller, sale.signature):
            raise Refusal("the seller's signature does not hold in the sale")
        scripts, values = [each.script_pubkey for each in spent], [each.value for each in spent]
        digest = made.sighash_taproot(SELLER_AT, scripts, values, DEFAULT, ext_flag=1, script=escrow.leaf_script)
        venue = COSIGNER.schnorr_sign(digest).serialize()
        return Witness([venue, sale.signature, escrow.leaf, escrow.control_block])

    return opened
