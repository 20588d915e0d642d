"""A worker's log file: stdout and stderr go there, so that it has import errors and crashes of C code, too."""

from __future__ import annotations

import os
from pathlib import Path

MAX_BYTES = 1 << 20
KEPT = 3  # files: the newest and two older ones
_STDERR = 2


class OwnLog:
    """The log file `path`, and its older ones `path`.1, `path`.2."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._redirect()
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._redirect()

    def rotate(self) -> None:
        """Begins a new file when this one is full. Between cycles, so that no traceback is torn apart."""
        if os.fstat(_STDERR).st_size < MAX_BYTES:
            return
        for number in range(KEPT - 1, 0, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        self._redirect()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _redirect(self) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for standard in (1, _STDERR):
            os.dup2(fd, standard)
        os.close(fd)
