"""Strict readers of foreign JSON: anything that is not clearly a value is Unreadable, never a guess.

Numbers come as JSON numbers or as plain digits in text; shapes drift between versions of an API. Exponents, signs, NaN,
fractions of a sat and booleans are unreadable. Traits are free text: a strange one is left out and hides nothing else.

A venue's lists have rows of other users' orders, and one odd row proves nothing about the others. So `each_row` reads
each row by itself, leaves out one that is unreadable, and counts it. It refuses the answer as a whole only where a row
left out could change a decision:

- no row is understood, or more than half of the rows are not: then the venue has changed its shape;
- a row left out of a book may have the best price: it comes before the first row that is kept and its price is not
  readable, or its price is readable and better than the best one kept.

A row about something else (another collection, a bundle) is foreign: an answer is refused for it only when all rows
are foreign. A row without a price is not an offer, whatever else is in it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from markets.base import Floor, NotUnderstood, Trait, Unknown

MAX_SATS = 21_000_000 * 100_000_000
_MAX_DIGITS = 40  # a rune amount is a u128: 39 digits
_BEYOND, _NOT_READ = 10**_MAX_DIGITS, Decimal("NaN")
_MOST_RAW = 2**128 - 1
_DIGITS = re.compile(r"[0-9]{1,39}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,39}(\.[0-9]{1,39})?", re.ASCII)
_TXID = re.compile(r"[0-9a-f]{64}", re.ASCII)
_VOUT = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_SCRIPT = re.compile(r"([0-9a-f]{2}){0,10000}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ID = re.compile(r"[A-Za-z0-9_\-:.]{1,128}", re.ASCII)
# From 2001 to 2286: a time in seconds is never taken for one in milliseconds.
_FIRST_MS, _LAST_MS = 10**12, 10**13
_EPOCH = datetime.fromtimestamp(0, UTC)
_PATHS: dict[str, list[str]] = {}  # the names of fields, split at their dots
_MOST_COUNTED = 10**9
_LONGEST_LINK = 500
_MOST_HEIGHT = 10**8  # indexers write their greatest number for an unconfirmed transaction

Entry = TypeVar("Entry")
Value = TypeVar("Value")


class Unreadable(ValueError):
    """An answer without the agreed shape or values; the message says where."""


class Unread(NamedTuple):
    """A row that was left out of an answer, with the reason `why`.

    `key` is the row's id, "" if unreadable; `at_ms` its time, None if unreadable. `is_foreign`: it is clearly about
    another subject than the request. `is_priced` False: it has no price, or is not an object.
    """

    why: str
    key: str = ""
    at_ms: int | None = None
    is_foreign: bool = False
    is_priced: bool = True

    @property
    def may_be_offer(self) -> bool:
        """Whether the row may be an offer of the requested goods."""
        return self.is_priced and not self.is_foreign


class Page(NamedTuple, Generic[Entry]):
    """One page of a longer answer; `following` is the next page's number or cursor, None at the end.

    `unread` are the rows that were left out: what is not among `entries` may be one of them.
    """

    entries: tuple[Entry, ...]
    following: int | str | None
    unread: tuple[Unread, ...] = ()


Cursor = int | str | None  # the page of a longer answer: None = the first, then the `following` of the page before


def number_of(cursor: Cursor, first: int) -> int:
    """Returns a page's start at a venue that numbers its pages or entries from `first`."""
    if cursor is None:
        return first
    if not isinstance(cursor, int):
        raise TypeError("its pages have numbers")
    return cursor


