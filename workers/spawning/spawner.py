"""The manager's way to start and hold workers; the back-ends are interchangeable.

`zygote_spawner.py` forks them from a process that has everything loaded, `popen.py` starts a Python for each. A worker
is given a kind, a task's id, a token and the secret of its grant; all else it reads from the database. No back-end
adopts workers it did not start: they die with the manager that started them.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Protocol

from core.setting_texts import HELD
from core.settings import SECRETS, Settings
from workers.context import Kind


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
