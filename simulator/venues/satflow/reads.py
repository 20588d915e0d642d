"""Satflow's reads under `/satflow/v1`, from its reference of API 1.1.4: activity, numbers, items, wallets.

As seen, rows contain their orders (`ask`, `bid`), times are text, prices are digits in text, and some of the open
orders can no longer be filled: a client that counts those as open finds a floor or bid that does not exist.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable
from typing import Any

from simulator.engine import Kind, Market, Order, Sale, Side, ticker_key
from simulator.handler import Made, Routes, VenueHandler, asked, belongs_to, by_url, picked, same, sign_in_address
from simulator.holdings import follow
from simulator.scenes import ListName
from simulator.wallets import Item, Trait, media_of, name_of
from simulator.wire import EXACT, ApiError, bad, iso, plain

VENUE = "satflow"
PREFIX = "/satflow/v1"


def kind_of(value: Any, name: str) -> Kind:
    if value != "ordinals" and value != "runes":
        raise bad(f"{name} must be ordinals or runes")
    return "ordinals" if value == "ordinals" else "runes"


class SatflowHandler(VenueHandler):
    """The base handler: needs `x-api-key`, applies its limits, wraps answers as {"success": true, "data": ...}."""

    dialect = VENUE

    def admit(self) -> None:
        key = self.request.headers.get("x-api-key", "").strip()
        if not key:
            raise ApiError(401, "x-api-key is required", "UNAUTHORIZED")
        self.world.limits.admit(f"satflow {key[:200]}")

    def envelope(self, data: Any) -> Any:
        return {"success": True, "data": data}

    def query_address(self, name: str = "address") -> str:
        return sign_in_address(self.query(name), name)

    def missing(self) -> Any:
        """Refuses a documented endpoint that the practice market lacks."""
        raise ApiError(501, "not implemented by the practice market", "NOT_IMPLEMENTED")


Row = dict[str, Any]
LIFE_FIELDS = ("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt")


def known(market: Market | None) -> Market:
    if market is None:
        raise ApiError(404, "Collection not found", "NOT_FOUND")
    return market


def attribute(trait: Trait | None) -> dict[str, str] | None:
    return {"trait_type": trait[0], "value": trait[1]} if trait else None


def attributes(traits: tuple[Trait, ...]) -> list[dict[str, str]]:
    return [{"trait_type": key, "value": value} for key, value in traits]


def listing(ask: Order, market: Market, *, is_as_seen: bool) -> Row:
    """Returns a row of `/activity/listings`, with traits only if the market shows them: no document promises them."""
    token = {"attributes": attributes(ask.traits)} if market.kind == "ordinals" and market.listing_traits else {}
    if is_as_seen:
        inner = picked(ask, "inscriptionId=inscription sellerOrdAddress=maker sellerReceiveAddress=receive")
        inner |= {"price": str(ask.price), **_amounts(ask)}
        return _seen_order(ask, market) | {"ask": inner, "token": token}
    row = {"type": "listing", "collectionSlug": market.slug} | token
    row |= picked(ask, "_id=order_id inscriptionId=inscription price sellerOrdAddress=maker timestamp=placed_ms")
    return row | (picked(ask, "quantity unitPrice=unit_price") if market.kind == "runes" else {})


def bid(found: Order, market: Market, *, is_as_seen: bool) -> Row:
    """Returns a row of `/activity/bids`, with the fields that rank a bid, which the documentation leaves out."""
    row = picked(found, "bidderTokenReceiveAddress=receive bidExpiry=expires_ms")
    row |= {"attribute": attribute(found.trait), "inscriptionId": None}
    if is_as_seen:
        more = {"price": str(found.price), "bidder": {"address": found.maker}, **_amounts(found)}
        return _seen_order(found, market) | row | more
    row |= {"type": "bid", "collectionSlug": market.slug}
    row |= picked(found, "_id=order_id price quantity bidderAddress=maker timestamp=placed_ms")
    return row | (picked(found, "unitPrice=unit_price") if market.kind == "runes" else {})


def own_bid(found: Order, market: Market | None, *, is_as_seen: bool) -> Row:
    rune = found.kind == "runes"
    places = market.divisibility if market else 0
    amount = {"name": found.slug, "amount": str(int(found.quantity.scaleb(places, EXACT))), "divisibility": places}
    row = picked(found, "bid_id=order_id price expiration=expires_ms") | {
        "inscription_id": None,
        "type": "rune" if rune else "collection",
        "isNonCustodial": False,
        "attribute": attribute(found.trait),
        "inscription_metadata": None if rune else {"collection": {"id": found.slug}},
        "runes_metadata": {"runes": [amount]} if rune else None,
    }
    if not is_as_seen:
        return row
    amounts = {"unitPrice": plain(found.unit_price)} if rune else _amounts(found)
    return row | amounts | {"bid_id": {"$oid": found.order_id}, "price": str(found.price), "cancelledAt": None}


def sale(found: Sale, market: Market, *, is_as_seen: bool) -> Row:
    """Returns a row of `/activity/sales`: the documented fields, both parties, and the bid sold into."""
    row = picked(found, "_id=sale_id inscriptionId=inscription") | {"collectionSlug": market.slug}
    if is_as_seen:
        buyer = picked(found, "bidderAddress=buyer bidderTokenReceiveAddress=receive")
        row |= {
            "orderType": "bid" if found.bid_id else "ask",
            "price": str(found.price),
            "createdAt": iso(found.listed_ms or found.sold_ms),
            "fillCompletedAt": iso(found.sold_ms),
            "cancelledAt": None,
            "ask": {"sellerOrdAddress": found.seller},
        }
        filled = {"bid": {"_id": found.bid_id, **buyer}} if found.bid_id else {"buyer": {"address": found.buyer}}
        return row | _amounts(found) | filled
    names = "price quantity bidId=bid_id buyerAddress=buyer buyerTokenReceiveAddress=receive sellerOrdAddress=seller"
    row |= {"type": "sale"} | picked(found, f"{names} timestamp=sold_ms")
    return row | (picked(found, "unitPrice=unit_price") if market.kind == "runes" else {})


def over(row: Row, side: Side, now_ms: int) -> list[Row]:
    """Returns rows at a better price than `row`, the best open order, that have ended or are of another kind."""
    inner = row.get("ask", row)
    worth = int(inner["price"])
    better = inner | {"price": str(max(1, worth // 2) if side == "ask" else worth * 2)}
    better |= {"unitPrice": better["price"], "quantity": "1"}
    changes: list[Row] = [{field: iso(now_ms)} for field in LIFE_FIELDS]
    if side == "ask":
        rows = [row | {"ask": better} | change for change in changes[::2]]
        rows += [row | {"ask": better | change} for change in changes[1::2]]
    else:
        rows = [row | better | change for change in changes]
        rows.append(row | better | {"inscriptionId": f"{'0' * 64}i0"})
    rows.append(row | ({"ask": better, "orderType": "bid"} if side == "ask" else better | {"orderType": "ask"}))
    return [each | {"_id": f"{at:08x}{row['_id'][8:]}"} for at, each in enumerate(rows)]


def unfilled(row: Row) -> list[Row]:
    """Returns a sale's row as that of an order that was cancelled unfilled."""
    ended = {"fillCompletedAt": None, "cancelledAt": row["fillCompletedAt"]}
    return [row | {"_id": f"{'0' * 8}{row['_id'][8:]}"} | ended]


