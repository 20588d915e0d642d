"""The fills: filled orders and sold listings, as one record of a user's trades.

They are read from the ledger, which keeps closed rows, also those of deleted tasks. A fill's id is its side and its
row. Fills are sorted by time, then side, then row, so that a place in that order is stable while new fills arrive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from typing import Any, NamedTuple

from msgspec import Struct
from peewee import JOIN, IntegrityError

from models.database import base
from models.database.base import Statement, transaction
from models.ledger.orders import NewOrder, SoldInto, columns_of
from models.ledger.purchases import STANDS, Purchase
from models.ledger.states import (
    CLOSED,
    FILLED,
    HAS_SALE,
    IS_FILLED,
    IS_REAL,
    IS_SOLD,
    NEW,
    ORDER_LIFE,
    Listing,
    Order,
    tell_order,
)
from models.tasks.tasks import Task
from strategy.config.bid import is_ticker

BUY, SELL = SIDES = ("buy", "sell")
_ID = re.compile(r"(buy|sell)-([1-9][0-9]{0,18})")
_LAST_ROW = 2**63 - 1


class Place(NamedTuple):
    """A fill's place in the order of all fills."""

    filled_ms: int
    side: str
    row_id: int


class Autolist(NamedTuple):
    """The state of a fill's auto-listing: `waiting`, `listed` or `dropped`, with the reason and the task."""

    state: str
    reason: str | None
    task_id: int | None


class Fill(Struct, frozen=True):
    """One fill; `price_sats` is for its whole quantity; None = unknown.

    `floor_at_fill` is for one item or token. `placed_ms` is when the bid, or the listing at its last price, was placed.
    """

    place: Place
    task_id: int
    venue: str
    slug: str | None
    trait: tuple[str, str] | None
    price_sats: int
    quantity: Decimal
    placed_ms: int
    sale_id: str | None
    inscription_id: str | None = None
    floor_at_fill: Decimal | None = None
    network_fee_sats: int | None = None
    venue_fee_sats: int | None = None
    txid: str | None = None
    dry_run: bool = False
    autolist: Autolist | None = None

    @property
    def id(self) -> str:
        """The name of this fill, such as `buy-17`."""
        return f"{self.place.side}-{self.place.row_id}"

    @property
    def is_rune(self) -> bool:
        """Whether a rune was traded, and not an inscription."""
        return self.inscription_id is None and self.slug is not None and is_ticker(self.slug)


class Wanted(Struct, frozen=True):
    """A filter of fills; None or () = no restriction. `to_ms` is exclusive."""

    task_id: int | None = None
    slugs: tuple[str, ...] = ()  # any of these
    side: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None


class FillTotal(Struct, frozen=True):
    """A task's real fills: their number, their sats, and the time of the last."""

    count: int = 0
    sats: int = 0
    last_ms: int | None = None


class _Table(NamedTuple):
    """One of the two tables with fills: its model, time column, condition of a fill, and columns to read."""

    rows: Any
    filled_ms: Any
    is_fill: Any
    columns: tuple[Any, ...]


_COMMON = "id task_id venue slug created_ms sale_id inscription_id"
_OF_ORDER = "trait_type trait_value price_sats quantity sold_sats sold_quantity filled_ms floor_at_fill dry_run"


def _columns(rows: Any, names: str) -> tuple[Any, ...]:
    return tuple(getattr(rows, name) for name in f"{_COMMON} {names}".split())


_BOUGHT = (
    *_columns(Order, f"{_OF_ORDER} network_fee_sats autolist_state autolist_reason autolist_task"),
    Purchase.cost_sats,
)
_SOLD = _columns(Listing, "proceeds_sats listed_ms sold_ms venue_fee_sats txid")
_TABLES = {
    BUY: _Table(Order, Order.filled_ms, IS_FILLED, _BOUGHT),
    SELL: _Table(Listing, Listing.sold_ms, IS_SOLD, _SOLD),
}


