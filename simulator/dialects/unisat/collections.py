"""UniSat's reads of collections: numbers, listings, events.

From unisat-dev-docs (open-api/swagger-source/collection-marketplace.yaml). Prices are sats, a collection's id is its
slug.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from simulator.calls import Operation
from simulator.dialects.unisat import seen
from simulator.dialects.unisat.actions import Action, Actions
from simulator.dialects.unisat.base import VENUE, UnisatHandler
from simulator.orders import Market, Order
from simulator.scenes import Made, Told
from simulator.wallets import name_of as item_name
from simulator.wire import ApiError, amount, bad, text

MAX_COLLECTIONS = 20
_SORTS = frozenset({"unitPrice", "onSaleTime", "initPrice", "inscriptionNumber"})


class CollectionStatistic(UnisatHandler):
    """`POST .../collection_statistic`."""

    operation: Operation = "floors"
    about = ("collectionId",)

    def data(self) -> dict[str, Any]:
        market = self.engine.market("ordinals", text(self.body().get("collectionId"), "collectionId"))
        if market is None:
            raise ApiError(404, "collection not found")
        if self.shows("unisat_statistic_500") and not seen.has_statistic(market.slug):
            raise ApiError(500, "Internal Server Error")
        return statistic(self, market)


class CollectionStatisticList(UnisatHandler):
    """`POST .../collection_statistic_list`: at most 20 collections: those named, or with `name` in their names."""

    operation: Operation = "floors"
    about = ("collections", "name")

    def subject(self) -> str:
        return ""

    def data(self) -> dict[str, Any]:
        body = self.body()
        wanted = body.get("filter", {"timeType": "day1"})
        if not isinstance(wanted, dict) or not isinstance(wanted.get("timeType"), str):
            raise bad("filter.timeType must be a text")
        slugs, part = wanted.get("collections"), wanted.get("name") or ""
        if not isinstance(part, str) or not (slugs is None or isinstance(slugs, list)):
            raise bad("filter.name must be a text and filter.collections a list")
        self.engine.expire()
        found = [
            market
            for market in self.engine.markets.values()
            if market.kind == "ordinals" and part.lower() in market.name.lower() and (not slugs or market.slug in slugs)
        ]
        if self.is_as_seen and wanted["timeType"] not in seen.TIME_TYPES:
            found = []
        shown = self.page(body, found, MAX_COLLECTIONS)
        rows = self.staged("floors", [statistic(self, market) for market in shown], shown)
        return {"list": rows, "total": len(found)}


class CollectionListings(UnisatHandler):
    """`POST .../list`: the items for sale, of one collection or of all, in pages."""

    about = ("collectionId", "address")

    def data(self) -> dict[str, Any]:
        body = self.body()
        wanted = body.get("filter")
        if not isinstance(wanted, dict) or wanted.get("nftType") != "collection":
            raise bad('filter.nftType must be "collection"')
        if wanted.get("isEnd", False) is not False:
            raise bad("filter.isEnd: only false is implemented here")
        found = self._sorted(body.get("sort"), [each for each in self._listed(wanted) if _meets(each[0], wanted)])
        told: Told = "listings" if wanted.get("address") is None else "own_listings"
        markets = {market.slug: market for _, market in found}
        traits = cache(lambda slug: seen.Traits(self.engine, markets[slug]))
        made = Made(lambda each: self._row(*each) | self._more(each[0], traits), found)
        rows = self.staged(told, made, [ask for ask, market in found if ask.order_id in market.asks])
        return {
            "list": rows[:] if wanted.get("all") is True else self.page(body, rows),
            "total": len(rows),
            "timestamp": self.engine.now_ms(),
        }

    def _listed(self, wanted: dict[str, Any]) -> list[tuple[Order, Market]]:
        slug, part = wanted.get("collectionId"), wanted.get("collectionFuzzy") or ""
        if slug is not None:
            market = self.engine.market("ordinals", text(slug, "filter.collectionId"))
            markets = [market] if market else []
        else:
            self.engine.expire()
            markets = [market for market in self.engine.markets.values() if market.kind == "ordinals"]
        if not isinstance(part, str):
            raise bad("filter.collectionFuzzy must be a text")
        now = self.engine.now_ms()
        named = [market for market in markets if part.lower() in market.name.lower()]
        found = [(ask, market) for market in named for ask in market.best("ask", now, VENUE)]
        return found + [
            (ask, market) for market in named if self.shows("unisat_stale_row") for ask in seen.moved(market, now)
        ]

    def _sorted(self, sort: Any, found: list[tuple[Order, Market]]) -> list[tuple[Order, Market]]:
        if not isinstance(sort, dict) or not set(sort) <= _SORTS or len(sort) > 1:
            raise bad(f"sort must be one of {', '.join(sorted(_SORTS))}")
        if not all(type(way) is int and way in (1, -1) for way in sort.values()):
            raise bad("sort: 1 is upwards, -1 downwards")
        for name, way in sort.items():
            if name == "onSaleTime":
                return sorted(found, key=lambda each: (way * each[0].placed_ms, way * each[0].sequence))
            if name == "inscriptionNumber":
                return sorted(found, key=lambda each: way * number_of(self, each[0].inscription))
            if name == "unitPrice" and self.shows("unisat_unit_price"):
                return sorted(found, key=lambda each: way * (seen.unit_price(each[0]) or 10**18))
            return sorted(found, key=lambda each: (way * each[0].price, each[0].placed_ms, each[0].sequence))
        return found

    def _more(self, ask: Order, traits: Callable[[str], seen.Traits]) -> dict[str, Any]:
        """Returns the fields that the documentation does not have, or that were recorded otherwise."""
        found: dict[str, Any] = {}
        if self.shows("unisat_attrs") or self.shows("unisat_stale_row"):
            told = traits(ask.slug).of(ask.inscription, ask.traits)
            found = {"amount": 1, "attrs": told, "onSaleTime": ask.placed_ms}
        return found | ({"unitPrice": seen.unit_price(ask)} if self.shows("unisat_unit_price") else {})

    def _row(self, ask: Order, market: Market) -> dict[str, Any]:
        return {
            "auctionId": ask.order_id,
            "inscriptionId": ask.inscription,
            "inscriptionNumber": number_of(self, ask.inscription),
            "marketType": "fixedPrice",
            "address": ask.maker,
            "price": ask.price,
            "unitPrice": ask.price,
            "nftType": "collection",
            "collectionId": market.slug,
            "collectionName": market.name,
            "collectionItemName": name_of(self, ask.inscription, market.slug),
            "collectionHighResImgUrl": "",
            "contentType": "image/png",
            "contentBody": "",
            "verification": False,
        }


class CollectionActions(Actions):
    """`POST .../actions`: the events of one collection's listings, or of all."""

    def wanted_markets(self, wanted: dict[str, Any]) -> list[Market]:
        if wanted.get("nftType") not in (None, "collection"):
            raise bad('filter.nftType must be "collection"')
        if wanted.get("collectionId") is not None:
            market = self.engine.market("ordinals", text(wanted["collectionId"], "filter.collectionId"))
            return [market] if market else []
        self.engine.expire()
        return [market for market in self.engine.markets.values() if market.kind == "ordinals"]

    def more(self, action: Action, market: Market) -> dict[str, Any]:
        held = self.engine.wallets.holder_of(action.inscription) if action.inscription else None
        ask = self.engine.ask_of(action.inscription, VENUE) if action.inscription else None
        traits = held[1].traits if held else ask.traits if ask else ()
        return {
            "nftType": "collection",
            "collectionId": market.slug,
            "collectionItemName": name_of(self, action.inscription, market.slug),
            "contentType": "image/png",
            "contentBody": "",
            "attributes": [{"trait_type": key, "value": value} for key, value in traits],
        }


