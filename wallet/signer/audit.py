"""The signer's audit log: one JSON line a signature, chained by hashes, on disk before the signature leaves.

A line has the user and the signed terms, with the SHA-256 of the message; no keys, no signatures, no secrets. Other
lines record control states, the addresses of users' keys, and undone signatures, which could not be stored and so never
left the signer. An older log may have lines about forms of drafts (`learnt_sha256`), which no longer matter. Each line
has the SHA-256 of the line before it, so that a change or removal of one line breaks every later one.

Space for the next lines is reserved past the log's end, so that cancels and brakes can still be logged, and so signed,
when the disk is full.

The keystore is written first, then the line about a user's keys, and only then the addresses are returned. So after a
crash the keystore may have keys that the log lacks and that were never shown. A keystore that lacks keys of the log is
an older copy: it would give a new user the number, and so the keys, of a user that it lacks. Play keys have no lines.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from core.errors import BidkeeperError
from core.files import is_full, keep_room, sync_directory
from wallet.keystore.keys import Keystore, KeystoreError
from wallet.protocol import UserKeys

log = logging.getLogger(__name__)

FIRST = "0" * 64
UNDONE = "undone"
# 1 to 2 times this much is reserved past the log's end: room for at least about 9,000 lines of cancels.
ROOM_BYTES = 4 << 20
_BLOCK = 1 << 16


class AuditError(BidkeeperError):
    """The audit log is broken, or in use by another signer; the message says where."""


class AuditLog:
    """The log, open for appending. Its lock keeps a second signer out of the whole directory."""

    def __init__(self, path: Path, free_reserve: Callable[[], bool] = lambda: False) -> None:
        """Opens the log. Raises AuditError when another process holds it or its last line cannot be read.

        `free_reserve` frees space on a full disk, and returns whether it did.
        """
        self._path = path
        self._free_reserve = free_reserve
        self._room_to = 0  # the end of the reserved space
        existed = path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AuditError(f"another signer is running: {path} is locked") from None
            self._drop_torn_line(path)
            self._number, self._head = self._last()
            self._signed: tuple[int, int, str] | None = None  # time, number and intent of the last line with an intent
            self._undone: tuple[int, int, str] | None = None  # of a line that must be undone before the next line
            self._one_at_a_time = threading.Lock()  # unlocking writes in another thread
        except BaseException:
            os.close(self._file)
            raise
        if not existed:
            sync_directory(path.parent)
        if problem := self.keep_room():
            log.warning("too little room is kept for the lines of cancels on a full disk: %s", problem)

    @property
    def number(self) -> int:
        """The last line's number, from 1; 0 in an empty log."""
        return self._number

    def close(self) -> None:
        os.close(self._file)

    def keep_room(self) -> str:
        """Reserves space for the next lines, in fixed steps, so that a restart needs no more space.

        Returns "", or the reason why it failed.
        """
        end = os.fstat(self._file).st_size
        room_to = (end // ROOM_BYTES + 2) * ROOM_BYTES
        if self._room_to < room_to:
            try:
                keep_room(self._file, room_to - end)
            except OSError as error:
                return str(error.strerror)
            self._room_to = room_to
        return ""

    def entries(self, operations: frozenset[str], after_ms: int) -> Iterator[dict[str, Any]]:
        """Yields the log's lines of these operations that are later than `after_ms`, in their order."""
        named = [f'"operation":"{operation}"'.encode() for operation in operations]
        with self._path.open("rb") as lines:
            for line in lines:
                if any(name in line for name in named) and (entry := json.loads(line))["time_ms"] > after_ms:
                    yield entry

    def append(self, time_ms: int, entry: dict[str, Any]) -> None:
        """Writes one line and returns once it is on disk. If it raises OSError, nothing may be signed."""
        with self._one_at_a_time:
            self._write_undone()
            self._write(time_ms, entry)
            if "intent" in entry:
                self._signed = time_ms, self._number, entry["intent"]

    def undo(self, since: int) -> None:
        """Marks the signature after line `since` as undone, because its transaction failed. A mark that cannot be
        written now is written before the next line.
        """
        with self._one_at_a_time, contextlib.suppress(OSError):
            if self._signed is not None and self._signed[1] > since:
                self._undone = self._signed
                self._write_undone()

    def _write_undone(self) -> None:
        if self._undone is not None:
            time_ms, line, intent = self._undone
            self._write(time_ms, {"operation": UNDONE, "line": line, "intent": intent})
            self._undone = None

    def _write(self, time_ms: int, entry: dict[str, Any]) -> None:
        line = _line({"number": self._number + 1, "time_ms": time_ms, **entry, "previous": self._head})
        try:
            self._put(line)
        except OSError as error:
            if not (is_full(error) and self._free_reserve()):
                raise
            self._put(line)
        self.keep_room()
        self._number += 1
        self._head = hashlib.sha256(line).hexdigest()

    def _put(self, line: bytes) -> None:
        size = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, size)
            self._room_to = size  # truncating released the reserved space
            raise

    def _drop_torn_line(self, path: Path) -> None:
        """Truncates a line that a crash left unfinished: its signature never left the signer."""
        size = os.fstat(self._file).st_size
        end = size
        while end > 0:
            start = max(0, end - _BLOCK)
            newline = os.pread(self._file, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            log.warning("%s ended in an unfinished line of %d bytes: cut off", path.name, size - end)
            os.ftruncate(self._file, end)
            os.fsync(self._file)

    def _last(self) -> tuple[int, str]:
        size = os.fstat(self._file).st_size
        if size == 0:
            return 0, FIRST
        start = max(0, size - _BLOCK)
        line = os.pread(self._file, size - start, start).splitlines(keepends=True)[-1]
        return _number(line, "last line"), hashlib.sha256(line).hexdigest()


def verify_chain(path: Path) -> int:
    """Reads the whole log and returns its number of lines. Raises AuditError at the first wrong line.

    Missing lines at the end cannot be detected from the log alone: compare the number with a copy kept elsewhere.
    """
    previous, count = FIRST, 0
    with path.open("rb") as lines:
        for count, line in enumerate(lines, 1):
            if _number(line, f"line {count}") != count or json.loads(line).get("previous") != previous:
                raise AuditError(f"line {count} of {path.name} does not follow the one before it")
            previous = hashlib.sha256(line).hexdigest()
    return count


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _number(line: bytes, where: str) -> int:
    try:
        entry = json.loads(line)
        if line.endswith(b"\n") and type(entry["number"]) is int:
            return int(entry["number"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise AuditError(f"the {where} of the audit log is unreadable")


_OPERATION = "keys"
_ADDRESSES = ("payment", "vault")

Line = dict[str, Any]


def line_of(user_number: int, user: str, keys: UserKeys) -> Line:
    """Returns the audit entry of a user's keys."""
    addresses = {"payment": keys.payment, "vault": keys.vault}
    return {"operation": _OPERATION, "user": user, "user_number": user_number, **addresses}


def require_noted(audit_log: Path, opened: Keystore) -> list[Line]:
    """Returns the lines that the log lacks, in order of the users' numbers.

    Raises KeystoreError if the keystore does not belong to the log, or is an older copy.
    """
    noted = _noted(audit_log)
    _require_numbers(noted, opened.users)
    missing = []
    for number, user in enumerate(opened.users):
        line = line_of(number, user, opened.secrets_of(user).public)
        said = noted.get(number, [])
        if not said:
            missing.append(line)
        elif not _matches(said[-1], line):
            imported = opened.imported_of(user)
            is_newer = all(line[name] == said[-1][name] or name in imported for name in _ADDRESSES)
            if not is_newer or any(_matches(each, line) for each in said):
                raise KeystoreError(
                    f"keystore.json has other keys for the user of line {said[-1]['number']} of audit.jsonl: put the"
                    " newest keystore.json back, or import that user's keys again"
                )
            missing.append(line)  # a crash came between an import and its line
    return missing


def require_numbers(audit_log: Path, users: Sequence[str]) -> None:
    """Raises KeystoreError if the log has one of these users' numbers for another user."""
    _require_numbers({number: lines for number, lines in _noted(audit_log).items() if number < len(users)}, users)


def _noted(audit_log: Path) -> dict[int, list[Line]]:
    """Returns the log's lines about keys, oldest first, by the users' numbers."""
    found = defaultdict(list)
    with audit_log.open("rb") as lines:
        for line in lines:
            # Lines of other operations may contain this text, because clients choose parts of them.
            if b'"user_number"' in line and (entry := json.loads(line)).get("operation") == _OPERATION:
                found[entry["user_number"]].append(entry)
    return found


def _require_numbers(noted: dict[int, list[Line]], users: Sequence[str]) -> None:
    for number, lines in noted.items():
        for line in lines:
            if line["user"] != (users[number] if number < len(users) else None):
                raise KeystoreError(
                    f"keystore.json does not have the user of line {line['number']} of audit.jsonl as number {number}:"
                    " put the newest keystore.json back, or make it anew from its words with all users in their order"
                )


def _matches(noted: Line, line: Line) -> bool:
    return line.items() <= noted.items()
