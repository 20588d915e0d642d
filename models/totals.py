"""Sums over all users, for monitoring. They run every few seconds, so each is cheap."""

from __future__ import annotations

from typing import Any

from peewee import SQL, fn

from models.database.base import NO, database
from models.ledger.states import CLOSED, LISTING_LIFE, ORDER_LIFE, Listing, Order
from models.tasks.cycles import Cycle
from models.tasks.tasks import MOVES as TASK_MOVES
from models.tasks.tasks import RUNNING, STOPPED, Task
from models.users import ABSOLUTE_MS, IDLE_MS, Session

# As text of the query, so that SQLite sees at once that the index of open orders applies.
_IS_REAL = Order.dry_run == NO
_IS_OPEN = (Order.state != SQL(f"'{CLOSED}'")) & _IS_REAL


def tasks_by_state(kind: str) -> dict[tuple[str, str], int]:
    """Counts tasks of this kind by (desired, observed), every possible pair; deleted ones are left out."""
    found = {(desired, observed): 0 for desired in (RUNNING, STOPPED) for observed in TASK_MOVES}
    columns = Task.desired, Task.observed
    alive = Task.select(*columns, fn.COUNT(Task.id)).where(Task.kind == kind, Task.deleted_ms.is_null())
    rows: Any = alive.group_by(*columns)
    return found | {(desired, observed): count for desired, observed, count in rows.tuples()}


def cycles_finished() -> int:
    """Counts the cycles of all tasks ever, by the last id that was given to one: their rows go in time."""
    return database.obj.last_id(Cycle._meta.table_name) or 0


def orders_by_state() -> dict[str, int]:
    """Counts the orders in each state, without those of dry runs."""
    rows: Any = Order.select(Order.state, fn.COUNT(Order.id)).where(_IS_OPEN).group_by(Order.state)
    found = dict.fromkeys(ORDER_LIFE.states, 0) | dict(rows.tuples())
    found[CLOSED] = Order.select().where(_IS_REAL).count() - sum(found.values())
    return found


def listings_by_state() -> dict[str, int]:
    """Counts the listings in each state; one that was repriced counts once for each price."""
    rows: Any = Listing.select(Listing.state, fn.COUNT(Listing.id)).group_by(Listing.state)
    return dict.fromkeys(LISTING_LIFE.states, 0) | dict(rows.tuples())


def exposure() -> int:
    """Returns the sats of all open orders, without those of dry runs."""
    return int(Order.select(fn.SUM(Order.price_sats)).where(_IS_OPEN).scalar() or 0)


def sessions(now_ms: int) -> int:
    """Counts the sessions whose token is still good."""
    is_good = (Session.used_ms > now_ms - IDLE_MS) & (Session.created_ms > now_ms - ABSOLUTE_MS)
    return Session.select().where(is_good).count()
