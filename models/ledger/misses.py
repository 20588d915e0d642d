"""The good reads in a row that have not shown an open order or listing."""

from __future__ import annotations

from functools import partial
from typing import Any

from peewee import SQL

from models.ledger.listing_table import Listing
from models.ledger.order_table import Order
from models.prepared import Prepared, given

LATE_MS = 30_000  # how long after its time (a bid's expiry, a listing's deadline) it is still waited for


def _updates(changes: dict[str, Any]) -> dict[type[Order | Listing], Prepared]:
    return {table: Prepared(partial(_update, table, changes)) for table in (Order, Listing)}


def _update(table: Any, changes: dict[str, Any]) -> Any:
    changed = changes | {"updated_ms": given("updated_ms")}
    return table.update({getattr(table, name): value for name, value in changed.items()}).where(table.id == given("id"))


_SAW = _updates({"venue_id": given("venue_id"), "misses": SQL("0")})
_DATED = _updates({})
_MISSED = _updates({"misses": SQL("misses + 1")})


def saw(row: Order | Listing, venue_id: str, now_ms: int) -> None:
    """Notes that the venue shows it: its id is known from now on, and the misses start anew."""
    if row.venue_id == venue_id and row.misses == 0:
        return
    _SAW[type(row)].run(id=row.id, venue_id=venue_id, updated_ms=now_ms)
    row.venue_id, row.misses = venue_id, 0


def date_back(row: Order | Listing, now_ms: int) -> None:
    """Dates a row back to now if the clock was ahead when it was written: reads that begin from now on count."""
    if row.updated_ms > now_ms:
        _DATED[type(row)].run(id=row.id, updated_ms=now_ms)
        row.updated_ms = now_ms


def count_miss(row: Order | Listing, read_ms: int) -> int:
    """Counts one more good read, begun at `read_ms`, that does not show it; returns how many in a row.

    `updated_ms` becomes `read_ms`, so that no read is counted twice.
    """
    _MISSED[type(row)].run(id=row.id, updated_ms=read_ms)
    row.misses, row.updated_ms = row.misses + 1, read_ms
    return int(row.misses)
