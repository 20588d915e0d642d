"""The statements of an order's life in the ledger, compiled once: each runs several times for every bid."""

from __future__ import annotations

from functools import cache

from peewee import SQL, fn

from models.ledger.order_table import IS_FILLED, IS_OPEN, IS_REAL, Order
from models.prepared import Prepared, given, given_each
from models.users import User

NEWEST = 10  # fills whose times are returned

WRITTEN = tuple(name for name in Order._meta.sorted_field_names if name != "id")
_EARLIER, _NEXT = Order.alias(), Order.alias()

_IS_THIS = Order.id == given("id")
_OF_TASK = Order.task_id == given("task_id")
_OF_WALLET = Order.wallet == given("wallet")
_IS_KIND = Order.dry_run == given("dry_run")
_TOTALS = fn.COALESCE(fn.SUM(Order.price_sats), SQL("0")), fn.COUNT(SQL("1"))
OPEN_OF_TASK = Prepared(lambda: Order.select(*_TOTALS).where(_OF_TASK, _IS_KIND, IS_OPEN))
OPEN_OF_USER = Prepared(lambda: Order.select(*_TOTALS).where(Order.user_id == given("user_id"), _IS_KIND, IS_OPEN))
OWN_CEILINGS = Prepared(lambda: User.select(User.max_exposure, User.max_hardcap).where(User.id == given("user_id")))
OPEN_OF_ALL = Prepared(lambda: Order.select(*_TOTALS).where(_IS_KIND, IS_OPEN))
BY_INTENT = Prepared(lambda: Order.select().where(Order.intent == given("intent")))
TAKEN = Prepared(lambda: Order.select(Order.id).where(_OF_WALLET, Order.expires_ms == given("expires_ms")))
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
    ).where(_IS_THIS, Order.state == given("former_state"))
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
