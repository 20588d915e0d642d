"""UniSat's handler, its runes market and its indexer, from unisat-dev-docs (open-api)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from simulator.engine import Kind, Market, Order, ticker_key
from simulator.handler import MAX_OFFSET, UNREADABLE, Made, Routes, Subject, VenueHandler, asked, by_path, picked, same
from simulator.wire import ApiError, amount, bad, load_object, text, whole

Row = TypeVar("Row")

VENUE = "unisat"
PREFIX = "/unisat"
COLLECTIONS, RUNES, INDEXER = "v3/market/collection/auction", "v3/market/runes/auction", "v1/indexer/runes"
COMMON_ERROR = -1
OVER_LIMIT = "-2006"  # as programs that run against the live venue received it
# A free key's calls in a month.
PER_MONTH = 60_000
MAX_PAGE = 99


class UnisatHandler(VenueHandler):
    """The base handler: needs a bearer key, counts it against the limits, wraps answers as {code, msg, data}."""

    dialect = VENUE

    def shows(self, scene: str) -> bool:
        """Returns True if a scene is in force; a market that answers as seen shows every scene of a form."""
        return self.is_as_seen or self.world.scenes.has(scene)

    def admit(self) -> None:
        scheme, _, key = self.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise ApiError(401, "invalid API key")
        over = ApiError(403, "your request exceeds rate limit", OVER_LIMIT)
        scenes = self.world.scenes
        try:
            self.world.limits.admit(f"unisat {key.strip()[:200]}", PER_MONTH, day_is_over=over)
        except ApiError:
            if scenes.has("unisat_403_over_the_rate"):
                raise over from None
            raise
        if scenes.strikes("unisat_403_over_the_rate"):
            raise over if scenes.strikes("unisat_403_over_the_rate") else refused(int(OVER_LIMIT), over.text)

    def error_body(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        # The marketplace's own codes are negative numbers; other errors get the code common to its services.
        number = int(code) if code and code.startswith("-") else COMMON_ERROR
        return {"code": number, "msg": text, "data": None}

    def envelope(self, data: Any) -> Any:
        return {"code": 0, "msg": "ok", "data": data}

    def markets(self, kind: Kind) -> list[Market]:
        """Returns every collection or rune, in the order of opening."""
        self.engine.expire()
        return [market for market in self.engine.markets.values() if market.kind == kind]

    def missing(self) -> Any:
        """Refuses a purchase (called `bid` there), which the practice market lacks."""
        raise ApiError(501, "not implemented by the practice market")


def about(*names: str) -> Subject:
    """Returns a reader of a subject: the first of these fields in the body or its filter."""

    def subject(call: UnisatHandler) -> str:
        try:
            body = load_object(call.request.body)
        except ApiError:
            return UNREADABLE
        asked = body["filter"] if isinstance(body.get("filter"), dict) else body
        found = next((asked[name] for name in names if asked.get(name) is not None), "")
        return found[:200] if isinstance(found, str) else UNREADABLE

    return subject


def refused(number: int, text: str) -> ApiError:
    """Makes a marketplace's refusal: its own code in an answer with status 200."""
    return ApiError(200, text, str(number))


def page(body: dict[str, Any], found: Sequence[Row], most: int = MAX_PAGE) -> list[Row]:
    start = whole(body.get("start"), "start", 0, MAX_OFFSET)
    return list(found[start : start + whole(body.get("limit"), "limit", 1, most)])


def open_filter(body: dict[str, Any], kind: str) -> dict[str, Any]:
    wanted = body.get("filter")
    if not isinstance(wanted, dict) or wanted.get("nftType") != kind:
        raise bad(f'filter.nftType must be "{kind}"')
    if wanted.get("isEnd", False) is not False:
        raise bad("filter.isEnd: only false is implemented here")
    return wanted


def sorted_by(sort: Any, found: list[Row], keys: dict[str, Callable[[Row, int], Any]]) -> list[Row]:
    """Sorts by the field that `sort` names; a key is made from a row and its direction, 1 or -1 (descending)."""
    if not isinstance(sort, dict) or not set(sort) <= keys.keys() or len(sort) > 1:
        raise bad(f"sort must be one of {', '.join(keys)}")
    if not all(type(way) is int and way in (1, -1) for way in sort.values()):
        raise bad("sort: 1 is upwards, -1 downwards")
    if not sort:
        return found
    ((name, way),) = sort.items()
    return sorted(found, key=lambda row: keys[name](row, way))


MAX_INDEXED = 500
ETCHED_SECONDS = 1_713_571_767

routes = Routes(PREFIX, UnisatHandler)


@routes.post(f"{RUNES}/list", "book", about("tick"))
def rune_listings(call: UnisatHandler) -> dict[str, Any]:
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


@routes.get(f"{INDEXER}/info-list", "collection", asked("rune"))
def rune_infos(call: UnisatHandler) -> dict[str, Any]:
    start = call.query_whole("start", 0, 0, MAX_OFFSET)
    limit = call.query_whole("limit", 10, 1, MAX_INDEXED)
    wanted = ticker_key(call.get_query_argument("rune", ""))
    runes = [market for market in call.markets("runes") if wanted in ticker_key(market.slug)]
    return {"total": len(runes), "start": start, "detail": [_info(rune) for rune in runes[start : start + limit]]}


@routes.get(f"{INDEXER}/([^/]+)/info", "collection", by_path)
def rune_info(call: UnisatHandler) -> dict[str, Any]:
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
