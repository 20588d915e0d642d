"""A task's journal on disk, for `bidkeeper replay`: the basis of its decisions. Bounded, never in trading's way."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from core.files import require_room
from core.layout import older
from strategy.decision import Entry
from strategy.journal import Encoder

log = logging.getLogger(__name__)

MAX_BYTES = 5_000_000  # for each of two files: the newer one and the older one
# A run of lines that need each other ends when they take so many times the room of the one they begin with: to read a
# line takes those of its run, and to begin anew costs a ninth of the file at most.
RUN = 8


class Journal:
    """Appends entries to `path`, in a directory whose parent is there. One process writes to it at a time.

    Without an absolute path it writes nothing: made-up settings, as in a zygote's warm-up, name no directory.
    """

    def __init__(self, path: Path | None, max_bytes: int = MAX_BYTES) -> None:
        self._path = path if path is not None and path.is_absolute() else None
        self._max_bytes = max_bytes
        self._encoder = Encoder()
        self._is_failing = False
        self._first_bytes = self._later_bytes = 0  # of the run that is being written

    def write(self, entry: Entry) -> None:
        """Appends one entry. One that cannot be written is left out, with one log line until it can be again."""
        if self._path is None:
            return
        try:
            require_room(self._path.parent)
            self._append(self._path, entry)
        except Exception as error:
            # A journal is worth less than any cycle, so no fault of it may end one.
            self._encoder.forget()
            if not self._is_failing:
                log.warning("failed to write the journal %s: %s: %s", self._path, type(error).__name__, error)
            self._is_failing = True
        else:
            self._is_failing = False

    def _append(self, path: Path, entry: Entry) -> None:
        size = path.stat().st_size if path.exists() else 0
        if size == 0 or self._later_bytes >= RUN * self._first_bytes:
            self._encoder.forget()  # another file, an emptied one, or the next run
        begins = self._encoder.is_at_beginning
        line = f"{self._encoder.line(entry)}\n".encode()
        if size and size + len(line) >= self._max_bytes:
            path.replace(older(path))
            self._encoder.forget()
            begins, size, line = True, 0, f"{self._encoder.line(entry)}\n".encode()
        fd = _opened(path)
        try:
            # The last writer may have been killed within a line.
            is_torn = begins and size and os.pread(fd, 1, size - 1) != b"\n"
            _write_whole(fd, b"\n" + line if is_torn else line, size)
        finally:
            os.close(fd)
        self._first_bytes, self._later_bytes = (
            (len(line), 0) if begins else (self._first_bytes, self._later_bytes + len(line))
        )


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _write_whole(fd: int, line: bytes, size: int) -> None:
    """Writes the whole line or, when the disk is full, nothing of it."""
    try:
        if os.write(fd, line) != len(line):
            raise OSError("no space left for the whole line")
    except OSError:
        os.ftruncate(fd, size)
        raise
