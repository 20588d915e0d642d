"""The filling of an offer at ord.net: the buyer's signed transactions get their other half and go out."""

from __future__ import annotations

from embit.script import Witness
from embit.transaction import Transaction, TransactionOutput

from simulator import money
from simulator.bitcoin.chain import Coin
from simulator.bitcoin.leaf_output import LeafOutput
from simulator.bitcoin.transactions import parse, script_of, spend
from simulator.engine import Engine
from simulator.orders import Order
from simulator.venues.scripts import ENCLAVE, GATE, MARKET, fee_script
from simulator.wallets.wallets import Item

# The venue's share of an offer's price: from the documents' example and settlements on the chain.
OFFER_FEE_BPS = 250
# A placeholder signature: this chain does not have the key of the seller.
_NOBODYS = Witness([bytes(64)])


def settle(engine: Engine, bid: Order, item: Item, seller: str) -> str:
    """Fills an offer with `item` of `seller`; returns the txid of the transaction that brings it to the buyer."""
    coin = engine.chain.coin_of(item.id) or engine.chain.place(item.id, seller)
    if bid.inscription is not None:
        tx = parse(bid.papers[0])
    else:
        parent = parse(bid.papers[0])
        money.settle(engine, parent, {})
        tx = _child(bid, coin, parent, seller)
    tx.vin[0].witness = _NOBODYS
    txid = money.settle(engine, tx, {0: coin.inscriptions})
    engine.wallets.move(item, bid.receive)
    return txid


def _child(bid: Order, coin: Coin, parent: Transaction, seller: str) -> Transaction:
    """Makes the transaction that spends the inscription and the offer's output, with the venue's keys and secret."""
    offer = LeafOutput(*map(bytes.fromhex, bid.papers[1:3]))
    paid = parent.vout[0]
    fee = bid.price * OFFER_FEE_BPS // 10_000
    outputs = [
        TransactionOutput(coin.value, script_of(bid.receive)),
        TransactionOutput(bid.price - fee, script_of(seller)),
        TransactionOutput(fee, fee_script()),
    ]
    tx = Transaction(3, [spend(coin.outpoint), spend(f"{parent.txid().hex()}:0")], outputs)
    scripts, values = [coin.output.script_pubkey, paid.script_pubkey], [coin.value, paid.value]
    digest = tx.sighash_taproot(1, scripts, values, 0, ext_flag=1, script=offer.leaf_script)
    market, gate, enclave = (key.schnorr_sign(digest).serialize() for key in (MARKET, GATE, ENCLAVE))
    # The last to be checked comes first; the empty one is the buyer's.
    secret = bytes.fromhex(bid.papers[3])
    tx.vin[1].witness = Witness([enclave, gate, market, b"", secret, offer.leaf, offer.control_block])
    return tx