def _seen_order(found: Order, market: Market) -> Row:
    row = picked(found, "_id=order_id orderType=side")
    return row | {"collectionSlug": market.slug, "createdAt": iso(found.placed_ms)} | dict.fromkeys(LIFE_FIELDS)


def _amounts(found: Order | Sale) -> dict[str, str]:
    return {"unitPrice": plain(found.unit_price), "quantity": plain(found.quantity)}


MAX_PAGE, MAX_SEEN_PAGE = 100, 250
MAX_SLUGS = 200
DAY_MS = 86_400_000
RANGES_MS = {"24h": DAY_MS, "7d": 7 * DAY_MS, "30d": 30 * DAY_MS}
# The days of each span of volumes.
SPANS = {"1d": 1, "7d": 7, "30d": 30}
routes = Routes(PREFIX, SatflowHandler)
routes.get("orders/floor", "floors", by_url)(SatflowHandler.missing)
routes.get("collection/inscription-ids", "collection", by_url)(SatflowHandler.missing)
_BY_PRICE: dict[str, Callable[[Any], Any]] = {"price": lambda row: row.price, "unitPrice": lambda row: row.unit_price}
_ORDER_SORTS = _BY_PRICE | {"createdAt": lambda order: order.placed_ms}
_SALE_SORTS = dict.fromkeys(("fillCompletedAt", "fillPendingAt", "createdAt"), lambda sale: sale.sold_ms) | _BY_PRICE


