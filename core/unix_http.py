"""A small HTTP client for the gateway's Unix socket, and reading from a socket with a deadline.

`http.client` is not used for the gateway. It imports ssl and email, which would take a megabyte in each of a thousand
workers, and it does not tell whether a failed request had been sent completely.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import time
from pathlib import Path
from typing import Any

_MOST_HEAD = 16 * 1024
_MOST_BODY = 8 << 20


class NotSent(Exception):
    """The request was not sent completely, so the peer has not acted on it."""


class NoAnswer(Exception):
    """The request was sent, but no complete answer arrived."""


class UnixHttp:
    """A client of one HTTP server on a Unix socket, one request at a time, over a kept connection."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None

    def post(self, body: bytes, *, repeatable: bool) -> bytes:
        """Sends `body` to `/` and returns the answer's body, whatever its status.

        Raises NotSent or NoAnswer. If the kept connection turns out to be closed, a new one is opened. A request that
        was sent completely on the old connection is repeated only if `repeatable`.
        """
        deadline = time.monotonic() + self._timeout_s
        kept = self._still_open()
        try:
            return self._exchange(body, deadline)
        except NotSent:
            if not kept:
                raise
        except NoAnswer as error:
            if not (kept and repeatable and isinstance(error.__cause__, ConnectionError)):
                raise
        return self._exchange(body, deadline)

    def close(self) -> None:
        """Closes the kept connection; the next request opens one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _still_open(self) -> bool:
        if self._socket is None:
            return False
        with contextlib.suppress(OSError):
            self._socket.setblocking(False)
            try:
                self._socket.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return True
        # The connection is closed, or has received bytes that belong to no request.
        self.close()
        return False

    def _exchange(self, body: bytes, deadline: float) -> bytes:
        head = (
            f"POST / HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._socket.settimeout(_left(deadline))
                self._socket.connect(os.fspath(self._path))
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(head.encode() + body)
        except OSError as error:
            self.close()
            raise NotSent(error.strerror or type(error).__name__) from error
        try:
            return self._answer(self._socket, deadline)
        except (OSError, ValueError) as error:
            self.close()
            raise NoAnswer(str(error) or type(error).__name__) from error

    def _answer(self, connection: socket.socket, deadline: float) -> bytes:
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            if len(received) > _MOST_HEAD:
                raise ValueError("the answer's head is too long")
            received += _received(connection, deadline, nothing_yet=not received)
        headers = _headers(bytes(received[:end]))
        length = int(headers.get(b"content-length", b"-1"))
        if not 0 <= length <= _MOST_BODY:
            raise ValueError("the answer's length is missing or too great")
        body = received[end + 4 :]
        while len(body) < length:
            body += _received(connection, deadline, nothing_yet=False)
        if len(body) > length or headers.get(b"connection", b"").lower() == b"close":
            self.close()
        return bytes(body[:length])


def _headers(head: bytes) -> dict[bytes, bytes]:
    status, *lines = head.split(b"\r\n")
    if not status.startswith(b"HTTP/1.1 "):
        raise ValueError("the answer is not HTTP")
    pairs = (line.partition(b":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _received(connection: socket.socket, deadline: float, *, nothing_yet: bool) -> bytes:
    connection.settimeout(_left(deadline))
    received = connection.recv(65536)
    if received:
        return received
    if nothing_yet:
        raise ConnectionResetError("the connection was closed before an answer")
    raise ValueError("the answer was cut short")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


class TimedReading(io.RawIOBase):
    """Reads a socket until `ends_at` (monotonic); the socket's own timeout also bounds each wait."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, ends_at: float) -> None:
        self._raw = raw
        self._sock = sock
        self._longest_wait_s = sock.gettimeout() or 0.0
        self._ends_at = ends_at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("too slow")
        self._sock.settimeout(min(self._longest_wait_s, left_s))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
