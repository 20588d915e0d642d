"""The purchase of a listing out of an escrow: the venue signs the sale together with the seller."""

from __future__ import annotations

from embit.script import Witness
from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.leaf_output import LeafOutput
from simulator.listing.sale_transaction import SELLER_AT, Opener
from simulator.orders import Order
from simulator.rules import Refusal
from simulator.venues.listing import SignedSale
from simulator.venues.scripts import COSIGNER, DEFAULT, MARKET, ORDNET, holds_for_leaf, sale_output


def opener(ask: Order, sale: SignedSale) -> Opener:
    """Makes the witness of the seller's input, by the sale's leaf: both signatures, the leaf, the control block."""
    seller = bytes.fromhex(ask.papers[1])
    if ask.venue == ORDNET:
        output, key = LeafOutput(seller, bytes.fromhex(ask.papers[2])), MARKET
    else:
        output, key = sale_output(seller), COSIGNER

    def opened(made: Transaction, spent: list[TransactionOutput]) -> Witness:
        if not holds_for_leaf(made, SELLER_AT, output, spent[SELLER_AT].value, seller, sale.signature):
            raise Refusal("the seller's signature does not hold in the sale")
        scripts, values = [each.script_pubkey for each in spent], [each.value for each in spent]
        digest = made.sighash_taproot(SELLER_AT, scripts, values, DEFAULT, ext_flag=1, script=output.leaf_script)
        venue = key.schnorr_sign(digest).serialize()
        return Witness([venue, sale.signature, output.leaf, output.control_block])

    return opened
