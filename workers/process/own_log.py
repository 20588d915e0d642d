"""Own log."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from core.layout import LOG_FILES, older

log = logging.getLogger(__name__)

MAX_BYTES = 1 << 20


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
        """Begins a new file when this one is full. Between cycles, so that no traceback is torn apart.

        On a full disk it cannot: then the next call tries again.
        """
        if os.fstat(_STDERR).st_size < MAX_BYTES:
            return
        try:
            for number in range(LOG_FILES - 1, 0, -1):
                newer = older(self._path, number - 1)
                if newer.exists():
                    newer.replace(older(self._path, number))
            self._redirect()
        except OSError as error:
            log.warning("failed to begin a new log file: %s", error.strerror)

    def _redirect(self) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for standard in (1, _STDERR):
            os.dup2(fd, standard)
        os.close(fd)
