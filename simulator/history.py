"""The record of the practice market: the sales of each market, and the events of all orders, oldest first."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from simulator.orders import Kind, MarketKey, Order, market_key, unit_price
from simulator.wire import ApiError, number, plain

KEPT_SALES = 1_000


@dataclass(frozen=True, slots=True)
class Sale:
    """One trade: `price` sats for `quantity` tokens or for one inscription.

    `buyer` is the address that pays, `receive` gets the goods. `bid_id` is the bid sold into, or `ask_id` the listing
    bought, which stood since `listed_ms`; `venue` is the order's. `txid` is empty where nothing moved on the chain.
    """

    sale_id: str
    kind: Kind
    slug: str
    price: int
    quantity: Decimal
    sold_ms: int
    buyer: str
    receive: str
    seller: str
    bid_id: str | None = None
    inscription: str | None = None
    ask_id: str | None = None
    listed_ms: int | None = None
    venue: str = ""
    txid: str = ""

    def at(self, venue: str) -> bool:
        """Tells whether the filled order stood at `venue`."""
        return self.venue in ("", venue)

    @property
    def unit_price(self) -> Decimal:
        """Sats per whole token, or per inscription."""
        return unit_price(self.price, self.quantity)


class Sales:
    """The sales of every market, oldest first."""

    def __init__(self) -> None:
        self._of: dict[MarketKey, deque[Sale]] = {}
        # The scene `sale_names_other_item`: the inscription that sales into bids are said to have brought.
        self.other_item: str | None = None

    def record(self, sale: Sale) -> None:
        self._of.setdefault(market_key(sale.kind, sale.slug), deque(maxlen=KEPT_SALES)).append(sale)

    def of(self, key: MarketKey, since_ms: int = 0) -> list[Sale]:
        """Returns the sales of one market at or after `since_ms`, oldest first."""
        found = [sale for sale in self._of.get(key, ()) if sale.sold_ms >= since_ms]
        return found if self.other_item is None else [self._misnamed(sale) for sale in found]

    def _misnamed(self, sale: Sale) -> Sale:
        return sale if sale.bid_id is None or sale.inscription is None else replace(sale, inscription=self.other_item)

    def dump(self) -> list[dict[str, Any]]:
        """Returns plain JSON values that `load` reads back."""
        return [asdict(sale) | {"quantity": plain(sale.quantity)} for sales in self._of.values() for sale in sales]

    def load(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self.record(Sale(**(row | {"quantity": Decimal(row["quantity"])})))


Event = Literal["accepted", "refused", "cancelled", "expired", "filled"]

KEPT = 50_000
KEPT_OF_TRADERS = 1_000


class History:
    """The last KEPT events of orders that came through a dialect or a script, and KEPT_OF_TRADERS of the traders'.

    They are kept apart so that a night of background trading does not push out interesting events. Each event has a
    `number`, growing by one, so that a client that asks for events since its last one misses none.
    """

    def __init__(self) -> None:
        self._kept: deque[dict[str, Any]] = deque()
        self._traders: deque[dict[str, Any]] = deque(maxlen=KEPT_OF_TRADERS)
        self._count = 0
        # The number of the newest event that is no longer kept, the traders' aside.
        self._gone = 0

    def record(
        self, event: Event, order: Order, time_ms: int, reason: str | None = None, remaining: Decimal | None = None
    ) -> None:
        """Notes an event of `order`; an order without an id was refused.

        `remaining` is the rest of a partly filled bid; price and quantity are then those of the part.
        """
        self._count += 1
        row: dict[str, Any] = {
            "number": self._count,
            "time": time_ms,
            "event": event,
            "kind": order.side,
            "orderId": order.order_id or None,
            "slug": order.slug,
            "maker": order.maker,
            "price": order.price,
            "quantity": number(order.quantity),
            "message": order.message,
            "signature": order.signature,
        }
        if order.venue:
            row["venue"] = order.venue
        if order.inscription is not None:
            row["inscriptionId"] = order.inscription
        if reason is not None:
            row["reason"] = reason
        if remaining is not None:
            row["remaining"] = number(remaining)
        if order.origin == "trader":
            self._traders.append(row)
            return
        self._kept.append(row)
        if len(self._kept) > KEPT:
            self._gone = self._kept.popleft()["number"]

    def rows(self, since: int | None = None) -> list[dict[str, Any]]:
        """Returns every kept event, or those with a number above `since`, oldest first.

        Raises ApiError(410) when events after `since` (but the traders') are no longer kept: a part must not pass for
        the whole.
        """
        if since is not None and since < self._gone:
            raise ApiError(410, f"events up to number {self._gone} are no longer kept", "GONE")
        every = heapq.merge(self._kept, self._traders, key=lambda row: row["number"])
        return [row for row in every if row["number"] > (since or 0)]

    def dump(self) -> dict[str, Any]:
        return {"kept": list(self._kept), "traders": list(self._traders), "count": self._count, "gone": self._gone}

    def load(self, row: dict[str, Any]) -> None:
        self._kept.extend(row["kept"])
        self._traders.extend(row["traders"])
        self._count, self._gone = int(row["count"]), int(row["gone"])
