"""The meaning of HTTP statuses other than success: one table for reads, one for writes.

status              read                     write 429                 RateLimited              RateLimited 401, 403
AuthFailed               AuthFailed (a bad signature: plain Refused) 404                 NotFound
NotFound 400, 402, 405, 409, 410, 413, 415, 422  Refused, by its text     Refused, by its text anything else
Unavailable              Unknown

A read's 404 is NotFound only in the venue's own words (JSON with an error's text): to us it can mean "no bids", and a
proxy in front of a venue that is down answers 404, too. Then it is Unavailable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
_REFUSALS = frozenset({400, 402, 405, 409, 410, 413, 415, 422})
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_RETRY_TEXT = re.compile(r"(?:retry|try again)\D{0,20}?(\d{1,6})\s*(second|sec|s\b|minute|min|m\b)", re.IGNORECASE)

# Tried in this order; the first match names the leaf.
_CLEAR_TEXTS: tuple[tuple[re.Pattern[str], type[InsufficientFunds | PriceGrid | BelowMinimum]], ...] = (
    (re.compile(r"insufficient|not enough|balance.{0,20}too low|exceeds?.{0,20}balance", re.I), InsufficientFunds),
    (re.compile(r"multiple of|divisible|increments?\b|price (step|grid)|\btick\b", re.I), PriceGrid),
    (re.compile(r"price.{0,40}(minimum|at least|too low)", re.I), BelowMinimum),
    (re.compile(r"(minimum|at least|below).{0,40}(price|sats)", re.I), BelowMinimum),
)
_ABOUT_TIME = re.compile(r"expir|duration|minutes?\b|timestamp", re.I)


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP answer: `body` decoded, at most 2 MB."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_fault(reply: Reply, path: str) -> VenueError:
    """Returns the error for a read's answer other than 200."""
    unavailable = Unavailable(f"failed to read {path}: status {reply.status}")
    if reply.status == 404 and _said(reply) is None:
        return unavailable
    return _common(reply, path) or unavailable


def write_fault(reply: Reply, path: str) -> VenueError:
    """Returns the error for a write's answer other than success."""
    if reply.status == 403 and re.search("signature|challenge", _text(reply), re.I):
        return Refused("bad_signature", _text(reply))
    return _common(reply, path) or Unknown(f"sent to {path}, answered with status {reply.status}")


def refusal(said: str) -> Refused:
    """Returns the leaf for a refusal's text if the text is clear; else a plain Refused."""
    if not _ABOUT_TIME.search(said):
        for pattern, leaf in _CLEAR_TEXTS:
            if pattern.search(said):
                return leaf(said)
    return Refused("refused", said)


def error_text(answer: Any) -> str | None:
    """Returns the text of `{"error": text}` or `{"message": text}`, or None; at most 200 printable characters.

    `{"error": true, "code": text}` has its code alone.
    """
    if not isinstance(answer, Mapping):
        return None
    for name in ("error", "message", "msg", *(["code"] if answer.get("error") is True else [])):
        said = answer.get(name)
        if isinstance(said, Mapping):
            said = said.get("message")
        if isinstance(said, str) and said.strip():
            return "".join(c if c.isprintable() else " " for c in said[:200])
    return None


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
    said = _text(reply)
    if reply.status == 429:
        return RateLimited(retry_after_s(reply), f"{path}: {said}")
    if reply.status in (401, 403):
        return AuthFailed(said)
    if reply.status == 404:
        return NotFound(said)
    if reply.status == 402:
        return InsufficientFunds(said)
    return refusal(said) if reply.status in _REFUSALS else None


def _text(reply: Reply) -> str:
    return _said(reply) or f"status {reply.status}"


def _said(reply: Reply) -> str | None:
    try:
        return error_text(parse(reply.body))
    except Unreadable:
        return None
