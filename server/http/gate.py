"""The gate before the application: it refuses bodies that are too large, of an unused kind, or badly framed.

Tornado's own limit closes the connection with a bare 400 whose text clients often never see.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Awaitable
from http.client import responses
from typing import Any

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
from tornado.web import Application

from server.http import json_out
from server.http.answers import Error

MAX_BODY = 64 * 1024
MAX_PATH, MAX_HEADERS = 8 * 1024, 16 * 1024
# After a refusal the rest of a well-framed body is read and dropped for a while: closing at once would make the kernel
# reset the connection, and the client would lose our answer.
_DISCARD_BYTES = 32 << 20
_DISCARD_SECONDS = 2.0
_LENGTH = re.compile(r"[0-9]+(?:, *[0-9]+)*")

log = logging.getLogger("server.access")


class Gate(HTTPServerConnectionDelegate):
    """The gate hands requests on to the application unless their framing or body is refused."""

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
        """Answers and ends the connection; with `reads_on` Tornado reads on and the rest comes to us."""
        self._refused = True
        begun = time.monotonic()
        body = json_out.encoded(Error(error=error, message=message))
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
        """Ends a refused connection. By itself a whole body would leave it open for the next request."""
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
    # Testing for a header is cheap, getting an absent one is an exception.
    if "Content-Length" in headers or "Transfer-Encoding" in headers:
        problem = _framing_problem(headers.get("Content-Length"), headers.get("Transfer-Encoding"))
        if problem is not None:
            return problem
    # Other types are ignored: curl and many libraries call every body a form unless they are told otherwise.
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
