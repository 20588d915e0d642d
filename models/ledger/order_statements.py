"""The statements of an order's life in the ledger, compiled once: each runs several times for every bid."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from peewee import JOIN, SQL, fn

from models.ledger.order_table import IS_FILLED, IS_OPEN, IS_REAL, Order
from models.prepared import Prepared, given, given_each
from models.tasks.table import Task
from models.users import User

NEWEST = 10  # fills whose times are returned

WRITTEN = tuple(name for name in Order._meta.sorted_field_names if name != "id")
_EARLIER, _NEXT = Order.alias(), Order.alias()

_IS_THIS = Order.id == given("id")
_OF_TASK = Order.task_id == given("task_id")
_OF_WALLET = Order.wallet == given("wallet")
_IS_KIND = Order.dry_run == given("dry_run")
_OF_USER = Order.user_id == given("user_id")
_SUM = fn.COALESCE(fn.SUM(Order.price_sats), SQL("0"))
_TOTALS = _SUM, fn.COUNT(SQL("1"))


def _open(*which: Any) -> Any:
    return Order.select(_SUM.alias("sats"), fn.COUNT(SQL("1")).alias("count")).where(*which, _IS_KIND, IS_OPEN)


OPEN_OF_TASK = Prepared(lambda: _open(_OF_TASK))
OPEN_OF_USER = Prepared(lambda: _open(_OF_USER))
OPEN_OF_ALL = Prepared(lambda: _open())
BY_INTENT = Prepared(lambda: Order.select().where(Order.intent == given("intent")))


class Facts(NamedTuple):
    """All that a reservation is judged by, but its budget: of its task's row, its user's, and the open orders.

    `is_taken`: an order of the wallet has the wanted expiry. `all_sats` is None where nobody asks for it.
    """

    kind: str
    desired: str
    deleted_ms: int | None
    token: int
    budget_id: int | None
    own_exposure: int | None
    own_hardcap: int | None
    is_taken: int
    task_sats: int
    task_count: int
    user_sats: int
    all_sats: int | None


@cache
def facts(counts_all: bool) -> Prepared:
    """Prepares the question for the Facts: one statement, since each is a way to the server and back."""
    return Prepared(lambda: _facts(counts_all))


def _facts(counts_all: bool) -> Any:
    taken = Order.select(SQL("1")).where(_OF_WALLET, Order.expires_ms == given("expires_ms"))
    query = (
        Task.select(
            *(Task.kind, Task.desired, Task.deleted_ms, Task.token, Task.budget, User.max_exposure, User.max_hardcap),
            fn.EXISTS(taken),
            *(SQL(name) for name in ("of_task.sats", "of_task.count", "of_user.sats")),
            SQL("of_all.sats" if counts_all else "NULL"),
        )
        .join(User, JOIN.LEFT_OUTER, on=(User.id == given("user_id")))
        .join_from(Task, _open(_OF_TASK).alias("of_task"), JOIN.CROSS)
        .join_from(Task, _open(_OF_USER).alias("of_user"), JOIN.CROSS)
        .where(Task.id == given("task_id"))
    )
    return query.join_from(Task, _open().alias("of_all"), JOIN.CROSS) if counts_all else query


LAST_OF_RUN = Prepared(
    lambda: (
        _EARLIER.select(_EARLIER.expires_ms)
        .where(
            _EARLIER.wallet == given("wallet"),
            _EARLIER.expires_ms >= given("expires_ms"),
            ~fn.EXISTS(
                _NEXT.select(SQL("1")).where(
                    _NEXT.wallet == _EARLIER.wallet, _NEXT.expires_ms == _EARLIER.expires_ms + SQL("1")
                )
            ),
        )
        .order_by(_EARLIER.expires_ms)
        .limit(SQL("1"))
    )
)
COUNT_OF_TASK = Prepared(lambda: Order.select(fn.COUNT(SQL("1"))).where(_OF_TASK, IS_OPEN))
ROWS_OF_TASK = Prepared(lambda: Order.select().where(_OF_TASK, IS_OPEN).order_by(Order.id))
ROWS_OF_WALLET = Prepared(lambda: Order.select().where(_OF_WALLET, IS_OPEN, IS_REAL))
OWING_TASKS = Prepared(lambda: Order.select(Order.task_id).where(IS_OPEN).distinct())


@cache
def rows_by_expiry(count: int) -> Prepared:
    """Prepares the query of a wallet's real orders with one of `count` expiries."""
    return Prepared(
        lambda: Order.select().where(_OF_WALLET, Order.expires_ms.in_(given_each("expires_ms", count)), IS_REAL)
    )


@cache
def closed_by_venue_id(count: int) -> Prepared:
    """Prepares the query of a wallet's real closed orders with one of `count` ids of the venue, oldest first."""
    return Prepared(
        lambda: (
            Order.select()
            .where(_OF_WALLET, Order.venue_id.in_(given_each("venue_id", count)), IS_REAL, ~IS_OPEN)
            .order_by(Order.id)
        )
    )


INSERT = Prepared(lambda: Order.insert({getattr(Order, name): given(name) for name in WRITTEN}))
MOVE = Prepared(
    lambda: Order.update(
        {
            Order.state: given("state"),
            Order.close_reason: given("close_reason"),
            Order.venue_id: fn.COALESCE(given("venue_id"), Order.venue_id),
            Order.misses: SQL("0"),
            Order.updated_ms: given("updated_ms"),
            Order.closed_ms: given("closed_ms"),
            Order.sale_id: given("sale_id"),
            Order.filled_ms: given("filled_ms"),
            Order.inscription_id: given("inscription_id"),
            Order.sold_sats: given("sold_sats"),
            Order.sold_quantity: given("sold_quantity"),
        }
    ).where(_IS_THIS, Order.state.in_([given("former_state"), given("also")]))
)
FILLED_OF_TASK = Prepared(lambda: Order.select(*_TOTALS).where(_OF_TASK, _IS_KIND, IS_FILLED))
FILLED_SINCE = Prepared(
    lambda: Order.select(*_TOTALS).where(_OF_TASK, _IS_KIND, IS_FILLED, Order.closed_ms > given("after_ms"))
)
NEWEST_FILLS = Prepared(
    lambda: (
        Order.select(Order.closed_ms)
        .where(_OF_TASK, _IS_KIND, IS_FILLED)
        .order_by(Order.closed_ms.desc())
        .limit(SQL(str(NEWEST)))
    )
)