def statistic(handler: UnisatHandler, market: Market) -> dict[str, Any]:
    """Returns the numbers of one collection; `btcValue` is the total paid here."""
    engine = handler.engine
    held = [item for items in engine.wallets.inscriptions.values() for item in items.values()]
    known = {item.id for item in held if item.collection == market.slug}
    known |= {ask.inscription for ask in market.asks.values() if ask.inscription}
    return {
        "collectionId": market.slug,
        "name": market.name,
        "desc": "",
        "icon": "",
        "iconContentType": "",
        "btcValue": sum(sale.price for sale in engine.sales.of(market.key) if sale.at(VENUE)),
        "floorPrice": engine.floor(market, VENUE) or 0,
        "pricePercent": 0,
        "listed": len(market.best("ask", engine.now_ms(), VENUE)),
        "total": len(known),
        "supply": len(known),
        "twitter": "",
        "discord": "",
        "website": "",
        "verification": False,
    }


def number_of(handler: UnisatHandler, inscription: str | None) -> int:
    held = handler.engine.wallets.holder_of(inscription) if inscription else None
    return held[1].number if held else 0


def name_of(handler: UnisatHandler, inscription: str | None, slug: str) -> str:
    held = handler.engine.wallets.holder_of(inscription) if inscription else None
    return held[1].name if held else item_name(slug, inscription or "")


def _meets(ask: Order, wanted: dict[str, Any]) -> bool:
    low, high = wanted.get("minPrice"), wanted.get("maxPrice")
    return (
        (low is None or ask.price >= amount(low, "filter.minPrice"))
        and (high is None or ask.price <= amount(high, "filter.maxPrice"))
        and wanted.get("address") in (None, ask.maker)
    )
