"""The history of the practice market, oldest first, for tests and demos."""

from __future__ import annotations

import heapq
from collections import deque
from decimal import Decimal
from typing import Any, Literal

from simulator.orders import Order
from simulator.wire import ApiError, number

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
        self._kept.extend(map(_numbered, row["kept"]))
        self._traders.extend(map(_numbered, row["traders"]))
        self._count = int(row["count"])
        self._gone = int(row.get("gone", 0))


def _numbered(row: Any) -> dict[str, Any]:
    """Returns an event of a state file with its number; older files kept it beside the event."""
    return row if isinstance(row, dict) else {"number": int(row[0]), **row[1]}
