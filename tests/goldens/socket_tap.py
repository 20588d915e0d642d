"""A wire tap: a Unix socket that passes everything on to another one, and keeps each request with its answer."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from core.errors import BidkeeperError
from server.http.answers import ApiError
from tests.goldens.socket_files import failed, plain

_PATIENCE_S = 120.0


class Tap:
    """Listens at `path` and passes on to `behind`. Bodies of HTTP and lines are kept, decoded, in their order."""

    def __init__(self, path: Path, behind: Path) -> None:
        self._behind = behind
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.fspath(path))
        self._listener.listen()
        self._listener.settimeout(_PATIENCE_S)
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.sent, self.answered = bytearray(), bytearray()
        self._start(self._accept)

    def exchange(self) -> tuple[Any, Any]:
        """Returns what crossed since the last call, both ways, decoded."""
        sent, answered = bytes(self.sent), bytes(self.answered)
        self.sent.clear()
        self.answered.clear()
        return decoded(sent), decoded(answered)

    def close(self) -> None:
        """Ends all connections and threads."""
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(_PATIENCE_S)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            self._open += [near, far]
            try:
                far.connect(os.fspath(self._behind))
            except OSError:
                near.close()
                continue
            self._start(self._pass, near, far, self.sent)
            self._start(self._pass, far, near, self.answered)

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
        try:
            while some := source.recv(1 << 16):
                kept += some
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return


def decoded(raw: bytes) -> Any:
    """Returns the JSON value of an HTTP body or of a line; None where nothing crossed."""
    body = raw.partition(b"\r\n\r\n")[2] if raw.startswith((b"POST ", b"HTTP/")) else raw
    return json.loads(body) if body.strip() else None


class Session:
    """Calls through a tap, one after another: what each returned or raised, and what crossed the socket."""

    def __init__(self, tap: Tap, mask: Callable[[Any], Any]) -> None:
        self._tap = tap
        self._mask = mask
        self.meanings: list[Any] = []
        self.wire: list[Any] = []

    def call(self, name: str, ask: Callable[[], Any]) -> Any:
        """Calls `ask` and keeps the outcome under `name`; returns the value, None for an error."""
        value = None
        try:
            value = ask()
            self._keep(name, {"returns": plain(value)})
        except (BidkeeperError, ApiError) as error:
            self._keep(name, failed(error))
        return value

    async def wait_for(self, name: str, asked: Awaitable[Any]) -> Any:
        """Waits for `asked`, and keeps the outcome as `call` does."""
        value = None
        try:
            value = await asked
            self._keep(name, {"returns": plain(value)})
        except (BidkeeperError, ApiError) as error:
            self._keep(name, failed(error))
        return value

    def _keep(self, name: str, outcome: dict[str, Any]) -> None:
        sent, answered = self._tap.exchange()
        self.meanings.append(self._mask({"call": name} | outcome))
        self.wire.append(self._mask({"call": name, "sent": sent, "answered": answered}))