def newest(user_id: int, wanted: Wanted, most: int, before: Place | None = None) -> list[Fill]:
    """Returns at most `most` of the user's fills, newest first, that are older than the place `before`."""
    found = [fill for side in SIDES for fill in _of_side(user_id, side, wanted, most, before)]
    return sorted(found, key=lambda fill: fill.place, reverse=True)[:most]


def place_of(user_id: int, fill_id: str) -> Place | None:
    """Returns the place of the user's fill of this id, or None."""
    parts = _ID.fullmatch(fill_id)
    if parts is None or int(parts[2]) > _LAST_ROW:
        return None
    side, row_id, table = parts[1], int(parts[2]), _TABLES[parts[1]]
    own = table.rows.user_id == user_id, table.rows.id == row_id, table.is_fill
    filled_ms = table.rows.select(table.filled_ms).where(*own).scalar()
    return None if filled_ms is None else Place(filled_ms, side, row_id)


def count_of_wallet(user_id: int, wallet: str, since_ms: int) -> int:
    """Counts the real bids of the user's wallet that were filled since `since_ms`."""
    its = Order.user_id == user_id, Order.wallet == wallet, Order.filled_ms >= since_ms
    return int(Order.select().where(*its, IS_FILLED, IS_REAL).count())


def is_purchase(user_id: int, venue: str, sale_id: str) -> bool:
    """Returns whether a real bid of the user at the venue was filled by this sale."""
    its = Order.user_id == user_id, Order.venue == venue, Order.sale_id == sale_id
    return Order.select().where(*its, HAS_SALE, IS_REAL).exists()


def count_purchase(new: NewOrder, sale: SoldInto, now_ms: int) -> bool:
    """Writes a filled order for a purchase without a known order, so that the task's limits count it.

    The item is not auto-listed, and its cost is not proved. It counts in the task's current budget. Returns False, with
    nothing written, if another order has this sale or the task was deleted.
    """
    ORDER_LIFE.check(NEW, CLOSED, FILLED)
    values = columns_of(new) | {"state": CLOSED, "close_reason": FILLED}
    bought = {"sale_id": sale.sale_id, "filled_ms": sale.sold_ms, "inscription_id": sale.inscription_id}
    values |= {"created_ms": sale.sold_ms, "updated_ms": now_ms, "closed_ms": now_ms, **bought}
    try:
        with transaction(durable=True, alone=False):
            base.lock_user(new.user_id)
            base.lock_task(new.task_id, "SHARE")
            task = Task.get_or_none(Task.id == new.task_id, Task.user == new.user_id)
            if task is None:
                return False
            later = Order.wallet == new.wallet, Order.expires_ms >= new.expires_ms
            taken: Any = Order.select(Order.expires_ms).where(*later).tuples()
            ends = {ends_ms for (ends_ms,) in taken}
            values["expires_ms"] = next(ms for ms in count(new.expires_ms) if ms not in ends)
            order = Order(**values, budget_id=task.budget_id)
            order.save(force_insert=True)
            base.hold_back_events()
            tell_order(order, now_ms, CLOSED, FILLED, bought | {"sold_sats": None})
    except IntegrityError:
        return False
    return True


def _of_side(user_id: int, side: str, wanted: Wanted, most: int, before: Place | None) -> Iterator[Fill]:
    if wanted.side not in (None, side):
        return
    table = _TABLES[side]
    rows, filled_ms = table.rows, table.filled_ms
    query = rows.select(*table.columns).where(rows.user_id == user_id, table.is_fill)
    if side == BUY:
        query = query.join(Purchase, JOIN.LEFT_OUTER, on=(Purchase.order_id == Order.id) & STANDS)
    for value, bound in (
        (wanted.task_id, rows.task_id == wanted.task_id),
        (wanted.slugs or None, rows.slug << wanted.slugs),
        (wanted.from_ms, filled_ms >= wanted.from_ms),
        (wanted.to_ms, filled_ms < wanted.to_ms),
    ):
        query = query if value is None else query.where(bound)
    if before is not None:
        # Among fills of the same time: a lower side, or the same side with a lower row.
        bound = before.row_id if side == before.side else _LAST_ROW if side < before.side else 0
        query = query.where((filled_ms < before.filled_ms) | ((filled_ms == before.filled_ms) & (rows.id < bound)))
    query = query.order_by(filled_ms.desc(), rows.id.desc()).limit(most)
    # As tuples, because model rows take several times as long and a user may have many thousands.
    yield from map(_bought if side == BUY else _sold, query.namedtuples().iterator())


