"""UniSat's runes market under `/unisat/v3`, from unisat-dev-docs (open-api/swagger-source)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from simulator.calls import Operation
from simulator.dialects.unisat.actions import Action, Actions
from simulator.dialects.unisat.base import MAX_PAGE, VENUE, UnisatHandler
from simulator.orders import Market, Order, unit_price
from simulator.scenes import Made
from simulator.wire import ApiError, amount, bad, text, whole
from simulator.world import World

PREFIX = "/unisat/v3/market/runes/auction"


class RuneListings(UnisatHandler):
    """`POST .../list`: the ask book of one rune, a page of at most 99."""

    def data(self) -> dict[str, Any]:
        body = self.body()
        wanted = body.get("filter")
        if not isinstance(wanted, dict) or wanted.get("nftType") != "runes":
            raise bad('filter.nftType must be "runes"')
        if wanted.get("isEnd", False) is not False:
            raise bad("filter.isEnd: only false is implemented here")
        start = whole(body.get("start", 0), "start", 0, 10_000_000)
        limit = whole(body.get("limit", MAX_PAGE), "limit", 1, MAX_PAGE)
        market = self.engine.market("runes", text(wanted.get("tick"), "filter.tick"))
        asks = _sorted(body.get("sort", {}), _wanted(wanted, self._asks(market)))
        rows = self.staged("lots", Made(lambda ask: _row(ask, market), asks) if market else [], asks)
        return {
            "list": rows[start : start + limit],
            "total": len(rows),
            "timestamp": self.engine.now_ms(),
        }

    def _asks(self, market: Market | None) -> list[Order]:
        return market.best("ask", self.engine.now_ms(), VENUE) if market else []


class RuneType(UnisatHandler):
    """`POST .../runes_types_specified`: one rune's price and other numbers."""

    operation: Operation = "floors"

    def data(self) -> dict[str, Any]:
        body = self.body()
        if body.get("timeType", "day1") not in ("day1", "day7", "day30"):
            raise bad("timeType must be day1, day7 or day30")
        market = self.engine.market("runes", text(body.get("tick"), "tick"))
        if market is None:
            raise ApiError(404, "tick not found")
        return {
            "tick": market.slug,
            "symbol": market.slug[:1],
            "curPrice": self.engine.floor(market, VENUE) or Decimal(0),
            "changePrice": 0,
            "btcVolume": 0,
            "amountVolume": 0,
            "cap": 0,
            "capUSD": 0,
            "holders": 0,
            "transactions": 0,
            "deployTime": 0,
            "number": 0,
            "warning": False,
        }


class RuneActions(Actions):
    """`POST .../actions`: the events of one rune's listings, or of all."""

    def wanted_markets(self, wanted: dict[str, Any]) -> list[Market]:
        if wanted.get("nftType") not in (None, "runes"):
            raise bad('filter.nftType must be "runes"')
        if wanted.get("tick") is None:
            return self.runes()
        market = self.engine.market("runes", text(wanted["tick"], "filter.tick"))
        return [market] if market else []

    def more(self, action: Action, market: Market) -> dict[str, Any]:
        unit = unit_price(action.price, action.quantity)
        return {"tick": market.slug, "name": market.slug, "amount": action.quantity, "unitPrice": unit}


def _wanted(wanted: dict[str, Any], asks: list[Order]) -> list[Order]:
    """Returns the asks within the filter's unit prices and of its address."""
    if wanted.get("minPrice") is not None:
        low = amount(wanted["minPrice"], "filter.minPrice")
        asks = [ask for ask in asks if ask.unit_price >= low]
    if wanted.get("maxPrice") is not None:
        high = amount(wanted["maxPrice"], "filter.maxPrice")
        asks = [ask for ask in asks if ask.unit_price <= high]
    if wanted.get("address"):
        asks = [ask for ask in asks if ask.maker == wanted["address"]]
    return asks


def _sorted(sort: Any, asks: list[Order]) -> list[Order]:
    if not isinstance(sort, dict) or not set(sort) <= {"unitPrice", "onSaleTime", "initPrice"} or len(sort) > 1:
        raise bad("sort must be one of unitPrice, onSaleTime, initPrice")
    if not all(type(way) is int and way in (1, -1) for way in sort.values()):
        raise bad("sort: 1 is upwards, -1 downwards")
    for name, way in sort.items():
        if name == "unitPrice":
            return sorted(asks, key=lambda a: (way * a.unit_price, a.placed_ms, a.sequence))
        if name == "initPrice":
            return sorted(asks, key=lambda a: (way * a.price, a.placed_ms, a.sequence))
        return sorted(asks, key=lambda a: (way * a.placed_ms, way * a.sequence))
    return asks


def _row(ask: Order, market: Market) -> dict[str, Any]:
    return {
        "auctionId": ask.order_id,
        "inscriptionId": "",
        "inscriptionNumber": 0,
        "address": ask.maker,
        "price": ask.price,
        "tick": market.slug,
        "amount": ask.quantity,
        "unitPrice": ask.unit_price,
    }


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    return [
        (f"{PREFIX}/list", RuneListings, {"world": world}),
        (f"{PREFIX}/actions", RuneActions, {"world": world}),
        (f"{PREFIX}/runes_types_specified", RuneType, {"world": world}),
    ]
