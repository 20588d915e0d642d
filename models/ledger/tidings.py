"""The events of the ledger: each is written in the transaction that moves the order or the listing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models import outbox
from models.ledger import states
from models.ledger.states import Listing, Order


def tell_order(order: Order, now_ms: int, state: str, reason: str | None, bought: Mapping[str, Any]) -> None:
    """Tells that the order goes live, or is closed for this reason; of other states nothing.

    `bought` are the columns of the sale that fills it.
    """
    found: dict[str, Any] = {
        "order": order.id,
        "venue": order.venue,
        "slug": order.slug,
        "trait": None if order.trait is None else {"type": order.trait[0], "value": order.trait[1]},
        "price": order.price_sats,
        "quantity": order.quantity,
        "dry_run": bool(order.dry_run),
    }
    if reason == states.FILLED:
        sold = {name: bought[name] for name in ("sale_id", "filled_ms", "inscription_id")}
        if bought["sold_sats"] is not None:  # not all of it
            sold |= {"price": bought["sold_sats"], "quantity": bought["sold_quantity"]}
        outbox.tell(outbox.FILL, order.user_id, order.task_id, now_ms, {"fill": f"buy-{order.id}"} | found | sold)
    elif state in (states.LIVE, states.CLOSED):
        fate = {"state": state, "close_reason": reason}
        outbox.tell(outbox.ORDER, order.user_id, order.task_id, now_ms, found | fate)


def tell_listing(listing: Listing, now_ms: int, state: str, reason: str | None, sold: Mapping[str, Any]) -> None:
    """Tells that the listing goes live, for the first time or again, or is closed; of other states nothing.

    `sold` are the columns of its sale. Call it before `listing` is brought up to date.
    """
    found: dict[str, Any] = {
        "listing": listing.id,
        "venue": listing.venue,
        "slug": listing.slug,
        "inscription_id": listing.inscription_id,
        "price": listing.price_sats,
    }
    if reason == states.SOLD:
        sale = {name: sold[name] for name in ("sale_id", "sold_ms", "txid")}
        sale |= {"fill": f"sell-{listing.id}", "price": sold["proceeds_sats"], "venue_fee": sold["venue_fee_sats"]}
        outbox.tell(outbox.SOLD, listing.user_id, listing.task_id, now_ms, found | sale)
    elif state == states.LIVE and listing.listed_ms is None:
        outbox.tell(outbox.LISTED, listing.user_id, listing.task_id, now_ms, found)
    elif state in (states.LIVE, states.CLOSED):
        fate = {"state": state, "close_reason": reason}
        outbox.tell(outbox.LISTING, listing.user_id, listing.task_id, now_ms, found | fate)
