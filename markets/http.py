"""One HTTP exchange with a venue, and its outcome as a value or an error. The only importer of requests.

A write is never repeated here. The connection records whether the first byte was sent, which separates "nothing was
sent" (Unavailable) from "sent, but no answer" (Unknown). Statuses other than success:

- 429, or a 4xx whose text is about too many requests: RateLimited.
- 401, 403: AuthFailed. A write's 403 about a signature or a challenge is a plain Refused.
- 404: NotFound, if the body is JSON with an error text that is not about the route. Any other 404 is Unavailable,
  unless `missing` expects it, because a proxy in front of a venue that is down answers 404 too.
- 400, 402, 405, 409, 410, 413, 415, 422: Refused, classified by its text (`refusal`).
- One of these with an HTML page from a proxy or a firewall: Unavailable, because nothing reached the venue.
- Any other status: Unavailable for a read, Unknown for a write.
"""

from __future__ import annotations

import io
import ipaddress
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPResponse
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from msgspec import Struct
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError

from core import public_connection
from core.setting_values import is_loopback
from core.unix_http import TimedReading
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
from markets.parse import Unreadable, decoded

MAX_ANSWER = 2_000_000
ANY_TEXT = "*"  # as the text of a 404
LONGEST_TEXT = 300  # bytes of an answer in plain text
CONNECT_S = 3.0
READ_S = 8.0
# A write may still arrive at the venue this long after our process or connection has ended.
AFTERMATH_S = CONNECT_S + READ_S
_STUCK_MS = round(1000 * READ_S)  # the kernel then drops unacknowledged data, even after our process has ended

Permit = Callable[[], None]  # raises a VenueError if the write may no longer be sent


class _Exchange:
    """The state of this thread's current request."""

    def __init__(self, permit: Permit | None) -> None:
        self.permit = permit
        self.connecting = False
        self.written = False
        self.ends_at = 0.0  # deadline for reading the answer, by time.monotonic()


_thread = threading.local()


@contextmanager
def hearing(heard: Callable[[Mapping[str, str]], None]) -> Iterator[None]:
    """Calls `heard` with the headers of every answer that this thread receives in the block, whatever its status."""
    _thread.heard = heard
    try:
        yield
    finally:
        _thread.heard = None


class _Response(HTTPResponse):
    """An answer whose read deadline also covers the status line and headers."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(TimedReading(self.fp.detach(), sock, _thread.exchange.ends_at))


class _Watched:
    """A mixin for urllib3's connections that calls the permit after connecting, right before the first byte."""

    response_class: Any = _Response
    sock: Any
    host: str
    connect: Callable[[], None]

    def _new_conn(self) -> socket.socket:
        connection: socket.socket = super()._new_conn()  # type: ignore[misc]
        if not may_be_asked(self.host, connection.getpeername()[0]):
            connection.close()
            # NewConnectionError, because nothing was sent: it counts as an unreachable host.
            raise NewConnectionError(self, "the name leads to an address that is not public")  # type: ignore[arg-type]
        return connection

    def send(self, data: Any) -> None:
        exchange: _Exchange | None = getattr(_thread, "exchange", None)
        if exchange is not None and not exchange.written:
            exchange.connecting = True
            if self.sock is None:
                self.connect()
            if exchange.permit is not None:
                exchange.permit()
            exchange.written = True
        super().send(data)  # type: ignore[misc]


class _WatchedHTTP(_Watched, HTTPConnection):
    pass


class _WatchedHTTPS(_Watched, HTTPSConnection):
    pass


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _WatchedHTTP


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedHTTPS


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        options = list(HTTPConnection.default_socket_options)
        if sys.platform == "linux":
            options.append((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _STUCK_MS))
        super().init_poolmanager(*args, **kwargs, socket_options=options)
        self.poolmanager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}


