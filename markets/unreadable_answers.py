"""The meaning of unreadable answers: a row is left out and counted, a read failed, a write's fate is unknown.

A venue's lists have rows of other users' orders, and one odd row proves nothing about the others. So each row is
read by itself. The answer as a whole is refused only where a row left out could change a decision:

- no row is understood, or more than half of the rows are not: then the venue has changed its shape;
- a row left out of a book may have the best price: it comes before the first row that is kept and its price is not
  readable, or its price is readable and better than the best one kept.

A row about something else (another collection, a bundle) is foreign: an answer is refused for it only when all rows
are foreign. A row without a price is not an offer, whatever else is in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar

from markets.base import NotUnderstood, Unknown
from markets.wire import MAX_SATS, Unread, Unreadable, amount, table

Value = TypeVar("Value")
Entry = TypeVar("Entry")
_thread = threading.local()


class Foreign(Unreadable):
    """A row about something else than was asked for."""


class Rows(NamedTuple, Generic[Entry]):
    """The rows that were read, in their order, and those left out."""

    entries: tuple[Entry, ...]
    unread: tuple[Unread, ...]


class Best(NamedTuple, Generic[Entry]):
    """The order of a book: `of` is a kept entry's price, `shown` the price of a raw row as `asked_price` returns it.

    `is_lowest`: the lowest price is the best, as of asks. `is_sorted`: the venue sends the best first. A later
    page of a sorted book needs no `Best`.
    """

    of: Callable[[Entry], Decimal]
    shown: Callable[[Mapping[str, Any]], Decimal | None]
    is_lowest: bool
    is_sorted: bool = True


def each_row(
    found: Sequence[Any],
    what: str,
    read: Callable[[Mapping[str, Any]], Entry | None],
    *,
    key: Callable[[Mapping[str, Any]], str] | None = None,
    at_ms: Callable[[Mapping[str, Any]], int] | None = None,
    best: Best[Entry] | None = None,
    refuses: bool = True,
) -> Rows[Entry]:
    """Reads the rows of an answer one by one; None of `read` is a row that is rightly passed over.

    `key` and `at_ms` read the id and the time of a row left out; both may raise Unreadable. Raises Unreadable where the
    module's text says so. Without `refuses` the count of odd rows never matters: a later page may have one row only,
    and of floors each row is the answer about another collection.
    """
    kept: list[tuple[int, Entry]] = []
    left: list[tuple[int, Any, Unread]] = []
    for place, row in enumerate(found):
        try:
            entry = read(table(row, what))
        except Unreadable as error:
            about = _told(key, row) or ""
            why = f"{what} {place + 1}: {error}"
            is_foreign = isinstance(error, Foreign)
            left.append((place, row, Unread(why, about, _told(at_ms, row), is_foreign, _is_priced(row, best))))
            continue
        if entry is not None:
            kept.append((place, entry))
    unread = tuple(each for _, _, each in left)
    odd = sum(not each.is_foreign for each in unread)
    if refuses and unread and (len(unread) == len(found) or 2 * odd > len(found)):
        raise Unreadable(f"{len(unread)} of {len(found)} rows are not understood: {unread[0].why}")
    if best is not None:
        _check_best(kept, left, best)
    for each in unread:
        _note(each)
    return Rows(tuple(entry for _, entry in kept), unread)


def asked_price(value: Any, what: str) -> Decimal | None:
    """Reads the price of a row left out; None without one, or above all sats there are: no trade is made at it."""
    if value is None or value == "" or (not isinstance(value, bool) and value in (0, "0")):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > MAX_SATS:
        return None
    price = amount(value, what)
    return price if price <= MAX_SATS else None


def left_out(error: Unreadable, key: str) -> Unread:
    """Notes an answer about `key` alone that is not understood; the answers about others stand."""
    unread = Unread(str(error), key)
    _note(unread)
    return unread


@contextmanager
def noting(note: Callable[[Unread], None]) -> Iterator[None]:
    """Gives `note` every row that this thread leaves out meanwhile."""
    before = getattr(_thread, "note", None)
    _thread.note = note
    try:
        yield
    finally:
        _thread.note = before


def of_read(understand: Callable[[], Value], venue: str = "the venue") -> Value:
    """Parses the answer to a read. Raises NotUnderstood if it is unreadable."""
    try:
        return understand()
    except Unreadable as error:
        raise NotUnderstood(f"failed to understand {venue}: {error}") from error


def of_write(understand: Callable[[], Value]) -> Value:
    """Parses the answer to a write. Raises Unknown if it is unreadable: the write was sent."""
    try:
        return understand()
    except Unreadable as error:
        raise Unknown(f"sent, but the answer is not understood: {error}") from error


def _check_best(kept: list[tuple[int, Entry]], left: list[tuple[int, Any, Unread]], best: Best[Entry]) -> None:
    """Raises Unreadable when a row left out may have a better price than every row that is kept."""
    prices = [best.of(entry) for _, entry in kept]
    limit = None if not prices else min(prices) if best.is_lowest else max(prices)
    first = min((place for place, _ in kept), default=len(left) + len(kept) + 1)
    is_sorted = best.is_sorted and prices == sorted(prices, reverse=not best.is_lowest)
    for place, row, unread in left:
        if unread.is_foreign or not isinstance(row, Mapping):
            continue
        try:
            price = best.shown(row)
        except Unreadable:
            may_be = place < first or not is_sorted
        else:
            may_be = price is not None and (limit is None or (price < limit if best.is_lowest else price > limit))
        if may_be:
            raise Unreadable(f"the best price may be in a row that is not understood: {unread.why}")


def _is_priced(row: Any, best: Best[Entry] | None) -> bool:
    """Tells whether a row left out may have a price; without a `best` every row may."""
    if best is None or not isinstance(row, Mapping):
        return best is None
    try:
        return best.shown(row) is not None
    except Unreadable:
        return True


def _told(ask: Callable[[Mapping[str, Any]], Value] | None, row: Any) -> Value | None:
    if ask is None or not isinstance(row, Mapping):
        return None
    try:
        return ask(row)
    except Unreadable:
        return None


def _note(unread: Unread) -> None:
    if (note := getattr(_thread, "note", None)) is not None:
        note(unread)
