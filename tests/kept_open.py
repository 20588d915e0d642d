"""HTTP for tests that ask thousands of questions: connections to a server of this process are kept open."""

from __future__ import annotations

import asyncio
import gzip
from io import BytesIO
from urllib.parse import urlsplit

from tornado.httpclient import HTTPRequest, HTTPResponse
from tornado.httputil import HTTPHeaders, parse_response_start_line

_Way = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_MOST_BYTES = 1 << 26


class KeptOpen:
    """Sends requests to 127.0.0.1 at `port` as Tornado's client does, but for `Connection: close`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[_Way] = []

    async def fetch(self, request: HTTPRequest) -> HTTPResponse:
        """Returns the answer, whatever its status.

        Raises ConnectionError, or TimeoutError after the request's time; nothing is asked twice.
        """
        async with asyncio.timeout(request.request_timeout):
            reader, writer = await self._way()
            try:
                writer.write(_message(request))
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
                first, _, lines = head.partition("\r\n")
                start, headers = parse_response_start_line(first), HTTPHeaders.parse(lines)
                has_body = request.method != "HEAD" and start.code not in (204, 304)
                body = await _body(reader, headers) if has_body else b""
            except asyncio.IncompleteReadError as error:
                writer.close()
                raise ConnectionError("no answer, or a part of one") from error
            except BaseException:
                writer.close()
                raise
        if headers.get("Connection", "").lower() == "close":
            writer.close()
        else:
            self._idle.append((reader, writer))
        if request.decompress_response and headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
            headers.add("X-Consumed-Content-Encoding", headers.pop("Content-Encoding"))
        return HTTPResponse(request, start.code, headers, BytesIO(body), reason=start.reason)

    async def _way(self) -> _Way:
        """Returns a connection that the server has not closed."""
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self._port, limit=_MOST_BYTES)

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()


async def _body(reader: asyncio.StreamReader, headers: HTTPHeaders) -> bytes:
    if headers.get("Transfer-Encoding") == "chunked":
        parts = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
        return b"".join(parts)
    if "Content-Length" in headers:
        return await reader.readexactly(int(headers["Content-Length"]))
    headers["Connection"] = "close"
    return await reader.read()


def _message(request: HTTPRequest) -> bytes:
    url = urlsplit(request.url)
    headers, body = HTTPHeaders(request.headers), request.body
    headers.setdefault("Host", url.netloc)
    headers.setdefault("User-Agent", "Tornado")
    if body is not None:
        headers["Content-Length"] = str(len(body))
    if request.method == "POST":
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    if request.decompress_response:
        headers["Accept-Encoding"] = "gzip"
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.get_all())
    return f"{request.method} {path} HTTP/1.1\r\n".encode() + lines.encode("latin1") + b"\r\n" + (body or b"")
