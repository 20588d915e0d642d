"""The known inscriptions of a collection: those listed, and those in play wallets."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.engine import Engine
from simulator.orders import Market, Order
from simulator.wallets import Item, name_of, number_of


@dataclass(frozen=True, slots=True)
class Member:
    """An inscription of a collection with its holder, and its open listing here if there is one."""

    item: Item
    owner: str
    ask: Order | None


def members(engine: Engine, market: Market, venue: str) -> list[Member]:
    """Returns every known inscription of a collection, listed or in a play wallet, lowest number first."""
    found: dict[str, Member] = {}
    for owner, held in engine.wallets.inscriptions.items():
        for item in held.values():
            if item.collection == market.slug:
                found[item.id] = Member(item, owner, None)
    for ask in market.best("ask", engine.now_ms(), venue):
        if ask.inscription is None:
            continue
        known = found.get(ask.inscription)
        if known is None or known.ask is None:
            found[ask.inscription] = Member(known.item if known else item_of(ask), ask.maker, ask)
    return sorted(found.values(), key=lambda member: (member.item.number, member.item.id))


def known_item(engine: Engine, inscription: str) -> Item | None:
    """Returns an inscription that is in a play wallet or listed at any venue; None for others."""
    held = engine.wallets.holder_of(inscription)
    if held is not None:
        return held[1]
    ask = engine.ask_of(inscription)
    return None if ask is None else item_of(ask)


def item_of(ask: Order) -> Item:
    """Returns the inscription of a listing that no play wallet holds."""
    assert ask.inscription is not None
    return Item(ask.inscription, ask.slug, name_of(ask.slug, ask.inscription), ask.traits, number_of(ask.inscription))
