"""A venue that does what a test tells it: real HTTP on loopback, every request written down."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

PLACED = {"success": True, "data": {"message": "bid placed"}}
CUT = object()  # an answer: the connection is cut


@dataclass
class Call:
    """One request as the venue got it."""

    path: str
    query: dict[str, str]
    body: Any
    at: float
    key: str | None


@dataclass
class FakeVenue:
    """Answers by path. `closed_gates` are paths that take a request and answer only when the gate is opened.

    What can be called, in `answers` and `headers`, is called for each answer.
    """

    port: int = 0
    calls: list[Call] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    headers: dict[str, dict[str, str | Callable[[], str]]] = field(default_factory=dict)
    closed_gates: set[str] = field(default_factory=set)

    def start(self) -> HTTPServer:
        """Listens on a free port, on the running loop."""
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        server = HTTPServer(Application([(".*", _Handler, {"venue": self})], log_function=lambda handler: None))
        server.add_socket(listener)
        return server

    def of(self, path: str) -> list[Call]:
        """Returns the requests for `path`, oldest first."""
        return [call for call in self.calls if call.path == path]


class _Handler(RequestHandler):
    def initialize(self, venue: FakeVenue) -> None:
        self.venue = venue

    async def get(self) -> None:
        path = self.request.path
        query = {name: self.get_query_argument(name) for name in self.request.query_arguments}
        sent = self.request.body
        is_text = self.request.headers.get("Content-Type") == "text/plain"
        body = sent.decode() if is_text else json.loads(sent) if sent else None
        call = Call(path, query, body, time.monotonic(), self.request.headers.get("x-api-key"))
        self.venue.calls.append(call)
        while path in self.venue.closed_gates:  # noqa: ASYNC110 - opened from another thread
            await asyncio.sleep(0.005)
        answer = self.venue.answers.get(path, PLACED)
        if callable(answer):
            answer = answer(call)
        if answer is CUT:
            self.request.connection.stream.close()  # type: ignore[attr-defined]
            return
        self.set_status(self.venue.statuses.get(path, 200))
        for name, value in self.venue.headers.get(path, {}).items():
            self.set_header(name, value() if callable(value) else value)
        self.finish(answer if isinstance(answer, bytes | str) else json.dumps(answer))

    post = get
