"""Strict readers of venues' JSON: a value that is not clearly valid is Unreadable, never a guess.

Numbers may be JSON numbers or plain digits in text, because APIs change between versions. Exponents, signs, NaN,
fractions of a sat and booleans are unreadable. Traits are free text, so a malformed trait is skipped.

Lists contain other users' orders, so an odd row says nothing about the other rows. `each_row` reads each row on its
own, leaves out unreadable rows, and counts them. It refuses the whole answer only if a row left out could change a
decision:

- no row is understood, or more than half are not, because the venue has then changed its format;
- a row left out of a book may have the best price: its price is unreadable and it comes before the first row kept, or
  its price is better than the best one kept.

A row about something else (another collection, a bundle) is foreign; an answer is refused for foreign rows only if all
rows are foreign. A row without a price is not an offer.
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
# From 2001 to 2286, so that a time in seconds is never taken for one in milliseconds.
_FIRST_MS, _LAST_MS = 10**12, 10**13
_EPOCH = datetime.fromtimestamp(0, UTC)
_PATHS: dict[str, list[str]] = {}  # the names of fields, split at their dots
_MOST_COUNTED = 10**9
_LONGEST_LINK = 500
_MOST_HEIGHT = 10**8  # because indexers give their largest integer for an unconfirmed transaction

Entry = TypeVar("Entry")
Value = TypeVar("Value")


class Unreadable(ValueError):
    """An answer does not have the expected format or values; the message names the place."""


class Unread(NamedTuple):
    """A row that was left out of an answer, with the reason `why`.

    `key` is the row's id, "" if unreadable; `at_ms` its time, None if unreadable. `is_foreign`: it is clearly not about
    the requested goods. `is_priced` False: it has no price, or is not an object.
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

    `unread` are the rows that were left out, so an entry that is missing may be one of these.
    """

    entries: tuple[Entry, ...]
    following: int | str | None
    unread: tuple[Unread, ...] = ()


Cursor = int | str | None  # None = the first page, then `following` of the page before


def number_of(cursor: Cursor, first: int) -> int:
    """Returns a page's start at a venue that numbers its pages or entries from `first`."""
    if cursor is None:
        return first
    if not isinstance(cursor, int):
        raise TypeError("its pages have numbers")
    return cursor


def decoded(body: bytes, *, keeps_endless: bool = False) -> Any:
    """Parses JSON with fractions as Decimal. Raises Unreadable, also for NaN, Infinity and overlong numbers.

    With `keeps_endless` an overlong number becomes a value that every reader refuses, so that only its row is lost.
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
    """Reads a whole number of sats, from `least` to 21 million bitcoin."""
    number = whole(value, what)
    if not least <= number <= MAX_SATS:
        raise Unreadable(f"{what}: {number} is no amount of sats")
    return number


def whole(value: Any, what: str) -> int:
    """Reads a whole number of at least 0, as a number or digits."""
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
    """Reads a time in milliseconds since 1970 or in ISO 8601, in UTC unless it names a zone."""
    return milliseconds(_since_1970(value, what), what)


def moment_if_any(value: Any, what: str) -> int | None:
    """Reads a `moment`; None for null, empty text, and the start of 1970, which venues use for "no time"."""
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
    """Returns whether it is null or 0, which venues use for "no price"."""
    return value is None or (not isinstance(value, bool) and value in (0, "0"))


def integral(value: Any) -> Any:
    """Returns a whole number without its decimals (50000.0 becomes 50000); other values unchanged."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


def if_told(read: Callable[[Any, str], Value], value: Any, what: str) -> Value | None:
    """Reads a value, or returns None for null."""
    return None if value is None else read(value, what)


def text(value: Any, what: str, *, longest: int = 200) -> str:
    """Reads text that is not blank and has no control characters."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise _unlike(value, what, f"a text of 1 to {longest} characters")
    if _CONTROL.search(value):
        raise Unreadable(f"{what}: has control characters")
    return value


def label(value: Any, what: str) -> str:
    """Reads a trait's type or value, which may be text or a number."""
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


txid = _like(_TXID, "a txid")  # 64 lower-case hex digits
script = _like(_SCRIPT, "a script in hex")  # in lower case


def outpoint(value: Any, what: str) -> str:
    """Reads an output as `txid:vout`, without leading zeros in vout."""
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
    """Reads any text, uncleaned; None for other values and for text with surrogates, which cannot be encoded."""
    return value if isinstance(value, str) and not _SURROGATE.search(value) else None


def whole_or_none(value: Any) -> int | None:
    """Reads a whole number of at most 64 bits; None for other values, also for digits in text."""
    return value if type(value) is int and abs(value) < 2**63 else None


def txid_or_none(value: Any) -> str | None:
    """Reads a transaction's id; None for anything else."""
    return value if isinstance(value, str) and _TXID.fullmatch(value) else None


