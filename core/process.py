"""A process's own locks, its end with its parent or at a moment, and the network that it gives up.

Processes that never need a network give it up, so that nobody who gets in carries away what they hold. It cannot be
taken back, children inherit it, and all threads have it. Sockets that are open already, and those that another process
hands over a Unix socket, stay usable; files and all other calls are as before.

One way around is such a file: whoever may trace another process may write into it through /proc/PID/mem, and use its
network. That is every dumpable process of the same Unix user, until the kernel lets only ancestors trace
(kernel.yama.ptrace_scope=1) or each process has a user of its own.
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


_CLOCK_BOOTTIME = 7  # counts a machine's sleep, too
_TIMER_ABSTIME = 1
_SIGEV_SIGNAL = 0


class _Event(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    )


class _Times(ctypes.Structure):
    _fields_ = (("every_s", ctypes.c_long), ("every_ns", ctypes.c_long), ("s", ctypes.c_long), ("ns", ctypes.c_long))


def now_s() -> float:
    """Returns the seconds since the machine's start, those of its sleep among them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def check_mortal() -> None:
    """Raises BidkeeperError in process 1 of a container: the kernel keeps our alarm's signal from that one."""
    if os.getpid() == 1:
        raise BidkeeperError(
            "as process 1 of its container this program would outlive its lease: start it under an init"
            " (docker run --init; shareProcessNamespace in Kubernetes)"
        )


class DeathTimer:
    """A timer of this process, not of those that it starts; it ends with the program, or by `disarm`.

    SIGKILL cannot be caught or held back, and reaches a process that SIGSTOP has stopped.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = _Event(signal=signal.SIGKILL, notify=_SIGEV_SIGNAL)
        self._check(self._libc.timer_create(_CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(self._timer)))

    def arm(self, at_s: float) -> None:
        """Has the kernel kill this process at the moment `at_s` of `now_s`, and not at an earlier one given before."""
        seconds = max(at_s, 0.001)  # 0 would disarm it
        self._set(_Times(0, 0, int(seconds), int(seconds % 1 * 1_000_000_000)))

    def disarm(self) -> None:
        """Lets this process live."""
        self._set(_Times(0, 0, 0, 0))

    def _set(self, times: _Times) -> None:
        self._check(self._libc.timer_settime(self._timer, _TIMER_ABSTIME, ctypes.byref(times), None))

    def _check(self, failed: int) -> None:
        if failed:
            raise OSError(ctypes.get_errno(), "failed to set the timer that ends this process")


_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1
# For all threads; and without the brake on speculation that older kernels put on whoever has a filter.
_ALL_THREADS, _AT_FULL_SPEED = 1, 4
# Of a program for the kernel's packet filter: loads a word, compares it with a constant, returns.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # where they stand in the kernel's description of a call
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
_OTHER_ABI = 0x40000000  # x86_64's calls with pointers of 32 bits count from here


class Calls(Struct, frozen=True):
    """A machine's name for itself in the filter, and the numbers of its system calls.

    `others` are the ways around: rings of calls that no filter sees, and those into other processes, which may have a
    network.
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
    """Takes the network from this process for good. Returns "", or why it could not."""
    calls = CALLS.get(os.uname().machine)
    if sys.platform != "linux" or calls is None or struct.calcsize("P") != 8:
        return f"there is no filter for {sys.platform} on {os.uname().machine}"
    libc = ctypes.CDLL(None, use_errno=True)
    # Without it the kernel takes filters from root only; it also ends all gains by set-user-id programs.
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
    """Writes the filter: calls of another machine's kind and `others` fail with EPERM, so do sockets but Unix ones."""
    refused = [(_IF_EQUAL, number) for number in calls.others]
    # Each test of a call jumps over what follows it, to the ends: look at the family, refuse, allow.
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
