"""A worker's stop, heard wherever it is, without a thread of its own.

Asked:  SIGTERM raises StopAsked at any instruction; between cycles it ends the wait.
Woken:  SIGUSR1 ends the wait between cycles, so that the next one begins; one that comes during a cycle ends the next
        wait.
Orphan: the kernel sends SIGTERM when the manager's thread that started us ends (PDEATHSIG), and SIGIO when the other
        end of stdin, which the manager holds open, is closed. Either alone is enough: PDEATHSIG is per thread and lost
        at some exec calls, and the pipe stays open if a stray process inherits its end. Between cycles the wait looks
        at the pipe itself. A manager that was gone before PDEATHSIG was set is noticed by comparing the parent's pid.
Not covered: a manager that lives and is stuck. Its workers go on, each within its grant, and can still be killed.

And the process's title, and its network, which it gives up: it asks gateway, signer and a database in a file.
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import signal
import time
from types import FrameType

from core import process
from core.process import end_with_parent
from core.setting_values import database_hosts
from workers.kernel import WAKE

_STDIN = 0
_LONGEST_LINE = 4096


class StopAsked(BaseException):
    """The worker must end now. It may be raised at any instruction: that is no worse than a kill -9 there."""


class LifeLine:
    """Signals and stdin of this process. Make one, in the main thread, and only one."""

    def __init__(self, parent: int) -> None:
        """Connects signals and stdin. Ends the process (SystemExit) when `parent`, a pid, is no longer our parent."""
        self._stop_asked = False
        self._wake_asked = False
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # Written to by the C handler: a signal just before select() would otherwise be noticed only after it.
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, self._on_term)
        signal.signal(signal.SIGIO, self._on_io)
        signal.signal(WAKE, self._on_wake)
        self._parent = parent
        end_with_parent(parent)
        # The end of stdin comes as SIGIO. An end before this is seen by read_line.
        fcntl.fcntl(_STDIN, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(_STDIN, fcntl.F_SETFL, fcntl.fcntl(_STDIN, fcntl.F_GETFL) | os.O_ASYNC)

    def die_with_parent(self) -> None:
        """Has the kernel kill us at once when the one that started us ends.

        Where another machine takes over, nothing of us may go on for a moment longer: not even while we are stopped, or
        wait within a library that hears no SIGTERM.
        """
        end_with_parent(self._parent, signal.SIGKILL)

    def read_line(self, timeout_s: float) -> bytes:
        """Reads the first line of stdin. Raises StopAsked at its end, TimeoutError when it does not come."""
        line = b""
        deadline = time.monotonic() + timeout_s
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([_STDIN], [], [], max(0.0, deadline - time.monotonic()))
            if not readable or len(line) > _LONGEST_LINE:
                raise TimeoutError("failed to read the first line of stdin")
            # One byte at a time: anything after the line is not ours.
            read = os.read(_STDIN, 1)
            if not read:
                raise StopAsked
            line += read
        return line

    def pause(self, seconds: float) -> None:
        """Waits, until it is woken at the latest. Raises StopAsked as soon as we must end."""
        deadline = time.monotonic() + seconds
        while True:
            self.check()
            left = deadline - time.monotonic()
            if left <= 0 or self._wake_asked:
                self._wake_asked = False
                return
            readable, _, _ = select.select([_STDIN, self._woken], [], [], left)
            if self._woken in readable:
                os.read(self._woken, 64)
            if _STDIN in readable and not os.read(_STDIN, 64):
                raise StopAsked

    def check(self) -> None:
        """Raises StopAsked again if the first one was swallowed."""
        if self._stop_asked:
            raise StopAsked

    def _on_term(self, number: int, frame: FrameType | None) -> None:
        # Only once: a second one, raised while the first unwinds, would turn a clean end into a traceback.
        if not self._stop_asked:
            self._stop_asked = True
            raise StopAsked

    def _on_wake(self, number: int, frame: FrameType | None) -> None:
        self._wake_asked = True

    def _on_io(self, number: int, frame: FrameType | None) -> None:
        poll = select.poll()
        poll.register(_STDIN, 0)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            self._on_term(number, frame)


def set_title(title: str) -> None:
    """Shows `title` as the command line; does nothing when that is impossible."""
    # Else the title would overwrite the environment that the kernel shows, by which operators find us. Where it is
    # there already, as under Ray, it is left as it lies in memory: setproctitle finds its place by the first variable,
    # and this may be it.
    if not os.environ.get("SPT_NOENV"):
        os.environ["SPT_NOENV"] = "1"
    try:
        from setproctitle import setproctitle
    except ImportError:
        return
    setproctitle(title)


log = logging.getLogger(__name__)


def give_up_network(database_url: str) -> None:
    """Takes the network from this process and its children for good, unless its database is at another host.

    The log says so when the network stays.
    """
    host = database_host(database_url)
    if host:
        log.warning("workers keep the network: their database is at %s", host)
        return
    if problem := process.give_up_network():
        log.warning("the network cannot be taken from workers: %s", problem)


def database_host(database_url: str) -> str:
    """Returns the hosts that a database is reached at over a network; "" for a file and for Unix sockets."""
    if not database_url.startswith("postgresql://"):
        return ""
    return ", ".join(host for host in database_hosts(database_url) if not host.startswith("/"))
