"""The first half of a sale out of an escrow: the transfer that its seller signed goes to the network."""

from __future__ import annotations

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.transactions import parse
from simulator.engine import Engine
from simulator.orders import Order
from simulator.rules import Refusal
from simulator.venues.listing import SignedSale, read


def release(engine: Engine, ask: Order, *, confirmed: bool) -> tuple[Coin, SignedSale]:
    """Sends the transfer, unless that is done; returns the output that it puts the inscription on, and the seller's
    half of the sale from there.
    """
    coin = engine.chain.coins[ask.outpoint]
    if coin.spent_by is not None:
        raise Refusal("the inscription's output is spent")
    passed = ask.outpoint
    if ask.papers[0]:
        passed = f"{engine.chain.add(parse(ask.papers[0]), {0: coin.inscriptions}, confirmed=confirmed)}:0"
    half = read(ask.psbt, "the listing").tx
    sale = SignedSale(half.version, half.locktime, half.vin[0], half.vout[0], bytes.fromhex(ask.signature))
    return engine.chain.coins[passed], sale
