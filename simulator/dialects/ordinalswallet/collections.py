"""Ordinals Wallet's reads of a collection or rune: name, numbers, listings."""

from __future__ import annotations

from collections import Counter
from decimal import ROUND_DOWN, Decimal
from typing import Any

from simulator.calls import Operation
from simulator.dialects.ordinalswallet.base import (
    RUNE_SLUG,
    VENUE,
    OrdinalsWalletHandler,
    escrow_id,
    moment,
    outpoint_of,
)
from simulator.dialects.ordinalswallet.items import protection
from simulator.holdings import members
from simulator.orders import Market, Order
from simulator.wallets import name_of
from simulator.wire import plain

DAY_MS = 86_400_000
# Listings in one answer, where it comes in pages.
MAX_ESCROWS = 100


class Collection(OrdinalsWalletHandler):
    """`GET /collection/:slug`."""

    operation: Operation = "collection"

    def answer(self) -> Any:
        market = self.market()
        held = [item for items in self.engine.wallets.inscriptions.values() for item in items.values()]
        known = {item.id for item in held if item.collection == market.slug}
        known |= {ask.inscription for ask in market.asks.values() if ask.inscription}
        return {
            "id": escrow_id(slug_of(market)),
            "name": market.name,
            "icon": None,
            "icon_inscription": None,
            "description": "",
            "slug": slug_of(market),
            "active": True,
            "sponsored_priority": 0,
            "featured_priority": 999,
            "highest_inscription_num": None,
            "lowest_inscription_num": None,
            "total_supply": len(known) or None,
            "socials": {"discord": "", "twitter": "", "website": ""},
            "creator_address": market.creator or None,
            "gallery_inscription_id": None,
            "verified": False,
            "change_week_fair": None,
            "fair_sats": None,
        }


class Stats(OrdinalsWalletHandler):
    """`GET /collection/:slug/stats`; prices are buyers'."""

    operation: Operation = "floors"

    def answer(self) -> Any:
        market = self.market()
        asks, rune = self.asks(market), market.kind == "runes"
        sold = [sale for sale in self.engine.sales.of(market.key) if sale.at(VENUE)]
        today = [sale for sale in sold if sale.sold_ms > self.engine.now_ms() - DAY_MS]
        return {
            "id": escrow_id(slug_of(market)),
            "total_supply": None,
            "floor_price": self.shown(asks[0]) if asks else None,
            "floor_price_per": price_per(asks[0], self.shown(asks[0])) if asks and rune else None,
            "volume_total": sum(self.shown(sale) for sale in sold) or None,
            "volume_day": sum(self.shown(sale) for sale in today) or None,
            "listed": len(asks),
            "sales": len(sold),
            "owners": None,
        }


class Escrows(OrdinalsWalletHandler):
    """`GET /collection/:slug/escrows`: the active listings, all of them or, by a scene, a page."""

    operation: Operation = "book"

    def answer(self) -> Any:
        market = self.market()
        asks = self.asks(market)
        rows = self.staged("listings", [self._row(market, ask) for ask in asks], asks)
        if not self.world.scenes.has("ordinalswallet_paged_escrows"):
            return rows
        limit = min(self.query_whole("limit", MAX_ESCROWS, 1, 10_000_000), MAX_ESCROWS)
        offset = self.query_whole("offset", 0, 0, 10_000_000)
        return rows[offset : offset + limit]

    def _row(self, market: Market, ask: Order) -> dict[str, Any]:
        rune, shown = market.kind == "runes", self.shown(ask)
        held = self.engine.wallets.holder_of(ask.inscription) if ask.inscription else None
        return {
            "id": escrow_id(ask.order_id),
            "inscription_id": ask.inscription,
            "name": None if rune else held[1].name if held else name_of(market.slug, ask.inscription or ""),
            "outpoint": outpoint_of(ask),
            "purchase_txid": None,
            "seller_address": ask.maker,
            "buyer_address": None,
            "satoshi_price": shown,
            "creator_address": market.creator or None,
            "bought_at": None,
            "created": moment(ask.placed_ms),
            "price_per": price_per(ask, shown) if rune else "",
            "amount": plain(ask.quantity) if rune else "",
            "private_relay": False,
            **protection(ask),
        }


class Attributes(OrdinalsWalletHandler):
    """`GET /collection/:slug/attributes`: the count of inscriptions with each trait."""

    operation: Operation = "collection"

    def answer(self) -> Any:
        market = self.market()
        known = [] if market.kind == "runes" else members(self.engine, market, VENUE)
        counted = Counter(trait for member in known for trait in member.item.traits)
        rows = [
            {
                "trait_type": kind,
                "values": [
                    {"trait_type": kind, "value": value, "count": count}
                    for (of_kind, value), count in sorted(counted.items())
                    if of_kind == kind
                ],
            }
            for kind in sorted({kind for kind, _ in counted})
        ]
        return self.staged("traits", rows, rows)


def slug_of(market: Market) -> str:
    return f"{RUNE_SLUG}{market.slug}" if market.kind == "runes" else market.slug


def price_per(ask: Order, shown: int) -> str:
    """Returns sats per whole token, cut after 8 places: 119,223 sats for 93,159.95974 tokens are 1.27976654 each."""
    return plain((shown / ask.quantity).quantize(Decimal("1e-8"), ROUND_DOWN))
