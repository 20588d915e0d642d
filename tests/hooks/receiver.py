"""A receiver on the loopback: a real HTTP server that keeps what it was sent, and answers as it is told."""

from __future__ import annotations

import ipaddress
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))  # localhost may mean both


@dataclass
class Got:
    """One request."""

    path: str
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """The server's port and what it got; `behave` returns the status, or does something worse by itself (None)."""

    port: int
    got: list[Got] = field(default_factory=list)
    behave: Callable[[BaseHTTPRequestHandler, Got], int | None] = lambda handler, got: 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    def until(self, count: int, seconds: float = 30) -> list[Got]:
        """Returns what it got once there are so many."""
        ends = time.monotonic() + seconds
        while len(self.got) < count:
            assert time.monotonic() < ends, f"{len(self.got)} of {count}"
            time.sleep(0.01)
        return self.got


@contextmanager
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length).decode()
            if len(body.encode()) < length:
                return  # its sender was killed: it is no request
            got = Got(self.path, dict(self.headers), body)
            made.got.append(got)
            status = made.behave(self, got)
            if status is not None:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", f"http://127.0.0.1:{made.port}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