class Http:
    """A client for one venue's address with fixed headers. Thread-safe.

    `base` is the origin plus the path before the documented routes; https, or http on this machine.
    """

    def __init__(
        self, base: str, headers: Mapping[str, str], *, connect_s: float = CONNECT_S, read_s: float = READ_S
    ) -> None:
        parts = urlsplit(base)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise ValueError(f"{base!r} is neither https nor http on this machine")
        self._base = base.rstrip("/")
        self._timeout = (connect_s, read_s)
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update({"Accept": "application/json", "User-Agent": "bidkeeper", **headers})
        self._session.mount("https://", _Adapter(max_retries=0, pool_maxsize=8))
        self._session.mount("http://", _Adapter(max_retries=0, pool_maxsize=8))

    def read(
        self, path: str, params: Mapping[str, str] | None = None, *, post: Any = None, missing: str | None = None
    ) -> Any:
        """Returns the JSON answer to a read. Raises Unavailable, RateLimited or a Refused leaf.

        `post` is the JSON body for venues whose reads are POSTs. `missing` is the exact body of a 404 that means
        NotFound at this server: a plain text, "" for an empty body, or ANY_TEXT for a route it may not have.
        """
        body = self.body(path, params, post=post, missing=missing)
        try:
            return decoded(body, keeps_endless=True)
        except Unreadable as error:
            raise Unavailable(f"failed to read {path}: {error}") from error

    def body(
        self, path: str, params: Mapping[str, str] | None = None, *, post: Any = None, missing: str | None = None
    ) -> bytes:
        """Returns the raw answer to a read, otherwise as `read` does."""
        method = "GET" if post is None else "POST"
        try:
            reply = self._exchange(_Exchange(None), method, path, params=dict(params or {}), json=post)
        except _FAULTS as error:
            raise Unavailable(f"failed to read {path}: {_reason(error)}") from error
        self._raise_own(reply)
        if (
            missing is not None
            and reply.status == 404
            and (missing == ANY_TEXT or reply.body.strip() == missing.encode())
        ):
            raise NotFound(f"status 404 for {path}" if missing in (ANY_TEXT, "") else missing)
        if reply.status != 200:
            fault = read_fault(reply, path)
            if isinstance(fault, Unavailable):
                fault.status = reply.status
            raise fault
        return reply.body

    def write(self, path: str, body: bytes, permit: Permit | None) -> Any:
        """Sends one JSON `body` by POST and returns the answer's JSON.

        `permit` is called right before the first byte is sent; if it raises, nothing is sent. Raises Unavailable
        (nothing sent), RateLimited, a Refused leaf, or Unknown for every ambiguous outcome.
        """
        answer = self._sent(path, body, "application/json", permit)
        if answer.status not in (200, 201):
            raise write_fault(answer, path)
        try:
            return decoded(answer.body)
        except Unreadable as error:
            raise Unknown(f"sent to {path}, but the answer is {error}") from error

    def write_text(self, path: str, text: str, permit: Permit | None) -> str:
        """Writes plain text, otherwise as `write` does; returns the answer's text. A 400's text becomes Refused's."""
        answer = self._sent(path, text.encode(), "text/plain", permit)
        said = plain_words(answer, LONGEST_TEXT)
        if answer.status == 400 and said and not is_too_many(said):
            raise Refused("refused", said)
        if answer.status not in (200, 201):
            raise write_fault(answer, path)
        return said or ""

    def _raise_own(self, reply: Reply) -> None:
        """Raises the error of an answer with a special meaning at one venue; overridden by subclasses."""

    def _sent(self, path: str, body: bytes, content_type: str, permit: Permit | None) -> Reply:
        exchange = _Exchange(permit)
        if permit is not None:
            permit()  # also here, to save the connection if the write may not be sent
        headers = {"Content-Type": content_type}
        try:
            answer = self._exchange(exchange, "POST", path, data=body, headers=headers)
        except _FAULTS as error:
            nothing_sent = not exchange.written if exchange.connecting else _never_connected(error)
            leaf: type[VenueError] = Unavailable if nothing_sent else Unknown
            raise leaf(f"failed to send to {path}: {_reason(error)}") from error
        self._raise_own(answer)
        return answer

    def _exchange(self, exchange: _Exchange, method: str, path: str, **request: Any) -> Reply:
        _thread.exchange = exchange
        # Limits the whole answer, because the read time-out limits only a single wait for bytes.
        exchange.ends_at = time.monotonic() + 2 * self._timeout[1]
        try:
            with self._session.request(
                method, self._base + path, timeout=self._timeout, allow_redirects=False, stream=True, **request
            ) as response:
                if (heard := getattr(_thread, "heard", None)) is not None:
                    heard(response.headers)
                return Reply(response.status_code, response.headers, _body(response))
        finally:
            _thread.exchange = None


def may_be_asked(host: str, address: str) -> bool:
    """Returns whether a connection to the configured `host` may go to the IP `address`.

    A public name must resolve to a public address, so that its owner cannot direct us to our own network. A private
    address is allowed if the setting names the address itself, or this machine.
    """
    try:
        ipaddress.ip_address(host.strip("[]"))
        return True
    except ValueError:
        found = public_connection.read(address)
        return found.is_loopback if is_loopback(host) else public_connection.is_public(found)


def segment(value: str) -> str:
    """Quotes `value` as one segment of a path."""
    return quote(value, safe="")


# UnicodeError: a header or an address that cannot be encoded.
_FAULTS = (requests.RequestException, HTTPError, OSError, Unreadable, UnicodeError)


def _body(response: requests.Response) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := response.raw.read1(65536, decode_content=True):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_ANSWER:
            raise Unreadable(f"more than {MAX_ANSWER} bytes")
    return b"".join(chunks)


