"""The answering side of `core/local.py`: one JSON line each way over a Unix socket."""

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
from pathlib import Path
from typing import Any

from core.errors import PeerRefused
from core.local import MAX_LINE

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
    SO_PEERCRED decides who is served.
    """
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

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            peer = writer.get_extra_info("socket")
            if peer_uid(peer._sock if hasattr(peer, "_sock") else peer) not in allowed:
                log.warning("refused a connection of another user at %s", path.name)
                return
            while line := await reader.readline():
                writer.write(json.dumps(await _answer(handle, line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError, asyncio.CancelledError):
            # Cancelled means that this process is ending; re-raising would only fill the log (Python 3.11).
            log.debug("connection at %s ended early", path.name)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    return await asyncio.start_unix_server(connected, sock=bind(path, allowed), limit=MAX_LINE)


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
