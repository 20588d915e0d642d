"""The meaning of HTTP statuses other than success, for reads and for writes.

- 429, or a 4xx whose words are about too many requests: RateLimited.
- 401, 403: AuthFailed. A write's 403 about a signature or a challenge is a plain Refused.
- 404: NotFound.
- 400, 402, 405, 409, 410, 413, 415, 422: Refused, by its words (`refusal`).
- One of these with a page of HTML, which a proxy or a firewall writes: Unavailable. Nothing reached the venue.
- Any other status: Unavailable for a read, Unknown for a write.

A 404 is NotFound only in the venue's own words: JSON with an error's text that is not about the route. A proxy in front
of a venue that is down answers 404, too, and NotFound may mean "no bids"; such a 404 is Unavailable. Where a venue is
known to answer 404 without words, the caller says so (`missing` in `markets/http.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from markets.base import (
    AuthFailed,
    BelowMinimum,
    InsufficientFunds,
    NotFound,
    PriceGrid,
    RateLimited,
    Refused,
    Unavailable,
    Unknown,
    VenueError,
)
from markets.wire import Unreadable, parse

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


@dataclass(frozen=True, slots=True)
class Reply:
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
