"""The server side of `core/call.py`: one JSON line each way, over a Unix socket or TLS."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from ssl import SSLContext
from typing import Protocol

from core import tls
from core.call import MAX_LINE, socket_path_problem
from core.errors import BidkeeperError
from core.process import hold_lock
from core.setting_values import HostPort

log = logging.getLogger(__name__)

ROOT = 0
LOOK_S = 2.0  # between two checks that a socket's file is there
_LAST_S = 0.1  # for which the old listener still accepts connections made before its file was removed

# Serves a listening socket; returns the call that stops it.
Accept = Callable[[socket.socket], Awaitable[Callable[[], object]]]


class Answering(Protocol):
    """An object that answers requests line by line, such as `core.call.Verbs`."""

    async def answer(self, line: bytes) -> bytes:
        """Answers one line of request with one line of answer."""


def peer_uid(connection: socket.socket) -> int:
    """Returns the user id of the process that connected (SO_PEERCRED); another process may do the writing."""
    return _peer(connection)[1]


def peer_pid(connection: socket.socket) -> int:
    """Returns the id of the process that connected; 0 if it is in a pid namespace that we cannot see."""
    return _peer(connection)[0]


def _peer(connection: socket.socket) -> tuple[int, int]:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return int(pid), int(uid)


def bind(path: Path, allowed_uids: frozenset[int]) -> socket.socket:
    """Makes a listening Unix socket at `path`; replaces any file that is there.

    The mode is 0600 if only our own user and root are allowed. Otherwise it is 0660: the group can open the socket, and
    SO_PEERCRED decides which users are served. Raises BidkeeperError for a path that is too long for the kernel.
    """
    if too_long := socket_path_problem(path):
        raise BidkeeperError(too_long)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(os.fspath(path))
        # Not set by the umask, because all threads share it. The kernel refuses connections until the socket listens.
        path.chmod(0o600 if allowed_uids <= {os.getuid(), ROOT} else 0o660)
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


class Door:
    """A listening Unix socket that is bound again if its file is removed or replaced. Open connections stay open.

    A path at which another live process listens is left alone, because two programs would take it from each other for
    ever. A lock that this process holds next to it (`gateway.lock` for `gateway.sock`) is also taken again.
    """

    def __init__(self, path: Path, allowed_uids: frozenset[int], accept: Accept, look_s: float = LOOK_S) -> None:
        """`accept` serves a listening socket and returns the call that stops it; checks are `look_s` apart."""
        self._path = path
        self._lock = path.with_suffix(".lock")
        self._allowed_uids = allowed_uids
        self._accept = accept
        self._look_s = look_s
        self._trouble = ""
        self._timer: asyncio.TimerHandle | None = None
        self._mending: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Binds the socket and starts to check it. Raises as `bind` does."""
        self._stop = await self._accept(self._bound())
        # If the directory is removed, it is made again with this owner and mode.
        self._directory = self._path.parent.stat()
        self._own_lock = _identity(self._lock)
        self._look_later()

    def close(self) -> None:
        """Accepts no more connections, and removes the file unless it belongs to another process."""
        if self._timer is not None:
            self._timer.cancel()
        if self._mending is not None:
            self._mending.cancel()
        if self._is_ours():
            self._path.unlink(missing_ok=True)
        self._stop()

    def _bound(self) -> socket.socket:
        listener = bind(self._path, self._allowed_uids)
        self._own = _identity(self._path)
        return listener

    def _is_ours(self) -> bool:
        # While our socket exists, the file system gives its inode number to no other file.
        return self._own is not None and _identity(self._path) == self._own

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._look_s, self._look)

    def _lacks_lock(self) -> bool:
        return self._own_lock is not None and _identity(self._lock) != self._own_lock

    def _look(self) -> None:
        if self._is_ours() and not self._lacks_lock():
            self._trouble = ""
            self._look_later()
        else:
            self._mending = asyncio.get_running_loop().create_task(self._mend())

    async def _mend(self) -> None:
        try:
            _make_again(self._path.parent, self._directory)
            if self._lacks_lock():
                if hold_lock(self._lock) is None:
                    raise BidkeeperError(f"another process holds {self._lock}: end one of the two")
                self._own_lock = _identity(self._lock)
            holder = None if self._is_ours() else _listener_at(self._path)
            if holder == os.getpid():  # still ours: some file systems change the numbers of inodes
                self._own = _identity(self._path)
            elif holder is not None:
                raise BidkeeperError(f"another process listens there (pid {holder or 'unknown'}): end one of the two")
            elif not self._is_ours():
                await self._bind_again()
        except (OSError, BidkeeperError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            self._complain(f"the socket {self._path} was removed or replaced, and cannot be made again: {reason}")
        self._look_later()

    async def _bind_again(self) -> None:
        former, self._stop = self._stop, await self._accept(self._bound())
        self._trouble = ""
        log.warning("the socket %s was removed or replaced: listens at a new one", self._path)
        try:
            await asyncio.sleep(_LAST_S)
        finally:
            former()

    def _complain(self, text: str) -> None:
        if text != self._trouble:
            log.error("%s", text)
        self._trouble = text


def _identity(path: Path) -> tuple[int, int] | None:
    """Returns device and inode of the file at `path`; None if it is missing or cannot be read."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _listener_at(path: Path) -> int | None:
    """Returns the pid of the process that listens at `path` (0: unknown), or None if no process does.

    Raises OSError if the connection fails for another reason.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except BlockingIOError:  # alive, with a full queue
            return 0
        except (FileNotFoundError, ConnectionRefusedError):  # also a file that is not a socket
            return None
        return peer_pid(probe)


def _make_again(directory: Path, former: os.stat_result) -> None:
    """Makes a removed directory again with its `former` owner and mode. Raises OSError.

    A missing parent is not made, because a file system may have been unmounted there.
    """
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return
    try:
        os.chown(directory, former.st_uid, former.st_gid)
    except PermissionError:
        log.error("%s is made again, closed to its former group %d: chgrp and chmod it", directory, former.st_gid)
    else:
        directory.chmod(stat.S_IMODE(former.st_mode))


async def serve(path: Path, answering: Answering, *, allowed_uids: frozenset[int] | None = None) -> Door:
    """Serves a Unix socket at `path`: answers each line.

    Requests of one connection are answered in order. Connections of other users than `allowed_uids` (default: our own)
    are closed unread.
    """
    allowed = allowed_uids or frozenset({os.getuid()})

    def may_ask(writer: asyncio.StreamWriter) -> bool:
        peer = writer.get_extra_info("socket")
        return peer_uid(peer._sock if hasattr(peer, "_sock") else peer) in allowed

    async def accept(listener: socket.socket) -> Callable[[], object]:
        connected = partial(_converse, answering, path.name, may_ask)
        return (await asyncio.start_unix_server(connected, sock=listener, limit=MAX_LINE)).close

    door = Door(path, allowed, accept)
    await door.open()
    return door


async def serve_far(
    at: HostPort, answering: Answering, *, context: SSLContext, roles: frozenset[str] = frozenset({tls.TRADER})
) -> asyncio.Server:
    """Serves other hosts as `serve` does, over TLS (`core.tls.server_context`) at `at`.

    A connection whose certificate has a role outside `roles` is closed unread. Raises BidkeeperError if the address
    cannot be used.
    """

    def may_ask(writer: asyncio.StreamWriter) -> bool:
        return tls.role_of(writer.get_extra_info("peercert")) in roles

    connected = partial(_converse, answering, str(at), may_ask)
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
    answering: Answering,
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
            writer.write(await answering.answer(line))
            await writer.drain()
    except (OSError, asyncio.CancelledError):
        # Cancelled means that this process is ending; re-raising would only fill the log (Python 3.11).
        log.debug("connection at %s ended early", where)
    finally:
        writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Returns the next line; b"" at the end of the connection, or for a line that is too long."""
    try:
        return await reader.readline()
    except ValueError:
        return b""
