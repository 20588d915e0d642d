"""Processes as the kernel identifies them: by pid and start time, since a pid alone may be another process's by now."""

from __future__ import annotations

import os
import select
import signal

WAKE = signal.SIGUSR1  # asks a worker to begin its next cycle now


def start_time(pid: int) -> int | None:
    """Returns when the process started, in clock ticks since boot (field 22 of /proc/PID/stat); None without one."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError:  # also when it ends between the two
        return None
    # The command name, field 2, stands in brackets and may itself hold brackets and blanks.
    return int(stat.rpartition(b")")[2].split()[19])


def open_process(pid: int, started: int) -> int | None:
    """Opens a pidfd of the process, if `pid` is still the one that started at `started`. The caller closes it."""
    if start_time(pid) != started:
        return None
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    # It may have ended, and its pid been reused, between the first look and the opening.
    if start_time(pid) != started:
        os.close(pidfd)
        return None
    return pidfd


def send(pidfd: int, number: signal.Signals) -> None:
    """Sends a signal to the process, unless it has ended."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return


def wait_for_end(pidfd: int, timeout_s: float) -> bool:
    """Tells whether the process has ended within `timeout_s`."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(max(0.0, timeout_s) * 1000))
