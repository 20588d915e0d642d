"""Hardening of a process that holds keys: no core dumps, no debugger, no network, no keys on disk."""

from __future__ import annotations

import ctypes
import logging
import os
import resource
from pathlib import Path

from core.process import give_up_network

log = logging.getLogger(__name__)

_PR_SET_DUMPABLE = 4
_MCL_CURRENT = 1
_MCL_ONFAULT = 4


def harden() -> None:
    """Forbids core dumps, debuggers and /proc/PID/mem to other processes of our user, and itself the network.

    Raises OSError; a network that cannot be taken away is a warning in the log.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "failed to make the process undumpable")
    os.umask(0o077)
    if problem := give_up_network():
        log.warning("the network cannot be taken from this process, which holds keys: %s", problem)


def lock_memory() -> str:
    """Keeps the memory in use now out of swap; call it once the keys are loaded. Returns "", or why it could not.

    Later memory is left alone (no MCL_FUTURE): under a limit the 128 MiB of the next scrypt, or any thread, would fail.
    Pages that were never touched stay untouched (MCL_ONFAULT).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_ONFAULT) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def has_swap(swaps: Path = Path("/proc/swaps")) -> bool:
    """Tells whether this machine may swap memory to a disk. True when that cannot be found out."""
    try:
        return len(swaps.read_text().splitlines()) > 1
    except OSError:
        return True
