"""The kernel's proof that at most one worker acts for a task: a flock on `run/task-17.lock`, held until death.

The file holds the holder's pid and start time, so that a successor which finds it locked can end the holder; its
mtime is the holder's sign of life. It is never unlinked while its task may have a worker: two workers could then hold
locks on two files of one name.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

from core.errors import BidkeeperError
from workers.kernel import open_process, send, start_time, wait_for_end

log = logging.getLogger(__name__)

WAIT_S = 5.0
_RETRY_S = 0.02
_LONGEST_CONTENT = 64


class LockHeld(BidkeeperError):
    """A refusal: another process keeps the lock and could not be ended."""


class TaskLock:
    """A lock that this process holds. It ends with the process; nothing else gives it back."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    def touch(self) -> None:
        """Tells the manager that we are alive; one that is silent for long is killed.

        A file that was removed proves nothing, so its successor is locked, too. Raises LockHeld when another has it.
        """
        os.utime(self._fd)
        if not os.fstat(self._fd).st_nlink:
            log.warning("%s was removed: locks a new one", self._path)
            former, self._fd = self._fd, _named(_locked(self._path, 0.0))
            os.close(former)


def lock_path(run_dir: Path, task_id: int) -> Path:
    return run_dir / f"task-{task_id}.lock"


def lock_paths(run_dir: Path) -> Iterator[Path]:
    """Yields every lock file, held or not."""
    return run_dir.glob("task-*.lock")


def take(path: Path, wait_s: float = WAIT_S) -> TaskLock:
    """Takes the lock for good, killing its holder if need be. Raises LockHeld after `wait_s`."""
    return TaskLock(_named(_locked(path, wait_s)), path)


def _named(fd: int) -> int:
    """Writes this process into its lock file; returns the file's descriptor."""
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()} {start_time(os.getpid())}\n".encode(), 0)
    return fd


def free(path: Path, wait_s: float = WAIT_S) -> None:
    """Makes sure that no process holds the lock, killing its holder if need be. Raises LockHeld after `wait_s`.

    The file is emptied: a name left in it would be taken for the next holder's until that one has written its own.
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
        # A process that has the lock but has not yet written its name may have its predecessor's in the file.
        if _holder(fd) == holder:
            send(pidfd, SIGKILL)
            wait_for_end(pidfd, deadline - time.monotonic())
    except PermissionError:
        return
    finally:
        os.close(pidfd)


def _holder(fd: int) -> tuple[int, int] | None:
    """Reads pid and start time from the file; None when they are not readable."""
    try:
        pid, started = map(int, os.pread(fd, _LONGEST_CONTENT, 0).split())
    except ValueError:
        return None
    return (pid, started) if pid > 1 else None
