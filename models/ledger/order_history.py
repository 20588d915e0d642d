"""A user's orders as a record, from the newest back, those of deleted tasks too."""

from __future__ import annotations

from models.ledger.states import Order


def newest(
    user_id: int, most: int, *, task_id: int | None = None, since_ms: int | None = None, before: int | None = None
) -> list[Order]:
    """Returns at most `most` of the user's orders, newest first: of one task, made since then, older than `before`."""
    query = Order.select().where(Order.user_id == user_id)
    if task_id is not None:
        query = query.where(Order.task_id == task_id)
    if since_ms is not None:
        query = query.where(Order.created_ms >= since_ms)
    if before is not None:
        query = query.where(Order.id < before)
    return list(query.order_by(Order.id.desc()).limit(most))


def standing(user_id: int, task_id: int, time_ms: int) -> list[Order]:
    """Returns the task's orders that were open at this time, the highest price first, as they are now."""
    is_of_task = (Order.user_id == user_id) & (Order.task_id == task_id)
    was_open = (Order.created_ms <= time_ms) & (Order.closed_ms.is_null() | (Order.closed_ms > time_ms))
    return list(Order.select().where(is_of_task, was_open).order_by(Order.price_sats.desc(), Order.id))
