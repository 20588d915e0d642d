"""UniSat's collection market under `/unisat/v3`: numbers, listings, items, and the events of both its markets.

Prices are sats, a collection's id is its slug. Answers recorded in 2026 contain more than the documentation, and a
market that answers as seen shows it: rows have traits with floors, `unitPrice` may differ from the price, and one
listing's item has moved, so its price is not the floor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache, partial
from typing import Any, Literal
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from simulator.engine import Engine, Market, Order, unit_price
from simulator.handler import Made, Routes, picked, same
from simulator.scenes import ListName
from simulator.venues.unisat.runes import (
    COLLECTIONS,
    PREFIX,
    RUNES,
    VENUE,
    UnisatHandler,
    about,
    open_filter,
    page,
    refused,
    sorted_by,
)
from simulator.wallets import Item, Trait, media_of
from simulator.wallets import name_of as item_name
from simulator.wire import ApiError, amount, bad, text

Row = dict[str, Any]

MAX_COLLECTIONS = 20
MAX_IDS = 100
NOT_FOUND = -109
TIME_TYPES = frozenset({"24h", "7d"})  # of statistics as seen; any other one gets an empty list
EVENTS = ("Cancel", "Claim", "Listed", "Sold", "Updated")
# The history's reason for a listing that ended because its seller changed the price.
REPRICED = "another price"
_LONG_MS = 90 * 86_400_000
_NOT_SHOWN = 10**18

routes = Routes(PREFIX, UnisatHandler)


@routes.post(f"{COLLECTIONS}/collection_statistic", "floors", about("collectionId"))
def collection_statistic(call: UnisatHandler) -> Row:
    market = call.engine.market("ordinals", text(call.body().get("collectionId"), "collectionId"))
    if market is None:
        raise ApiError(404, "collection not found")
    # As seen, the statistic of some collections (chosen by name) fails if it is requested alone.
    if call.shows("unisat_statistic_500") and crc32(market.slug.encode()) % 2 == 0:
        raise ApiError(500, "Internal Server Error")
    return _statistic(call, market)


@routes.post(f"{COLLECTIONS}/collection_statistic_list", "floors")
def collection_statistics(call: UnisatHandler) -> Row:
    body = call.body()
    wanted = body.get("filter", {"timeType": "day1"})
    if not isinstance(wanted, dict) or not isinstance(wanted.get("timeType"), str):
        raise bad("filter.timeType must be a text")
    slugs, part = wanted.get("collections"), wanted.get("name") or ""
    if not isinstance(part, str) or not (slugs is None or isinstance(slugs, list)):
        raise bad("filter.name must be a text and filter.collections a list")
    markets = call.markets("ordinals")
    found = [each for each in markets if part.lower() in each.name.lower() and (not slugs or each.slug in slugs)]
    if call.is_as_seen and wanted["timeType"] not in TIME_TYPES:
        found = []
    shown = page(body, found, MAX_COLLECTIONS)
    rows = call.staged("floors", [_statistic(call, market) for market in shown], shown)
    return {"list": rows, "total": len(found)}


def _statistic(call: UnisatHandler, market: Market) -> Row:
    """Returns the numbers of one collection; `btcValue` is the total paid here."""
    engine = call.engine
    held = [item for items in engine.wallets.inscriptions.values() for item in items.values()]
    known = {item.id for item in held if item.collection == market.slug}
    known |= {ask.inscription for ask in market.asks.values() if ask.inscription}
    return {
        "collectionId": market.slug,
        "name": market.name,
        "btcValue": sum(sale.price for sale in engine.sales.of(market.key) if sale.at(VENUE)),
        "floorPrice": engine.floor(market, VENUE) or 0,
        "pricePercent": 0,
        "listed": len(market.best("ask", engine.now_ms(), VENUE)),
        "verification": False,
        **same(len(known), "total supply"),
        # As recorded, an icon is a link or an inscription; here it is one of the collection's own.
        "icon": (icon := min(known, default="")),
        "iconContentType": media_of(icon) if icon else "",
        **same("", "desc twitter discord website"),
    }


@routes.post(f"{COLLECTIONS}/list", "book", about("collectionId", "address"))
def listings(call: UnisatHandler) -> Row:
    body = call.body()
    wanted = open_filter(body, "collection")
    found = _sorted(call, body.get("sort"), [each for each in _listed(call, wanted) if _meets(each[0], wanted)])
    list_name: ListName = "listings" if wanted.get("address") is None else "own_listings"
    markets = {market.slug: market for _, market in found}
    traits = cache(lambda slug: Traits(call.engine, markets[slug]))
    made = Made(lambda each: _listing(call, *each) | _more(call, each[0], traits), found)
    rows = call.staged(list_name, made, [ask for ask, market in found if ask.order_id in market.asks])
    shown = rows[:] if wanted.get("all") is True else page(body, rows)
    return {"list": shown, "total": len(rows), "timestamp": call.engine.now_ms()}


def _listed(call: UnisatHandler, wanted: Row) -> list[tuple[Order, Market]]:
    slug, part = wanted.get("collectionId"), wanted.get("collectionFuzzy") or ""
    if slug is not None:
        market = call.engine.market("ordinals", text(slug, "filter.collectionId"))
        markets = [market] if market else []
    else:
        markets = call.markets("ordinals")
    if not isinstance(part, str):
        raise bad("filter.collectionFuzzy must be a text")
    now_ms = call.engine.now_ms()
    named = [market for market in markets if part.lower() in market.name.lower()]
    found = [(ask, market) for market in named for ask in market.best("ask", now_ms, VENUE)]
    stale = named if call.shows("unisat_stale_row") else []
    return found + [(ask, market) for market in stale for ask in _moved(market, now_ms)]


def _moved(market: Market, now_ms: int) -> list[Order]:
    """Returns a stale listing of a moved item: cheaper than all others with its trait, and months old."""
    first = next((ask for ask in market.best("ask", now_ms, VENUE) if ask.traits and ask.venue != VENUE), None)
    if first is None:
        return []
    txid = "".join(f"{crc32(bytes([at]) + first.order_id.encode()):08x}" for at in range(8))
    price, placed_ms = max(first.price // 2, 1), first.placed_ms - _LONG_MS
    return [replace(first, order_id=f"{first.order_id}m", inscription=f"{txid}i0", price=price, placed_ms=placed_ms)]


def _meets(ask: Order, wanted: Row) -> bool:
    low, high = wanted.get("minPrice"), wanted.get("maxPrice")
    return (
        (low is None or ask.price >= amount(low, "filter.minPrice"))
        and (high is None or ask.price <= amount(high, "filter.maxPrice"))
        and wanted.get("address") in (None, ask.maker)
    )


def _sorted(call: UnisatHandler, sort: Any, found: list[tuple[Order, Market]]) -> list[tuple[Order, Market]]:
    def by_price(each: tuple[Order, Market], way: int) -> Any:
        return way * each[0].price, each[0].placed_ms, each[0].sequence

    unit_prices = call.shows("unisat_unit_price")
    keys: dict[str, Callable[[tuple[Order, Market], int], Any]] = {
        "initPrice": by_price,
        "inscriptionNumber": lambda each, way: way * _item(call, each[0].inscription).number,
        "onSaleTime": lambda each, way: (way * each[0].placed_ms, way * each[0].sequence),
        "unitPrice": (lambda each, way: way * (_unit_price(each[0]) or _NOT_SHOWN)) if unit_prices else by_price,
    }
    return sorted_by(sort, found, keys)


def _unit_price(ask: Order) -> int | None:
    """Returns the `unitPrice` of a row as seen: a third each equal the price, are ten times the price, or are null."""
    return (ask.price, 10 * ask.price, None)[ask.sequence % 3]


def _listing(call: UnisatHandler, ask: Order, market: Market) -> Row:
    item = _item(call, ask.inscription, market.slug)
    return picked(ask, "auctionId=order_id inscriptionId=inscription address=maker price unitPrice=price") | {
        "inscriptionNumber": item.number,
        "marketType": "fixedPrice",
        "nftType": "collection",
        "collectionId": market.slug,
        "collectionName": market.name,
        "collectionItemName": item.name,
        "contentType": "image/png",
        "verification": False,
        **same("", "collectionHighResImgUrl contentBody"),
    }


def _more(call: UnisatHandler, ask: Order, traits: Callable[[str], Traits]) -> Row:
    """Returns the fields that the documentation lacks or that were recorded with other values."""
    found: Row = {}
    if call.shows("unisat_attrs") or call.shows("unisat_stale_row"):
        found = {"amount": 1, "attrs": traits(ask.slug).of(ask.inscription, ask.traits), "onSaleTime": ask.placed_ms}
    return found | ({"unitPrice": _unit_price(ask)} if call.shows("unisat_unit_price") else {})


class Traits:
    """The traits of one collection, each with its number of items, its listed items, and their lowest price."""

    def __init__(self, engine: Engine, market: Market) -> None:
        held = [item for items in engine.wallets.inscriptions.values() for item in items.values()]
        asks = market.best("ask", engine.now_ms(), VENUE)
        self._of = {ask.inscription or "": ask.traits for ask in asks}
        self._of |= {item.id: item.traits for item in held if item.collection == market.slug}
        self._count = Counter(trait for traits in self._of.values() for trait in traits)
        self._prices: dict[Trait, list[int]] = {}
        for ask in asks:
            for trait in self._of[ask.inscription or ""]:
                self._prices.setdefault(trait, []).append(ask.price)

    def of(self, inscription: str | None, otherwise: tuple[Trait, ...] = ()) -> list[Row]:
        return [self._row(trait) for trait in self._of.get(inscription or "", otherwise)]

    def _row(self, trait: Trait) -> Row:
        prices = self._prices.get(trait, [])
        counts = {"count": self._count[trait], "listingCount": len(prices), "floorPrice": min(prices, default=0)}
        return {"traitType": trait[0], "value": trait[1]} | counts


class Action(Struct, frozen=True):
    """One event of a listing: `price` sats for `quantity`; `to` is the buyer."""

    event: Literal["Listed", "Sold", "Cancel", "Updated"]
    auction_id: str
    at_ms: int
    price: int
    quantity: Decimal
    maker: str
    inscription: str | None
    to: str | None = None
    txid: str = ""


_SUBJECT = about("inscriptionId", "collectionId", "tick", "address")


@routes.post(f"{COLLECTIONS}/actions", "sales", _SUBJECT)
def collection_actions(call: UnisatHandler) -> Row:
    return _actions(call, "collection", "collectionId", partial(_of_collection, call))


@routes.post(f"{RUNES}/actions", "sales", _SUBJECT)
def rune_actions(call: UnisatHandler) -> Row:
    return _actions(call, "runes", "tick", _of_rune)


def _of_collection(call: UnisatHandler, action: Action, market: Market) -> Row:
    item = _item(call, action.inscription, market.slug)
    ask = call.engine.ask_of(action.inscription, VENUE) if action.inscription else None
    held = call.engine.wallets.holder_of(item.id)
    traits = item.traits if held else ask.traits if ask else ()
    return {
        "nftType": "collection",
        "collectionId": market.slug,
        "collectionItemName": item.name,
        "contentType": "image/png",
        "contentBody": "",
        "attributes": [{"trait_type": key, "value": value} for key, value in traits],
    }


def _of_rune(action: Action, market: Market) -> Row:
    unit = unit_price(action.price, action.quantity)
    return {"tick": market.slug, "name": market.slug, "amount": action.quantity, "unitPrice": unit}


def _actions(call: UnisatHandler, kind: str, by: str, more: Callable[[Action, Market], Row]) -> Row:
    body = call.body()
    wanted = body.get("filter")
    if not isinstance(wanted, dict):
        raise bad("filter must be an object")
    if wanted.get("event") not in (None, *EVENTS):
        raise bad(f"filter.event must be one of {', '.join(EVENTS)}")
    if wanted.get("nftType") not in (None, kind):
        raise bad(f'filter.nftType must be "{kind}"')
    markets = call.markets("runes" if kind == "runes" else "ordinals")
    if wanted.get(by) is not None:
        found = call.engine.market("runes" if kind == "runes" else "ordinals", text(wanted[by], f"filter.{by}"))
        markets = [found] if found else []
    passed = [(act, market) for market in markets for act in actions(call.engine, market) if _passes(act, wanted)]
    passed.sort(key=lambda each: each[0].at_ms, reverse=True)
    rows = call.staged("sales", Made(lambda each: _action(call, each[0]) | more(*each), passed), passed)
    return {"list": page(body, rows), "total": len(rows)}


def _action(call: UnisatHandler, action: Action) -> Row:
    row = picked(action, "auctionId=auction_id event price from=maker to timestamp=at_ms")
    row |= {"inscriptionId": action.inscription or "", "inscriptionNumber": _item(call, action.inscription).number}
    if call.shows("unisat_sale_txid"):
        row |= {"txid": action.txid or None, "amount": 1, "unitPrice": action.price}
    return row


def actions(engine: Engine, market: Market) -> Iterator[Action]:
    """Yields every known event of one market: sales, open listings, and clients' actions here."""
    for sale in engine.sales.of(market.key):
        if sale.at(VENUE) and sale.bid_id is None:
            sold = sale.quantity, sale.seller, sale.inscription, sale.receive, sale.txid
            yield Action("Sold", sale.ask_id or sale.sale_id, sale.sold_ms, sale.price, *sold)
    for ask in market.best("ask", engine.now_ms(), VENUE):
        if ask.venue != VENUE:
            for_sale = ask.price, ask.quantity, ask.maker, ask.inscription
            yield Action("Listed", ask.order_id, ask.placed_ms, *for_sale)
    listed: set[str] = set()
    for row in engine.history.rows():
        if row.get("venue") != VENUE or row["kind"] != "ask" or row["slug"] != market.slug:
            continue
        quantity = Decimal(str(row["quantity"]))
        event = row["orderId"], row["time"], row["price"], quantity, row["maker"], row["inscriptionId"]
        if row["event"] == "accepted":
            yield Action("Updated" if row["orderId"] in listed else "Listed", *event)
            listed.add(row["orderId"])
        elif row["event"] == "cancelled" and row.get("reason") != REPRICED:
            yield Action("Cancel", *event)


