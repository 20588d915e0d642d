"""The back-end that starts each worker as a Python of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence

from core.process import PYTHON
from core.settings import Settings
from workers.context import Kind
from workers.kernel import send, start_time
from workers.spawning.spawner import first_line, worker_environment

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
