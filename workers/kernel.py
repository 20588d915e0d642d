"""Worker processes at the level of the kernel: identity, lock, end, log file, and the zygote's link.

A process is identified by pid and start time, because a pid may be reused. A flock on `run/task-17.lock`, held until
death, guarantees that at most one worker acts for a task. The file has the holder's pid and start time, so that a
successor can end the holder; its mtime is the holder's sign of life. It is never unlinked while its task may have a
worker; otherwise two workers could hold locks on two files of one name.

Manager and zygote send each other one JSON object a packet, with descriptors where needed:

    manager  {"start": 7, "kind": "bidder", "task": 17, "token": 3}   [status pipe's write end, life line's read end]
    zygote   {"ready": true}                                          once, when it is warmed up
             {"started": 7, "pid": 4711}                              [the worker's pidfd]
             {"failed": 7, "text": "why", "unfit": false}             unfit: it will never fork again
             {"ended": 7, "status": -9}                               as in `Handle.poll`

The number of a start identifies its worker uniquely, unlike a pid. Secrets pass through the life line, so that the
zygote never has them.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from signal import SIGKILL
from typing import Any, NamedTuple

from core.errors import BidkeeperError
from core.layout import LOG_FILES, older

_LONGEST_PACKET = 4096
_MOST_DESCRIPTORS = 2


def link_pair() -> tuple[socket.socket, socket.socket]:
    """Returns the two ends of a link: the manager's, and the zygote's."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_packet(link: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Sends one message. Raises OSError if the other end is closed, or if a non-blocking link is full."""
    socket.send_fds(link, [json.dumps(message).encode()], descriptors)


def receive_packet(link: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receives one message with its descriptors, which the caller closes; None if the other end is closed."""
    try:
        packet, descriptors, _, _ = socket.recv_fds(link, _LONGEST_PACKET, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    if not packet:
        return None
    try:
        message = json.loads(packet)
    except ValueError:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return message, descriptors


WAKE = signal.SIGUSR1  # asks a worker to begin its next cycle now


def start_time(pid: int) -> int | None:
    """Returns a process's start in clock ticks since boot (field 22 of /proc/PID/stat); None if it has ended."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError:  # also if the process ends between open and read
        return None
    # The command name, field 2, is in brackets and may itself contain brackets and blanks.
    return int(stat.rpartition(b")")[2].split()[19])


def open_process(pid: int, started: int) -> int | None:
    """Opens a pidfd of the process, which the caller closes; None if `pid` is not the one started at `started`."""
    if start_time(pid) != started:
        return None
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    # The process may have ended, and its pid been reused, between the first check and pidfd_open.
    if start_time(pid) != started:
        os.close(pidfd)
        return None
    return pidfd


def send(pidfd: int, number: signal.Signals) -> None:
    """Sends a signal to the process; no-op if it has ended."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return


def wait_for_end(pidfd: int, timeout_s: float) -> bool:
    """Waits up to `timeout_s` for the process's end and returns whether it has ended."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(max(0.0, timeout_s) * 1000))


EXIT_STOPPED = 0  # a stop was requested, or nothing was left to do
EXIT_BAD_CONFIG = 3
EXIT_SUPERSEDED = 4  # another worker holds the task's lock or token
EXIT_BAD_CREDENTIALS = 5
EXIT_WITHOUT_GRANT = 6  # the signer does not know its grant, because its file was replaced by another copy
EXIT_UNKNOWN = 256  # no process exits with it; the process that could have reported the end has ended, too


class Sequel(Enum):
    """The manager's reaction to a worker's unrequested end."""

    RESTART = "restart"  # counted, with back-off
    RESTART_SOON = "restart soon"  # not counted, because it yielded to another worker or died with its parent
    GIVE_UP = "give up"  # a restart would not help


class End(NamedTuple):
    """A worker's end, in words that follow "the worker", and the reaction to it."""

    text: str
    sequel: Sequel


_ENDED = {
    EXIT_UNKNOWN: End("ended when the zygote did", Sequel.RESTART_SOON),
    EXIT_BAD_CONFIG: End("ended: its config cannot be carried out", Sequel.GIVE_UP),
    EXIT_BAD_CREDENTIALS: End("ended: its credentials are not accepted", Sequel.GIVE_UP),
    EXIT_SUPERSEDED: End("ended: another worker held its lock or token", Sequel.RESTART_SOON),
    EXIT_WITHOUT_GRANT: End("ended: the signer does not know its grant any more", Sequel.RESTART_SOON),
}


def judge_end(status: int) -> End:
    """Judges an end status in subprocess's form: an exit code, or minus a signal's number."""
    if status == -signal.SIGKILL:
        return End("was killed by SIGKILL (perhaps out of memory)", Sequel.RESTART)
    if status < 0:
        return End(f"was killed by {_signal_name(-status)}", Sequel.RESTART)
    return _ENDED.get(status) or End(f"ended by itself with code {status}", Sequel.RESTART)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


log = logging.getLogger(__name__)

WAIT_S = 5.0
_RETRY_S = 0.02
_LONGEST_CONTENT = 64


class LockHeld(BidkeeperError):
    """A refusal: another process holds the lock and could not be ended."""


def lock_path(run_dir: Path, task_id: int) -> Path:
    return run_dir / f"task-{task_id}.lock"


def lock_paths(run_dir: Path) -> Iterator[Path]:
    """Yields every lock file, held or not."""
    return run_dir.glob("task-*.lock")


def take_lock(path: Path, wait_s: float = WAIT_S) -> int:
    """Takes the lock, killing its holder if necessary, writes this process into its file and returns its descriptor.

    The lock is held until the descriptor is closed. Raises LockHeld after `wait_s`.
    """
    fd = _locked(path, wait_s)
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()} {start_time(os.getpid())}\n".encode(), 0)
    return fd


