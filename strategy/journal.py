"""A task's journal: one JSON line a cycle with each decision and its inputs, and its reader.

A line has the time and every difference from the previous line. The first line of a sequence (`n` is 0) is complete. An
order book is the list of its rows, in which `{"at": 3, "n": 57}` replaces 57 rows of the previous book from index 3 on
(counted from 0). Money is in whole sats, other numbers are text; floats do not occur.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from strategy.book import Ask, Bid, Snapshot
from strategy.config.bid import BidConfig, load_bid_config
from strategy.decision import Entry

BOOKS: dict[str, type[Ask] | type[Bid]] = {"asks": Ask, "bids": Bid, "trait_asks": Ask}
_COLUMNS = {name: kind.__struct_fields__ for name, kind in BOOKS.items()}
_REST = [name for name in Snapshot.__struct_fields__ if name not in BOOKS]
# Left out if they have their default: they seldom differ, and almost every line writes its snapshot, whose time
# differs.
_SELDOM = {
    field.name: field.default
    for field in fields(Snapshot)
    if field.name in ("is_floor_sure", "is_depth_sure", "are_bids_whole")
}
_CONFIG_FIELDS = set(BidConfig.__struct_fields__)
_PARTS = [name for name in Entry.__struct_fields__ if name not in ("now_ms", "snapshot", "sales")]
_WRITER = msgspec.json.Encoder()


class Encoder:
    """Writes entries as lines; each line except the first depends on the previous one."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Makes the next line self-contained, because the last line was lost or is in another file."""
        self._number = 0
        self._former: dict[str, Any] = {}
        # Hashes replace the orders of the last books to save memory, because hundreds of workers keep them.
        self._books: dict[str, list[int] | None] = {}
        self._sales: set[int] = set()

    @property
    def is_at_beginning(self) -> bool:
        """Whether the next line is self-contained."""
        return self._number == 0

    def line(self, entry: Entry) -> str:
        """Returns one line, without a line break."""
        line: dict[str, Any] = {"n": self._number, "now_ms": entry.now_ms}
        if self._number == 0:
            line["columns"] = _COLUMNS
        for name in _PARTS:
            value = getattr(entry, name)
            if self._is_changed(name, value):
                line[name] = msgspec.Raw(msgspec.json.encode(value, order="sorted")) if name == "config" else value
        self._write_snapshot(line, entry.snapshot)
        if entry.sales is not None:
            # Each read of a venue's sales repeats the sales of the previous read.
            line["sales"] = [sale for sale in entry.sales if hash(sale) not in self._sales]
            self._sales = {hash(sale) for sale in entry.sales}
        self._number += 1
        return _WRITER.encode(line).decode()

    def _is_changed(self, name: str, value: Any) -> bool:
        if self._number and self._former[name] == value:
            return False
        self._former[name] = value
        return True

    def _write_snapshot(self, line: dict[str, Any], snapshot: Snapshot | None) -> None:
        rest = None
        if snapshot is not None:
            rest = {name: getattr(snapshot, name) for name in _REST}
            rest = {name: value for name, value in rest.items() if name not in _SELDOM or value != _SELDOM[name]}
        if self._is_changed("snapshot", rest):
            line["snapshot"] = rest
        if snapshot is None:
            return
        for name in BOOKS:
            book = getattr(snapshot, name)
            hashes = None if book is None else [hash(order) for order in book]
            if name not in self._books or hashes != self._books[name]:
                line[name] = None if hashes is None else _delta(self._books.get(name), book, hashes)
                self._books[name] = hashes


def _delta(former: list[int] | None, book: tuple[Ask | Bid, ...], hashes: list[int]) -> list[Any]:
    """Returns the rows of a book; rows of the previous book become references to it."""
    places = {each: place for place, each in enumerate(former or ())}
    delta: list[Any] = []
    following = None  # the row of the previous book that would extend the last reference
    for order, each in zip(book, hashes, strict=True):
        place = places.get(each)
        if place is None:
            delta.append(order)
        elif place == following:
            delta[-1]["n"] += 1
        else:
            delta.append({"at": place, "n": 1})
        following = None if place is None else place + 1
    return delta