def _passes(action: Action, wanted: Row) -> bool:
    """Returns True if an action matches a filter's event, inscription and address (seller or buyer)."""
    return (
        wanted.get("event") in (None, action.event)
        and wanted.get("inscriptionId") in (None, action.inscription)
        and wanted.get("address") in (None, action.maker, action.to)
    )


@routes.post(f"{COLLECTIONS}/collection_summary", "wallet", about("address"))
def collection_summary(call: UnisatHandler) -> Row:
    body = call.body()
    counted = Counter(item.collection for item in _held_by(call, body))
    first = body.get("firstCollectionId")
    rows = [
        {"collectionId": slug, "name": _collection_name(call, slug), "total": counted[slug]}
        | same("", "icon iconContentType")
        for slug in sorted(counted, key=lambda slug: (slug != first, slug))
    ]
    return {"list": rows}


@routes.post(f"{COLLECTIONS}/collection_inscriptions", "wallet", about("address"))
def collection_inscriptions(call: UnisatHandler) -> Row:
    body = call.body()
    slug = text(body.get("collectionId"), "collectionId").lower()
    found = [item for item in _held_by(call, body) if item.collection == slug]
    rows = call.staged("wallet", Made(partial(_in_wallet, call), found), found)
    return {"list": page(body, rows), "total": len(rows)}