@routes.get("activity/listings", "book", asked("collectionSlug"))
def listings(call: SatflowHandler) -> Row:
    return _open_orders(call, "listings", "ask", listing)


@routes.get("activity/bids", "book", asked("collectionSlug"))
def bids(call: SatflowHandler) -> Row:
    return _open_orders(call, "bids", "bid", bid)


@routes.get("activity/sales", "sales", asked("collectionSlug"))
def sales(call: SatflowHandler) -> Row:
    """Answers the newest thousand trades of a market, newest first; as seen, only with `active=false`."""
    if call.get_query_argument("timeRange", "24h") not in RANGES_MS:
        raise bad(f"timeRange must be one of {', '.join(RANGES_MS)}")
    span = call.get_query_argument("timeRange", "")
    hides = call.is_as_seen and call.get_query_argument("active", "true") != "false"

    def found(market: Market) -> list[Any]:
        since_ms = call.engine.now_ms() - RANGES_MS[span] if span else 0
        return [] if hides else call.engine.sales.of(market.key, since_ms)

    return _activity(call, "sales", found, sale, _SALE_SORTS, "desc", unfilled)


def _open_orders(call: SatflowHandler, list_name: ListName, side: Side, row: Callable[..., Row]) -> Row:
    if call.get_query_argument("active", "true") != "true":
        raise ApiError(501, "only active=true is implemented here", "NOT_IMPLEMENTED")
    now_ms = call.engine.now_ms()

    def found(market: Market) -> list[Any]:
        return sorted(market.best(side, now_ms, VENUE), key=lambda order: (order.placed_ms, order.sequence))

    way = "asc" if side == "ask" else "desc"
    return _activity(call, list_name, found, row, _ORDER_SORTS, way, lambda best: over(best, side, now_ms))


