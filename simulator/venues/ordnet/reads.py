"""ord.net's reads: floors, listings, inscriptions and sales of a market, and offers for a collection or one item."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from simulator.engine import Market, Order, Sale
from simulator.handler import Routes, asked, by_path, picked, same
from simulator.holdings import Member, item_of, members
from simulator.scenes import ListName
from simulator.venue_scripts import ORDNET
from simulator.venues.ordnet.handler import PREFIX, SLUG, OrdnetHandler
from simulator.venues.ordnet.item_offers import FEE_BPS, fee
from simulator.venues.ordnet.offers import DEFAULT_HOURS, HOUR_MS, eligible, of_order, public_id
from simulator.wallets import Item, name_of
from simulator.wire import ApiError, bad, iso

Row = dict[str, Any]

MAX_SLUGS = 100
BTC = Decimal(10) ** 8
_SLUG_FORM = re.compile(r"[A-Za-z0-9_-]+")

routes = Routes(PREFIX, OrdnetHandler)


@routes.get("collection-stats/floors", "floors", asked("slugs"))
def floors(call: OrdnetHandler) -> Row:
    """Answers several floors; leaves unknown slugs out."""
    slugs = [slug.strip() for slug in call.query("slugs").split(",") if slug.strip()]
    if not slugs or len(slugs) > MAX_SLUGS:
        raise bad(f"slugs: 1 to {MAX_SLUGS} collection slugs")
    markets = [call.engine.market("ordinals", slug) for slug in dict.fromkeys(slugs)]
    found = [market for market in markets if market is not None]
    return {"success": True, "data": call.staged("floors", [_floor(call, market) for market in found], found)}


def _floor(call: OrdnetHandler, market: Market) -> Row:
    asks = market.best("ask", call.engine.now_ms(), ORDNET)
    return {
        "slug": market.slug,
        "floor": asks[0].price if asks else None,
        "listedCount": len(asks),
        "ownerCount": len({member.owner for member in members(call.engine, market, ORDNET)}),
        "timestamp": iso(call.engine.now_ms()),
        **same(None, "oneDayChange sevenDayChange"),
    }


@routes.get("listings", "book", asked("collectionSlug", "inscriptionId", "sellerAddress"))
def listings(call: OrdnetHandler) -> Row:
    sort = call.get_query_argument("sort", "recent")
    if sort not in ("recent", "price"):
        raise bad("sort must be recent or price")
    slug = _slug(call)
    inscription, seller = (call.get_query_argument(name, "") for name in ("inscriptionId", "sellerAddress"))
    found = [
        (ask, market)
        for market in _markets(call, slug)
        for ask in market.best("ask", call.engine.now_ms(), ORDNET)
        if inscription in ("", ask.inscription) and seller in ("", ask.maker)
    ]
    keyed = sorted(([*_key(ask, sort), market.slug], ask, market) for ask, market in found)
    rows = [(ask, market) for _, ask, market in keyed]
    filters = f"listings {sort} {slug} {inscription} {seller}"
    shown, pagination = call.page(rows, [key for key, _, _ in keyed], 50, filters)
    list_name: ListName = "own_listings" if seller else "listings"
    made = call.staged(list_name, [_listing(call, *each) for each in shown], [ask for ask, _ in shown])
    return {"listings": made, "pagination": pagination}


def _slug(call: OrdnetHandler) -> str:
    """Reads a collection slug of a query, in lower case; empty without one. Raises ApiError(400)."""
    value: str = call.get_query_argument("collectionSlug", "")
    if value and not _SLUG_FORM.fullmatch(value):
        raise bad("Invalid collectionSlug")
    return value.lower()


def _markets(call: OrdnetHandler, slug: str) -> list[Market]:
    if slug:
        found = call.engine.market("ordinals", slug)
        return [found] if found else []
    call.engine.expire()
    return [market for market in call.engine.markets.values() if market.kind == "ordinals"]


def _key(ask: Order, sort: str) -> list[Any]:
    newest = [-ask.placed_ms, -ask.sequence]
    return [ask.price, ask.placed_ms, ask.sequence] if sort == "price" else newest


def _listing(call: OrdnetHandler, ask: Order, market: Market) -> Row:
    holder = call.engine.wallets.holder_of(ask.inscription or "")
    item = holder[1] if holder else item_of(ask)
    return picked(item, "inscriptionId=id inscriptionName=name") | {
        "listingId": public_id(ask),
        "inscriptionNumber": str(item.number),
        "collection": _collection(market),
        "sellerAddress": ask.maker,
        "priceSats": ask.price,
        **_listed(ask),
        **_location(call, item.id),
    }


def _listed(ask: Order | None) -> Row:
    ends_ms = ask.expires_ms if ask else None
    ends = iso(ends_ms) if ends_ms is not None else None
    return {"listedAt": iso(ask.placed_ms) if ask else None, "listingExpiresAt": ends}


def _collection(market: Market) -> Row:
    return picked(market, "slug name") | {"kind": "parent_child", "verificationStatus": "verified"}


def _location(call: OrdnetHandler, inscription: str) -> Row:
    """Returns the location of an inscription; scripts' listings have none."""
    coin = call.engine.chain.coin_of(inscription)
    if coin is None:
        return same(None, "sat locationTxid locationVout locationSatpoint")
    txid, vout = coin.outpoint.split(":")
    place = {"locationTxid": txid, "locationVout": int(vout), "locationSatpoint": f"{coin.outpoint}:0"}
    return {"sat": None, **place}


