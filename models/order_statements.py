"""The statements of an order's way through the ledger, compiled once: each is asked several times for every bid.

Values are given in the order in which they stand in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from peewee import SQL, fn

from models.base import database
from models.order_table import IS_FILLED, IS_OPEN, IS_REAL, Order
from models.task_statements import BIDDING


class ByPlace:
    """As `Prepared`, with the values in the order in which the SQL has them."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build

    @cached_property
    def _sql(self) -> tuple[str, int]:
        text, parameters = self._build().sql()
        return str(text), len(parameters)

    def run(self, *values: Any) -> Any:
        text, count = self._sql
        if len(values) != count:
            raise TypeError(f"{count} values wanted, {len(values)} given")
        return database.execute_sql(text, values)

    def rows(self, *values: Any) -> list[tuple[Any, ...]]:
        return list(self.run(*values).fetchall())


NEWEST = 10  # fills whose times are told

WRITTEN = tuple(name for name in Order._meta.sorted_field_names if name != "id")
_EARLIER, _NEXT = Order.alias(), Order.alias()

TASK_ROW = BIDDING.standing
_TOTALS = fn.COALESCE(fn.SUM(Order.price_sats), SQL("0")), fn.COUNT(SQL("1"))
OPEN_OF_TASK = ByPlace(lambda: Order.select(*_TOTALS).where(Order.task_id == 0, Order.dry_run == 0, IS_OPEN))
OPEN_OF_USER = ByPlace(lambda: Order.select(*_TOTALS).where(Order.user_id == 0, Order.dry_run == 0, IS_OPEN))
OPEN_OF_ALL = ByPlace(lambda: Order.select(*_TOTALS).where(Order.dry_run == 0, IS_OPEN))
TAKEN = ByPlace(lambda: Order.select(Order.id).where(Order.wallet == "", Order.expires_ms == 0))
LAST_OF_RUN = ByPlace(
    lambda: (
        _EARLIER.select(_EARLIER.expires_ms)
        .where(
            _EARLIER.wallet == "",
            _EARLIER.expires_ms >= 0,
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
COUNT_OF_TASK = ByPlace(lambda: Order.select(fn.COUNT(SQL("1"))).where(Order.task_id == 0, IS_OPEN))
ROWS_OF_TASK = ByPlace(lambda: Order.select().where(Order.task_id == 0, IS_OPEN).order_by(Order.id))
ROWS_OF_WALLET = ByPlace(lambda: Order.select().where(Order.wallet == "", IS_OPEN, IS_REAL))
OWING_TASKS = ByPlace(lambda: Order.select(Order.task_id).where(IS_OPEN).distinct())


@cache
def rows_by_expiry(count: int) -> ByPlace:
    """Rows of a wallet's real orders with one of `count` expiries."""
    return ByPlace(lambda: Order.select().where(Order.wallet == "", Order.expires_ms.in_([0] * count), IS_REAL))


@cache
def closed_by_venue_id(count: int) -> ByPlace:
    """Rows of a wallet's real closed orders with one of `count` ids of the venue, oldest first."""
    return ByPlace(
        lambda: (
            Order.select()
            .where(Order.wallet == "", Order.venue_id.in_([""] * count), IS_REAL, ~IS_OPEN)
            .order_by(Order.id)
        )
    )


INSERT = ByPlace(lambda: Order.insert({getattr(Order, name): 0 for name in WRITTEN}))
MOVE = ByPlace(
    lambda: Order.update(
        {
            Order.state: "",
            Order.close_reason: "",
            Order.venue_id: fn.COALESCE("", Order.venue_id),
            Order.misses: SQL("0"),
            Order.updated_ms: 0,
            Order.closed_ms: 0,
            Order.sale_id: "",
        }
    ).where(Order.id == 0, Order.state == "")
)
SAW = ByPlace(
    lambda: Order.update({Order.venue_id: "", Order.misses: SQL("0"), Order.updated_ms: 0}).where(Order.id == 0)
)
MISSED = ByPlace(lambda: Order.update({Order.misses: SQL("misses + 1"), Order.updated_ms: 0}).where(Order.id == 0))
FILLED_OF_TASK = ByPlace(
    lambda: Order.select(fn.COUNT(SQL("1")), fn.COALESCE(fn.SUM(Order.price_sats), SQL("0"))).where(
        Order.task_id == 0, Order.dry_run == 0, IS_FILLED
    )
)
NEWEST_FILLS = ByPlace(
    lambda: (
        Order.select(Order.closed_ms)
        .where(Order.task_id == 0, Order.dry_run == 0, IS_FILLED)
        .order_by(Order.closed_ms.desc())
        .limit(SQL(str(NEWEST)))
    )
)
