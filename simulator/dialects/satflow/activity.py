"""Satflow's activity of a market: open listings, open bids and sales, sorted and paged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from simulator.calls import Operation
from simulator.dialects.satflow import seen
from simulator.dialects.satflow.base import VENUE, SatflowHandler, attribute, attributes
from simulator.history import Sale
from simulator.orders import Market, Order
from simulator.scenes import Made, Told
from simulator.wire import ApiError, bad

MAX_PAGE = 100
RANGES_MS = {"24h": 86_400_000, "7d": 7 * 86_400_000, "30d": 30 * 86_400_000}

Row = TypeVar("Row", Order, Sale)


class Activity(SatflowHandler, Generic[Row]):
    """One kind of activity of a collection or rune; an unknown one has none.

    A subclass defines its rows (`found`), their form (`row`) and the possible orders (`sorts`, the first is the
    default); among equals the older comes first, except by time. `seen_name`, `seen_row` and `decoys` are the form that
    clients have seen: the name of the list, its rows, and rows ahead of the best that are no open orders.
    """

    operation: Operation = "book"
    seen_name: str
    told: Told
    default_direction = "asc"

    def subject(self) -> str:
        return self.asked("collectionSlug")

    def sorts(self) -> dict[str, Callable[[Row], Any]]:
        raise NotImplementedError

    def found(self, market: Market) -> list[Row]:
        """Returns the rows, oldest first."""
        raise NotImplementedError

    def row(self, found: Row, market: Market) -> dict[str, Any]:
        raise NotImplementedError

    def seen_row(self, found: Row, market: Market) -> dict[str, Any]:
        raise NotImplementedError

    def decoys(self, best: dict[str, Any]) -> list[dict[str, Any]]:
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        slug = self.query("collectionSlug")
        page = self.query_whole("page", 1, 1, 1_000_000)
        size = self.query_whole("pageSize", MAX_PAGE, 1, seen.PAGE if self.is_as_seen else MAX_PAGE)
        market = self.engine.find(slug)
        found = self._sorted(self.found(market) if market else [])
        start = (page - 1) * size
        told = self._told(found, market) if market and found else []
        rows = self.staged(self.told, told, found)
        total = len(rows)
        if self.is_as_seen:
            return {self.seen_name: rows[start : start + size], "total": total}
        return {
            "items": rows[start : start + size],
            "pagination": {"page": page, "pageSize": size, "total": total, "totalPages": -(-total // size)},
        }

    def _told(self, found: list[Row], market: Market) -> Sequence[dict[str, Any]]:
        if not self.is_as_seen:
            return Made(lambda each: self.row(each, market), found)
        rows: list[dict[str, Any]] = [self.seen_row(each, market) for each in found]
        return [*self.decoys(rows[0]), *rows]

    def _sorted(self, found: list[Row]) -> list[Row]:
        sorts = self.sorts()
        by = self.get_query_argument("sortBy", next(iter(sorts)))
        direction = self.get_query_argument("sortDirection", self.default_direction)
        if by not in sorts or direction not in ("asc", "desc"):
            raise bad(f"sortBy must be one of {', '.join(sorts)}, sortDirection asc or desc")
        key = sorts[by]
        if direction == "asc":
            return sorted(found, key=key)
        # A reversed sort keeps the order of equals; by time the newer of two in one millisecond comes first.
        return sorted(found[::-1] if by not in ("price", "unitPrice") else found, key=key, reverse=True)


class OpenOrdersActivity(Activity[Order]):
    """The open orders of a book."""

    def sorts(self) -> dict[str, Callable[[Order], Any]]:
        return {
            "price": lambda order: order.price,
            "unitPrice": lambda order: order.unit_price,
            "createdAt": lambda order: order.placed_ms,
        }

    def data(self) -> dict[str, Any]:
        if self.get_query_argument("active", "true") != "true":
            raise ApiError(501, "only active=true is implemented here", "NOT_IMPLEMENTED")
        return super().data()


class Listings(OpenOrdersActivity):
    """`GET /activity/listings`; traits only where the market tells them, since the documentation has none."""

    seen_name = told = "listings"

    def found(self, market: Market) -> list[Order]:
        return sorted(market.best("ask", self.engine.now_ms(), VENUE), key=_age)

    def row(self, found: Order, market: Market) -> dict[str, Any]:
        row: dict[str, Any] = {
            "_id": found.order_id,
            "type": "listing",
            "collectionSlug": market.slug,
            "inscriptionId": found.inscription,
            "price": found.price,
            "sellerOrdAddress": found.maker,
            "timestamp": found.placed_ms,
        }
        if market.kind == "runes":
            row |= {"quantity": found.quantity, "unitPrice": found.unit_price}
        elif market.listing_traits:
            row |= {"attributes": attributes(found.traits)}
        return row

    def seen_row(self, found: Order, market: Market) -> dict[str, Any]:
        is_told = market.kind == "ordinals" and market.listing_traits
        return seen.listing(found, market, attributes(found.traits) if is_told else None)

    def decoys(self, best: dict[str, Any]) -> list[dict[str, Any]]:
        return seen.over(best, "ask", self.engine.now_ms())


class Bids(OpenOrdersActivity):
    """`GET /activity/bids`, with the fields that rank a bid, which the documentation leaves out."""

    default_direction = "desc"
    seen_name = told = "bids"

    def found(self, market: Market) -> list[Order]:
        return sorted(market.best("bid", self.engine.now_ms(), VENUE), key=_age)

    def row(self, found: Order, market: Market) -> dict[str, Any]:
        row: dict[str, Any] = {
            "_id": found.order_id,
            "type": "bid",
            "collectionSlug": market.slug,
            "inscriptionId": None,
            "price": found.price,
            "quantity": found.quantity,
            "bidderAddress": found.maker,
            "bidderTokenReceiveAddress": found.receive,
            "attribute": attribute(found.trait),
            "bidExpiry": found.expires_ms,
            "timestamp": found.placed_ms,
        }
        return row | {"unitPrice": found.unit_price} if market.kind == "runes" else row

    def seen_row(self, found: Order, market: Market) -> dict[str, Any]:
        return seen.bid(found, market, attribute(found.trait))

    def decoys(self, best: dict[str, Any]) -> list[dict[str, Any]]:
        return seen.over(best, "bid", self.engine.now_ms())


class SalesActivity(Activity[Sale]):
    """`GET /activity/sales`, newest first: the newest thousand trades of a market.

    Beside the documented fields a row names buyer, seller, quantity, and the bid that was sold into. In the form that
    clients have seen, sales are told only to those who ask for `active=false`.
    """

    operation: Operation = "sales"
    default_direction = "desc"
    seen_name = told = "sales"

    def sorts(self) -> dict[str, Callable[[Sale], Any]]:
        return {
            "fillCompletedAt": lambda sale: sale.sold_ms,
            "fillPendingAt": lambda sale: sale.sold_ms,
            "createdAt": lambda sale: sale.sold_ms,
            "price": lambda sale: sale.price,
            "unitPrice": lambda sale: sale.unit_price,
        }

    def data(self) -> dict[str, Any]:
        if self.get_query_argument("timeRange", "24h") not in RANGES_MS:
            raise bad(f"timeRange must be one of {', '.join(RANGES_MS)}")
        return super().data()

    def found(self, market: Market) -> list[Sale]:
        if self.is_as_seen and self.get_query_argument("active", "true") != "false":
            return []
        span = self.get_query_argument("timeRange", "")
        return self.engine.sales.of(market.key, self.engine.now_ms() - RANGES_MS[span] if span else 0)

    def row(self, found: Sale, market: Market) -> dict[str, Any]:
        row: dict[str, Any] = {
            "_id": found.sale_id,
            "type": "sale",
            "collectionSlug": market.slug,
            "inscriptionId": found.inscription,
            "price": found.price,
            "quantity": found.quantity,
            "bidId": found.bid_id,
            "buyerAddress": found.buyer,
            "buyerTokenReceiveAddress": found.receive,
            "sellerOrdAddress": found.seller,
            "timestamp": found.sold_ms,
        }
        return row | {"unitPrice": found.unit_price} if market.kind == "runes" else row

    def seen_row(self, found: Sale, market: Market) -> dict[str, Any]:
        return seen.sale(found, market)

    def decoys(self, best: dict[str, Any]) -> list[dict[str, Any]]:
        return [seen.unfilled(best)]


def _age(order: Order) -> tuple[int, int]:
    return order.placed_ms, order.sequence