@routes.get(f"{SLUG}/inscriptions", "collection", by_path)
def inscriptions(call: OrdnetHandler) -> Row:
    sort = call.get_query_argument("sort", "oldest")
    if sort not in ("oldest", "newest"):
        raise bad("sort must be oldest or newest")
    market = call.market()
    sign = 1 if sort == "oldest" else -1
    known = members(call.engine, market, ORDNET)
    keyed = sorted(((sign * member.item.number, member.item.id), member) for member in known)
    keys, rows = [list(key) for key, _ in keyed], [member for _, member in keyed]
    shown, pagination = call.page(rows, keys, 48, f"inscriptions {sort} {market.slug}")
    items = call.staged("traits", [_inscription(call, member, market) for member in shown], shown)
    return {"items": items, "pagination": pagination}


def _inscription(call: OrdnetHandler, member: Member, market: Market) -> Row:
    item, ask = member.item, member.ask
    return picked(item, "id name inscription=number inscriptionId=id") | {
        "collection": market.slug,
        "collectionHref": f"/collection/{market.slug}",
        "collections": [market.slug],
        "image": f"https://ord.net/content/{item.id}",
        "listingId": public_id(ask) if ask else None,
        "listingState": "buyable" if ask else None,
        "priceSats": ask.price if ask else None,
        "price": ask.price / BTC if ask else None,
        "owner": member.owner,
        "contentType": "image",
        "rawContentType": "image/png",
        "imageRenderingHint": "auto",
        "traits": [{"type": kind, "value": value} for kind, value in item.traits],
        "satributes": [],
        **same(None, "lastSale cardBackgroundColor"),
        **_listed(ask),
        **_location(call, item.id),
    }


@routes.get("sales", "sales", asked("collectionSlug"))
def sales(call: OrdnetHandler) -> Row:
    """Answers a page of sales, newest first; an unknown slug has none. A sale at another venue is external."""
    slug = _slug(call)
    markets = [m for m in call.engine.markets.values() if m.kind == "ordinals" and slug in ("", m.slug)]
    every = [sale for market in markets for sale in call.engine.sales.of(market.key)]
    keyed = sorted(([-sale.sold_ms, sale.sale_id], sale) for sale in every)
    keys, rows = [key for key, _ in keyed], [sale for _, sale in keyed]
    shown, pagination = call.page(rows, keys, 50, f"sales {slug}")
    return {"sales": call.staged("sales", [_sale(call, sale) for sale in shown], shown), "pagination": pagination}


