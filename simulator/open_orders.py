"""Indexes of every open order, and the orders' ends."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from simulator.orders import Order


class OpenOrders:
    """The orders of all books by id, by maker and, for asks, by inscription."""

    def __init__(self) -> None:
        self._by_id: dict[str, Order] = {}
        self._of_maker: dict[str, dict[str, Order]] = {}
        self._asks: dict[str, dict[str, Order]] = {}
        self._funded: dict[str, dict[str, Order]] = {}
        self._ends: list[tuple[int, str]] = []

    def __contains__(self, order_id: str) -> bool:
        return order_id in self._by_id

    def get(self, order_id: str) -> Order | None:
        return self._by_id.get(order_id)

    def of(self, maker: str) -> list[Order]:
        """Returns the orders of one address, oldest first."""
        return list(self._of_maker.get(maker, {}).values())

    def asks_of(self, inscription: str) -> list[Order]:
        """Returns the open asks for an inscription, oldest first: one a venue, but any number by scripts."""
        return list(self._asks.get(inscription, {}).values())

    def bids_on(self, inscription: str) -> list[Order]:
        """Returns the open bids for one inscription alone, oldest first."""
        return [o for o in self._by_id.values() if o.side == "bid" and o.inscription == inscription]

    def funded_by(self, outpoint: str) -> list[Order]:
        """Returns the orders that an output funds, oldest first."""
        return list(self._funded.get(outpoint, {}).values())

    def enter(self, order: Order) -> None:
        self._by_id[order.order_id] = order
        self._of_maker.setdefault(order.maker, {})[order.order_id] = order
        if order.side == "ask" and order.inscription is not None:
            self._asks.setdefault(order.inscription, {})[order.order_id] = order
        for outpoint in order.funding:
            self._funded.setdefault(outpoint, {})[order.order_id] = order
        if order.expires_ms is not None:
            self.end_at(order, order.expires_ms)

    def remove(self, order: Order) -> None:
        del self._by_id[order.order_id]
        _drop(self._of_maker, order.maker, order)
        if order.side == "ask" and order.inscription is not None:
            _drop(self._asks, order.inscription, order)
        for outpoint in order.funding:
            _drop(self._funded, outpoint, order)

    def end_at(self, order: Order, end_ms: int) -> None:
        """Makes the order end at `end_ms`, unless it ends before."""
        heapq.heappush(self._ends, (end_ms, order.order_id))

    def ended(self, now_ms: int) -> Iterator[tuple[int, Order]]:
        """Yields ended orders with their ends, earliest first; each must be removed before the next."""
        while self._ends and self._ends[0][0] <= now_ms:
            end_ms, order_id = heapq.heappop(self._ends)
            order = self._by_id.get(order_id)
            if order is not None:
                yield end_ms, order


def _drop(index: dict[str, dict[str, Order]], key: str, order: Order) -> None:
    del index[key][order.order_id]
    if not index[key]:
        del index[key]
