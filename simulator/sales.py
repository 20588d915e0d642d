"""Somebody sells into a bid: which bid, and what changes hands."""

from __future__ import annotations

from simulator.engine import Engine
from simulator.orders import Order, Trait
from simulator.wallets import Item
from simulator.wire import ApiError, bad


def sell(
    engine: Engine, slug: str | None = None, inscription: str | None = None, bid_id: str | None = None
) -> tuple[Order, str | None]:
    """Fills the best bid of `slug`, or the best that `inscription` meets, or `bid_id`.

    Without an inscription, bids that ask for a trait are met only when `bid_id` names them. Returns the filled bid
    and the inscription that was sold. Raises ApiError: 404 when there is no such bid, 409 when it is not covered.
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
        bids = [bid for bid in bids if bid.order_id == bid_id]
    met = [bid for bid in bids if _meets(bid, item, named=bid_id is not None)]
    if not met:
        raise ApiError(404, "no such bid", "NOT_FOUND")
    bid = met[0]
    if bid.origin == "dialect" and engine.wallets.balance(bid.maker) < bid.price:
        engine.cancel(bid, "the balance no longer covers it")
        raise ApiError(409, "the bid was not covered and is cancelled", "CONFLICT")
    if item is None and market.kind == "ordinals":
        item = _new_item(engine, market.slug, (bid.trait,) if bid.trait else ())
    engine.fill(bid, item)
    return bid, item.id if item else None


def _meets(bid: Order, item: Item | None, *, named: bool) -> bool:
    if bid.trait is None:
        return True
    return bid.trait in item.traits if item else named


def _item(engine: Engine, inscription: str) -> Item:
    held = engine.wallets.holder_of(inscription)
    if held is not None:
        return held[1]
    ask = engine.ask_of(inscription)
    if ask is None:
        raise ApiError(404, "no such inscription", "NOT_FOUND")
    return Item(inscription, ask.slug, f"{ask.slug} {inscription[:8]}", ask.traits)


def _new_item(engine: Engine, slug: str, traits: tuple[Trait, ...]) -> Item:
    found = engine.new_inscription()
    return Item(found, slug, f"{slug} {found[:8]}", traits, int(found[:6], 16))
