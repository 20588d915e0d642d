"""Satflow's rows: as its documentation has them, and as its clients have seen them.

As seen, orders lie in the row (`ask`, `bid`), times are text, prices digits in text, and among the open orders are some
that cannot be filled any more: a client that takes those for open finds a floor, or a bid, that is not there.
"""

from __future__ import annotations

from typing import Any

from simulator.engine import Market, Order, Sale, Side
from simulator.handler import picked
from simulator.wallets import Trait
from simulator.wire import EXACT, iso, plain

Row = dict[str, Any]
LIFE_FIELDS = ("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt")


def attribute(trait: Trait | None) -> dict[str, str] | None:
    return {"trait_type": trait[0], "value": trait[1]} if trait else None


def attributes(traits: tuple[Trait, ...]) -> list[dict[str, str]]:
    return [{"trait_type": key, "value": value} for key, value in traits]


def listing(ask: Order, market: Market, *, is_as_seen: bool) -> Row:
    """Returns a row of `/activity/listings`: traits only where the market shows them, as no document promises them."""
    told = {"attributes": attributes(ask.traits)} if market.kind == "ordinals" and market.listing_traits else {}
    if is_as_seen:
        inner = picked(ask, "inscriptionId=inscription sellerOrdAddress=maker sellerReceiveAddress=receive")
        inner |= {"price": str(ask.price), **_amounts(ask)}
        return _seen_order(ask, market) | {"ask": inner, "token": told}
    row = {"type": "listing", "collectionSlug": market.slug} | told
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
    """Returns a row of `/address/bids`."""
    rune = found.kind == "runes"
    row = picked(found, "bid_id=order_id price expiration=expires_ms") | {
        "inscription_id": None,
        "type": "rune" if rune else "collection",
        "isNonCustodial": False,
        "attribute": attribute(found.trait),
        "inscription_metadata": None if rune else {"collection": {"id": found.slug}},
        "runes_metadata": {"runes": [_rune(found, market)]} if rune and market else None,
    }
    if not is_as_seen:
        return row
    amounts = {"unitPrice": plain(found.unit_price)} if rune else _amounts(found)
    return row | amounts | {"bid_id": {"$oid": found.order_id}, "price": str(found.price), "cancelledAt": None}


def sale(found: Sale, market: Market, *, is_as_seen: bool) -> Row:
    """Returns a row of `/activity/sales`; it adds to the documented fields both sides and the bid sold into."""
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
    """Returns rows at a better price than `row`, the best open order, that are over or of another kind."""
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
    """Returns a sale's row as one of an order that was cancelled unfilled."""
    ended = {"fillCompletedAt": None, "cancelledAt": row["fillCompletedAt"]}
    return [row | {"_id": f"{'0' * 8}{row['_id'][8:]}"} | ended]


def _seen_order(found: Order, market: Market) -> Row:
    row = picked(found, "_id=order_id orderType=side")
    return row | {"collectionSlug": market.slug, "createdAt": iso(found.placed_ms)} | dict.fromkeys(LIFE_FIELDS)


def _amounts(found: Order | Sale) -> dict[str, str]:
    return {"unitPrice": plain(found.unit_price), "quantity": plain(found.quantity)}


def _rune(found: Order, market: Market) -> Row:
    raw = int(found.quantity.scaleb(market.divisibility, EXACT))
    return {"name": market.slug, "amount": str(raw), "divisibility": market.divisibility}
