"""The practice market without sockets: a request is carried to its handler, and the answer back, on a simulated clock.

The program's use of sockets (waits, hang-ups, silence) becomes time on the clock.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.web import Application, RequestHandler

from drills.machine.clockwork import Clock
from markets.http import READ_S, Reply
from simulator.app import make_app
from simulator.world import World

TRAVEL_S = 0.02  # of a request and its answer together


@dataclass
class _Nap(Awaitable[None]):
    """A handler's await: so many seconds, or until it is woken because its client has gone."""

    seconds: float
    ends_when_gone: bool = False

    def __await__(self) -> Generator[_Nap, None, None]:
        yield self


class _Asyncio:
    """The three things that handlers take from asyncio."""

    Event = asyncio.Event

    @staticmethod
    async def sleep(seconds: float) -> None:
        await _Nap(seconds)

    @staticmethod
    async def wait_for(what: Coroutine[Any, Any, Any], seconds: float) -> None:
        """Of `what`, the asker's going away: that ends the nap; else it is over when the time is."""
        what.close()
        await _Nap(seconds, ends_when_gone=True)
        raise TimeoutError


HANDLERS_ASYNCIO = _Asyncio()


class _Connection:
    """The server's end of one connection."""

    def __init__(self) -> None:
        self.status = 0
        self.headers = HTTPHeaders()
        self.body = b""
        self.is_hung_up = False
        self.context = self

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        pass

    def write_headers(self, start_line: Any, headers: HTTPHeaders, chunk: bytes = b"") -> None:
        self.status, self.headers, self.body = start_line.code, headers, self.body + (chunk or b"")

    def write(self, chunk: bytes) -> None:
        self.body += chunk

    def finish(self) -> None:
        pass

    def detach(self) -> _Connection:
        self.is_hung_up = True
        return self

    def close(self) -> None:
        pass


class Wire:
    """Carries requests to `world`'s handlers. `lost_requests`: so many of the next never get a connection."""

    def __init__(self, clock: Clock, world: World) -> None:
        self._clock = clock
        self._app: Application = make_app(world)
        self.lost_requests = 0
        self.requests = 0

    def exchange(self, exchange: Any, method: str, url: str, **request: Any) -> Reply:
        """In the place of `markets.http.Http._exchange`."""
        exchange.connecting = True
        if self.lost_requests:
            self.lost_requests -= 1
            self._clock.advance(1)
            raise requests.ConnectTimeout("lost")
        if exchange.permit is not None:
            exchange.permit()
        exchange.written = True
        self.requests += 1
        data = request.get("data")
        if request.get("json") is not None:
            data = json.dumps(request["json"]).encode()
        if request.get("params"):
            url += "?" + urlencode(request["params"])
        self._clock.advance(TRAVEL_S / 2)
        connection, course = self._begin(method, url, request["headers"], data or b"")
        self._wait_for(course)
        self._clock.advance(TRAVEL_S / 2)
        if not connection.status:
            raise requests.ConnectionError("hung up")
        return Reply(connection.status, connection.headers, connection.body)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Makes one call of `/sim/...`; takes no time. Raises ValueError for a refusal."""
        data = b"" if body is None else json.dumps(body).encode()
        connection, course = self._begin(method, path, {}, data)
        self._wait_for(course)
        if connection.status >= 300:
            raise ValueError(connection.body.decode())
        return json.loads(connection.body)

    def _begin(self, method: str, url: str, headers: Any, body: bytes) -> tuple[_Connection, Coroutine[Any, Any, None]]:
        parts = urlsplit(url)
        path = parts.path + ("?" + parts.query if parts.query else "")
        connection = _Connection()
        line = RequestStartLine(method, path, "HTTP/1.1")
        headers = HTTPHeaders({"Host": "localhost"} | headers)
        request = HTTPServerRequest(start_line=line, headers=headers, body=body, connection=connection)  # type: ignore[arg-type]
        found: Any = self._app.find_handler(request)
        handler = found.handler_class(self._app, request, **found.handler_kwargs)
        handler._transforms = []
        handler.path_args = [part.decode() for part in found.path_args]
        return connection, _course(handler, method)

    def _wait_for(self, course: Coroutine[Any, Any, None]) -> None:
        patience = READ_S
        while (nap := _step(course)) is not None:
            if nap.seconds >= patience:
                assert nap.ends_when_gone, "what goes on after its asker has gone is not simulated"
                course.close()
                self._clock.advance(patience)
                raise requests.ReadTimeout("no answer")
            patience -= nap.seconds
            self._clock.advance(nap.seconds)


async def _course(handler: RequestHandler, method: str) -> None:
    try:
        handler.prepare()
        if not handler._finished:
            await_me = getattr(handler, method.lower())(*handler.path_args)
            if await_me is not None:
                await await_me
    except Exception as error:
        handler._handle_request_exception(error)


def _step(course: Coroutine[Any, Any, None]) -> _Nap | None:
    """Lets a handler run; what it waits for, None when it is through."""
    try:
        nap: _Nap = course.send(None)
        return nap
    except StopIteration:
        return None
