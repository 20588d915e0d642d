"""The practice market in a thread of this process, with its clock and its scenes in the test's hands."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.request
from typing import Any

from tornado.httpserver import HTTPServer

from simulator.app import make_app
from simulator.world import World


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