def _bought(row: Any) -> Fill:
    price_sats = row.price_sats if row.sold_sats is None else row.sold_sats
    # What the chain shows is better than what the balance let conclude, which is nothing where two bids fill together.
    fee_sats = row.network_fee_sats if row.cost_sats is None else max(0, row.cost_sats - price_sats)
    return Fill(
        place=Place(row.filled_ms, BUY, row.id),
        task_id=row.task_id,
        venue=row.venue,
        slug=row.slug,
        trait=(row.trait_type, row.trait_value) if row.trait_type else None,
        price_sats=price_sats,
        quantity=Decimal(row.sold_quantity or row.quantity),
        placed_ms=row.created_ms,
        sale_id=row.sale_id,
        inscription_id=row.inscription_id,
        floor_at_fill=None if row.floor_at_fill is None else Decimal(row.floor_at_fill),
        network_fee_sats=fee_sats,
        dry_run=row.dry_run,
        autolist=row.autolist_state and Autolist(row.autolist_state, row.autolist_reason, row.autolist_task),
    )


def _sold(row: Any) -> Fill:
    return Fill(
        place=Place(row.sold_ms, SELL, row.id),
        task_id=row.task_id,
        venue=row.venue,
        slug=row.slug,
        trait=None,
        price_sats=row.proceeds_sats,
        quantity=Decimal(1),
        placed_ms=row.listed_ms or row.created_ms,
        sale_id=row.sale_id,
        inscription_id=row.inscription_id,
        venue_fee_sats=row.venue_fee_sats,
        txid=row.txid,
    )


_TOTALS = "COUNT(1), SUM(COALESCE(sold_sats, price_sats)), MAX(filled_ms)"
_REAL_FILLS = "dry_run = $no AND close_reason = 'filled'"
_OF_TASK = Statement(f"SELECT {_TOTALS} FROM orders WHERE task_id = :task_id AND {_REAL_FILLS}")
_OF_USER = Statement(
    f"""
    SELECT task_id, {_TOTALS} FROM orders
    WHERE task_id IN (SELECT id FROM tasks WHERE user_id = :user) AND {_REAL_FILLS} GROUP BY task_id
    """
)


def total_of_task(task_id: int) -> FillTotal:
    """Returns the sum of the task's real fills."""
    [(count, sats, last_ms)] = _OF_TASK.rows(task_id=task_id)
    return FillTotal(count, sats or 0, last_ms)


def totals_of_tasks(user_id: int) -> dict[int, FillTotal]:
    """Returns the sums of the real fills of the user's tasks, by task id; tasks without fills are omitted."""
    return {task_id: FillTotal(*total) for task_id, *total in _OF_USER.rows(user=user_id)}


_STANDS = "COUNT(1), MAX(updated_ms), COUNT(inscription_id)"
_STAND = Statement(
    f"""
    SELECT {_STANDS}, COUNT(network_fee_sats) FROM orders WHERE user_id = :user AND {_REAL_FILLS}
    UNION ALL SELECT {_STANDS}, COUNT(venue_fee_sats) FROM listings WHERE user_id = :user AND close_reason = 'sold'
    """
)


def stand_of(user_id: int) -> tuple[tuple[Any, ...], ...]:
    """Returns what differs once a real fill of the user's is added, or more is known of one."""
    return tuple(_STAND.rows(user=user_id))
