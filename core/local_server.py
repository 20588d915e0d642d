"""The answering side of `core/local.py`: one JSON line each way, over a Unix socket or over TLS."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from ssl import SSLContext
from typing import Any

from core import tls
from core.errors import BidkeeperError, PeerRefused
from core.local import MAX_LINE, socket_path_problem
from core.setting_values import HostPort

log = logging.getLogger(__name__)

ROOT = 0

Handle = Callable[[dict[str, Any]], "dict[str, Any] | Awaitable[dict[str, Any]]"]


def peer_uid(connection: socket.socket) -> int:
    """Returns the user id of the process that connected (SO_PEERCRED), which need not be the one that writes."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return int(uid)


def bind(path: Path, allowed_uids: frozenset[int]) -> socket.socket:
    """Makes a listening Unix socket at `path`, in place of a dead process's.

    Its mode is 0600 when only our own user is allowed, and root, who opens any; else 0660: the group can open it, and
    SO_PEERCRED decides who is served. Raises BidkeeperError for a path that the kernel does not take.
    """
    if too_long := socket_path_problem(path):
        raise BidkeeperError(too_long)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous = os.umask(0o177 if allowed_uids <= {os.getuid(), ROOT} else 0o117)
    try:
        listener.bind(os.fspath(path))
    finally:
        os.umask(previous)
    listener.listen(512)
    listener.setblocking(False)
    return listener


async def serve(path: Path, handle: Handle, *, allowed_uids: frozenset[int] | None = None) -> asyncio.Server:
    """Answers each line at `path` by `handle`, its result wrapped as {"ok": ...}.

    `handle` may be a coroutine function; requests of one connection are answered in order. PeerRefused becomes
    {"error": code, "message": ...}; any other exception is logged and becomes the code `internal`. Connections of other
    users than `allowed_uids` (default: our own) are closed unread.
    """
    allowed = allowed_uids or frozenset({os.getuid()})

    def may_ask(writer: asyncio.StreamWriter) -> bool:
        peer = writer.get_extra_info("socket")
        return peer_uid(peer._sock if hasattr(peer, "_sock") else peer) in allowed

    connected = partial(_converse, handle, path.name, may_ask)
    return await asyncio.start_unix_server(connected, sock=bind(path, allowed), limit=MAX_LINE)


async def serve_far(
    at: HostPort, handle: Handle, *, context: SSLContext, roles: frozenset[str] = frozenset({tls.TRADER})
) -> asyncio.Server:
    """Answers as `serve` does, but other hosts, over TLS (`core.tls.server_context`) at `at`.

    Connections whose certificates are of other `roles` are closed unread. Raises BidkeeperError when the address cannot
    be used.
    """

    def may_ask(writer: asyncio.StreamWriter) -> bool:
        return tls.role_of(writer.get_extra_info("peercert")) in roles

    connected = partial(_converse, handle, str(at), may_ask)
    try:
        server = await asyncio.start_server(
            connected, at.host, at.port, ssl=context, ssl_handshake_timeout=tls.HANDSHAKE_S, limit=MAX_LINE
        )
    except OSError as error:
        raise BidkeeperError(f"failed to listen at {at}: {error.strerror or error}") from error
    for listener in server.sockets:
        tls.keep_alive(listener._sock)  # type: ignore[attr-defined]
    return server


async def _converse(
    handle: Handle,
    where: str,
    may_ask: Callable[[asyncio.StreamWriter], bool],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    try:
        if not may_ask(writer):
            log.warning("refused a connection of another user or role at %s", where)
            return
        while line := await _line(reader):
            writer.write(json.dumps(await _answer(handle, line)).encode() + b"\n")
            await writer.drain()
    except (OSError, asyncio.CancelledError):
        # Cancelled means that this process is ending; re-raising would only fill the log (Python 3.11).
        log.debug("connection at %s ended early", where)
    finally:
        writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Returns the next line, b"" at the end; a line that is too long ends the connection, too."""
    try:
        return await reader.readline()
    except ValueError:
        return b""


async def _answer(handle: Handle, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return {"error": "unreadable", "message": "the request is not JSON"}
    if not isinstance(request, dict):
        return {"error": "unreadable", "message": "the request is not an object"}
    try:
        result = handle(request)
        return {"ok": await result if inspect.isawaitable(result) else result}
    except PeerRefused as refusal:
        told = {"error": refusal.code, "message": refusal.message}
        return told if refusal.highest is None else told | {"highest": refusal.highest}
    except Exception:
        log.exception("failed to answer %s", request.get("op"))
        return {"error": "internal", "message": "failed; the log has the reason"}