def _sale(call: OrdnetHandler, sale: Sale) -> Row:
    inscription = sale.inscription or ""
    holder = call.engine.wallets.holder_of(inscription)
    return picked(sale, "saleId=sale_id sellerAddress=seller buyerAddress=receive priceSats=price") | {
        "saleType": "internal" if sale.at(ORDNET) else "external",
        "txid": sale.txid or None,
        "inscriptionId": inscription,
        "inscriptionNumber": str(holder[1].number if holder else int.from_bytes(inscription.encode()[:4])),
        "inscriptionName": holder[1].name if holder else name_of(sale.slug, inscription),
        "collection": _collection(call.engine.markets[("ordinals", sale.slug)]),
        "price": sale.price / BTC,
        "priceUsd": None,
        "soldAt": iso(sale.sold_ms),
        "blockHeight": call.engine.chain.height(),
    }


@routes.get(f"{SLUG}/collection-offers", "book", by_path)
def offers(call: OrdnetHandler) -> Row:
    market = call.market()
    return _offers(call, market, "bids", market.best("bid", call.engine.now_ms(), ORDNET), {})


@routes.get(f"{SLUG}/my/sent-collection-offers", "own_bids", OrdnetHandler.payer)
def sent_offers(call: OrdnetHandler) -> Row:
    market = call.market()
    own = call.engine.bids_of(call.session.payment, venue=ORDNET)
    found = [bid for bid in own if bid.slug == market.slug and bid.inscription is None]
    return _offers(call, market, "own_bids", found, {"actionBindingId": call.session.binding_id})


def _offers(call: OrdnetHandler, market: Market, list_name: ListName, bids: list[Order], more: Row) -> Row:
    known = members(call.engine, market, ORDNET)
    rows = [_offer(bid, len(eligible(known, of_order(bid)))) | more for bid in bids]
    return {
        "rows": call.staged(list_name, rows, bids),
        "totalCount": len(bids),
        "collectionOfferCount": sum(not bid.traits for bid in bids),
        "traitOfferCount": sum(bool(bid.traits) for bid in bids),
    }


def _offer(bid: Order, count: int) -> Row:
    target = of_order(bid)
    # Bids of scripts and traders may have no expiry; they show one a week after their start.
    end_ms = bid.expires_ms if bid.expires_ms is not None else bid.placed_ms + DEFAULT_HOURS * HOUR_MS
    return {
        "id": public_id(bid),
        "target": target.as_json(),
        "scopeLabel": target.label,
        "priceSats": int(bid.unit_price),
        "eligibleCount": count,
        "makerAddress": bid.maker,
        "expiresAt": iso(end_ms),
        "createdAt": iso(bid.placed_ms),
        "totalSats": bid.price,
        "status": "active",
        "sampleInscription": None,
    }


@routes.get("inscriptions/([^/]+)/offers", "book", by_path)
def item_offers(call: OrdnetHandler) -> Row:
    inscription = call.path_args[0]
    coin, owner = call.engine.chain.coin_of(inscription), _owner(call, inscription, visible=True)
    if owner is None:
        raise ApiError(404, "Inscription not found")
    bids = sorted(call.engine.bids_on(inscription, ORDNET), key=Order.rank)
    top = bids[0].price if bids else None
    postage = coin.value if coin else 546
    return {
        "inscriptionId": inscription,
        "ownerAddress": owner,
        "topOfferSats": top,
        "liveOfferCount": len(bids),
        "expiringSoonCount": 0,
        "offers": [_item_offer(bid, owner, top, postage) for bid in bids],
    }


def _owner(call: OrdnetHandler, inscription: str, *, visible: bool) -> str | None:
    """Returns an inscription's holder or seller: a listing here as reads show it, else at any venue."""
    holder, engine = call.engine.wallets.holder_of(inscription), call.engine
    ask = engine.listing_of(inscription, ORDNET) if visible else engine.ask_of(inscription)
    return holder[0] if holder else ask.maker if ask else None


