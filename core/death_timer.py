"""The kernel's alarm that kills this process when its time is up, whatever it does then, and if it is stopped, too."""

from __future__ import annotations

import ctypes
import os
import signal
import time

from core.errors import BidkeeperError

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
