"""A filter of the kernel (seccomp) that takes the network from a process: it may open Unix sockets and no others.

For processes that never need a network, so that nobody who gets in carries away what they hold. It cannot be taken
back, children inherit it, and all threads have it. Sockets that are open already, and those that another process hands
over a Unix socket, stay usable; files and all other calls are as before.

One way around is such a file: whoever may trace another process may write into it through /proc/PID/mem, and use its
network. That is every dumpable process of the same Unix user, until the kernel lets only ancestors trace
(kernel.yama.ptrace_scope=1) or each process has a user of its own.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1
# For all threads; and without the brake on speculation that older kernels put on whoever has a filter.
_ALL_THREADS, _AT_FULL_SPEED = 1, 4
# Of a program for the kernel's packet filter: loads a word, compares it with a constant, returns.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # where they stand in the kernel's description of a call
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
_OTHER_ABI = 0x40000000  # x86_64's calls with pointers of 32 bits count from here


@dataclass(frozen=True, slots=True)
class Calls:
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
