"""The meaning of a venue's answer: of its HTTP status, for reads and for writes, and of rows that are unreadable.

Statuses other than success:

- 429, or a 4xx whose words are about too many requests: RateLimited.
- 401, 403: AuthFailed. A write's 403 about a signature or a challenge is a plain Refused.
- 404: NotFound.
- 400, 402, 405, 409, 410, 413, 415, 422: Refused, by its words (`refusal`).
- One of these with a page of HTML, which a proxy or a firewall writes: Unavailable. Nothing reached the venue.
- Any other status: Unavailable for a read, Unknown for a write.

A 404 is NotFound only in the venue's own words: JSON with an error's text that is not about the route. A proxy in front
of a venue that is down answers 404, too, and NotFound may mean "no bids"; such a 404 is Unavailable. Where a venue is
known to answer 404 without words, the caller says so (`missing` in `markets/http.py`).

A venue's lists have rows of other users' orders, and one odd row proves nothing about the others. So each row is
read by itself, and a row that is unreadable is left out and counted. The answer as a whole is refused only where a row
left out could change a decision:

- no row is understood, or more than half of the rows are not: then the venue has changed its shape;
- a row left out of a book may have the best price: it comes before the first row that is kept and its price is not
  readable, or its price is readable and better than the best one kept.

A row about something else (another collection, a bundle) is foreign: an answer is refused for it only when all rows
are foreign. A row without a price is not an offer, whatever else is in it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from markets.base import (
    AuthFailed,
    BelowMinimum,
    InsufficientFunds,
    NotFound,
    NotUnderstood,
    PriceGrid,
    RateLimited,
    Refused,
    Unavailable,
    Unknown,
    VenueError,
)
from markets.wire import MAX_SATS, Unread, Unreadable, amount, parse, table

LONGEST_PAUSE_S = 900.0
LONGEST_WORDS = 200
_REFUSALS = frozenset({400, 402, 405, 409, 410, 413, 415, 422})
_NO_CREDENTIALS = frozenset({401, 403})
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_RETRY_TEXT = re.compile(r"(?:retry|try again)\D{0,20}?(\d{1,6})\s*(second|sec|s\b|minute|min|m\b)", re.IGNORECASE)

# "fee rate limit" is about a fee. A refusal may quote a user's slug, such as "rate-limit", which must pause no one.
_TOO_MANY = re.compile(
    r"(?<!fee )(?<!fee)rate limit|rate.?limit(ed|ing)?\W+(\w+\W+){0,2}(exceeded|reached|hit)\b"
    r"|too many (requests|calls)|too (frequent|fast\b)|\bthrottled\b",
    re.I,
)
_ABOUT_ROUTES = re.compile(r"cannot (get|post|put)\b|no (such )?route|(route|path|endpoint)s?\b.{0,20}not found", re.I)

_MONEY = r"(funds?|balances?|sats?|satoshis?|btc|bitcoins?|coins?|utxos?|money)\b"
_WORDS = r"\W+(\w+\W+){0,4}?"
# Tried in this order; the first match names the leaf, unless the words are about something else. A plain Refused is
# the safe answer: a leaf has the task's owner change something, or send money.
_CLEAR_TEXTS: tuple[tuple[str, str, type[InsufficientFunds | PriceGrid | BelowMinimum]], ...] = (
    (
        rf"(insufficient|not enough){_WORDS}{_MONEY}|{_MONEY}{_WORDS}(insufficient|not enough|too low)"
        r"|exceeds?.{0,20}balance",
        r"permission|privilege|scope|\bplan\b|confirmations\b",
        InsufficientFunds,
    ),
    (
        r"(price|bid|offer|sats?).{0,60}(multiple of|divisible|increments?\b)"
        r"|(multiple of|divisible by|increments? of)\W+\d[\d,._ ]*sat|price (step|grid)|\btick size",
        r"quantit",
        PriceGrid,
    ),
    (
        r"price.{0,40}(minimum|at least|too low)|(minimum|at least|below).{0,40}(price|sats)",
        r"quantit|\bhold|\bdeposit|\bdust|\boutputs?\b|balance|\bfee",
        BelowMinimum,
    ),
)
_CLEAR = tuple((re.compile(said, re.I), re.compile(others, re.I), leaf) for said, others, leaf in _CLEAR_TEXTS)
_ABOUT_TIME = re.compile(r"expir|duration|minutes?\b|timestamp", re.I)
_ABOUT_FEES = re.compile(r"fee.?rate|relay fee|sat(oshi)?s?/v", re.I)


class Reply(Struct, frozen=True):
    """A complete HTTP answer: `body` decoded, at most 2 MB."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_fault(reply: Reply, path: str) -> VenueError:
    """Returns the error for a read's answer other than 200."""
    return _common(reply, path) or Unavailable(f"failed to read {path}: status {reply.status}")


