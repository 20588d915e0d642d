"""The exchange of a trade: a bid that is sold into, a listing that is bought."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

from simulator import fills, holdings
from simulator.bidding_wallets import deliver
from simulator.engine import Engine, Order, Refusal, Sale, unit_price
from simulator.fills import INSCRIPTION_AT, Buyer, complete, release
from simulator.holdings import give
from simulator.listing import signed_sale
from simulator.wallets import Item
from simulator.wire import EXACT


def fill(
    engine: Engine, bid: Order, quantity: Decimal, price: int, items: list[Item], network_fee: int = 0
) -> list[Sale]:
    """Sells `quantity` for `price` sats into `bid`, whose rest goes on.

    Its account pays, its receive address gets the `items` (as many as `quantity`) or the tokens. Bids of the same
    account that its balance then no longer covers are cancelled, as the venue documents. A bid that coins stand behind
    is paid on the chain, and so is one with a bidding wallet. `network_fee` comes on top of the price.
    """
    # To the sat: 100 sats for 3 items are 33, 33 and 34.
    cuts = [price * at // len(items) for at in range(len(items) + 1)] if items else []
    prices = [high - low for low, high in pairwise(cuts)]
    sales = [_sale(engine, bid, Decimal(1), sats, item) for item, sats in zip(items, prices, strict=True)]
    sales = sales or [_sale(engine, bid, quantity, price)]
    _take(engine, bid, quantity, price)
    for item in items:
        for ask in engine.asks_of(item.id):
            engine.cancel(ask, "sold into a bid")
    if bid.funding:
        txid = fills.settle(engine, bid, items[0], sales[0].seller)
        sales = [replace(sale, txid=txid) for sale in sales]
    if bid.origin == "dialect" and not bid.funding:
        sales = _settle(engine, bid, quantity, items, sales, network_fee)
    else:
        engine.wallets.pay_from_backing(bid.maker, network_fee)
    for sale in sales:
        engine.sales.record(sale)
    return sales


def _sale(engine: Engine, bid: Order, quantity: Decimal, price: int, item: Item | None = None) -> Sale:
    ask = engine.ask_of(item.id) if item else None
    holder = engine.wallets.holder_of(item.id) if item else None
    return Sale(
        sale_id=engine.new_id(),
        kind=bid.kind,
        slug=bid.slug,
        price=price,
        quantity=quantity,
        sold_ms=engine.now_ms(),
        buyer=bid.maker,
        receive=bid.receive,
        seller=ask.maker if ask else holder[0] if holder else engine.new_address("p2tr"),
        bid_id=bid.order_id,
        inscription=item.id if item else None,
        venue=bid.venue,
    )


def _take(engine: Engine, bid: Order, quantity: Decimal, price: int) -> None:
    """Takes a sold quantity off a bid, the whole bid when nothing is left, and notes it."""
    if quantity == bid.quantity:
        engine.remove(bid)
        engine.record("filled", bid)
        return
    left = EXACT.subtract(bid.quantity, quantity)
    part = replace(bid, price=price, quantity=quantity)
    bid.price, bid.quantity = bid.price - price, left
    bid.unit_price = unit_price(bid.price, left)
    engine.record("filled", part, remaining=left)


def _settle(
    engine: Engine, bid: Order, quantity: Decimal, items: list[Item], sales: list[Sale], network_fee: int
) -> list[Sale]:
    """Lets the account pay, and the goods go to the bid's address; returns the sales with their transactions."""
    settled = []
    for at, sale in enumerate(sales):
        fee = network_fee if at == 0 else 0
        txid = deliver(engine, bid, sale, items[at], fee) if items else None
        if txid is None:
            engine.wallets.pay_from_backing(bid.maker, sale.price + fee)
            for item in items[at : at + 1]:
                give(engine, item, bid.receive)
        settled.append(replace(sale, txid=txid or ""))
    if bid.kind == "runes":
        engine.wallets.credit_rune(bid.receive, bid.slug, quantity)
    holdings.follow(engine, bid.maker)
    balance = engine.wallets.backing(bid.maker)
    for other in engine.bids_of(bid.maker, hidden=True):
        if other.price > balance and not other.funding:
            engine.cancel(other, "the balance no longer covers it")
    return settled


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
            made = complete(engine.chain, passed, sold, buyer, fills.opener(ask, sold))
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
