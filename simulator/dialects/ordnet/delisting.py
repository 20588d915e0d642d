"""ord.net's delistings."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.ordnet.base import Bucket, OrdnetHandler
from simulator.dialects.ordnet.listings import MAX_ITEMS
from simulator.orders import Order
from simulator.ordnet.offers import VENUE
from simulator.ordnet.sessions import Session
from simulator.wire import ApiError, bad, items, text


class ListingDelist(OrdnetHandler):
    """`POST /collection/:slug/listings/delist {walletBindingId, listings}`: without a signature."""

    operation: Operation = "cancel"
    bucket: Bucket = "write"
    method = "POST"

    def subject(self) -> str:
        return self.own_address()

    def answer(self) -> Any:
        body = self.body()
        session = self.bound(body)
        self.market()
        rows = items(body.get("listings"), "listings", MAX_ITEMS)
        named = [
            (text(row.get("inscriptionId"), f"listings[{at}].inscriptionId"), text(row.get("listingId"), "listingId"))
            for at, row in enumerate(rows)
        ]
        if not named or len({each for pair in named for each in pair}) < 2 * len(named):
            raise bad(f"listings: 1 to {MAX_ITEMS} different ones")
        for order in [self._own(*pair, session) for pair in named]:
            self._down(order)
        return {"listings": [{"inscriptionId": each, "listingId": listing} for each, listing in named]}

    def _own(self, inscription: str, listing: str, session: Session) -> Order:
        order = self.world.engine.order(listing)
        if order is None or order.side != "ask" or order.venue != VENUE or order.inscription != inscription:
            known = listing in self.desk.taken
            raise ApiError(409, "Listing is no longer active") if known else ApiError(404, "Listing not found")
        if order.maker != session.ordinals:
            raise ApiError(403, "Listing is not yours")
        return order

    def _down(self, order: Order) -> None:
        engine = self.world.engine
        if self.mode == "late" and self.fault:
            engine.cancel_at(order, self.visible_ms())
        elif self.mode != "cancel_lie":
            engine.cancel(order)
