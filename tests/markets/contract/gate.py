"""A gate before the practice market that counts requests, and can answer anything else instead."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from tornado.httpserver import HTTPServer

from simulator.app import make_app
from simulator.world import World


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    method: str
    path: str
    body: bytes


SILENCE = b"silence"  # an answer: none, and the connection stays open
CUT = b""  # an answer: the connection is closed


@dataclass
class Gate:
    """`answer` = the bytes that every request gets, None = what the practice market at `market_port` says.

    Since the last `clear`: what was `seen`, what was `told` of the market's answers, how many bytes came in.
    """

    market_port: int
    answer: bytes | None = None
    seen: list[Seen] = field(default_factory=list)
    told: list[bytes] = field(default_factory=list)
    bytes_in: int = 0
    bytes_out: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def clear(self) -> None:
        """Forgets what was seen, and lets everything pass again."""
        with self._lock:
            self.answer, self.seen, self.told, self.bytes_in, self.bytes_out = None, [], [], 0, 0

    def close(self) -> None:
        """Answers no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            kept, self._open = self._open, []
        for connection in kept:
            _shut(connection)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (request := self._request(connection)) is not None:
                seen, headers = request
                with self._lock:
                    self.seen.append(seen)
                    answer = self.answer
                if answer == SILENCE:
                    return
                self._send(connection, self._passed_on(seen, headers) if answer is None else answer)
                if answer is not None:
                    break
            _shut(connection)
            with self._lock:
                if connection in self._open:
                    self._open.remove(connection)

    def _send(self, connection: socket.socket, answer: bytes) -> None:
        for start in range(0, len(answer), 65536):
            connection.sendall(answer[start : start + 65536])
            self.bytes_out += 65536

    def _request(self, connection: socket.socket) -> tuple[Seen, dict[str, str]] | None:
        received = b""
        while b"\r\n\r\n" not in received:
            if not (more := self._receive(connection)):
                return None
            received += more
        head, _, body = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            if not (more := self._receive(connection)):
                return None
            body += more
        method, path, _ = first.split(" ")
        return Seen(method, path, body), headers

    def _receive(self, connection: socket.socket) -> bytes:
        received = connection.recv(65536)
        with self._lock:
            self.bytes_in += len(received)
        return received

    def _passed_on(self, seen: Seen, headers: dict[str, str]) -> bytes:
        market = http.client.HTTPConnection("127.0.0.1", self.market_port, timeout=30)
        try:
            market.request(seen.method, seen.path, seen.body or None, headers)
            answer = market.getresponse()
            body = answer.read()
            kept = {
                name: value for name, value in answer.getheaders() if name.lower() in ("content-type", "retry-after")
            }
            self.told.append(body)
            return reply(body, answer.status, kept)
        except (OSError, http.client.HTTPException):
            return CUT
        finally:
            market.close()


def reply(body: bytes | str, status: int = 200, headers: dict[str, str] | None = None) -> bytes:
    """Returns a whole HTTP answer."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class Clock:
    """Real time, and what a test has added to it."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def seconds(self) -> float:
        return time.time() + self.ahead_s

    def ms(self) -> int:
        return round(self.seconds() * 1000)


class Practice:
    """Listens on a free port. `sim` are the control calls."""

    def __init__(self) -> None:
        self.clock = Clock()
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        self.port: int = listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(listener,), daemon=True)
        self._thread.start()

    def _run(self, listener: socket.socket) -> None:
        asyncio.set_event_loop(self._loop)
        world = World(seed=1, clock=self.clock.ms, monotonic=self.clock.seconds)
        server = HTTPServer(make_app(world))
        self._loop.call_soon(server.add_socket, listener)
        self._loop.run_forever()
        server.stop()
        self._loop.run_until_complete(server.close_all_connections())
        self._loop.close()

    def sim(self, method: str, path: str, body: Any = None) -> Any:
        """Makes a control call that must succeed."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/sim/{path}", content, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def outpoint_of(self, inscription: str) -> str:
        """Returns the output that an inscription is on."""
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/ord/inscription/{inscription}", headers={"Accept": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return str(json.load(answer)["satpoint"].rpartition(":")[0])

    def close(self) -> None:
        """Stops listening."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
