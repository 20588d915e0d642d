"""Purchases and sales of the service's users, as workers leave them in the ledger."""

from __future__ import annotations

import itertools
from typing import Any

from models.ledger import purchases
from models.ledger.states import Listing, Order
from strategy.purchases import ProvenPurchase
from tests.server.api import START_MS
from tests.server.wallet_items import INSCRIPTION

MINUTE_MS = 60_000
_numbers = itertools.count(1)


def bought(user_id: int, price: int, *, minute: int = 0, **columns: Any) -> Order:
    """A bid that was placed at the start and filled some minutes later."""
    number = next(_numbers)
    filled_ms = START_MS + minute * MINUTE_MS
    row = {
        "intent": f"f{number:031x}",
        "task_id": 1,
        "user_id": user_id,
        "venue": "simulator",
        "wallet": "bc1qpayment",
        "slug": "goosinals",
        "price_sats": price,
        "quantity": "1",
        "expires_ms": START_MS + number,
        "token": 1,
        "state": "closed",
        "close_reason": "filled",
        "created_ms": START_MS,
        "updated_ms": filled_ms,
        "closed_ms": filled_ms,
        "filled_ms": filled_ms,
        "sale_id": f"sale-{number}",
    }
    return Order.create(**row | columns)


def sold(user_id: int, price: int, *, minute: int = 0, **columns: Any) -> Listing:
    """A listing that was made at the start and sold some minutes later."""
    number = next(_numbers)
    sold_ms = START_MS + minute * MINUTE_MS
    row = {
        "intent": f"f{number:063x}",
        "task_id": 2,
        "user_id": user_id,
        "venue": "simulator",
        "wallet": "bc1pvault",
        "inscription_id": INSCRIPTION,
        "slug": "goosinals",
        "outpoint": f"{number:064x}:0",
        "price_sats": price,
        "token": 1,
        "revision": 1,
        "state": "closed",
        "close_reason": "sold",
        "proceeds_sats": price,
        "created_ms": START_MS,
        "updated_ms": sold_ms,
        "signed_ms": START_MS,
        "listed_ms": START_MS,
        "closed_ms": sold_ms,
        "sold_ms": sold_ms,
        "sale_id": f"sale-{number}",
    }
    return Listing.create(**row | columns)


def proved(order: Order, cost_sats: int) -> Order:
    """The proof that this bid bought its inscription, as the manager leaves it."""
    txid = f"{order.id:064x}"
    proof = ProvenPurchase(
        order.id, str(order.inscription_id), f"{txid}:0", txid, "b" * 64, 900_000, "b" * 64, cost_sats
    )
    assert purchases.record(proof, START_MS)
    return order
