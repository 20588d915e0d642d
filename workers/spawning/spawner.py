"""The manager's way to start and hold workers; the back-ends are interchangeable.

`zygote_spawner.py` forks them from a process that has everything loaded, `PopenSpawner` starts a Python for each. A
worker is given a kind, a task's id, a token and the secret of its grant; all else it reads from the database. No
back-end adopts workers it did not start: they die with the manager that started them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Protocol

from core.process import PYTHON
from core.setting_values import HELD
from core.settings import SECRETS, Settings
from workers.context import Kind
from workers.kernel import send, start_time


class Handle(Protocol):
    """A worker process, from its start until `close`."""

    pid: int
    start_time: int
    """The process's start in clock ticks since boot: with `pid` it names the process for ever."""
    pidfd: int
    """Becomes readable when the process has ended. Watch it; do not close it."""
    status_fd: int
    """The read end of the status pipe: "locked" when the worker holds its lock, end of file when it never will."""

    def poll(self) -> int | None:
        """Returns the end of the process: its exit code, or the number of the signal that killed it, below 0.

        None means that it runs (stopped by SIGSTOP counts as running), or, for moments only, that it has ended in a way
        not known yet; ask again then. `exits.EXIT_UNKNOWN` means that it has ended in an unknown way. An answer that
        cannot be found out is an error, never "not running". The first status stays the answer for ever.
        """

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to this process, never to another that has its pid by now; does nothing when it has ended."""

    def close(self) -> None:
        """Gives back the descriptors, once `poll` has given a status."""


class Spawner(Protocol):
    """Starts worker processes. Use it in the main thread: workers die with the thread that started them."""

    @property
    def is_ready(self) -> bool:
        """Whether a start would succeed at once, as far as known."""

    def open(self) -> None:
        """Gets ready, in the running loop and in the background. `start` may be called at once."""

    async def start(self, kind: Kind, task_id: int, token: int, secret: str, *, wait_s: float = 0.0) -> Handle:
        """Starts a worker; its handle shows whether it comes up. Raises OSError.

        Once it holds its lock it waits `wait_s` before its first cycle.
        """

    def renew(self) -> None:
        """Makes later starts run the code that is installed now; running workers are left alone."""

    async def close(self) -> None:
        """Ends all means to start workers, and starts no more. End the workers first."""


def worker_environment(settings: Settings) -> dict[str, str]:
    """Returns our environment without venue keys, and with the data directory, by which operators find its processes.

    A set key must look set, or the worker's settings would be refused.
    """
    environment = dict(os.environ) | {"BIDKEEPER_DATA_DIR": str(settings.data_dir)}
    for name in SECRETS:
        variable = f"BIDKEEPER_{name.upper()}"
        environment.pop(f"{variable}_FILE", None)
        if getattr(settings, name):
            environment[variable] = HELD
    return environment


def first_line(secret: str, wait_s: float) -> bytes:
    """Makes the first line that a worker reads from its stdin."""
    return json.dumps({"secret": secret, "wait_s": wait_s}).encode() + b"\n"


WORKER = (*PYTHON, "-m", "workers.process.main")


class PopenHandle:
    """A worker started by PopenSpawner; see `Handle`."""

    def __init__(self, process: subprocess.Popen[bytes], status_fd: int) -> None:
        self._process = process
        self.pid = process.pid
        # It is our child and not yet waited for: the pid is its own until then.
        self.pidfd = os.pidfd_open(self.pid)
        self.start_time = start_time(self.pid) or 0
        self.status_fd = status_fd

    def poll(self) -> int | None:
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        send(self.pidfd, number)

    def close(self) -> None:
        assert self._process.stdin is not None
        os.close(self.pidfd)
        os.close(self.status_fd)
        self._process.stdin.close()


class PopenSpawner:
    """Starts workers with `command` before their arguments."""

    def __init__(self, settings: Settings, command: Sequence[str] = WORKER) -> None:
        self._command = tuple(command)
        self._environment = worker_environment(settings)

    is_ready = True

    def open(self) -> None:
        """Does nothing: there is nothing to prepare."""

    def renew(self) -> None:
        """Does nothing: each start reads the code anew."""

    async def close(self) -> None:
        """Does nothing: there is nothing to end."""

    async def start(self, kind: Kind, task_id: int, token: int, secret: str, *, wait_s: float = 0.0) -> PopenHandle:
        return self._start([kind, str(task_id), str(token)], first_line(secret, wait_s))

    def _start(self, arguments: list[str], line: bytes) -> PopenHandle:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("workers are started in the main thread: they die with the thread that started them")
        status_fd, worker_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            process = subprocess.Popen(
                [*self._command, *arguments, str(os.getpid()), str(worker_end)],
                stdin=subprocess.PIPE,
                bufsize=0,
                pass_fds=(worker_end,),
                env=self._environment,
                start_new_session=True,
            )
        except BaseException:
            os.close(status_fd)
            raise
        finally:
            os.close(worker_end)
        _write(process, line)
        return PopenHandle(process, status_fd)


def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(line)
    except BrokenPipeError:
        # It has died already, as its handle will show.
        return
