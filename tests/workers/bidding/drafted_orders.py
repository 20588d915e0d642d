"""Orders of a task whose bids the venue drafts, and a config that makes one bid."""

from __future__ import annotations

from models.ledger import orders
from models.ledger.orders import ExposureLimits, NewOrder
from models.ledger.states import Order
from models.tasks.tasks import Task
from tests.shapes import replace
from tests.workers.bidding.drafts import HOUR_MS, VENUE
from tests.worlds.worker import CATS, KEYS, START_MS

ONE = replace(CATS, bid_mode="fixed", bid_count=1, bid_fixed_high=50_000)


def put(
    task_id: int,
    state: str,
    price: int = 50_000,
    *,
    venue_id: str | None = None,
    slug: str = "cats",
    trait: tuple[str, str] | None = None,
    venue: str = VENUE,
) -> int:
    """Puts an order in this state since START_MS; returns its id."""
    new = NewOrder(
        intent=f"{10_000 + Order.select().count():032x}",
        task_id=task_id,
        user_id=1,
        venue=venue,
        wallet=KEYS.payment,
        slug=slug,
        price_sats=price,
        quantity="1",
        expires_ms=START_MS + HOUR_MS,
        token=Task.get_by_id(task_id).token,
        trait=trait,
    )
    order = orders.reserve(new, ExposureLimits(0, 10**12, 0), START_MS)
    reason = "lost" if state == "closed" else None
    Order.update(state=state, venue_id=venue_id, close_reason=reason).where(Order.id == order.id).execute()
    return int(order.id)
