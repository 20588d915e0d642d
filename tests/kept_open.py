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

        Raises ConnectionError, or TimeoutError after the request's time. A connection that the server has closed
        meanwhile is made anew; what has broken off within an answer is not asked again.
        """
        async with asyncio.timeout(request.request_timeout):
            message = _message(request)
            while True:
                is_kept = bool(self._idle)
                way = self._idle.pop() if is_kept else await self._opened()
                reader, writer = way
                try:
                    writer.write(message)
                    head = await reader.readuntil(b"\r\n\r\n")
                except (ConnectionError, asyncio.IncompleteReadError) as error:
                    writer.close()
                    if is_kept and not getattr(error, "partial", b""):
                        continue
                    raise ConnectionError("no answer") from error
                except BaseException:
                    writer.close()
                    raise
                return await self._answered(request, way, head)

    async def _answered(self, request: HTTPRequest, way: _Way, head: bytes) -> HTTPResponse:
        first, _, lines = head.decode("latin1").partition("\r\n")
        start, headers = parse_response_start_line(first), HTTPHeaders.parse(lines)
        keeps_open = False
        try:
            has_body = request.method != "HEAD" and start.code not in (204, 304)
            body = await _body(way[0], headers) if has_body else b""
            keeps_open = headers.get("Connection", "").lower() != "close"
        except asyncio.IncompleteReadError as error:
            raise ConnectionError("half an answer") from error
        finally:
            if keeps_open:
                self._idle.append(way)
            else:
                way[1].close()
        if request.decompress_response and headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
            headers.add("X-Consumed-Content-Encoding", headers.pop("Content-Encoding"))
        return HTTPResponse(request, start.code, headers, BytesIO(body), reason=start.reason)

    async def _opened(self) -> _Way:
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
