"""Counts the product's files that a process enters; Python runs this first in every process of a watched installation.

TRIP names a directory. While the first byte of its file `on` is 1, each call of a function in another file than the
thread's last call adds a line to the process's file: the time in ns, and the file's name.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from types import FrameType
from typing import Any


def begin(trip: str, tree: str, folders: frozenset[str]) -> None:
    """Watches this process, its threads and its forks from now on."""
    with open(f"{trip}/on", "r+b") as file:  # noqa: PTH123 - pathlib would be a tenth of a short program
        is_on = mmap.mmap(file.fileno(), 1)
    start = f"{tree}/"
    names: dict[str, str] = {}
    last = threading.local()

    def counted(path: str) -> str:
        name = path.removeprefix(start)
        names[path] = name if name != path and name.partition("/")[0] in folders else ""
        return names[path]

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not is_on[0]:
            return
        path = frame.f_code.co_filename
        name = names[path] if path in names else counted(path)
        if name and name != getattr(last, "name", ""):
            last.name = name
            # Opened for each line: a fork has its own file, and a program may close descriptors it did not open.
            file = os.open(f"{trip}/{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, f"{time.monotonic_ns()} {name}\n".encode())
            os.close(file)

    threading.setprofile(count)
    sys.setprofile(count)


if "TRIP" in os.environ:
    begin(os.environ["TRIP"], os.environ["TRIP_TREE"], frozenset(os.environ["TRIP_FOLDERS"].split()))
