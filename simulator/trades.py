"""The exchange when a bid is sold into: money, inscriptions, tokens, and the record."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

from simulator import fills, money
from simulator.deliveries import deliver
from simulator.engine import Engine
from simulator.holdings import give
from simulator.orders import Order, unit_price
from simulator.sales import Sale
from simulator.wallets.wallets import Item
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
    money.follow(engine, bid.maker)
    balance = engine.wallets.backing(bid.maker)
    for other in engine.bids_of(bid.maker, hidden=True):
        if other.price > balance and not other.funding:
            engine.cancel(other, "the balance no longer covers it")
    return settled
