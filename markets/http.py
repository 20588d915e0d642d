"""One HTTP exchange with a venue, and the meaning of its outcome: the only importer of requests.

A write is never repeated here. Whether its first byte went out is known from the connection itself, so that "nothing
was sent" (Unavailable) and "sent, and then silence" (Unknown) are facts and not guesses.
"""

from __future__ import annotations

import io
import ipaddress
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError

from core import public_connection
from core.setting_values import is_loopback
from core.timed_reading import TimedReading
from markets.answers import Reply, is_too_many, plain_words, read_fault, write_fault
from markets.base import NotFound, Refused, Unavailable, Unknown, VenueError
from markets.wire import Unreadable, parse

MAX_ANSWER = 2_000_000
ANY_TEXT = "*"  # as the text of a 404
LONGEST_TEXT = 300  # bytes of an answer in plain text
CONNECT_S = 3.0
READ_S = 8.0
# What a host has sent may arrive for so long after that host, or its connection, is gone.
AFTERMATH_S = CONNECT_S + READ_S
_STUCK_MS = round(1000 * READ_S)  # then the kernel gives up on what nobody acknowledges, even if we are gone

Permit = Callable[[], None]  # raises a VenueError when the write may not go out any more


class _Exchange:
    """The state of the request that this thread is making."""

    def __init__(self, permit: Permit | None) -> None:
        self.permit = permit
        self.connecting = False
        self.written = False
        self.ends_at = 0.0  # by time.monotonic(); nothing is read from then on


_thread = threading.local()


@contextmanager
def hearing(heard: Callable[[Mapping[str, str]], None]) -> Iterator[None]:
    """Gives `heard` the headers of every answer that this thread gets meanwhile, whatever its status."""
    _thread.heard = heard
    try:
        yield
    finally:
        _thread.heard = None


class _Response(HTTPResponse):
    """An answer that is read in time from its first byte on: what comes before its body counts, too."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(TimedReading(self.fp.detach(), sock, _thread.exchange.ends_at))


class _Watched:
    """A mixin for urllib3's connections: asks for the permit once connected, right before the first byte."""

    response_class: Any = _Response
    sock: Any
    host: str
    connect: Callable[[], None]

    def _new_conn(self) -> socket.socket:
        connection: socket.socket = super()._new_conn()  # type: ignore[misc]
        if not may_be_asked(self.host, connection.getpeername()[0]):
            connection.close()
            # Before TLS and before the first byte: as good as an unreachable host.
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
    """A venue's address with its headers. May be used by several threads at once.

    `base` is the origin with the path before the documented routes; https, or http on this machine.
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

        `post` makes it a POST with that JSON body, for venues whose reads are POSTs. `missing` is the whole text of a
        404 that means NotFound, for servers that say so in plain text or, "", with an empty body; ANY_TEXT for a
        route that they may not have.
        """
        body = self.body(path, params, post=post, missing=missing)
        try:
            return parse(body, keeps_endless=True)
        except Unreadable as error:
            raise Unavailable(f"failed to read {path}: {error}") from error

    def body(
        self, path: str, params: Mapping[str, str] | None = None, *, post: Any = None, missing: str | None = None
    ) -> bytes:
        """Reads as `read`, an answer that is not JSON."""
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

        `permit` is called right before the first byte goes out; its error is raised, and nothing was sent. Raises
        Unavailable (nothing sent), RateLimited, a Refused leaf, or Unknown for everything ambiguous.
        """
        answer = self._sent(path, body, "application/json", permit)
        if answer.status not in (200, 201):
            raise write_fault(answer, path)
        try:
            return parse(answer.body)
        except Unreadable as error:
            raise Unknown(f"sent to {path}, but the answer is {error}") from error

    def write_text(self, path: str, text: str, permit: Permit | None) -> str:
        """Writes as `write`, to a server that takes and answers plain text; a 400's text is the Refused's message."""
        answer = self._sent(path, text.encode(), "text/plain", permit)
        said = plain_words(answer, LONGEST_TEXT)
        if answer.status == 400 and said and not is_too_many(said):
            raise Refused("refused", said)
        if answer.status not in (200, 201):
            raise write_fault(answer, path)
        return said or ""

    def _raise_own(self, reply: Reply) -> None:
        """Raises the error of an answer that means something of its own at one venue, whatever the operation."""

    def _sent(self, path: str, body: bytes, content_type: str, permit: Permit | None) -> Reply:
        exchange = _Exchange(permit)
        if permit is not None:
            permit()  # no connection for a client that has left
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
        # Bounds an answer that drips; the read time-out bounds a single wait for bytes.
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
    """Tells whether a connection to `host`, as a setting names it, may lead to the IP `address`.

    A public name must lead to a public address, so that its owner cannot make us ask a machine of our own network. A
    private address is asked where the setting names the address itself, or this machine.
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


# A header or an address that cannot be written is a UnicodeError.
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
    """Tells whether `error` came from the headers, looking up or connecting, by its type alone."""
    if isinstance(error, requests.ConnectTimeout | requests.exceptions.InvalidHeader | UnicodeError):
        return True
    reason = getattr(error.args[0], "reason", error.args[0]) if error.args else None
    return isinstance(error, requests.ConnectionError) and isinstance(reason, NewConnectionError)


def _reason(error: BaseException) -> str:
    # The error's own text may repeat a key, or the whole URL with its query.
    if isinstance(error, UnicodeError | requests.exceptions.InvalidHeader):
        return "a key or another header has a letter in it that HTTP cannot send"
    return str(error) if isinstance(error, Unreadable) else type(error).__name__
