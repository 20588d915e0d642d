"""The gate in front of the application: checks of bodies, the client's address, and the caller of a token.

Tornado's own limit of a body's size is not used: it closes the connection with a bare 400, which clients often miss.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import logging
import re
import time
from collections.abc import Awaitable, Mapping, Sequence
from http.client import responses
from typing import Any

from msgspec import Struct, field
from tornado.http1connection import HTTP1Connection
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import StreamClosedError
from tornado.web import Application, GZipContentEncoding

from core.setting_values import Network, is_loopback
from models import accounts, users
from models.accounts import ApiToken
from models.users import User
from server.http.answers import Error
from server.http.shapes import encoded

# A proxy's headers. Behind a proxy on this machine every client's peer address is loopback.
_PROXY_HEADERS = ("X-Forwarded-For", "X-Real-Ip", "Forwarded", "Via")


def client_ip(peer: str, headers: Mapping[str, str], proxies: Sequence[Network] = ()) -> str:
    """Returns the client's IP address in its normal form.

    A proxy's headers count only if the peer is this machine or one of `proxies`, because any other client could forge
    them. Of `X-Forwarded-For` the last address that is not one of our proxies is taken; earlier ones could be forged.
    `X-Real-IP` takes precedence, so a proxy must set or remove it (docs/settings.md).
    """
    own = _normal(peer)
    if own is None:
        return peer
    if _is_proxy(own, proxies):
        given = [headers.get("X-Real-Ip", ""), *reversed(headers.get("X-Forwarded-For", "").split(","))]
        for text in given:
            address = _normal(text.strip())
            if address is not None and not _is_proxy(address, proxies):
                return address
    return own


def _is_proxy(text: str, proxies: Sequence[Network]) -> bool:
    address = ipaddress.ip_address(text)
    return address.is_loopback or any(address in network for network in proxies)


def is_local(peer: str, headers: Mapping[str, str]) -> bool:
    """Tells whether the request is from this machine and not through a proxy. No header about the client is trusted."""
    return is_loopback(peer) and not any(name in headers for name in _PROXY_HEADERS)


def budget_key(ip: str) -> str:
    """Returns the key for a client's rate limit: an IPv4 address, or the /64 network of an IPv6 client."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return ip
    if address.version == 4:
        return ip
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def _normal(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    # A zone (fe80::1%eth0) has a meaning on the peer only, and would make the text longer than its column.
    return str(mapped or address).partition("%")[0]


_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9_-]{43})")
_MAX_CLIENT = 60
# The first match in a browser's User-Agent counts, because each browser also names several others.
_BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
_SYSTEMS = {"Windows": "Windows", "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Mac": "Mac"}
_SYSTEMS |= {"Linux": "Linux"}


class Caller(Struct, frozen=True):
    """A user with a session, or with an API token, which may do less.

    `mark` is the mark of the database's state when the caller was found (models/database/base.py), if known.
    """

    user: User
    token_hash: str
    api_token: ApiToken | None = None
    mark: Any = None

    def is_good_still(self, now_ms: int) -> bool:
        """Tells whether the session or token is still valid, without counting as a use of it."""
        if self.api_token is None:
            return users.is_open(self.token_hash, now_ms)
        return accounts.token_is_open(self.token_hash, now_ms)


class Openings(Struct, frozen=True):
    """The methods of a path that API tokens may use; each needs one of the scopes listed for it.

    `names_task`: each request names one task, so a token for one task may be used.
    """

    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names_task: bool = False

    def refusal(self, method: str, token: ApiToken) -> str | None:
        """Returns why the token may not be used for `method` here, or None."""
        wanted = self.scopes.get("GET" if method == "HEAD" else method, ())
        if not wanted:
            return "API tokens may not do this: sign in."
        if not token.may.intersection(wanted):
            return f"It needs the scope {' or '.join(wanted)}."
        if token.task_id is not None and not self.names_task:
            return "It is for one task only."
        return None


def caller(authorization: str, now_ms: int) -> Caller | None:
    """Finds the caller by an Authorization header; None if the token is missing or not valid."""
    given = _BEARER.fullmatch(authorization)
    if given is None:
        return None
    token_hash = hash_of(given[1])
    signed_in = users.user_and_mark(token_hash, now_ms)
    if signed_in is not None:
        return Caller(signed_in[0], token_hash, mark=signed_in[1])
    found = accounts.token_with_owner(token_hash, now_ms)
    return None if found is None else Caller(found[1], token_hash, found[0])


def hash_of(token: str) -> str:
    """Returns the stored hash of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def client_of(user_agent: str) -> str:
    """Describes a client briefly for its owner: browser and system, or the first word of a program's name."""
    browser = next((name for mark, name in _BROWSERS.items() if f"{mark}/" in user_agent), None)
    system = next((name for mark, name in _SYSTEMS.items() if mark in user_agent), None)
    if browser is None or system is None:
        first = user_agent.partition(" ")[0][:_MAX_CLIENT]
        return "".join(letter if letter.isprintable() else "?" for letter in first)
    return f"{browser}, {system}"


MAX_BODY = 64 * 1024
MAX_PATH, MAX_HEADERS = 8 * 1024, 16 * 1024
# After a refusal the rest of a well-framed body is read and dropped for a while. Otherwise the kernel would reset the
# connection, and the client would lose our answer.
_DISCARD_BYTES = 32 << 20
_DISCARD_SECONDS = 2.0
_LENGTH = re.compile(r"[0-9]+(?:, *[0-9]+)*")