def link(value: Any) -> str | None:
    """Reads an https address for display, else None; it is never fetched here."""
    is_link = isinstance(value, str) and value.startswith("https://") and len(value) <= _LONGEST_LINK
    return value if is_link and value.isprintable() and value.isascii() else None


def name_to_show(value: Any) -> str | None:
    """Reads a name for display, or None. Never raises, because any user can inscribe a malformed name."""
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

    With `holders`, such as ("", "ask."), each name is looked up with each of these prefixes.
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
    """Returns a reader of one field of a row, under the first of `names` that is not null."""
    return lambda row: read(first(row, *names), what)


def same(slug: str) -> str:
    return slug.replace("•", "").casefold()  # because slugs that differ only in case or bullets are the same


def address(value: Any, what: str) -> str:
    """Reads text that may be an address; other code validates it."""
    found = text(value, what, longest=100)
    if not found.isascii() or not found.isalnum():
        raise Unreadable(f"{what}: not an address")
    return found


def _unlike(value: Any, what: str, kind: str) -> Unreadable:
    """Returns the error for a value that is missing, null or not of this kind."""
    return Unreadable(f"{what} is missing or null" if value is None else f"{what}: {_shown(value)} is not {kind}")


def _shown(value: Any) -> str:
    shown = str(value) if isinstance(value, Decimal) else repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


TRAIT_TYPE_NAMES = ("trait_type", "traitType", "type", "key", "name")
TRAIT_VALUE_NAMES = ("value", "trait_value", "traitValue")


def traits_told(given: Any) -> frozenset[Trait] | None:
    """Reads traits from a list of traits or from `{type: value}`; None for other values."""
    if isinstance(given, list):
        return trait_pairs(given)
    return _traits(given.items()) if isinstance(given, Mapping) else None


def trait_pairs(given: Any) -> frozenset[Trait]:
    """Reads traits from `[{trait_type, value}]` or from a single such object."""
    held = [each for each in (given if isinstance(given, list) else [given]) if isinstance(each, Mapping)]
    return _traits([(first(each, *TRAIT_TYPE_NAMES), first(each, *TRAIT_VALUE_NAMES)) for each in held])


def _traits(pairs: Iterable[tuple[Any, Any]]) -> frozenset[Trait]:
    parts = [(trait_part(kind), trait_part(value)) for kind, value in pairs]
    return frozenset((kind, value) for kind, value in parts if kind is not None and value is not None)


def trait_part(value: Any) -> str | None:
    """Reads a trait's type or value; None if it is neither text nor a number."""
    try:
        return label(value, "trait")
    except Unreadable:
        return None


_thread = threading.local()


class Foreign(Unreadable):
    """The row is not about the requested goods."""


class Best(NamedTuple, Generic[Entry]):
    """Compares prices in a book: `of` returns an entry's price, `shown` a raw row's, as `asked_price` does.

    `is_lowest`: the lowest price is the best, as for asks. `is_sorted`: the venue sends the best first.
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
    """Reads the rows of an answer one by one; skips a row for which `read` returns None.

    `key` and `at_ms` read the id and the time of a row left out; both may raise Unreadable. Raises Unreadable for the
    reasons in the module's docstring. Without `refuses` it ignores the number of odd rows, and the best price of a
    sorted book. Use that for later pages, which may have one row, and for floors, whose rows are separate answers.
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
    """Reads rows of floors into a map by the requested slugs; `read` returns a row's floor and count.

    A slug whose row cannot be read maps to its Unread. If a row's slug is unreadable, so do all missing slugs. With
    `needs_one` it raises Unreadable if no row is understood.
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
    """Reads the price of a row left out; None without a price, or above 21 million bitcoin."""
    if value == "" or is_none_or_zero(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > MAX_SATS:
        return None
    price = amount(value, what)
    return price if price <= MAX_SATS else None


def left_out(error: Unreadable, key: str) -> Unread:
    """Notes and returns an unreadable answer about `key`."""
    unread = Unread(str(error), key)
    _note(unread)
    return unread


@contextmanager
def noting(note: Callable[[Unread], None]) -> Iterator[None]:
    """Calls `note` with every row that this thread leaves out in the block."""
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
    """Parses the answer to a write. Raises Unknown if it is unreadable, because the write was sent."""
    try:
        return understand()
    except Unreadable as error:
        raise Unknown(f"sent, but the answer is not understood: {error}") from error


def _check_best(kept: list[tuple[int, Entry]], left: list[tuple[int, Any, Unread]], best: Best[Entry]) -> None:
    """Raises Unreadable if a row left out may have a better price than every row that is kept."""
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
    """Returns the value that `ask` reads in a row left out, `unclear` if it is unreadable; None without `ask`."""
    if ask is None or not isinstance(row, Mapping):
        return None
    try:
        return ask(row)
    except Unreadable:
        return unclear


def _note(unread: Unread) -> None:
    if (note := getattr(_thread, "note", None)) is not None:
        note(unread)
