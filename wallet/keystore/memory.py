"""What a process takes from itself before it holds a key, and how it keeps the keys off the disk."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path

_PR_SET_DUMPABLE = 4
_MCL_CURRENT = 1
_MCL_ONFAULT = 4


def harden() -> None:
    """No core dump, and no debugger or /proc/PID/mem for other processes of our user. Raises OSError."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "failed to make the process undumpable")
    os.umask(0o077)


def lock_memory() -> str:
    """Keeps what is in memory now from being swapped out: call it once the keys are there. "", or why it is not done.

    Not for what comes later (MCL_FUTURE): under a limit the 128 MiB of the next scrypt, or any thread, would fail.
    Pages that were never touched stay untouched (MCL_ONFAULT).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_ONFAULT) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def has_swap(swaps: Path = Path("/proc/swaps")) -> bool:
    """Whether this machine may write memory to a disk. True when that cannot be seen."""
    try:
        return len(swaps.read_text().splitlines()) > 1
    except OSError:
        return True
