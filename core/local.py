"""One line each way, by which processes of one installation ask each other.

Over a Unix socket, or over TLS at a `core.tls.FarAddress`. The asking side; the answering side is
`core/local_server.py`, apart so that a worker never imports asyncio.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Protocol

from core.errors import PeerUnavailable

MAX_LINE = 1 << 20
# The kernel's sun_path holds 108 bytes with its final NUL.
MAX_SOCKET_PATH = 107


class Far(Protocol):
    """An address on another host; its text is what people call it."""

    def connect(self, timeout: float) -> socket.socket:
        """Opens a connection, each of whose steps takes at most `timeout` seconds. Raises OSError."""


Address = Path | Far


def socket_path_problem(path: Path) -> str | None:
    """Says why `path` cannot be a Unix socket's address, or None if it can."""
    length = len(os.fsencode(path))
    if length > MAX_SOCKET_PATH:
        return (
            f"socket path {path} has {length} bytes, the kernel takes {MAX_SOCKET_PATH}: use a shorter data directory"
        )
    return None


def exchange(address: Address, peer: str, line: bytes, *, timeout: float) -> bytes:
    """Sends one line to the `peer` at `address` and returns the line that it answers.

    `timeout` (seconds) bounds each step of the exchange. Raises PeerUnavailable when the peer cannot be reached
    or its answer is lost.
    """
    try:
        with _connected(address, timeout) as connection:
            connection.sendall(line)
            with connection.makefile("rb") as answers:
                answer = answers.readline(MAX_LINE)
    except OSError as error:
        where = f"over {address.name}" if isinstance(address, Path) else f"at {address}"
        raise PeerUnavailable(peer, f"cannot be asked {where}: {error.strerror or error}") from error
    if not answer.endswith(b"\n"):
        raise PeerUnavailable(peer, "closed the connection without an answer")
    return answer


def _connected(address: Address, timeout: float) -> socket.socket:
    if not isinstance(address, Path):
        return address.connect(timeout)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(os.fspath(address))
    except OSError:
        connection.close()
        raise
    return connection
