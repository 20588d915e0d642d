"""The steps at the start of any process of this installation."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
from pathlib import Path

# Starts every program of ours. Without -P a folder `cli` or `core` where it is started would be taken for ours.
PYTHON = (sys.executable, "-P")
PARENT = "BIDKEEPER_PARENT"  # names the variable in which an engine tells a program its pid
_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int | None = None, by: signal.Signals = signal.SIGTERM) -> None:
    """Has the kernel send this process the signal `by` when the thread that started it ends.

    Call it from the main thread. `parent` is the pid that the starter gave: if it is gone already, the signal would
    never come, so the process ends at once. (Comparing with pid 1 instead would be wrong in containers.)
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, by, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "failed to ask for a signal at the parent's end")
    if parent is not None and os.getppid() != parent:
        raise SystemExit("the process that started this one is gone")


def hold_lock(path: Path) -> int | None:
    """Takes the lock file at `path` until this process dies; returns its descriptor, or None when another holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
