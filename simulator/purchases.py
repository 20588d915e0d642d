"""Purchases of listings: the exchange, on the chain too when the seller signed the listing."""

from __future__ import annotations

from simulator.engine import Engine
from simulator.fills import INSCRIPTION_AT, Buyer, complete, opener, release
from simulator.listing import signed_sale
from simulator.orders import Order
from simulator.rules import Refusal
from simulator.sales import Sale


def buy(engine: Engine, ask: Order, buyer: str) -> Sale:
    """Buys a listing of a script or a trader, which has no output: only the record changes."""
    return _record(engine, ask, buyer, buyer, "")


def buy_signed(engine: Engine, ask: Order, *, confirmed: bool = True) -> tuple[Sale, str]:
    """Buys the listing of a client; returns the sale and the txid.

    The payout, price and postage, goes to the balance of the seller's receive address, the inscription to the buyer.
    When the sale is impossible the listing is cancelled with that reason, and Refusal is raised.
    """
    assert ask.inscription is not None
    coin, holder = engine.chain.coins[ask.outpoint], engine.wallets.holder_of(ask.inscription)
    buyer = Buyer(ask.order_id)
    try:
        if holder is None:
            raise Refusal("nobody holds the inscription")
        inscriptions = coin.inscriptions
        if ask.papers:
            passed, sold = release(engine, ask, confirmed=confirmed)
            made = complete(engine.chain, passed, sold, buyer, opener(ask, sold))
        else:
            sold = signed_sale(ask.psbt)
            made = complete(engine.chain, coin, sold, buyer)
    except Refusal as refusal:
        engine.cancel(ask, str(refusal))
        raise
    txid = engine.chain.add(made, {INSCRIPTION_AT: inscriptions}, confirmed=confirmed)
    sale = _record(engine, ask, buyer.payment, buyer.ordinals, txid)
    for other in engine.asks_of(ask.inscription):
        engine.cancel(other, "sold at another venue")
    engine.wallets.move(holder[1], buyer.ordinals)
    engine.wallets.credit(ask.receive, sold.payout.value)
    return sale, txid


def _record(engine: Engine, ask: Order, buyer: str, receive: str, txid: str) -> Sale:
    engine.remove(ask)
    engine.record("filled", ask)
    sale = Sale(
        sale_id=engine.new_id(),
        kind=ask.kind,
        slug=ask.slug,
        price=ask.price,
        quantity=ask.quantity,
        sold_ms=engine.now_ms(),
        buyer=buyer,
        receive=receive,
        seller=ask.maker,
        inscription=ask.inscription,
        ask_id=ask.order_id,
        listed_ms=ask.placed_ms,
        venue=ask.venue,
        txid=txid,
    )
    engine.sales.record(sale)
    return sale