def _never_connected(error: BaseException) -> bool:
    """Returns whether the type of `error` shows that it came before a connection: headers, DNS or connecting."""
    if isinstance(error, requests.ConnectTimeout | requests.exceptions.InvalidHeader | UnicodeError):
        return True
    reason = getattr(error.args[0], "reason", error.args[0]) if error.args else None
    return isinstance(error, requests.ConnectionError) and isinstance(reason, NewConnectionError)


def _reason(error: BaseException) -> str:
    # Only the type's name, because the error's text may contain a key or the whole URL.
    if isinstance(error, UnicodeError | requests.exceptions.InvalidHeader):
        return "a key or another header has a letter in it that HTTP cannot send"
    return str(error) if isinstance(error, Unreadable) else type(error).__name__


LONGEST_PAUSE_S = 900.0
LONGEST_WORDS = 200
_REFUSALS = frozenset({400, 402, 405, 409, 410, 413, 415, 422})
_NO_CREDENTIALS = frozenset({401, 403})
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_RETRY_TEXT = re.compile(r"(?:retry|try again)\D{0,20}?(\d{1,6})\s*(second|sec|s\b|minute|min|m\b)", re.IGNORECASE)

# Excludes "fee rate limit", and a refusal that quotes a user's slug such as "rate-limit": neither may pause the key.
_TOO_MANY = re.compile(
    r"(?<!fee )(?<!fee)rate limit|rate.?limit(ed|ing)?\W+(\w+\W+){0,2}(exceeded|reached|hit)\b"
    r"|too many (requests|calls)|too (frequent|fast\b)|\bthrottled\b",
    re.I,
)
_ABOUT_ROUTES = re.compile(r"cannot (get|post|put)\b|no (such )?route|(route|path|endpoint)s?\b.{0,20}not found", re.I)

_MONEY = r"(funds?|balances?|sats?|satoshis?|btc|bitcoins?|coins?|utxos?|money)\b"
_WORDS = r"\W+(\w+\W+){0,4}?"
# Leaf = first match of the first pattern without a match of the second. If in doubt, a plain Refused is safer, because
# a leaf advises the task's owner to change something or to send money.
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
    """Returns the error for a refusal's text: RateLimited, a leaf if the text is clear, else a plain Refused."""
    if is_too_many(said):
        return RateLimited(None, said)
    if not (_ABOUT_TIME.search(said) or _ABOUT_FEES.search(said)):
        for pattern, others, leaf in _CLEAR:
            if pattern.search(said) and not others.search(said):
                return leaf(said)
    return Refused("refused", said)


def refused_with_200(answer: Any) -> VenueError | Unreadable:
    """Returns the error for a refusal with status 200, classified by its text; Unreadable if it has no text."""
    said = error_text(answer)
    return Unreadable("an error in an answer with status 200") if said is None else refusal(said)


def is_too_many(said: str) -> bool:
    """Returns whether a refusal's text is about too many requests."""
    return _TOO_MANY.search(said) is not None


def error_text(answer: Any) -> str | None:
    """Returns the text of `{"error": text}` or `{"message": text}`, or None; at most 200 printable characters.

    For `{"error": true, "code": text}` it is the code.
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
    """Returns at most `longest` characters of a venue's text, with spaces for unprintable characters."""
    return "".join(c if c.isprintable() else " " for c in said[:longest])


def words_of(reply: Reply) -> str | None:
    """Returns an answer's error text, from its JSON or as plain text; None for an HTML page or an empty text."""
    found = _json(reply)
    return plain_words(reply) if found is None else error_text(found)


def plain_words(reply: Reply, longest: int = LONGEST_WORDS) -> str | None:
    """Returns an answer's plain text, cleaned and shortened; None for an HTML page or an empty text."""
    if is_page(reply):
        return None
    return cleaned(reply.body[: 4 * longest].decode("utf-8", "replace").strip(), longest) or None


def is_page(reply: Reply) -> bool:
    """Returns whether an answer is an HTML page, which comes from a proxy or a firewall and not from a venue's API.

    It checks the body, because many servers label plain text and JSON as HTML.
    """
    return reply.body.lstrip()[:1] == b"<"


def retry_after_s(reply: Reply) -> float | None:
    """Returns the seconds to wait after a 429, from its header or its text, at most 15 minutes; None if not given."""
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
        return decoded(reply.body)
    except Unreadable:
        return None


def made_s(headers: Mapping[str, str]) -> int | None:
    """Returns the `Date` header in epoch seconds; None without it, or if the answer came from a cache (`Age`)."""
    if headers.get("Age", "0").strip() != "0":
        return None
    try:
        made = parsedate_to_datetime(headers.get("Date", ""))
        return int((made if made.tzinfo else made.replace(tzinfo=UTC)).timestamp())
    except (ValueError, TypeError, OverflowError):
        return None
