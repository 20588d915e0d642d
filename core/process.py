"""Process control: locks, exit with the parent or at a set time, and giving up the network.

A process that never needs the network gives it up, so that an intruder cannot send out what the process holds. This is
permanent, and covers all threads and child processes. Sockets that are open already, or that another process passes
over a Unix socket, stay usable; files and all other system calls are unaffected.

One gap remains: a process that may trace another one can write to its memory through /proc/PID/mem, and so use its
network. A process may trace each dumpable process of its own Unix user, unless the kernel lets only ancestors trace
(kernel.yama.ptrace_scope=1) or each process has its own user.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from msgspec import Struct

from core.errors import BidkeeperError

# The command of all our programs. Without -P a folder `cli` or `core` in the working directory would be imported.
PYTHON = (sys.executable, "-P")
PARENT = "BIDKEEPER_PARENT"  # environment variable in which the process that starts a program passes its own pid
_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int | None = None, by: signal.Signals = signal.SIGTERM) -> None:
    """Has the kernel send this process the signal `by` when the thread that started it ends.

    Call it from the main thread. `parent` is the pid of the process that started this one. If that process has already
    ended, the signal would never arrive, so SystemExit is raised. (A comparison with pid 1 is wrong in containers.)
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, by, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "failed to ask for a signal at the parent's end")
    if parent is not None and os.getppid() != parent:
        raise SystemExit("the process that started this one is gone")


def hold_lock(path: Path) -> int | None:
    """Locks the file at `path` until this process ends; returns its descriptor, or None if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


_CLOCK_BOOTTIME = 7  # also runs while the machine sleeps
_TIMER_ABSTIME = 1
_SIGEV_SIGNAL = 0


class _Event(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("padding", ctypes.c_char * 48),
    )


class _Times(ctypes.Structure):
    _fields_ = (("every_s", ctypes.c_long), ("every_ns", ctypes.c_long), ("s", ctypes.c_long), ("ns", ctypes.c_long))


def now_s() -> float:
    """Returns the seconds since the machine's start, including its sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def check_mortal() -> None:
    """Raises BidkeeperError in process 1 of a container, because the kernel delivers no signal of DeathTimer to it."""
    if os.getpid() == 1:
        raise BidkeeperError(
            "as process 1 of its container this program would outlive its lease: start it under an init"
            " (docker run --init; shareProcessNamespace in Kubernetes)"
        )


class DeathTimer:
    """A timer that kills this process, but not its children; it ends with the program, or by `disarm`.

    Its SIGKILL cannot be caught or blocked, and also reaches a process that SIGSTOP has stopped.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = _Event(signal=signal.SIGKILL, notify=_SIGEV_SIGNAL)
        self._check(self._libc.timer_create(_CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(self._timer)))

    def arm(self, at_s: float) -> None:
        """Has the kernel kill this process when `now_s()` reaches `at_s`; replaces the time set before."""
        seconds = max(at_s, 0.001)  # 0 would disarm the timer
        self._set(_Times(0, 0, int(seconds), int(seconds % 1 * 1_000_000_000)))

    def disarm(self) -> None:
        """Stops the timer."""
        self._set(_Times(0, 0, 0, 0))

    def _set(self, times: _Times) -> None:
        self._check(self._libc.timer_settime(self._timer, _TIMER_ABSTIME, ctypes.byref(times), None))

    def _check(self, failed: int) -> None:
        if failed:
            raise OSError(ctypes.get_errno(), "failed to set the timer that ends this process")


_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1
# Flags: filter all threads; do not limit speculative execution, which older kernels do by default with a filter.
_ALL_THREADS, _AT_FULL_SPEED = 1, 4
# Instructions of the kernel's packet filter: load a word, compare it with a constant, return.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in the kernel's struct seccomp_data
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
_OTHER_ABI = 0x40000000  # numbers from here on are the x32 calls of x86_64


class Calls(Struct, frozen=True):
    """The filter's code of a machine's architecture, and the numbers of its system calls.

    `others` are calls that would bypass the filter: io_uring, whose calls no filter sees, and access to other
    processes, which may have a network.
    """

    machine: int
    seccomp: int
    sockets: tuple[int, ...]  # socket, socketpair
    others: tuple[int, ...]  # io_uring_setup, _enter, _register, pidfd_getfd, ptrace, process_vm_readv, _writev


_EVERYWHERE = (425, 426, 427, 438)
CALLS = {
    "x86_64": Calls(0xC000003E, 317, (41, 53), (*_EVERYWHERE, 101, 310, 311)),
    "aarch64": Calls(0xC00000B7, 277, (198, 199), (*_EVERYWHERE, 117, 270, 271)),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def give_up_network() -> str:
    """Takes the network from this process permanently. Returns "", or the reason of a failure."""
    calls = CALLS.get(os.uname().machine)
    if sys.platform != "linux" or calls is None or struct.calcsize("P") != 8:
        return f"there is no filter for {sys.platform} on {os.uname().machine}"
    libc = ctypes.CDLL(None, use_errno=True)
    # Without this flag the kernel accepts filters from root only. It also makes set-user-id programs gain no rights.
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return f"no_new_privs: {os.strerror(ctypes.get_errno())}"
    steps = program(calls)
    given = _Program(len(steps) // 8, steps)
    flags = ctypes.c_ulong(_ALL_THREADS | _AT_FULL_SPEED)
    answer = libc.syscall(ctypes.c_long(calls.seccomp), ctypes.c_ulong(_SET_MODE_FILTER), flags, ctypes.byref(given))
    if answer < 0:
        return f"seccomp: {os.strerror(ctypes.get_errno())}"
    if answer > 0:
        return f"seccomp: thread {answer} has a filter of its own"
    return "" if not _has_network() else "seccomp took the filter, and sockets can be opened all the same"


def program(calls: Calls) -> bytes:
    """Builds the filter: calls of another architecture, `others`, and all sockets except Unix ones fail with EPERM."""
    refused = [(_IF_EQUAL, number) for number in calls.others]
    # A test that matches jumps over the remaining ones to a step after them: check the socket's family, or refuse.
    tests = [(_IF_AT_LEAST, _OTHER_ABI), *refused, *[(_IF_EQUAL, number) for number in calls.sockets]]
    after = len(tests)
    steps = [(_LOAD, 0, 0, _MACHINE), (_IF_EQUAL, 0, after + 4, calls.machine), (_LOAD, 0, 0, _NUMBER)]
    for at, (test, number) in enumerate(tests):
        left = after - at - 1
        to_family, to_refusal = left + 1, left + 3
        steps.append((test, to_family if number in calls.sockets else to_refusal, 0, number))
    steps += [
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_IF_EQUAL, 1, 0, socket.AF_UNIX),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _has_network() -> bool:
    try:
        socket.socket(socket.AF_INET).close()
    except PermissionError:
        return False
    except OSError:
        return True
    return True
