"""Sales into bids: the choice of the bid, the quantity, and the exchange."""

from __future__ import annotations

from decimal import Decimal

from simulator.engine import Engine, Market, Order, Sale
from simulator.trades import fill
from simulator.wallets import Item, Trait, name_of
from simulator.wire import EXACT, ApiError, bad, decimal_places

MAX_ITEMS = 100


def sell(
    engine: Engine,
    slug: str | None = None,
    inscription: str | None = None,
    bid_id: str | None = None,
    quantity: Decimal | None = None,
    network_fee: int = 0,
) -> tuple[Order, list[Sale]]:
    """Fills the best bid of `slug`, or the best that `inscription` meets, or `bid_id`.

    `quantity` sells that much of it; without it one inscription, or all tokens that are left. The bidder pays
    `network_fee` on top of the price. Without an inscription, bids that ask for a trait are met only when `bid_id`
    names them. Returns the bid with its rest, if any, and the sales, one for each inscription. Raises ApiError: 404
    when there is no such bid, 409 when the balance does not cover it, 400 when `quantity` is more than is left or no
    quantity of this market.
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
    # One value for each type that it names.
    traits = tuple(dict(reversed(bid.traits)).items())
    count = int(part) if market.kind == "ordinals" else 0
    items = [_new_item(engine, market.slug, traits) for _ in range(count)]
    return bid, fill(engine, bid, part, price, items, network_fee)


def part_price(bid: Order, part: Decimal) -> int:
    """Returns the sats that `part` of a bid pays, rounded down; the rest of the bid keeps the remainder.

    2 of 3 tokens bid at 100 sats pay 66, and 1 token at 34 sats stays.
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
    """Returns the open bid of that id, if it is one on this market that reads show."""
    bid = engine.order(bid_id)
    shown = bid is not None and bid.side == "bid" and bid.slug == market.slug and bid.visible_ms <= engine.now_ms()
    return [bid] if bid is not None and shown else []


def _meets(bid: Order, item: Item | None, *, named: bool) -> bool:
    if item is None:
        return named or not bid.traits
    return bid.takes(item.traits) and bid.inscription in (None, item.id)


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