def _in_wallet(call: UnisatHandler, item: Item) -> Row:
    names = "collectionId=collection collectionItemName=name inscriptionId=id inscriptionNumber=number"
    return picked(item, names) | {
        "collectionName": _collection_name(call, item.collection),
        "collectionHighResImgUrl": "",
        "contentType": media_of(item.id),
        "listed": call.engine.listing_of(item.id, VENUE) is not None,
    }


@routes.post(f"{COLLECTIONS}/inscription_info", "item", about("inscriptionId"))
def inscription_info(call: UnisatHandler) -> Row:
    """Answers one inscription and its listing; the fields of `utxo` are not documented."""
    wanted = text(call.body().get("inscriptionId"), "inscriptionId")
    held, ask = call.engine.wallets.holder_of(wanted), call.engine.listing_of(wanted, VENUE)
    if held is None and ask is None:
        raise refused(NOT_FOUND, "Inscription not found, please try again later")
    slug = held[1].collection if held else ask.slug if ask else ""
    row = _with_listing(wanted, held, ask) | {
        "unitPrice": ask.price if ask else None,
        "collectionId": slug,
        "collectionName": _collection_name(call, slug),
        "collectionItemName": held[1].name if held else item_name(slug, wanted),
        "contentType": media_of(wanted),
        "utxo": {},
        **same(False, "verification notOnSale"),
        **same("", "collectionHighResImgUrl contentBody"),
    }
    if not call.shows("unisat_holder_in_utxo"):
        return row
    # As recorded, an unlisted inscription's holder is only in `utxo`.
    market = call.engine.market("ordinals", slug)
    row |= {"notOnSale": ask is None, "marketType": "fixedPrice"}
    row["attrs"] = Traits(call.engine, market).of(wanted) if market else []
    if held is not None:
        row["utxo"] = {"address": held[0], "satoshi": 546, "isSpent": False}
    return row if ask else row | {"address": None}


