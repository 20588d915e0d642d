"""Writing to a disk that may be full: durable file names, records overwritten in place, and reserved space.

A brake must work on a full disk, so the space for its records is allocated in advance.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import logging
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

# With less free space than this on the disk of a program's directory, nothing new is placed or signed.
FLOOR_BYTES = 64 << 20

SHORT_OF_DISK = (
    f"the disk of the data directory has less than {FLOOR_BYTES >> 20} MiB free: make room; until then nothing is"
    " placed, and cancels are sent"
)
# This file is removed when the disk is full, so that necessary writes still succeed.
RESERVE_BYTES = 16 << 20
RESERVE = "reserve"

log = logging.getLogger(__name__)

_without_reserve: set[Path] = set()  # directories whose reserve could not be made
_KEEP_SIZE = 1  # flag of fallocate: do not change the file's size
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WORDS_OF_FULL = ("disk is full", "No space left on device")  # in errors of SQLite and PostgreSQL


def sync_directory(directory: Path) -> None:
    """Syncs `directory`, so that its new and renamed files survive a crash."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_short(directory: Path) -> bool:
    """Tells whether the disk of `directory` has less free space than FLOOR_BYTES. Raises OSError."""
    return _free_bytes(directory) < FLOOR_BYTES


def require_room(directory: Path) -> None:
    """Raises OSError if `directory` exists and its disk is short of space. Use it before optional writes."""
    if directory.exists() and is_short(directory):
        raise OSError(errno.ENOSPC, f"less than {FLOOR_BYTES >> 20} MiB of the disk are free", os.fspath(directory))


@contextlib.contextmanager
def kept_reserve(directory: Path, every_s: float = 5.0) -> Iterator[None]:
    """Keeps the reserve of `directory` during the block: a thread makes it, and makes it again after it was freed."""
    is_over = threading.Event()

    def keep() -> None:
        make_reserve(directory)
        while not is_over.wait(every_s):
            make_reserve(directory)

    keeper = threading.Thread(target=keep, name="reserve", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        is_over.set()
        keeper.join()


def make_reserve(directory: Path) -> None:
    """Makes the reserve of `directory` unless it exists or would leave the disk short of space.

    A failure is logged once, and again only after a success.
    """
    path = directory / RESERVE
    try:
        if path.exists() or _free_bytes(directory) < FLOOR_BYTES + RESERVE_BYTES:
            return
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, RESERVE_BYTES)
        finally:
            os.close(handle)
        _without_reserve.discard(directory)
    except OSError as error:
        if directory not in _without_reserve:
            log.warning("failed to keep %d bytes in reserve in %s: %s", RESERVE_BYTES, directory, error.strerror)
        _without_reserve.add(directory)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def free_reserve(directory: Path) -> bool:
    """Removes the reserve of `directory` because its disk is full; returns whether there was one."""
    try:
        (directory / RESERVE).unlink()
    except OSError:
        return False
    log.error("the disk of %s is full: its reserve of %d bytes is freed", directory, RESERVE_BYTES)
    return True


