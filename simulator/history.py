"""What happened on the practice market, oldest first, for tests and demos."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any, Literal

from simulator.orders import Order
from simulator.wire import number

Event = Literal["accepted", "refused", "cancelled", "expired", "filled"]

KEPT = 20_000
KEPT_OF_TRADERS = 1_000


class History:
    """The last KEPT events of orders that came through a dialect or a script, and KEPT_OF_TRADERS of the traders'.

    The two are kept apart so that a night of background trading does not push out what somebody wants to look up.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._traders: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT_OF_TRADERS)
        self._count = 0

    def record(self, event: Event, order: Order, time_ms: int, reason: str | None = None) -> None:
        """Notes what happened to `order`; an order without an id was refused."""
        row: dict[str, Any] = {
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
        if reason is not None:
            row["reason"] = reason
        self._count += 1
        (self._traders if order.origin == "trader" else self._kept).append((self._count, row))

    def rows(self) -> list[dict[str, Any]]:
        """Every kept event, oldest first."""
        return [row for _, row in heapq.merge(self._kept, self._traders, key=lambda entry: entry[0])]

    def dump(self) -> dict[str, Any]:
        return {"kept": list(self._kept), "traders": list(self._traders), "count": self._count}

    def load(self, row: dict[str, Any]) -> None:
        self._kept.extend((int(at), entry) for at, entry in row["kept"])
        self._traders.extend((int(at), entry) for at, entry in row["traders"])
        self._count = int(row["count"])