@routes.post(f"{COLLECTIONS}/inscription_info_list", "item", about("address"))
def inscription_infos(call: UnisatHandler) -> Row:
    body = call.body()
    ids = body.get("inscriptionIds")
    if ids is None:
        ids = [item.id for item in _held_by(call, body)]
    if not isinstance(ids, list) or len(ids) > MAX_IDS or not all(isinstance(each, str) for each in ids):
        raise bad(f"inscriptionIds must be a list of at most {MAX_IDS} ids")
    rows = []
    for wanted in ids:
        held, ask = call.engine.wallets.holder_of(wanted), call.engine.listing_of(wanted, VENUE)
        if held or ask:
            rows.append(_with_listing(wanted, held, ask) | {"status": "listed" if ask else None})
    return {"list": rows}


def _with_listing(inscription: str, held: tuple[str, Item] | None, ask: Order | None) -> Row:
    """Returns an inscription with its listing; without one, the listing's fields are null."""
    return {
        "auctionId": ask.order_id if ask else None,
        "inscriptionId": inscription,
        "inscriptionNumber": held[1].number if held else 0,
        "marketType": "fixedPrice" if ask else None,
        "address": held[0] if held else ask.maker if ask else None,
        "price": ask.price if ask else None,
        "nftType": "collection",
    }


def _held_by(call: UnisatHandler, body: Row) -> list[Item]:
    return list(call.engine.wallets.inscriptions.get(text(body.get("address"), "address"), {}).values())


def _item(call: UnisatHandler, inscription: str | None, slug: str = "") -> Item:
    """Returns an inscription of a play wallet, or the details made up for any other."""
    found = call.engine.wallets.holder_of(inscription) if inscription else None
    return found[1] if found else Item(inscription or "", slug, item_name(slug, inscription or ""))


def _collection_name(call: UnisatHandler, slug: str) -> str:
    market = call.engine.market("ordinals", slug)
    return market.name if market else slug