def write_fault(reply: Reply, path: str) -> VenueError:
    """Returns the error for a write's answer other than success."""
    if reply.status == 403 and re.search("signature|challenge", _text(reply), re.I):
        return Refused("bad_signature", _text(reply))
    return _common(reply, path) or Unknown(f"sent to {path}, answered with status {reply.status}")


def refusal(said: str) -> Refused | RateLimited:
    """Returns the error for a refusal's text: RateLimited, or a leaf if the text is clear, else a plain Refused."""
    if is_too_many(said):
        return RateLimited(None, said)
    if not (_ABOUT_TIME.search(said) or _ABOUT_FEES.search(said)):
        for pattern, others, leaf in _CLEAR:
            if pattern.search(said) and not others.search(said):
                return leaf(said)
    return Refused("refused", said)


def refused_with_200(answer: Any) -> VenueError | Unreadable:
    """Returns the error for an answer with status 200 that says no: by its words, Unreadable without any."""
    said = error_text(answer)
    return Unreadable("an error in an answer with status 200") if said is None else refusal(said)


def is_too_many(said: str) -> bool:
    """Tells whether a refusal's text is about too many requests."""
    return _TOO_MANY.search(said) is not None


def error_text(answer: Any) -> str | None:
    """Returns the text of `{"error": text}` or `{"message": text}`, or None; at most 200 printable characters.

    `{"error": true, "code": text}` has its code alone.
    """
    return next(_error_texts(answer), None)


def _error_texts(answer: Any) -> Iterator[str]:
    if not isinstance(answer, Mapping):
        return
    for name in ("error", "message", "msg", *(["code"] if answer.get("error") is True else [])):
        said = answer.get(name)
        if isinstance(said, Mapping):
            said = said.get("message")
        if isinstance(said, str) and said.strip():
            yield cleaned(said, LONGEST_WORDS)


def cleaned(said: str, longest: int) -> str:
    """Returns at most `longest` characters of a venue's words, with a space for each that cannot be printed."""
    return "".join(c if c.isprintable() else " " for c in said[:longest])


def words_of(reply: Reply) -> str | None:
    """Returns an answer's words: the text of its JSON, or plain text; None for a page of HTML or no words."""
    found = _json(reply)
    return plain_words(reply) if found is None else error_text(found)


def plain_words(reply: Reply, longest: int = LONGEST_WORDS) -> str | None:
    """Returns the words of an answer in plain text, cleaned and bounded; None for a page of HTML or no words."""
    if is_page(reply):
        return None
    return cleaned(reply.body[: 4 * longest].decode("utf-8", "replace").strip(), longest) or None


def is_page(reply: Reply) -> bool:
    """Tells whether an answer is a page of HTML: a proxy or a firewall writes those, not a venue's API.

    Its body decides: many servers label plain text and JSON as HTML.
    """
    return reply.body.lstrip()[:1] == b"<"


def retry_after_s(reply: Reply) -> float | None:
    """Returns the seconds a 429 asks us to wait, from its header or its text; at most a quarter of an hour."""
    header = str(reply.headers.get("Retry-After", "")).strip()
    seconds: float | None = None
    if _SECONDS.fullmatch(header):
        seconds = float(header)
    elif header:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            seconds = None
    if seconds is None and (found := _RETRY_TEXT.search(_text(reply))):
        seconds = int(found[1]) * (60.0 if found[2].lower().startswith("m") else 1.0)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_PAUSE_S)


def _common(reply: Reply, path: str) -> VenueError | None:
    status, said = reply.status, _text(reply)
    if status == 429:
        return RateLimited(retry_after_s(reply), f"{path}: {said}")
    if status not in _REFUSALS | _NO_CREDENTIALS | {404}:
        return None
    if is_page(reply):
        by = "from a proxy or firewall in front of the venue, so nothing was done"
        return Unavailable(f"failed at {path}: status {status} {by}")
    if status == 404:
        is_clear = _said(reply) is not None and not any(map(_ABOUT_ROUTES.search, _error_texts(_json(reply))))
        return NotFound(said) if is_clear else Unavailable(f"failed at {path}: status 404, not in the venue's words")
    if is_too_many(said):
        return RateLimited(retry_after_s(reply), f"{path}: {said}")
    return AuthFailed(said) if status in _NO_CREDENTIALS else refusal(said)


def _text(reply: Reply) -> str:
    return words_of(reply) or f"status {reply.status}"


def _said(reply: Reply) -> str | None:
    return error_text(_json(reply))


def _json(reply: Reply) -> Any:
    try:
        return parse(reply.body)
    except Unreadable:
        return None


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


def made_s(headers: Mapping[str, str]) -> int | None:
    """Returns the epoch seconds of `Date`: the answer was made in the second that begins then. None without it.

    None as well for an answer out of a cache: its date is an older answer's.
    """
    if headers.get("Age", "0").strip() != "0":
        return None
    try:
        made = parsedate_to_datetime(headers.get("Date", ""))
        return int((made if made.tzinfo else made.replace(tzinfo=UTC)).timestamp())
    except (ValueError, TypeError, OverflowError):
        return None
