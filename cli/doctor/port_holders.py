"""The processes of an installation, as the kernel shows them, and their ports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_LISTEN = "0A"


def own(data_dir: Path) -> dict[int, str]:
    """Returns command lines by pid of the processes that work in `data_dir`, which is in their environment.

    Processes of other users and those that hide from their own (the signer) are not seen.
    """
    mark = b"BIDKEEPER_DATA_DIR=" + os.fsencode(data_dir)
    found = {}
    for pid in _pids():
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    found.pop(os.getpid(), None)
    return found


def _pids() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def holds(pid: int, port: int) -> bool:
    """Tells whether this process listens at `port` (TCP)."""
    inodes = {f"socket:[{inode}]" for inode in _listening(port)}
    try:
        return any(str(entry.readlink()) in inodes for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _listening(port: int) -> Iterator[str]:
    """Yields the inodes of the sockets that listen at `port`."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                yield fields[9]
