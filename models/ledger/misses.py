"""The good reads in a row that have not shown an open order or listing."""

from __future__ import annotations

from models.database.base import Statement
from models.ledger.states import Listing, Order

LATE_MS = 30_000  # how long after its time (a bid's expiry, a listing's deadline) it is still waited for


def _changes(what: str) -> dict[type[Order | Listing], Statement]:
    return {
        table: Statement(f"UPDATE {table._meta.table_name} SET {what} WHERE id = :id") for table in (Order, Listing)
    }


_SAW = _changes("venue_id = :venue_id, misses = 0, updated_ms = :updated_ms")
_DATED = _changes("updated_ms = :updated_ms")
_MISSED = _changes("misses = misses + 1, updated_ms = :updated_ms")


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