def _item_offer(bid: Order, owner: str, top: int | None, postage: int) -> Row:
    cut = fee(bid.price)
    return {
        **_sides(bid, owner),
        "inscriptionId": bid.inscription,
        "topOfferSats": top,
        "inscriptionUtxoValueSats": postage,
        **same(None, "parentOfferId acceptedAt rejectedAt cancelledAt floorSats settlementTxid"),
        **same(FEE_BPS, "sellerMarketplaceFeeBps buyerMarketplaceFeeBps"),
        **same(0, "sellerCreatorRoyaltyBps buyerCreatorRoyaltyBps"),
        **same(cut, "sellerMarketplaceFeeSats buyerMarketplaceFeeSats"),
        **same(0, "sellerCreatorRoyaltySats buyerCreatorRoyaltySats creatorRevenueSats"),
        "sellerReceiveSats": bid.price - cut,
        "buyerPayTotalSats": bid.price + cut,
        "marketplaceRevenueSats": 2 * cut,
    }


def _sides(bid: Order, owner: str) -> Row:
    return picked(bid, "id=order_id buyerAddress=maker priceSats=price") | {
        "kind": "buyer_offer",
        "status": "active",
        "sellerAddress": owner,
        "createdAt": iso(bid.placed_ms),
        "expiresAt": iso(bid.expires_ms or bid.placed_ms),
    }


@routes.get("me/offers", "own_bids", OrdnetHandler.payer)
def own_item_offers(call: OrdnetHandler) -> Row:
    """Answers offers for single inscriptions, received or sent; not collection offers."""
    view = call.get_query_argument("view", "owned")
    sent = [bid for bid in call.engine.bids_of(call.session.payment, venue=ORDNET) if bid.inscription is not None]
    held = call.engine.wallets.inscriptions.get(call.session.ordinals, {})
    received = {each: bids for each in held if (bids := call.engine.bids_on(each, ORDNET))}
    answer: Row = {"view": view}
    if view == "sent":
        answer["rows"] = [_named(call, bid.inscription or "") | _seen_from(call, bid, "sent") for bid in sent]
    elif view == "owned":
        answer["groups"] = [_group(call, each, bids) for each, bids in received.items()]
    elif view == "history":
        raise ApiError(501, "view=history is not implemented by the practice market")
    else:
        raise bad("view must be owned, sent or history")
    counts = {"sentCount": len(sent), **same(len(received), "actionableCount ownedCount")}
    return answer | counts | {"hasMore": False, "nextCursor": None}


def _named(call: OrdnetHandler, inscription: str) -> Row:
    holder, ask = call.engine.wallets.holder_of(inscription), call.engine.ask_of(inscription)
    item: Item | None = holder[1] if holder else item_of(ask) if ask else None
    market = call.engine.market("ordinals", item.collection) if item else None
    return {
        "inscriptionId": inscription,
        "inscriptionNumber": str(item.number if item else 0),
        "inscriptionTitle": item.name if item else None,
        "collectionName": market.name if market else None,
    }


def _seen_from(call: OrdnetHandler, bid: Order, side: str) -> Row:
    action = "seller_received_buyer_offer" if side == "received" else None
    owner = _owner(call, bid.inscription or "", visible=False) or ""
    return _sides(bid, owner) | {"side": side, "actionKind": action}


def _group(call: OrdnetHandler, inscription: str, bids: list[Order]) -> Row:
    return _named(call, inscription) | {
        "ownerAddress": call.session.ordinals,
        "actionBindingId": call.session.binding_id,
        "topOfferSats": max(bid.price for bid in bids),
        "activeOfferCount": len(bids),
        "activeCounterCount": 0,
        "earliestExpiresAt": iso(min(bid.expires_ms or bid.placed_ms for bid in bids)),
        "offers": [_seen_from(call, bid, "received") for bid in bids],
        "sentCounters": [],
    }
