"""Satflow's rows of orders: where they have their fields, and what says that an order is over.

The documentation names none of the fields that end an order; its own pages and other people's clients go by them. The
venue fills time fields that have no value yet with 1970-01-01T00:00:00.000Z, so a time of 0 or before does not count.

An end that is neither a time nor yes or no makes its row unreadable: in a book either guess would move the best price,
and an order of our own is then neither open nor closed. A time in the future is an end: the
venue's clock counts, and adapters compare no clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from markets.answers import Foreign
from markets.base import Kind
from markets.wire import Unreadable, first, moment, rows, same, table, text

# A row is an order, or has it in itself: the holders of its fields, in the order in which they are looked at.
ASK, BID, LISTING = ("ask.", "", "listing."), ("", "bid."), ("",)

ENDED_FIELDS = ("cancelledAt", "canceledAt", "fillCompletedAt")
_UNOPEN_FIELDS = (*ENDED_FIELDS, "invalidAt", "fillPendingAt", "isPending", "pending")
_UNOPEN_STATES = frozenset(
    {"pending", "fill_pending", "filled", "sold", "cancelled", "canceled", "expired", "inactive", "invalid"}
)
_OPEN_STATES = frozenset({"active", "open", "live", "listed", "valid"})
_ORDER_TYPES = frozenset({"ask", "bid"})
_SLUG_FIELDS = ("collectionSlug", "ask.collectionSlug", "bid.collectionSlug")
_RUNE_FIELDS = tuple(
    holder + field
    for holder in ("", "ask.", "bid.", "sale.")
    for field in ("runes_metadata.runes", "runes", "runesData.runes")
)
_RUNE_NAMES = ("name", "spacedName", "spaced_name", "spaced_rune", "ticker")
_EPOCH = datetime.fromtimestamp(0, UTC)


def told(row: Mapping[str, Any], field: str, holders: Sequence[str]) -> Any:
    """Returns the field of the order in a row, None without one."""
    return first(row, *(holder + field for holder in holders))


def is_open(row: Mapping[str, Any], holders: Sequence[str]) -> bool:
    """Tells whether the order can still be dealt with, as far as the row says: not while a fill waits for its block."""
    if has_any(row, holders, _UNOPEN_FIELDS):
        return False
    status = told(row, "status", holders)
    if status is None:
        return True
    named = text(status, "status").lower()
    if named not in _OPEN_STATES | _UNOPEN_STATES:
        raise Unreadable(f"status: {named[:40]!r} is not known")
    return named in _OPEN_STATES


def is_ended(row: Mapping[str, Any], holders: Sequence[str]) -> bool:
    """Tells whether it is cancelled or filled for good; an invalid one may become valid again, and a fill may fail."""
    return has_any(row, holders, ENDED_FIELDS)


def has_any(row: Mapping[str, Any], holders: Sequence[str], fields: Sequence[str]) -> bool:
    """Tells whether one of these ends has come. Raises Unreadable where none has and one is not understood."""
    fault: Unreadable | None = None
    for value in (first(row, holder + field) for holder in holders for field in fields):
        if is_placeholder(value):
            continue
        try:
            if value is not True:
                moment(value, "end")
        except Unreadable as error:
            fault = error
        else:
            return True
    if fault is not None:
        raise fault
    return False


def time_of(row: Mapping[str, Any], *names: str) -> Any:
    """Returns the first of these times that is not a placeholder, else None."""
    return next((value for name in names if not is_placeholder(value := first(row, name))), None)


def is_placeholder(value: Any) -> bool:
    """Tells whether a field for a time or a yes has no value: null, "", 0, false or a time of 1970 or before."""
    if not value or value == "0" or (isinstance(value, int) and value < 0):
        return True
    if not isinstance(value, str):
        return False
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return False
    return (found if found.tzinfo else found.replace(tzinfo=UTC)) <= _EPOCH


def is_of_type(row: Mapping[str, Any], wanted: str, holders: Sequence[str]) -> bool:
    """Tells whether it is `wanted` ("ask" or "bid"), or does not say. Raises Unreadable for one of no known type."""
    named = told(row, "orderType", holders)
    if named is None:
        return True
    found = text(named, "orderType").lower()
    if found not in _ORDER_TYPES:
        raise Unreadable(f"orderType: {found[:40]!r} is not known")
    return found == wanted


def check_slug(row: Mapping[str, Any], slug: str, kind: Kind) -> None:
    """Raises Foreign for a row that names another collection or rune than `slug`."""
    named = first(row, *_SLUG_FIELDS)
    names = [] if named is None else [text(named, "collection")]
    if kind == "runes" and (rune := only_rune(row)) is not None:
        names += [value for name in _RUNE_NAMES if isinstance(value := rune.get(name), str)]
    if names and same(slug) not in map(same, names):
        raise Foreign(f"it is about another {'rune' if kind == 'runes' else 'collection'}: {names[0][:40]!r}")


def only_rune(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the rune that an order is for, or None when it names none."""
    found = rows(first(row, *_RUNE_FIELDS) or [], "runes of an order")
    if len(found) > 1:
        raise Unreadable(f"an order names {len(found)} runes")
    return table(found[0], "rune of an order") if found else None
