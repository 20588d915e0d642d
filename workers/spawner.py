"""How the manager starts workers and holds on to them; the back-ends are interchangeable (`workers/popen.py`).

A worker is given a kind, a task's id, a token and the secret of its grant; all else it reads from the database. No
back-end adopts workers it did not start: they die with the manager that started them.
"""

from __future__ import annotations

import signal
from typing import Protocol

from workers.reconcile import Kind


class Handle(Protocol):
    """A worker process, from its start until `close`."""

    pid: int
    start_time: int
    """Clock ticks since boot: with `pid` it names the process for ever."""
    pidfd: int
    """Becomes readable when the process has ended. Watch it; do not close it."""
    status_fd: int
    """Read end of the status pipe: "locked" when the worker holds its lock, the end of file when it will not say it."""

    def poll(self) -> int | None:
        """How the process ended: its exit code, or the number of the signal that killed it, below 0.

        None means that it runs (stopped by SIGSTOP counts as running), and nothing else: an answer that cannot be
        found out is an error, never "not running". After a first status the same one is given for ever.
        """

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to this process, never to another that has its pid by now; nothing when it has ended."""

    def close(self) -> None:
        """Gives back the descriptors, once `poll` has given a status."""


class Spawner(Protocol):
    """Starts worker processes."""

    def start(self, kind: Kind, task_id: int, token: int, secret: str) -> Handle:
        """Starts a worker and returns at once; whether it comes up is seen at its handle. Raises OSError.

        To be called in the main thread: the kernel ends workers when the thread that started them ends.
        """
