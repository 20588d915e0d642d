"""Rows of the ledger as workers leave them: orders, purchases, sales and wallet items."""

from __future__ import annotations

import itertools
from typing import Any

from markets.base import WalletItem
from models.ledger import orders, purchases
from models.ledger.orders import ExposureLimits, NewOrder
from models.ledger.states import Listing, Order
from models.tasks.tasks import Task
from strategy.purchases import ProvenPurchase
from tests.worlds.service import START_MS, Service

INSCRIPTION = "7" * 64 + "i0"


def item(**fields: Any) -> WalletItem:
    values = {
        "id": INSCRIPTION,
        "name": "Goosinal #1",
        "collection_id": "goosinals",
        "collection_name": "Goosinals",
        "image_url": "https://example.org/1.png",
        "listed": True,
        "listing_price": 100_000,
    }
    return WalletItem(**(values | fields))


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


def row(task_id: int) -> Task:
    return Task.get_by_id(task_id)


async def started(service: Service, **fields: Any) -> int:
    task_id = await service.new_task(**fields)
    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")
    assert answer.status == 200, answer.text
    return task_id


def open_order(service: Service, task_id: int, number: int = 1, state: str = "live") -> Order:
    """Puts an order of the task into the ledger; the task must be wanted at that moment."""
    task = row(task_id)
    Task.update(desired="running").where(Task.id == task_id).execute()
    order = orders.reserve(
        NewOrder(
            intent=f"{number:032x}",
            task_id=task_id,
            user_id=service.user_id,
            venue="simulator",
            wallet="bc1qpayment",
            slug="goosinals",
            price_sats=10_000 * number,
            quantity="1",
            expires_ms=START_MS + 900_000,
            token=task.token,
        ),
        ExposureLimits(0, 10**9, 0),
        START_MS,
    )
    Order.update(state=state).where(Order.id == order.id).execute()
    Task.update(desired=task.desired).where(Task.id == task_id).execute()
    return order