def keep_room(file: int, size: int) -> None:
    """Allocates `size` bytes after the end of an open file for later appends. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.c_int64(os.fstat(file).st_size)
    if libc.fallocate64(file, _KEEP_SIZE, start, ctypes.c_int64(size)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _free_bytes(directory: Path) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def is_full(error: BaseException | None) -> bool:
    """Tells whether an error or one of its causes is a full disk.

    Only texts of system and database errors are searched, because other texts may quote outside input.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        of_database = any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
        if (of_database or isinstance(error, OSError)) and any(words in str(error) for words in _WORDS_OF_FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


class Brake(Struct, frozen=True):
    """A control state that has been in force for a subject since `since_ms` (Unix)."""

    scope: str
    subject: str
    state: str
    since_ms: int


class BrakeFile:
    """Brakes that could not be stored elsewhere, in a file whose whole space is allocated when it is made.

    Each brake has a place of two halves, each with a checksum. A change overwrites the older half and returns when it
    is on disk, so that a crash during the write leaves the old brake. One process may open the file at a time; its
    threads may share it.
    """

    PLACES = 4_096
    _HALF = 512  # bytes: a disk sector, which is written in one step
    _HEAD = struct.Struct(">QHI")  # number of the write to this place, length of the text, checksum

    def __init__(self, path: Path) -> None:
        """Reads or makes the file. If the disk is too full to make it, each `put` tries again."""
        self._path = path
        self._lock = threading.Lock()
        self._file = -1
        self._at: dict[tuple[str, str], int] = {}
        self._held: dict[int, Brake] = {}
        self._writes: dict[int, int] = {}  # by place: the number of its last write
        try:
            self._open()
        except OSError as error:
            if not is_full(error):
                raise

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def all(self) -> list[Brake]:
        """Returns all brakes, oldest first."""
        with self._lock:
            return sorted(self._held.values(), key=lambda brake: (brake.since_ms, brake.scope, brake.subject))

    def get(self, scope: str, subject: str) -> Brake | None:
        with self._lock:
            at = self._at.get((scope, subject))
            return None if at is None else self._held[at]

    def put(self, scope: str, subject: str, state: str, since_ms: int) -> None:
        """Stores a brake; replaces the subject's former one. Raises OSError if it cannot be stored."""
        brake = Brake(scope, subject, state, since_ms)
        with self._lock:
            self._open()
            at = self._at.get((scope, subject))
            if at is None:
                at = self._free_place(scope)
            self._write(at, json.dumps([scope, subject, state, since_ms]).encode())
            self._at[scope, subject] = at
            self._held[at] = brake

    def remove(self, scope: str, subject: str) -> None:
        """Removes a brake, if it is there. Raises OSError."""
        with self._lock:
            at = self._at.get((scope, subject))
            if at is not None:
                self._write(at, b"")
                del self._at[scope, subject], self._held[at]

    def _free_place(self, scope: str) -> int:
        """Returns a free place; the first is reserved for the whole installation's brake. Raises OSError."""
        places = range(1) if scope == "global" else range(1, self.PLACES)
        for at in places:
            if at not in self._held:
                return at
        raise OSError(errno.ENOSPC, f"all {self.PLACES} places are taken", os.fspath(self._path))

    def _open(self) -> None:
        if self._file >= 0:
            return
        if not self._path.exists():
            _make_full(self._path, self.PLACES * 2 * self._HALF)
        self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        everything = os.pread(self._file, self.PLACES * 2 * self._HALF, 0)
        for at in range(self.PLACES):
            self._read(at, everything[2 * at * self._HALF : 2 * (at + 1) * self._HALF])

    def _read(self, at: int, place: bytes) -> None:
        number, text = max(self._half(place[: self._HALF]), self._half(place[self._HALF :]))
        self._writes[at] = number
        if text:
            brake = Brake(*json.loads(text))
            self._at[brake.scope, brake.subject] = at
            self._held[at] = brake

    def _half(self, half: bytes) -> tuple[int, bytes]:
        """Returns number and text of a half; 0 and b"" if it was never written, or only in part."""
        if len(half) < self._HEAD.size:
            return 0, b""
        number, length, checksum = self._HEAD.unpack_from(half)
        text = half[self._HEAD.size :][:length]
        return (number, text) if checksum == _checksum(number, text) else (0, b"")

    def _write(self, at: int, text: bytes) -> None:
        if len(text) > self._HALF - self._HEAD.size:
            raise ValueError(f"a brake of {len(text)} bytes has no room in its place")
        number = self._writes[at] + 1
        written = self._HEAD.pack(number, len(text), _checksum(number, text)) + text
        os.pwrite(self._file, written, (2 * at + number % 2) * self._HALF)
        os.fsync(self._file)
        self._writes[at] = number


def _checksum(number: int, text: bytes) -> int:
    return zlib.crc32(number.to_bytes(8, "big") + text)


def _make_full(path: Path, size: int) -> None:
    """Makes a file of zeros atomically, with all its blocks on disk. Raises OSError."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            zeros = memoryview(bytes(size))
            while zeros:
                zeros = zeros[os.write(handle, zeros) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        fresh.rename(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
