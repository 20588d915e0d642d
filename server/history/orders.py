"""The orders of a user or of one task, from the ledger: every bid with its fate."""

from __future__ import annotations

from decimal import Decimal

from models.ledger import order_history
from models.ledger.order_table import Order
from server.bidding.tasks import BiddingTaskHandler
from server.http import json_out
from server.http.base import SignedIn
from server.http.query import Query
from strategy.bid_config import is_ticker

DEFAULT_ORDERS, MOST_ORDERS = 100, 500


class OrdersHandler(SignedIn):
    """GET /api/orders"""

    takes_query = True

    async def get(self) -> None:
        await _answer(self, None)


class TaskOrdersHandler(BiddingTaskHandler):
    """GET /api/tasks/:id/orders"""

    takes_query = True

    async def get(self, task_id: str) -> None:
        await _answer(self, self.task(task_id).id)


async def _answer(handler: SignedIn, task_id: int | None) -> None:
    query = Query(handler, "since", "limit", "before")
    since_ms, before = query.time_ms("since"), query.whole("before")
    most = query.whole("limit", MOST_ORDERS) or DEFAULT_ORDERS
    query.refuse_faults()
    user_id = handler.user.id
    async with handler.long_answer():
        found = await handler.in_turn(
            lambda: order_history.newest(user_id, most + 1, task_id=task_id, since_ms=since_ms, before=before)
        )
        shown = found[:most]
        rows = await handler.in_turns(shown, order_as_json)
        handler.require_signed_in()
        following = shown[-1].id if len(found) > most else None
        handler.answer({"orders": rows, "next": following})


def order_as_json(order: Order) -> dict[str, object]:
    """Returns the order as callers see it."""
    return {
        "id": order.id,
        "taskId": order.task_id,
        "venue": order.venue,
        "slug": order.slug,
        "type": "rune" if is_ticker(order.slug) else "ordinals",
        "trait": None if order.trait is None else {"type": order.trait[0], "value": order.trait[1]},
        "price": order.price_sats,
        "quantity": Decimal(order.quantity),
        "state": order.state,
        "closeReason": order.close_reason,
        "createdAt": json_out.iso(order.created_ms),
        "closedAt": None if order.closed_ms is None else json_out.iso(order.closed_ms),
        "expiresAt": json_out.iso(order.expires_ms),
        "saleId": order.sale_id,
        "inscriptionId": order.inscription_id,
        "dryRun": order.dry_run,
    }