def free_lock(path: Path, wait_s: float = WAIT_S) -> None:
    """Makes sure that no process holds the lock, killing its holder if necessary. Raises LockHeld after `wait_s`.

    The file is emptied; otherwise the old content would count as the next holder's until that one writes its own.
    """
    fd = _locked(path, wait_s)
    os.ftruncate(fd, 0)
    os.close(fd)


def _locked(path: Path, wait_s: float) -> int:
    fd = _opened(path)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(fd)
                raise LockHeld(f"failed to take {path.name}: its holder could not be ended") from None
        except BaseException:
            os.close(fd)
            raise
        _end_holder(fd, deadline)
        time.sleep(_RETRY_S)


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def _end_holder(fd: int, deadline: float) -> None:
    """Kills the process that the file names, if it still exists, and waits for its end."""
    holder = _holder(fd)
    if holder is None or holder[0] == os.getpid():
        return
    pidfd = open_process(*holder)
    if pidfd is None:
        return
    try:
        # Read again, because a new holder may not have replaced its predecessor's content at the first read.
        if _holder(fd) == holder:
            send(pidfd, SIGKILL)
            wait_for_end(pidfd, deadline - time.monotonic())
    except PermissionError:
        return
    finally:
        os.close(pidfd)


def _holder(fd: int) -> tuple[int, int] | None:
    """Reads pid and start time from the file; None if they are unreadable."""
    try:
        pid, started = map(int, os.pread(fd, _LONGEST_CONTENT, 0).split())
    except ValueError:
        return None
    return (pid, started) if pid > 1 else None


MAX_BYTES = 1 << 20


_STDERR = 2


class OwnLog:
    """The log file `path`, and its older versions `path`.1 and `path`.2."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._redirect()
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._redirect()

    def rotate(self) -> None:
        """Begins a new file if this one is full. Call it between cycles, so that no traceback is split.

        If it fails on a full disk, the next call tries again.
        """
        if os.fstat(_STDERR).st_size < MAX_BYTES:
            return
        try:
            for number in range(LOG_FILES - 1, 0, -1):
                newer = older(self._path, number - 1)
                if newer.exists():
                    newer.replace(older(self._path, number))
            self._redirect()
        except OSError as error:
            log.warning("failed to begin a new log file: %s", error.strerror)

    def _redirect(self) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for standard in (1, _STDERR):
            os.dup2(fd, standard)
        os.close(fd)
