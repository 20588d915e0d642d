"""UniSat's collection market as its answers of 2026 were recorded, where its documentation shows less.

Rows show their traits with floors, `unitPrice` may be another number than the price, and among the listings is one
whose item has moved: a client that takes it for open finds a floor that is not there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from zlib import crc32

from simulator.dialects.unisat.base import VENUE
from simulator.engine import Engine
from simulator.orders import Market, Order, Trait

TIME_TYPES = frozenset({"24h", "7d"})  # of statistics; any other one has an empty list
_LONG_MS = 90 * 86_400_000


def has_statistic(slug: str) -> bool:
    """Tells whether the numbers of a collection can be had alone; for others the answer is status 500."""
    return crc32(slug.encode()) % 2 == 1


def unit_price(ask: Order) -> int | None:
    """Returns the `unitPrice` of a row; of a few it is ten times the price, of others null."""
    return (ask.price, 10 * ask.price, None)[ask.sequence % 3]


def moved(market: Market, now_ms: int) -> list[Order]:
    """Returns a listing that stayed when its item moved: cheaper than all others with its trait, and months old."""
    first = next((ask for ask in market.best("ask", now_ms, VENUE) if ask.traits and ask.venue != VENUE), None)
    if first is None:
        return []
    txid = "".join(f"{crc32(bytes([at]) + first.order_id.encode()):08x}" for at in range(8))
    price, placed_ms = max(first.price // 2, 1), first.placed_ms - _LONG_MS
    return [replace(first, order_id=f"{first.order_id}m", inscription=f"{txid}i0", price=price, placed_ms=placed_ms)]


class Traits:
    """The traits of one collection, each with the number of its items, the listed ones, and their lowest price."""

    def __init__(self, engine: Engine, market: Market) -> None:
        held = [item for items in engine.wallets.inscriptions.values() for item in items.values()]
        items = {item.id: item.traits for item in held if item.collection == market.slug}
        asks = market.best("ask", engine.now_ms(), VENUE)
        items = {ask.inscription or "": ask.traits for ask in asks} | items
        self._of = items
        self._count = Counter(trait for traits in items.values() for trait in traits)
        self._prices: dict[Trait, list[int]] = {}
        for ask in asks:
            for trait in items[ask.inscription or ""]:
                self._prices.setdefault(trait, []).append(ask.price)

    def of(self, inscription: str | None, otherwise: tuple[Trait, ...] = ()) -> list[dict[str, Any]]:
        """Returns the `attrs` of an inscription."""
        return [self._row(trait) for trait in self._of.get(inscription or "", otherwise)]

    def _row(self, trait: Trait) -> dict[str, Any]:
        prices = self._prices.get(trait, [])
        return {
            "traitType": trait[0],
            "value": trait[1],
            "count": self._count[trait],
            "listingCount": len(prices),
            "floorPrice": min(prices, default=0),
        }
