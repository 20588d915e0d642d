"""The transactions of a sale into a bid that a bidding wallet backs.

As at Satflow, there are two of them: the item goes into the market's own script while the wallet pays the seller, and
then on to the buyer.
"""

from __future__ import annotations

from embit.script import Witness
from embit.transaction import Transaction, TransactionOutput

from simulator import holdings
from simulator.bitcoin.chain import Coin, moved, script_of, spend
from simulator.engine import Engine
from simulator.history import Sale
from simulator.orders import Order
from simulator.wallets import Item, Pair, bidding_kind_of, leaf_output, witness_script

_ESCROW = "the practice market's own script"
# This chain does not have the keys: placeholders of the size of signatures.
_ECDSA, _SCHNORR = bytes(72), bytes(64)


def deliver(engine: Engine, bid: Order, sale: Sale, item: Item, fee: int) -> str | None:
    """Buys `item` for the bid out of its bidding wallet, which pays the sale's price and the network's `fee`.

    Returns the txid of the purchase; None, with nothing done, for a bid without such a wallet, or of the very holder.
    """
    backing = _backing(engine, bid.maker, sale.price + fee)
    held = engine.chain.coin_of(item.id) or engine.chain.place(item.id, sale.seller)
    if not backing or held.output.script_pubkey == script_of(bid.receive):
        return None
    source = backing[0].address or ""
    inputs, paid = [spend(held.outpoint), *(spend(coin.outpoint) for coin in backing)], sale.price + fee
    outputs = [
        TransactionOutput(held.value, script_of(_ESCROW)),
        TransactionOutput(sale.price, script_of(sale.seller)),
        TransactionOutput(max(0, sum(coin.value for coin in backing) - paid), script_of(source)),
    ]
    tx = Transaction(2, inputs, [output for output in outputs if output.value])
    tx.vin[0].witness = Witness([_SCHNORR])
    for at, coin in enumerate(backing, start=1):
        address = coin.address or ""
        tx.vin[at].witness = _opened(engine.wallets.pair_of(address), address)
    txid = holdings.settle(engine, tx, {0: held.inscriptions})
    onward = moved(f"{txid}:0", TransactionOutput(held.value, script_of(bid.receive)))
    holdings.settle(engine, onward, {0: held.inscriptions})
    engine.wallets.move(item, bid.receive)
    return txid


def _backing(engine: Engine, payment: str, sats: int) -> list[Coin]:
    """Returns coins of the bidding wallets of `payment` that come to `sats`, or all of them."""
    found: list[Coin] = []
    for address in engine.wallets.bidding_wallets(payment):
        for coin in sorted(holdings.coins(engine, address), key=lambda coin: -coin.value):
            if sum(each.value for each in found) < sats:
                found.append(coin)
    return found


def _opened(pair: Pair, address: str) -> Witness:
    """Makes the witness that spends a bidding wallet's coin: it shows the wallet's script."""
    kind = bidding_kind_of(address, pair)
    if kind == "leaf":
        output = leaf_output(pair)
        return Witness([_SCHNORR, _SCHNORR, output.leaf, output.control_block])
    return Witness([b"", _ECDSA, _ECDSA, witness_script(pair, kind).data])
