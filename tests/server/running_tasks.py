"""Bidding tasks under test: their rows, started ones, and an order of theirs in the ledger."""

from __future__ import annotations

from typing import Any

from models.ledger import orders
from models.ledger.orders import ExposureLimits, NewOrder
from models.ledger.states import Order
from models.tasks.tasks import Task
from tests.server.api import START_MS
from tests.server.conftest import Service


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