log = logging.getLogger("server.access")


def now_ms() -> int:
    """Returns milliseconds since 1970."""
    return time.time_ns() // 1_000_000


STREAM = "text/event-stream"


class Gzip(GZipContentEncoding):
    """Compresses texts from 1 KB for clients that accept gzip; at a fast level, because it runs on the loop."""

    GZIP_LEVEL = 1

    def _compressible_type(self, ctype: str) -> bool:
        # A stream is not compressed, because it is sent in small parts and each compressor would hold 256 KB.
        return not ctype.startswith(STREAM) and super()._compressible_type(ctype)


class Gate(HTTPServerConnectionDelegate):
    """Passes requests on to the application unless their framing or body is refused."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        return _Guard(self._application.start_request(server_conn, request_conn), request_conn)

    def on_close(self, server_conn: object) -> None:
        self._application.on_close(server_conn)


class _Guard(HTTPMessageDelegate):
    def __init__(self, inner: HTTPMessageDelegate, connection: HTTPConnection) -> None:
        self._inner = inner
        self._connection = connection
        self._start_line: Any = None
        self._headers: HTTPHeaders
        self._received = 0
        self._refused = False
        self._end_soon: asyncio.TimerHandle | None = None

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        self._start_line, self._headers = start_line, headers
        problem = _head_problem(start_line, headers) or _problem(headers)
        if problem is not None:
            return self._refuse(*problem)
        return self._inner.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        self._received += len(chunk)
        if self._refused:
            if self._received > _DISCARD_BYTES:
                self._end()
            return None
        if self._received > MAX_BODY:
            self._inner.on_connection_close()
            return self._refuse(*_TOO_LARGE, reads_on=True)
        return self._inner.data_received(chunk)

    def finish(self) -> None:
        if self._refused:
            self._end()
        else:
            self._inner.finish()

    def on_connection_close(self) -> None:
        if self._end_soon is not None:
            self._end_soon.cancel()
        if not self._refused:
            self._inner.on_connection_close()

    async def _refuse(self, status: int, error: str, message: str, *, reads_on: bool = False) -> None:
        """Answers and ends the connection; with `reads_on` Tornado passes us the rest of the body first."""
        self._refused = True
        begun = time.monotonic()
        body = encoded(Error(error=error, message=message))
        headers = HTTPHeaders(
            {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "Connection": "close",
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
            }
        )
        with contextlib.suppress(StreamClosedError):
            line = ResponseStartLine("HTTP/1.1", status, responses[status])
            await self._connection.write_headers(line, headers, body)
            if status != 400 and not reads_on and isinstance(self._connection, HTTP1Connection):
                await self._discard(self._connection)
        path = self._start_line.path.partition("?")[0]
        log.info("%s %s %d %.1fms", self._start_line.method, path, status, (time.monotonic() - begun) * 1000)
        if reads_on:
            self._end_soon = asyncio.get_running_loop().call_later(_DISCARD_SECONDS, self._end)
        else:
            self._connection.finish()

    def _end(self) -> None:
        """Ends a refused connection, which Tornado would keep open for the next request after a complete body."""
        if self._end_soon is not None:
            self._end_soon.cancel()
        self._connection.finish()
        if isinstance(self._connection, HTTP1Connection):
            self._connection.close()

    async def _discard(self, connection: HTTP1Connection) -> None:
        length = self._headers.get("Content-Length", "")
        left = min(_DISCARD_BYTES, int(length)) if length.isdigit() and len(length) < 12 else _DISCARD_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while left > 0:
                    left -= len(await connection.stream.read_bytes(MAX_BODY, partial=True))


_TOO_LARGE = (413, "Request body too large", f"A body may have at most {MAX_BODY} bytes.")


def _head_problem(
    start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
) -> tuple[int, str, str] | None:
    if isinstance(start_line, RequestStartLine) and len(start_line.path) > MAX_PATH:
        return 414, "Path too long", f"Path and query may have at most {MAX_PATH} bytes."
    if sum(len(name) + len(value) for name, value in headers.get_all()) > MAX_HEADERS:
        return 431, "Headers too large", f"All headers together may have at most {MAX_HEADERS} bytes."
    return None


def _problem(headers: HTTPHeaders) -> tuple[int, str, str] | None:
    """Returns status, error and message of the refusal of a request with these headers, or None."""
    # The headers are tested first, because getting an absent one would raise and catch an exception.
    if "Content-Length" in headers or "Transfer-Encoding" in headers:
        problem = _framing_problem(headers.get("Content-Length"), headers.get("Transfer-Encoding"))
        if problem is not None:
            return problem
    # Other types are accepted, because curl and many libraries label each body as a form by default.
    if "Content-Type" in headers and headers["Content-Type"].strip().lower().startswith("multipart/"):
        return 415, "Unsupported media type", "Send JSON with Content-Type: application/json."
    return None


def _framing_problem(length: str | None, encoding: str | None) -> tuple[int, str, str] | None:
    if encoding is not None and (length is not None or encoding.lower() != "chunked"):
        return 400, "Bad request", "Send either Content-Length or Transfer-Encoding: chunked."
    if length is not None:
        if not _LENGTH.fullmatch(length) or len(set(length.replace(" ", "").split(","))) > 1:
            return 400, "Bad request", "Content-Length must be one whole number."
        if len(length.split(",")[0].lstrip("0")) > 10 or int(length.split(",")[0]) > MAX_BODY:
            return _TOO_LARGE
    return None
