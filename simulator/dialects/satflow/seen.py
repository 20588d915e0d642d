"""Satflow's rows as its clients have seen them, where its documentation shows other ones or none.

Orders lie in the row (`ask`, `bid`), times are text, prices digits in text, and among the open orders are some that
nobody can deal with any more: a client that takes those for open finds a floor, or a bid, that is not there.
"""

from __future__ import annotations

from typing import Any

from simulator.history import Sale
from simulator.orders import Market, Order, Side
from simulator.wire import iso, plain

PAGE = 250
LIFE_FIELDS = ("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt")


def listing(ask: Order, market: Market, attributes: list[dict[str, str]] | None) -> dict[str, Any]:
    """Returns a row of `/activity/listings`; `attributes` None where the market does not tell them."""
    inner: dict[str, Any] = {
        "inscriptionId": ask.inscription,
        "price": str(ask.price),
        "sellerOrdAddress": ask.maker,
        "sellerReceiveAddress": ask.receive,
    }
    token = {} if attributes is None else {"attributes": attributes}
    return _order(ask, "ask", market) | {"ask": inner | _amounts(ask), "token": token}


def bid(found: Order, market: Market, attribute: dict[str, str] | None) -> dict[str, Any]:
    """Returns a row of `/activity/bids`."""
    return _order(found, "bid", market) | {
        "inscriptionId": None,
        "price": str(found.price),
        "bidder": {"address": found.maker},
        "bidderTokenReceiveAddress": found.receive,
        "attribute": attribute,
        "bidExpiry": found.expires_ms,
        **_amounts(found),
    }


def own_bid(found: Order, row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row of `/address/bids`, from the documented one."""
    amounts = _amounts(found) if found.kind == "ordinals" else {"unitPrice": plain(found.unit_price)}
    ids = {"bid_id": {"$oid": found.order_id}, "price": str(found.price), "cancelledAt": None}
    return row | amounts | ids


def sale(found: Sale, market: Market) -> dict[str, Any]:
    """Returns a row of `/activity/sales`."""
    buyer = {"bidderAddress": found.buyer, "bidderTokenReceiveAddress": found.receive}
    return {
        "_id": found.sale_id,
        "orderType": "bid" if found.bid_id else "ask",
        "collectionSlug": market.slug,
        "inscriptionId": found.inscription,
        "price": str(found.price),
        "unitPrice": plain(found.unit_price),
        "quantity": plain(found.quantity),
        "createdAt": iso(found.listed_ms or found.sold_ms),
        "fillCompletedAt": iso(found.sold_ms),
        "cancelledAt": None,
        "ask": {"sellerOrdAddress": found.seller},
        **({"bid": {"_id": found.bid_id, **buyer}} if found.bid_id else {"buyer": {"address": found.buyer}}),
    }


def over(row: dict[str, Any], side: Side, now_ms: int) -> list[dict[str, Any]]:
    """Returns rows at a better price than `row`, the best open order, that are over or of another kind."""
    inner = row.get("ask", row)
    worth = int(inner["price"])
    better = inner | {"price": str(max(1, worth // 2) if side == "ask" else worth * 2)}
    better |= {"unitPrice": better["price"], "quantity": "1"}
    changes: list[dict[str, Any]] = [{field: iso(now_ms)} for field in LIFE_FIELDS]
    if side == "ask":
        rows = [row | {"ask": better} | change for change in changes[::2]]
        rows += [row | {"ask": better | change} for change in changes[1::2]]
    else:
        rows = [row | better | change for change in changes]
        rows.append(row | better | {"inscriptionId": f"{'0' * 64}i0"})
    rows.append(row | ({"ask": better, "orderType": "bid"} if side == "ask" else better | {"orderType": "ask"}))
    return [each | {"_id": f"{at:08x}{row['_id'][8:]}"} for at, each in enumerate(rows)]


def unfilled(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a sale's row as one of an order that was cancelled unfilled."""
    return row | {"_id": f"{'0' * 8}{row['_id'][8:]}", "fillCompletedAt": None, "cancelledAt": row["fillCompletedAt"]}


def _order(found: Order, side: Side, market: Market) -> dict[str, Any]:
    times = dict.fromkeys(LIFE_FIELDS)
    names = {"_id": found.order_id, "orderType": side, "collectionSlug": market.slug}
    return {**names, "createdAt": iso(found.placed_ms), **times}


def _amounts(found: Order) -> dict[str, str]:
    return {"unitPrice": plain(found.unit_price), "quantity": plain(found.quantity)}
