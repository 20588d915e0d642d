"""UniSat's runes market under `/unisat/v3` and its runes indexer under `/unisat/v1`."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any

from simulator.engine import Market, Order, ticker_key
from simulator.handler import MAX_OFFSET, Routes, asked, by_path, picked, same
from simulator.scenes import Made
from simulator.venues.unisat.handler import (
    INDEXER,
    MAX_PAGE,
    PREFIX,
    RUNES,
    VENUE,
    UnisatHandler,
    about,
    open_filter,
    sorted_by,
)
from simulator.wire import ApiError, amount, bad, text, whole

MAX_INDEXED = 500
ETCHED_SECONDS = 1_713_571_767

routes = Routes(PREFIX, UnisatHandler)


@routes.post(f"{RUNES}/list", "book", about("tick"))
def rune_listings(call: UnisatHandler) -> dict[str, Any]:
    """Answers the ask book of one rune, a page of at most 99."""
    body = call.body()
    wanted = open_filter(body, "runes")
    start = whole(body.get("start", 0), "start", 0, MAX_OFFSET)
    limit = whole(body.get("limit", MAX_PAGE), "limit", 1, MAX_PAGE)
    market = call.engine.market("runes", text(wanted.get("tick"), "filter.tick"))
    asks = _wanted(wanted, market.best("ask", call.engine.now_ms(), VENUE) if market else [])
    asks = sorted_by(
        body.get("sort", {}),
        asks,
        {
            "unitPrice": lambda ask, way: (way * ask.unit_price, ask.placed_ms, ask.sequence),
            "onSaleTime": lambda ask, way: (way * ask.placed_ms, way * ask.sequence),
            "initPrice": lambda ask, way: (way * ask.price, ask.placed_ms, ask.sequence),
        },
    )
    rows = call.staged("lots", Made(lambda ask: _row(ask, market), asks), asks)
    return {"list": rows[start : start + limit], "total": len(rows), "timestamp": call.engine.now_ms()}


def _wanted(wanted: dict[str, Any], asks: list[Order]) -> list[Order]:
    """Returns the asks within the filter's unit prices and of its address."""
    if wanted.get("minPrice") is not None:
        low = amount(wanted["minPrice"], "filter.minPrice")
        asks = [ask for ask in asks if ask.unit_price >= low]
    if wanted.get("maxPrice") is not None:
        high = amount(wanted["maxPrice"], "filter.maxPrice")
        asks = [ask for ask in asks if ask.unit_price <= high]
    return [ask for ask in asks if not wanted.get("address") or ask.maker == wanted["address"]]


def _row(ask: Order, market: Market | None) -> dict[str, Any]:
    row = picked(ask, "auctionId=order_id address=maker price amount=quantity unitPrice=unit_price")
    return row | {"inscriptionId": "", "inscriptionNumber": 0, "tick": market.slug if market else ask.slug}


@routes.post(f"{RUNES}/runes_types_specified", "floors", about("tick"))
def rune_type(call: UnisatHandler) -> dict[str, Any]:
    """Answers one rune's price and other numbers."""
    body = call.body()
    if body.get("timeType", "day1") not in ("day1", "day7", "day30"):
        raise bad("timeType must be day1, day7 or day30")
    market = call.engine.market("runes", text(body.get("tick"), "tick"))
    if market is None:
        raise ApiError(404, "tick not found")
    unknown = "changePrice btcVolume amountVolume cap capUSD holders transactions deployTime number"
    price = call.engine.floor(market, VENUE) or Decimal(0)
    row = {"tick": market.slug, "symbol": market.slug[:1], "curPrice": price, "warning": False}
    return row | same(0, unknown)


# The indexer


@routes.get(f"{INDEXER}/info-list", "collection", asked("rune"))
def rune_infos(call: UnisatHandler) -> dict[str, Any]:
    """Answers the runes with `rune` in their names, bullets and case aside."""
    start = call.query_whole("start", 0, 0, MAX_OFFSET)
    limit = call.query_whole("limit", 10, 1, MAX_INDEXED)
    wanted = ticker_key(call.get_query_argument("rune", ""))
    runes = [market for market in call.markets("runes") if wanted in ticker_key(market.slug)]
    return {"total": len(runes), "start": start, "detail": [_info(rune) for rune in runes[start : start + limit]]}


@routes.get(f"{INDEXER}/([^/]+)/info", "collection", by_path)
def rune_info(call: UnisatHandler) -> dict[str, Any]:
    """Answers one rune by its id, `block:tx`."""
    found = [market for market in call.markets("runes") if rune_id(market.slug) == call.path_args[0]]
    if not found:
        raise ApiError(404, "rune not found")
    return _info(found[0])


def rune_id(ticker: str) -> str:
    """Returns the `block:tx` of a practice rune: unique, and the same in every spelling and run."""
    digest = hashlib.sha256(ticker_key(ticker).encode()).digest()
    return f"{840_000 + int.from_bytes(digest[:2])}:{1 + int.from_bytes(digest[2:4]) % 4000}"


def _info(market: Market) -> dict[str, Any]:
    height, index = rune_id(market.slug).split(":")
    return {
        "runeid": f"{height}:{index}",
        "rune": ticker_key(market.slug),
        "spacedRune": market.slug,
        "height": int(height),
        "txidx": int(index),
        "timestamp": ETCHED_SECONDS,
        "divisibility": market.divisibility,
        "symbol": market.slug[:1],
        "etching": hashlib.sha256(f"etching {ticker_key(market.slug)}".encode()).hexdigest(),
        "supply": str(21_000_000 * 10**market.divisibility),
        "terms": None,
        "mintable": False,
        **same("0", "premine mints burned remaining"),
        **same(0, "number holders transactions"),
    }