def decoded(body: bytes, *, keeps_endless: bool = False) -> Any:
    """Parses JSON with fractions as Decimal. Raises Unreadable, also for NaN, Infinity and endless numbers.

    With `keeps_endless` an endless number becomes one that every reader refuses, so that it spoils its row alone.
    """
    whole, fraction = (_whole_or_beyond, _fraction_or_none) if keeps_endless else (_whole, _fraction)
    try:
        return json.loads(body.decode(), parse_float=fraction, parse_int=whole, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {error}") from error


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _whole(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("a number is too long")
    return int(text)


def _whole_or_beyond(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        return -_BEYOND if text.startswith("-") else _BEYOND
    return int(text)


def _fraction(text: str) -> Decimal:
    number = _fraction_or_none(text)
    if number is _NOT_READ:
        raise ValueError("a number is out of bounds")
    return number


def _fraction_or_none(text: str) -> Decimal:
    number = Decimal(text) if len(text) <= 2 * _MAX_DIGITS else _NOT_READ
    return number if number.is_finite() and -_MAX_DIGITS < number.adjusted() < _MAX_DIGITS else _NOT_READ


def sats(value: Any, what: str, *, least: int = 0) -> int:
    """Reads a whole number of sats, from `least` to all there are."""
    number = whole(value, what)
    if not least <= number <= MAX_SATS:
        raise Unreadable(f"{what}: {number} is no amount of sats")
    return number


def whole(value: Any, what: str) -> int:
    """Reads a whole number from 0 up, as number or digits."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise _unlike(value, what, "a whole number")


def how_many(value: Any, what: str) -> int:
    number = whole(value, what)
    if number > _MOST_COUNTED:
        raise Unreadable(f"{what}: {number} is too many")
    return number


def amount(value: Any, what: str) -> Decimal:
    """Reads a number above 0, such as a price per token or a quantity of tokens."""
    number: Decimal | None = None
    plain = isinstance(value, str) and _DECIMAL.fullmatch(value)
    if plain or (isinstance(value, int) and not isinstance(value, bool)):
        number = Decimal(value)
    elif isinstance(value, Decimal) and value.is_finite():
        _, _, exponent = value.as_tuple()
        # 1E+3 is an exponent written out; 1E-7 is how small fractions are printed.
        number = value if isinstance(exponent, int) and exponent <= 0 else None
    if number is None or not 0 < number < Decimal(10) ** 39:
        raise _unlike(value, what, "a number above 0")
    return number


def tokens(raw: Any, divisibility: Any, what: str) -> Decimal:
    """Reads whole tokens from a `raw` rune amount: 12345 with divisibility 2 is 123.45."""
    places = whole(divisibility, f"{what} divisibility")
    if places > 38:
        raise Unreadable(f"{what}: divisibility {places} is above 38")
    units = whole(raw, what)
    if not 0 < units <= _MOST_RAW:
        raise Unreadable(f"{what}: {units} is no amount of a rune")
    return Decimal(f"{units}E-{places}")


def milliseconds(value: Any, what: str) -> int:
    """Reads a time in milliseconds since 1970."""
    number = whole(value, what)
    if not _FIRST_MS <= number < _LAST_MS:
        raise Unreadable(f"{what}: {number} is no time in milliseconds")
    return number


def moment(value: Any, what: str) -> int:
    """Reads a time in milliseconds since 1970, or in ISO 8601; without a zone it is UTC."""
    return milliseconds(_since_1970(value, what), what)


def moment_if_any(value: Any, what: str) -> int | None:
    """Reads a `moment`. None for null, empty text, and the first moment of 1970, which venues fill in for none."""
    found = 0 if value is None or value == "" else _since_1970(value, what)
    return None if found == 0 else milliseconds(found, what)


def _since_1970(value: Any, what: str) -> int:
    if isinstance(value, str) and not value.isdigit():
        try:
            found = datetime.fromisoformat(value)
            return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
        except (ValueError, OverflowError) as error:
            raise Unreadable(f"{what}: {_shown(value)} is no time") from error
    return whole(value, what)


def is_none_or_zero(value: Any) -> bool:
    """Tells whether it is null or 0, which venues show for no price."""
    return value is None or (not isinstance(value, bool) and value in (0, "0"))


def integral(value: Any) -> Any:
    """Returns a whole number that came with decimals (50000.0) without them."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


def if_told(read: Callable[[Any, str], Value], value: Any, what: str) -> Value | None:
    """Reads a value that may be null."""
    return None if value is None else read(value, what)


def text(value: Any, what: str, *, longest: int = 200) -> str:
    """Reads text that is not blank and has no control characters."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise _unlike(value, what, f"a text of 1 to {longest} characters")
    if _CONTROL.search(value):
        raise Unreadable(f"{what}: has control characters")
    return value


def label(value: Any, what: str) -> str:
    """Reads a trait's type or value: text, or a number, which makers of collections use alike."""
    if isinstance(value, Decimal) and value.is_finite():
        value = format(value, "f")
    elif isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return text(value, what)


def identifier(value: Any, what: str) -> str:
    """Reads an order's or inscription's id, plain or as MongoDB prints it ({"$oid": "..."})."""
    if isinstance(value, Mapping):
        value = value.get("$oid")
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise _unlike(value, what, "an id")
    return value


def flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise _unlike(value, what, "a yes or no")
    return value


def _like(pattern: re.Pattern[str], kind: str) -> Callable[[Any, str], str]:
    def read(value: Any, what: str) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise _unlike(value, what, kind)
        return value

    return read


txid = _like(_TXID, "a txid")  # as explorers show it: 64 lower-case hex digits
script = _like(_SCRIPT, "a script in hex")  # in lower case


def outpoint(value: Any, what: str) -> str:
    """Reads an output as `txid:vout`, in its only spelling."""
    found, _, vout = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not _VOUT.fullmatch(vout) or int(vout) >= 2**32:
        raise _unlike(value, what, "an outpoint")
    return f"{txid(found, what)}:{vout}"


def height(value: Any, what: str) -> int:
    number = whole(value, what)
    if number >= _MOST_HEIGHT:
        raise Unreadable(f"{what}: {number} is no height")
    return number


def text_or_none(value: Any) -> str | None:
    """Reads any text, uncleaned; None for anything else, also for half a surrogate, which no socket takes."""
    return value if isinstance(value, str) and not _SURROGATE.search(value) else None


def whole_or_none(value: Any) -> int | None:
    """Reads a whole number of at most 64 bits, None for anything else, also for digits in text."""
    return value if type(value) is int and abs(value) < 2**63 else None


def txid_or_none(value: Any) -> str | None:
    """Reads a transaction's id; None for anything else."""
    return value if isinstance(value, str) and _TXID.fullmatch(value) else None


def link(value: Any) -> str | None:
    """Reads a web address to show if it is https, else None; it is never fetched from here."""
    is_link = isinstance(value, str) and value.startswith("https://") and len(value) <= _LONGEST_LINK
    return value if is_link and value.isprintable() and value.isascii() else None


def name_to_show(value: Any) -> str | None:
    """Reads a name to show, or None: anyone can inscribe one, so a strange one must not hide the wallet."""
    if not isinstance(value, str):
        return None
    return "".join(c for c in value[:200] if c.isprintable()) or None


def table(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _unlike(value, what, "an object")
    return value


def rows(value: Any, what: str, *, most: int = 1000) -> Sequence[Any]:
    """Reads a list of at most `most` entries."""
    if not isinstance(value, list):
        raise _unlike(value, what, "a list")
    if len(value) > most:
        raise Unreadable(f"{what}: {len(value)} are more than the {most} that are read")
    return value


def first(source: Mapping[str, Any], *names: str, holders: Sequence[str] = ()) -> Any:
    """Returns the first of `names` that is not null, else None; a dot goes one object deeper (`ask.price`).

    With `holders` ("", "ask.") each name is looked up behind each of them.
    """
    for name in [holder + name for name in names for holder in holders] if holders else names:
        if (path := _PATHS.get(name)) is None:
            path = _PATHS[name] = name.split(".")
        value: Any = source
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def each_told(source: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Returns the values of all `names` that are not null."""
    found: list[Any] = []
    for name in names:
        if (path := _PATHS.get(name)) is None:
            path = _PATHS[name] = name.split(".")
        value: Any = source
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found.append(value)
    return found


def field(read: Callable[[Any, str], Value], what: str, *names: str) -> Callable[[Mapping[str, Any]], Value]:
    """Returns the reader of one field of a row, by the `first` of its names."""
    return lambda row: read(first(row, *names), what)


def same(slug: str) -> str:
    return slug.replace("•", "").casefold()  # two spellings of a slug are equal: no case, no bullets


def address(value: Any, what: str) -> str:
    """Reads text that can be an address; other code checks whether it is one."""
    found = text(value, what, longest=100)
    if not found.isascii() or not found.isalnum():
        raise Unreadable(f"{what}: not an address")
    return found


def _unlike(value: Any, what: str, kind: str) -> Unreadable:
    """Makes the error of a value that is missing or null, or is not of this kind."""
    return Unreadable(f"{what} is missing or null" if value is None else f"{what}: {_shown(value)} is not {kind}")


def _shown(value: Any) -> str:
    shown = str(value) if isinstance(value, Decimal) else repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


TRAIT_TYPE_NAMES = ("trait_type", "traitType", "type", "key", "name")
TRAIT_VALUE_NAMES = ("value", "trait_value", "traitValue")


def traits_told(given: Any) -> frozenset[Trait] | None:
    """Reads the traits in a list of them or in `{type: value}`; None for anything else."""
    if isinstance(given, list):
        return trait_pairs(given)
    return _traits(given.items()) if isinstance(given, Mapping) else None


def trait_pairs(given: Any) -> frozenset[Trait]:
    """Reads the traits in `[{trait_type, value}]` or in one of these."""
    held = [each for each in (given if isinstance(given, list) else [given]) if isinstance(each, Mapping)]
    return _traits([(first(each, *TRAIT_TYPE_NAMES), first(each, *TRAIT_VALUE_NAMES)) for each in held])


def _traits(pairs: Iterable[tuple[Any, Any]]) -> frozenset[Trait]:
    parts = [(trait_part(kind), trait_part(value)) for kind, value in pairs]
    return frozenset((kind, value) for kind, value in parts if kind is not None and value is not None)


def trait_part(value: Any) -> str | None:
    """Reads a trait's type or value, None if it can be neither."""
    try:
        return label(value, "trait")
    except Unreadable:
        return None


_thread = threading.local()


class Foreign(Unreadable):
    """A row about something else than was asked for."""


class Best(NamedTuple, Generic[Entry]):
    """The order of a book: `of` is a kept entry's price, `shown` the price of a raw row as `asked_price` returns it.

    `is_lowest`: the lowest price is the best, as of asks. `is_sorted`: the venue sends the best first.
    """

    of: Callable[[Entry], Decimal]
    shown: Callable[[Mapping[str, Any]], Decimal | None]
    is_lowest: bool
    is_sorted: bool = True


def each_row(
    found: Sequence[Any],
    what: str,
    read: Callable[[Mapping[str, Any]], Entry | None],
    following: int | str | None = None,
    *,
    key: Callable[[Mapping[str, Any]], str] | None = None,
    at_ms: Callable[[Mapping[str, Any]], int] | None = None,
    best: Best[Entry] | None = None,
    refuses: bool = True,
) -> Page[Entry]:
    """Reads the rows of an answer one by one; None of `read` is a row that is rightly passed over.

    `key` and `at_ms` read the id and the time of a row left out; both may raise Unreadable. Raises Unreadable where the
    module's text says so. Without `refuses` the count of odd rows never matters, nor a sorted book's best price: a
    later page may have one row only, and of floors each row is the answer about another collection.
    """
    if best is not None and best.is_sorted and not refuses:
        best = None
    kept: list[tuple[int, Entry]] = []
    left: list[tuple[int, Any, Unread]] = []
    for place, row in enumerate(found):
        try:
            entry = read(table(row, what))
        except Unreadable as error:
            is_priced = best is None or _told(best.shown, row, Decimal(0)) is not None
            about = (_told(key, row) or "", _told(at_ms, row), isinstance(error, Foreign), is_priced)
            left.append((place, row, Unread(f"{what} {place + 1}: {error}", *about)))
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
    return Page(tuple(entry for _, entry in kept), following, unread)


def floors_by_slug(
    told: Sequence[Any],
    slugs: Sequence[str],
    read: Callable[[Mapping[str, Any]], tuple[Decimal | None, int]],
    *,
    needs_one: bool = False,
) -> dict[str, Floor | Unread]:
    """Reads rows of floors by the slugs asked for, however they spell them; `read` returns a row's floor and count.

    A slug whose row cannot be read has its Unread. So has every missing slug next to a row whose slug is not readable.
    With `needs_one` it raises Unreadable where no row is understood.
    """
    asked: dict[str, list[str]] = {}
    for slug in slugs:
        asked.setdefault(same(slug), []).append(slug)

    def key(row: Mapping[str, Any]) -> str:
        return same(text(row.get("slug"), "floor slug"))

    def floors(row: Mapping[str, Any]) -> tuple[Floor, ...] | None:
        if (spellings := asked.get(key(row))) is None:
            return None
        price, count = read(row)
        return tuple(Floor(slug, price, count) for slug in spellings)

    page = each_row(told, "floor", floors, key=key, refuses=False)
    if needs_one and told and len(page.unread) == len(told):
        raise Unreadable(f"no floor is understood: {page.unread[0].why}")
    found: dict[str, Floor | Unread] = {floor.slug: floor for spellings in page.entries for floor in spellings}
    for unread in page.unread:
        found |= dict.fromkeys(asked.get(unread.key, ()), unread)
    for nameless in (unread for unread in page.unread if not unread.key):
        found |= dict.fromkeys((slug for slug in slugs if slug not in found), nameless)
    return found


def asked_price(value: Any, what: str) -> Decimal | None:
    """Reads the price of an omitted row; None without one, or above all existing sats, where no trade happens."""
    if value == "" or is_none_or_zero(value):
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
    first_kept = min((place for place, _ in kept), default=len(left) + len(kept) + 1)
    is_sorted = best.is_sorted and prices == sorted(prices, reverse=not best.is_lowest)
    for place, row, unread in left:
        if unread.is_foreign or not isinstance(row, Mapping):
            continue
        try:
            price = best.shown(row)
        except Unreadable:
            may_be = place < first_kept or not is_sorted
        else:
            may_be = price is not None and (limit is None or (price < limit if best.is_lowest else price > limit))
        if may_be:
            raise Unreadable(f"the best price may be in a row that is not understood: {unread.why}")


def _told(
    ask: Callable[[Mapping[str, Any]], Value | None] | None, row: Any, unclear: Value | None = None
) -> Value | None:
    """Returns what `ask` reads in a row left out, `unclear` where it is there and not readable."""
    if ask is None or not isinstance(row, Mapping):
        return None
    try:
        return ask(row)
    except Unreadable:
        return unclear


def _note(unread: Unread) -> None:
    if (note := getattr(_thread, "note", None)) is not None:
        note(unread)