def _activity(
    call: SatflowHandler,
    list_name: ListName,
    found: Callable[[Market], list[Any]],
    row: Callable[..., Row],
    sorts: dict[str, Callable[[Any], Any]],
    way: str,
    decoys: Callable[[Row], list[Row]],
) -> Row:
    """Answers a page of the orders or sales `found` (oldest first) in a collection or rune; an unknown one has none.

    The first of `sorts` and `way` are the defaults. As seen, `decoys` come before the best row.
    """
    slug = call.query("collectionSlug")
    page = call.query_whole("page", 1, 1, 1_000_000)
    size = call.query_whole("pageSize", MAX_PAGE, 1, MAX_SEEN_PAGE if call.is_as_seen else MAX_PAGE)
    market = call.engine.find(slug)
    about = _sorted(call, found(market) if market else [], sorts, way)
    made: Any = Made(lambda each: row(each, market, is_as_seen=call.is_as_seen), about)
    if about and call.is_as_seen:
        made = [*decoys(made[0]), *made]
    shown = call.staged(list_name, made, about)
    total, start = len(shown), (page - 1) * size
    part = shown[start : start + size]
    if call.is_as_seen:
        return {list_name: part, "total": total}
    pagination = {"page": page, "pageSize": size, "total": total, "totalPages": -(-total // size)}
    return {"items": part, "pagination": pagination}


def _sorted(call: SatflowHandler, found: list[Any], sorts: dict[str, Callable[[Any], Any]], way: str) -> list[Any]:
    by = call.get_query_argument("sortBy", next(iter(sorts)))
    way = call.get_query_argument("sortDirection", way)
    if by not in sorts or way not in ("asc", "desc"):
        raise bad(f"sortBy must be one of {', '.join(sorts)}, sortDirection asc or desc")
    if way == "asc":
        return sorted(found, key=sorts[by])
    # A reversed sort keeps the order of equals; by time, the newer of two in one millisecond must come first.
    return sorted(found if by in _BY_PRICE else found[::-1], key=sorts[by], reverse=True)


@routes.get("collection-stats", "floors", asked("collectionId"))
def collection_stats(call: SatflowHandler) -> Row:
    market = known(call.engine.find(call.query("collectionId")))
    row: Row = {"floor": call.engine.floor(market, VENUE) or 0}
    row["listedCount"] = sum(ask.at(VENUE) for ask in market.asks.values())
    for span, days in SPANS.items():
        sold = call.engine.sales.of(market.key, call.engine.now_ms() - days * DAY_MS)
        row[f"volume{span}"] = sum(sale.price for sale in sold)
        row |= {f"volume{span}Change": 0, f"volume{span}ChangePercent": "0"}
    return row | {"metadata": _metadata(call, market, with_traits=True)}


@routes.get("collection-stats/floors", "floors", asked("slugs"))
def floors(call: SatflowHandler) -> Any:
    """Answers several floors; leaves unknown slugs out."""
    kind = kind_of(call.query("type"), "type")
    slugs = [slug.strip() for slug in call.query("slugs").split(",")]
    if len(slugs) > MAX_SLUGS:
        raise bad(f"slugs: at most {MAX_SLUGS} in one request")
    markets = [call.engine.market(kind, slug) for slug in dict.fromkeys(slugs) if slug]
    found = [market for market in markets if market is not None]
    shown = list(call.staged("floors", [_floor(call, market) for market in found], found))
    return {"results": shown} if call.is_as_seen else shown


def _floor(call: SatflowHandler, market: Market) -> Row:
    makers = [ask.maker for ask in market.asks.values() if ask.at(VENUE)]
    return {
        "slug": market.slug,
        "floor": call.engine.floor(market, VENUE) or 0,
        "listedCount": len(makers),
        "ownerCount": len(set(makers)),
        "timestamp": iso(call.engine.now_ms()),
        **same(0.0, "oneDayChange sevenDayChange"),
    }


@routes.get("collection", "collection", asked("collection_id"))
def collection(call: SatflowHandler) -> Row:
    market = known(call.engine.market("ordinals", call.query("collection_id")))
    with_traits = call.get_query_argument("categoryAttributes", "") == "true"
    row = _metadata(call, market, with_traits=with_traits)
    if with_traits:
        row["category_attributes"] = call.staged("traits", row["category_attributes"], row["category_attributes"])
    return {"collection": [row]}


def _metadata(call: SatflowHandler, market: Market, *, with_traits: bool) -> Row:
    # because an inscription listed at several venues counts once
    every = {ask.inscription or ask.order_id: ask.traits for ask in market.asks.values()}
    held = [item for items in call.engine.wallets.inscriptions.values() for item in items.values()]
    every = {item.id: item.traits for item in held if item.collection == market.slug} | every
    row: Row = {"id": market.slug, "name": market.name, "total_items": len(every), "royalties": []}
    row |= {"creator_fees_enabled": False, "creator_tips_address": None}
    if with_traits:
        counted = sorted(Counter(trait for traits in every.values() for trait in traits).items())
        row["category_attributes"] = [
            {"key": key, "values": [{"value": value, "count": count} for (k, value), count in counted if k == key]}
            for key in sorted({key for (key, _), _ in counted})
        ]
    return row


@routes.get("item", "item", asked("inscriptionId", "inscriptionNumber"))
def item(call: SatflowHandler) -> Row:
    if call.get_query_argument("inscriptionNumber", ""):
        raise ApiError(501, "looking up by inscriptionNumber is not implemented here", "NOT_IMPLEMENTED")
    inscription = call.query("inscriptionId")
    held, ask = call.engine.wallets.holder_of(inscription), call.engine.listing_of(inscription, VENUE)
    if held is None and ask is None:
        raise ApiError(404, "Item not found", "NOT_FOUND")
    slug = held[1].collection if held else ask.slug if ask else ""
    traits = held[1].traits if held else ask.traits if ask else ()
    market = call.engine.market("ordinals", slug)
    bids = market.best("bid", call.engine.now_ms(), VENUE) if market else []
    top = next((bid for bid in bids if bid.trait is None or bid.trait in traits), None)
    genesis = inscription.split("i")[0]
    coin = call.engine.chain.coin_of(inscription)
    output, value = (coin.outpoint, coin.value) if coin else (f"{genesis}:0", 546)
    name = held[1].name if held else name_of(slug, inscription)
    token = {"name": name, "inscription_id": inscription, "attributes": attributes(traits)}
    return {
        "id": inscription,
        "inscriptionNumber": held[1].number if held else 0,
        "contentType": media_of(inscription),
        "contentURI": f"/content/{inscription}",
        "contentPreviewURI": f"/preview/{inscription}",
        "genesisTransaction": genesis,
        "owner": held[0] if held else ask.maker if ask else None,
        "location": f"{output}:0",
        "output": output,
        "outputValue": value,
        "listed": ask is not None,
        "listing": picked(ask, "price sellerAddress=maker") if ask else None,
        "hasBid": top is not None,
        "topBid": picked(top, "price bidderAddress=maker") if top else None,
        "bids": [],
        "metadata": {"token": token, "collection": {"id": slug, "name": market.name if market else slug}},
    }


@routes.get("challenge", "challenge", asked("address"), envelope=lambda call, answer: answer)
def challenge(call: SatflowHandler) -> Row:
    """Answers the text to sign for cancels and other proofs; as seen, without `data`."""
    data = {"challenge": call.world.challenges.issue(call.query_address())}
    return {"success": True} | (data if call.is_as_seen else {"data": data})


@routes.get("challenge/verify", "challenge", asked("address"))
def verify_challenge(call: SatflowHandler) -> Row:
    address = call.query_address()
    # A base64 plus sign arrives as a space if the client did not escape it.
    signature = call.query("signature").replace(" ", "+")
    if not call.world.challenges.answered(address, signature):
        return {"validity": False, "publicKey": None}
    # The key ends a P2WPKH witness; a taproot witness contains none.
    try:
        witness = base64.b64decode(signature.removeprefix("smp"), validate=True)
    except (ValueError, binascii.Error):
        witness = b""
    shows = witness[:1] == b"\x02" and witness[-34:-33] == b"\x21"
    return {"validity": True, "publicKey": witness[-33:].hex() if shows else None}


@routes.get("address/bidding-wallet", "balance", asked("paymentAddress"))
def bidding_wallet(call: SatflowHandler) -> Row:
    """Answers the address to fund for collection and rune bids; as seen, only in `multiSig`."""
    payment = sign_in_address(call.query("paymentAddress"), "paymentAddress")
    ordinals = sign_in_address(call.query("ordinalsAddress"), "ordinalsAddress")
    public_key = call.query("paymentPubkey")
    if not belongs_to(public_key, payment):
        raise bad("paymentPubkey is not the key of paymentAddress")
    # The live market, because a frozen copy (a stale fault's) would lose the new bidding wallet.
    engine = call.world.engine
    address = engine.wallets.bidding_wallet(payment, ordinals, public_key)
    follow(engine, payment)
    engine.changes += 1
    found = {"userPaymentAddress": payment, "multiSig": {"address": address}}
    return found if call.is_as_seen else found | {"address": address}


@routes.get("address/wallet-contents", "wallet", asked("address"))
def wallet_contents(call: SatflowHandler) -> Row:
    address = call.query_address()
    wanted = call.get_query_argument("itemType", "all")
    if wanted not in ("inscription", "rune", "all"):
        raise bad("itemType must be inscription, rune or all")
    cursor = call.query_whole("cursor", 0, 0, 10_000_000)
    end = cursor + call.query_whole("limit", MAX_PAGE, 1, MAX_PAGE)
    is_listed = call.get_query_argument("listedOnly", "") == "true"
    found = _ordinals(call, address, is_listed=is_listed) if wanted != "rune" else []
    found += _runes(call, address) if wanted != "inscription" else []
    page = found[cursor:end]
    items = [row for row in page if "rune_amount" not in row["token"]]
    ordinals = call.staged("own_listings" if is_listed else "wallet", items, items)
    runes = [row for row in page if "rune_amount" in row["token"]]
    following = end if end < len(found) else None
    return {"results": {"ordinals": ordinals, "runes": runes}, "pending_orders": [], "nextCursor": following}


def _ordinals(call: SatflowHandler, address: str, *, is_listed: bool) -> list[Row]:
    slug = call.get_query_argument("collection", "").lower()
    held = call.engine.wallets.inscriptions.get(address, {}).values()
    found = [_ordinal(call, item) for item in held if not slug or item.collection == slug]
    return [row for row in found if row["listing"] or not is_listed]


def _ordinal(call: SatflowHandler, item: Item) -> Row:
    market = call.engine.market("ordinals", item.collection)
    token = picked(item, "name inscription_id=id inscription_number=number")
    token |= {"image_url": f"https://ordinals.com/content/{item.id}", "content_type": media_of(item.id)}
    return {
        "collection": {"id": item.collection, "name": market.name if market else item.collection},
        "token": token,
        "listing": _listing(call, call.engine.listing_of(item.id, VENUE)),
        "market": None,
    }


def _listing(call: SatflowHandler, ask: Order | None) -> Row | None:
    if call.is_as_seen:
        # because a listing that has ended still shows a price
        ended = {"price": "1000", "cancelledAt": iso(call.engine.now_ms())}
        return {"_id": ask.order_id, "price": str(ask.price), "cancelledAt": None} if ask else ended
    return {"price": ask.price, "secureListing": True} if ask else None


def _runes(call: SatflowHandler, address: str) -> list[Row]:
    found = []
    for ticker, tokens in sorted(call.engine.wallets.runes.get(address, {}).items()):
        market = call.engine.market("runes", ticker)
        places = market.divisibility if market else 0
        token = {
            "name": ticker,
            "rune_amount": str(int(tokens.scaleb(places, EXACT))),
            "rune_amount_formatted": tokens,
            "rune_divisibility": places,
            "rune_symbol": ticker[:1],
            **same(f"{ticker_key(ticker).encode().hex():0<64.64}:0", "rune_utxo_id output"),
        }
        found.append({"token": token, "listing": None})
    return found


@routes.get("address/bids", "own_bids", asked("address"))
def own_bids(call: SatflowHandler) -> Row:
    found = call.engine.bids_of(call.query_address(), venue=VENUE)
    if not found:
        raise ApiError(404, "address not found or no bids", "NOT_FOUND")
    markets = [call.engine.market(bid.kind, bid.slug) for bid in found]
    made = [own_bid(*each, is_as_seen=call.is_as_seen) for each in zip(found, markets, strict=True)]
    rows = list(call.staged("own_bids", made, found))
    if call.is_as_seen:
        rows.append(made[0] | {"bid_id": {"$oid": "0" * 24}, "cancelledAt": iso(call.engine.now_ms())})
    return {"results": rows}
