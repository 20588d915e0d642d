"""Reading from a socket until a moment: one that drips must not hold its thread for ever."""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class TimedReading(io.RawIOBase):
    """A socket's bytes until `ends_at` (monotonic); each wait is no longer than the socket's own time limit."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, ends_at: float) -> None:
        self._raw = raw
        self._sock = sock
        self._longest_wait_s = sock.gettimeout() or 0.0
        self._ends_at = ends_at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("too slow")
        self._sock.settimeout(min(self._longest_wait_s, left_s))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
