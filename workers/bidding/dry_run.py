"""Orders of dry runs: in the ledger like real ones, and unknown to any venue. They expire by the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from models.ledger import orders
from models.ledger.states import CANCELLING, CLOSED, LIVE, SIGNED, SUBMITTED, Order


def place(order: Order, clock_ms: Callable[[], int]) -> None:
    """Takes a reserved order to `live`, as a venue that accepts it would."""
    orders.move(order, SIGNED, clock_ms())
    orders.move(order, SUBMITTED, clock_ms())
    orders.move(order, LIVE, clock_ms(), venue_id=f"dry-{order.id}")


def cancel(doomed: Iterable[Order], clock_ms: Callable[[], int]) -> None:
    """Cancels live orders, which cannot fail."""
    for order in doomed:
        orders.move(order, CANCELLING, clock_ms())
        orders.move(order, CLOSED, clock_ms(), reason="cancelled")


def settle(task_id: int, clock_ms: Callable[[], int], *, is_dry: bool) -> None:
    """Ends orders that expired by the clock, or that a dead worker left half-way.

    With `is_dry` False the task has become a real one: all of them end.
    """
    for order in orders.open_orders(task_id):
        if not order.dry_run:
            continue
        if order.state == CANCELLING:
            orders.move(order, CLOSED, clock_ms(), reason="cancelled")
        elif order.state != LIVE:
            orders.move(order, CLOSED, clock_ms(), reason="refused")
        elif order.expires_ms <= clock_ms():
            orders.move(order, CLOSED, clock_ms(), reason="expired")
        elif not is_dry:
            cancel([order], clock_ms)