class Decoder:
    """Reads lines in the order in which one Encoder, or several in turn, wrote them."""

    def __init__(self) -> None:
        self._hints = get_type_hints(Entry)
        self._rest_hints = get_type_hints(Snapshot)
        self.forget()

    def forget(self) -> None:
        """Expects a self-contained line next."""
        self._number = -1
        self._columns: dict[str, list[str]] = {}
        self._values: dict[str, Any] = {}
        self._rest: dict[str, Any] | None = None
        self._books: dict[str, list[Ask | Bid] | None] = {}

    def read(self, text: str) -> Entry:
        """Reads the entry of one line. Raises ValueError; the next line must then be self-contained."""
        try:
            return self._read(_parse(text))
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            self.forget()
            raise ValueError(f"not a line of a journal: {error!r}"[:200]) from None
        except ValueError:
            self.forget()
            raise

    def _read(self, line: dict[str, Any]) -> Entry:
        if line["n"] == 0:
            self.forget()
            self._columns = line["columns"]
        elif line["n"] != self._number + 1 or self._number < 0:
            raise ValueError("the line before it is missing")
        self._number = line["n"]
        for name in _PARTS:
            if name == "config" and name in line:
                known = {key: value for key, value in line[name].items() if key in _CONFIG_FIELDS}
                self._values[name] = load_bid_config(json.dumps(known))
            elif name in line:
                self._values[name] = unpack(self._hints[name], line[name], name)
        if "snapshot" in line:
            self._rest = line["snapshot"]
        for name in BOOKS:
            if name in line:
                self._books[name] = self._book(name, line[name])
        now_ms = unpack(int, line["now_ms"], "now_ms")
        sales = unpack(self._hints["sales"], line.get("sales"), "sales")
        return Entry(now_ms=now_ms, snapshot=self._snapshot(), sales=sales, **self._values)

    def _snapshot(self) -> Snapshot | None:
        if self._rest is None:
            return None
        books = {name: None if book is None else tuple(book) for name, book in self._books.items()}
        rest = {name: unpack(self._rest_hints[name], self._rest[name], name) for name in _REST if name in self._rest}
        return Snapshot(**rest, **books)  # type: ignore[arg-type]  # each book has the type of its name

    def _book(self, name: str, delta: list[Any] | None) -> list[Ask | Bid] | None:
        if delta is None:
            return None
        former, book = self._books.get(name) or [], list[Ask | Bid]()
        for each in delta:
            if isinstance(each, dict):
                start, end = each["at"], each["at"] + each["n"]
                if not 0 <= start < end <= len(former):
                    raise ValueError(f"{name} refers to rows that are not there")
                book += former[start:end]
            else:
                row = dict(zip(self._columns[name], each, strict=True))
                book.append(unpack(BOOKS[name], row, name))
        return book


def _parse(text: str) -> dict[str, Any]:
    try:
        line = json.loads(text, parse_float=_refuse, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(line, dict) or "n" not in line:
        raise ValueError("not a line of a journal")
    return line


def _refuse(number: str) -> Any:
    raise ValueError(f"{number} is not a number of a journal")


def unpack(kind: Any, packed: Any, what: str) -> Any:
    """Returns the value of type `kind` from its JSON value; `what` names it in errors.

    An unknown key is ignored, a missing key gets its default, and an enumeration's unknown member stays text. So
    journals of other versions stay readable. Raises ValueError for anything else that no Encoder would write.
    """
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        if not isinstance(packed, list):
            raise ValueError(f"{what} is not a list")
        kinds = arguments[:1] * len(packed) if arguments[-1] is Ellipsis else arguments
        if len(kinds) != len(packed):
            raise ValueError(f"{what} has not {len(kinds)} entries")
        return tuple([unpack(each, value, what) for each, value in zip(kinds, packed, strict=True)])
    if arguments:  # a type or None
        inner = next(each for each in arguments if each is not type(None))
        return None if packed is None else unpack(inner, packed, what)
    if issubclass(kind, Struct):
        return _unpack_struct(kind, packed, what)
    if kind is Decimal and isinstance(packed, str):
        return _decimal(packed, what)
    if issubclass(kind, Enum) and isinstance(packed, str):
        return next((member for member in kind if member.value == packed), packed)
    if type(packed) is kind:
        return packed
    raise ValueError(f"{what} cannot be {repr(packed)[:60]}")


def _unpack_struct(kind: type[Struct], packed: Any, what: str) -> Struct:
    if not isinstance(packed, dict):
        raise ValueError(f"{what} is not an object")
    values = {}
    for name, (hint, is_required) in _fields_of(kind).items():
        if name in packed:
            values[name] = unpack(hint, packed[name], f"{what}.{name}")
        elif is_required:
            raise ValueError(f"{what} has no {name}")
    return kind(**values)


@cache
def _fields_of(kind: type[Struct]) -> dict[str, tuple[Any, bool]]:
    """Returns the type of each field, and whether it is required."""
    hints = get_type_hints(kind)
    return {each.name: (hints[each.name], each.required) for each in fields(kind)}


def _decimal(text: str, what: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise ValueError(f"{what} is not a number: {text[:60]!r}")
    return number
