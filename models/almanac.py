"""Events that the calendar brings: a day's summary for its trader, and a plan that is about to end.

Each is told once, whoever looks and however often. A day is told once it is over (UTC), also late, but only the last.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from peewee import SQL, fn

from models import outbox
from models.database.base import transaction
from models.ledger.states import IS_FILLED, IS_OPEN, IS_REAL, IS_SOLD, Listing, Order
from models.outbox import DAILY, PLAN_EXPIRING, Event
from models.tasks.tasks import RUNNING, Task
from models.users import DAY_MS, Subscription, User

WARNED_DAYS = (7, 1)  # before a plan's end


def tell_dates(now_ms: int) -> None:
    """Writes the events that are due."""
    for days in WARNED_DAYS:
        ending = Subscription.select().where(
            Subscription.expires_ms > now_ms, Subscription.expires_ms <= now_ms + days * DAY_MS
        )
        for row in ending:
            _tell_plan(row, days, now_ms)
    day_ms = now_ms // DAY_MS * DAY_MS
    fact = f"daily:{day_ms // DAY_MS - 1}"
    has_tasks = fn.EXISTS(
        Task.select(SQL("1")).where(Task.user == User.id, Task.deleted_ms.is_null(), Task.created_ms < day_ms)
    )
    for user in User.select(User.id).where(has_tasks, ~_is_told(User.id, fact)):
        with transaction():
            outbox.tell(DAILY, user.id, None, now_ms, _day(user.id, day_ms - DAY_MS, day_ms), fact=fact)


def _tell_plan(row: Subscription, days: int, now_ms: int) -> None:
    fact = f"plan:{row.expires_ms}:{days}"
    user_id = row.user_id
    if not Event.select(SQL("1")).where(Event.user_id == user_id, Event.fact == fact).exists():
        with transaction():
            outbox.tell(PLAN_EXPIRING, user_id, None, now_ms, {"plan": row.plan, "ends_ms": row.expires_ms}, fact=fact)


def _is_told(user_id: Any, fact: str) -> Any:
    return fn.EXISTS(Event.select(SQL("1")).where(Event.user_id == user_id, Event.fact == fact))


def _day(user_id: int, from_ms: int, to_ms: int) -> dict[str, Any]:
    """Returns the trades from `from_ms` to before `to_ms`, and the state of now, of real money only."""
    bought, bought_sats = _sums(
        Order,
        fn.COALESCE(Order.sold_sats, Order.price_sats),
        Order.user_id == user_id,
        IS_FILLED,
        IS_REAL,
        Order.filled_ms >= from_ms,
        Order.filled_ms < to_ms,
    )
    sold, sold_sats = _sums(
        Listing,
        Listing.proceeds_sats,
        Listing.user_id == user_id,
        IS_SOLD,
        Listing.sold_ms >= from_ms,
        Listing.sold_ms < to_ms,
    )
    open_bids, exposure = _sums(Order, Order.price_sats, Order.user_id == user_id, IS_OPEN, IS_REAL)
    wanted = Task.select().where(Task.user == user_id, Task.desired == RUNNING, Task.deleted_ms.is_null())
    return {
        "day": datetime.fromtimestamp(from_ms // 1000, UTC).date().isoformat(),
        "bought": bought,
        "bought_sats": bought_sats,
        "sold": sold,
        "sold_sats": sold_sats,
        "open_bids": open_bids,
        "exposure": exposure,
        "running": wanted.count(),
        "failing": wanted.where(Task.last_error.is_null(False)).count(),
    }


def _sums(table: Any, sats: Any, *where: Any) -> tuple[int, int]:
    rows: Any = table.select(fn.COUNT(SQL("1")), fn.COALESCE(fn.SUM(sats), 0)).where(*where).tuples()
    [(count, total)] = rows
    return int(count), int(total)
