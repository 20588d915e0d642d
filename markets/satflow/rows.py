"""Satflow's rows of orders: where they have their fields, and what says that an order is over.

The documentation names none of the fields that end an order; its own pages and other people's clients go by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markets.wire import first

# A row is an order, or has it in itself: the holders of its fields, in the order in which they are looked at.
ASK, BID, LISTING = ("ask.", "", "listing."), ("", "bid."), ("",)

_ENDED_FIELDS = ("cancelledAt", "canceledAt", "fillCompletedAt")
_UNOPEN_FIELDS = (*_ENDED_FIELDS, "invalidAt", "fillPendingAt", "isPending", "pending")
_UNOPEN_STATES = frozenset(
    {"pending", "fill_pending", "filled", "sold", "cancelled", "canceled", "expired", "inactive", "invalid"}
)


def told(row: Mapping[str, Any], field: str, holders: Sequence[str]) -> Any:
    """Returns the field of the order in a row, None when it is not told."""
    return first(row, *(holder + field for holder in holders))


def is_open(row: Mapping[str, Any], holders: Sequence[str]) -> bool:
    """Tells whether the order can still be dealt with, as far as the row says: not while a fill waits for its block."""
    if _any(row, holders, _UNOPEN_FIELDS):
        return False
    status = told(row, "status", holders)
    return not isinstance(status, str) or status.lower() not in _UNOPEN_STATES


def is_ended(row: Mapping[str, Any], holders: Sequence[str]) -> bool:
    """Tells whether it is cancelled or filled for good; an invalid one may become valid again, and a fill may fail."""
    return _any(row, holders, _ENDED_FIELDS)


def is_of_type(row: Mapping[str, Any], wanted: str, holders: Sequence[str]) -> bool:
    """Tells whether it is `wanted` ("ask" or "bid"), or does not say; other orders are not ours to read."""
    named = told(row, "orderType", holders)
    return named is None or (isinstance(named, str) and named.lower() == wanted)


def _any(row: Mapping[str, Any], holders: Sequence[str], fields: Sequence[str]) -> bool:
    return any(first(row, holder + field) for holder in holders for field in fields)
