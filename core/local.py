"""One JSON line each way, by which processes of one installation ask manager and signer.

Over a Unix socket, or over TLS at a `core.tls.FarAddress`. The asking side; the answering side is
`core/local_server.py`, apart so that a worker never imports asyncio.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any, Protocol

from core.errors import PeerRefused, PeerUnavailable

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


def ask(address: Address, peer: str, request: dict[str, Any], *, timeout: float) -> dict[str, Any]:
    """Sends one request to the `peer` at `address` and returns the answer's `ok` object.

    Raises as `exchange` does, and PeerUnavailable for an answer that is unreadable, PeerRefused when it says no.
    """
    return _answer(peer, exchange(address, peer, json.dumps(request).encode() + b"\n", timeout=timeout))


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


def _answer(peer: str, line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError as error:
        raise PeerUnavailable(peer, "gave an answer that is not JSON") from error
    if not isinstance(answer, dict):
        raise PeerUnavailable(peer, "gave an answer that is not an object")
    ok = answer.get("ok")
    if isinstance(ok, dict):
        return ok
    highest = answer.get("highest")
    raise PeerRefused(
        peer,
        str(answer.get("error", "unreadable")),
        str(answer.get("message", "")),
        highest if type(highest) is int else None,
    )
