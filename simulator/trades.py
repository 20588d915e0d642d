"""The exchange of a trade: a bid is sold into, or a listing is bought."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from msgspec.structs import replace

from simulator import fills, holdings
from simulator.bidding_wallets import deliver
from simulator.engine import Engine, Market, Order, Refusal, Sale, takes, unit_price
from simulator.fills import INSCRIPTION_AT, Buyer, complete, release
from simulator.holdings import give
from simulator.listing import signed_sale
from simulator.wallets import Item, Trait, name_of
from simulator.wire import EXACT, ApiError, bad, decimal_places


def fill(
    engine: Engine, bid: Order, quantity: Decimal, price: int, items: list[Item], network_fee: int = 0
) -> list[Sale]:
    """Sells `quantity` for `price` sats into `bid`, which stays open for the remaining quantity.

    Its account pays the price and `network_fee`; its receive address gets the `items` (`quantity` of them) or the
    tokens. Bids that the balance no longer covers are cancelled, as the venue documents.
    """
    # Exact to the sat: 100 sats for 3 items are 33, 33 and 34.
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
    traded = engine.new_id(), bid.kind, bid.slug, price, quantity, engine.now_ms(), bid.maker, bid.receive
    seller = ask.maker if ask else holder[0] if holder else engine.new_address("p2tr")
    return Sale(*traded, seller, bid.order_id, item.id if item else None, venue=bid.venue)


def _take(engine: Engine, bid: Order, quantity: Decimal, price: int) -> None:
    """Subtracts a sold quantity from a bid, closes the bid at 0, and records it."""
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
    """Has the account pay, and sends the goods to the bid's address; returns the sales with their transactions."""
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


def buy_signed(engine: Engine, ask: Order, *, confirmed: bool = True) -> tuple[Sale, str]:
    """Buys a client's listing; returns the sale and the txid. If it cannot be sold, cancels it and raises Refusal."""
    assert ask.inscription is not None
    coin, holder = engine.chain.coins[ask.outpoint], engine.wallets.holder_of(ask.inscription)
    buyer = Buyer(ask.order_id)
    try:
        if holder is None:
            raise Refusal("the inscription has no holder")
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
    sale = buy(engine, ask, buyer.payment, buyer.ordinals, txid)
    for other in engine.asks_of(ask.inscription):
        engine.cancel(other, "sold at another venue")
    engine.wallets.move(holder[1], buyer.ordinals)
    engine.wallets.credit(ask.receive, sold.payout.value)
    return sale, txid


def buy(engine: Engine, ask: Order, buyer: str, receive: str = "", txid: str = "") -> Sale:
    """Buys a listing of a script or trader, which has no output, so only the records change."""
    engine.remove(ask)
    engine.record("filled", ask)
    traded = engine.new_id(), ask.kind, ask.slug, ask.price, ask.quantity, engine.now_ms(), buyer, receive or buyer
    listed = ask.inscription, ask.order_id, ask.placed_ms, ask.venue, txid
    sale = Sale(*traded, ask.maker, None, *listed)
    engine.sales.record(sale)
    return sale


MAX_ITEMS = 100


def sell(
    engine: Engine,
    slug: str | None = None,
    inscription: str | None = None,
    bid_id: str | None = None,
    quantity: Decimal | None = None,
    network_fee: int = 0,
) -> tuple[Order, list[Sale]]:
    """Fills the best bid of `slug`, or the best one that accepts `inscription`, or `bid_id`; returns it and its sales.

    Without `quantity` it sells one inscription, or all remaining tokens. Without an inscription, only `bid_id` fills a
    bid that asks for a trait. Raises ApiError: 404 without such a bid, 409 if the balance does not cover it, 400 for an
    impossible `quantity`.
    """
    if (slug is None) == (inscription is None):
        raise bad("one of slug and inscriptionId is required")
    item = _item(engine, inscription) if inscription is not None else None
    wanted = slug if slug is not None else item.collection if item else ""
    market = engine.find(wanted)
    if market is None:
        raise ApiError(404, "no such collection or rune", "NOT_FOUND")
    bids = market.best("bid", engine.now_ms())
    if bid_id is not None:
        bids = _named(engine, market, bid_id)
        if item is None and bids and bids[0].inscription is not None:
            item = _item(engine, bids[0].inscription)
    met = [bid for bid in bids if _meets(bid, item, named=bid_id is not None)]
    if not met:
        raise ApiError(404, "no such bid", "NOT_FOUND")
    bid = met[0]
    part = _part(market, bid, quantity)
    price = part_price(bid, part)
    if bid.origin == "dialect" and not bid.funding and engine.wallets.backing(bid.maker) < price:
        engine.cancel(bid, "the balance no longer covers it")
        raise ApiError(409, "the bid was not covered and is cancelled", "CONFLICT")
    if item is not None:
        if part != 1:
            raise bad("one inscription is a quantity of 1")
        return bid, fill(engine, bid, part, price, [item], network_fee)
    # One value of each trait type that the bid names.
    traits = tuple(dict(reversed(bid.traits)).items())
    count = int(part) if market.kind == "ordinals" else 0
    items = [_new_item(engine, market.slug, traits) for _ in range(count)]
    return bid, fill(engine, bid, part, price, items, network_fee)


def part_price(bid: Order, part: Decimal) -> int:
    """Returns the sats that `part` of a bid pays, rounded down; the rest of the bid keeps the remainder.

    Of a bid of 100 sats on 3 tokens, 2 tokens pay 66, and 1 token at 34 sats stays.
    """
    if part == bid.quantity:
        return bid.price
    return int(EXACT.divide_int(EXACT.multiply(Decimal(bid.price), part), bid.quantity))


def _part(market: Market, bid: Order, quantity: Decimal | None) -> Decimal:
    rune = market.kind == "runes"
    if quantity is None:
        return bid.quantity if rune else Decimal(1)
    if quantity > bid.quantity or (not rune and quantity > MAX_ITEMS):
        raise bad(f"quantity: more than the bid still asks for, or than {MAX_ITEMS} inscriptions")
    if decimal_places(quantity) > (market.divisibility if rune else 0):
        raise bad("quantity has too many decimal places")
    if not part_price(bid, quantity):
        raise bad("quantity: so little would cost less than a sat")
    return quantity


def _named(engine: Engine, market: Market, bid_id: str) -> list[Order]:
    bid = engine.order(bid_id)
    shown = bid is not None and bid.side == "bid" and bid.slug == market.slug and bid.visible_ms <= engine.now_ms()
    return [bid] if bid is not None and shown else []


def _meets(bid: Order, item: Item | None, *, named: bool) -> bool:
    if item is None:
        return named or not bid.traits
    return takes(bid.traits, item.traits) and bid.inscription in (None, item.id)


def _item(engine: Engine, inscription: str) -> Item:
    held = engine.wallets.holder_of(inscription)
    if held is not None:
        return held[1]
    ask = engine.ask_of(inscription)
    if ask is None:
        raise ApiError(404, "no such inscription", "NOT_FOUND")
    return Item(inscription, ask.slug, name_of(ask.slug, inscription), ask.traits)


def _new_item(engine: Engine, slug: str, traits: tuple[Trait, ...]) -> Item:
    found = engine.new_inscription()
    return Item(found, slug, name_of(slug, found), traits, int(found[:6], 16))
