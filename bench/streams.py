"""The cost of event streams: CPU time of the server's process with a hundred of them, beside two hundred tasks.

Ten users have ten streams and twenty tasks each. Their cycles are recorded as workers record them, from outside; the
streams are read as they come. The same server without a stream is measured first.
"""

from __future__ import annotations

import itertools
import math
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import traders_database
from bench.processes import cpu_seconds, serving
from bench.timing import Row
from models.database import base
from models.tasks import cycles
from tests.ports import free_ports

TASKS, STREAMS, OF_USER = 200, 100, 10
LOOPS_S, SECONDS = (30.0, 5.0), 30.0
_ACTION = "placed 1, kept 4, cancelled 1 (outbid)"


def rows() -> Iterator[Row]:
    with _server() as (port, pid, tokens):
        for loop_s in LOOPS_S:
            without = _spent(pid, loop_s, [])
            with ExitStack() as stack:
                streams = [stack.enter_context(_stream(port, tokens[n // OF_USER])) for n in range(STREAMS)]
                with_them = _spent(pid, loop_s, streams)
            what = f"{STREAMS} streams, {TASKS} tasks on {loop_s:.0f} s cycles, of one core"
            yield Row(what, f"{with_them:.1%}", "", "", "10 %")
            yield Row("... without a stream", f"{without:.1%}")


class _Stream:
    """One open stream, whose frames are counted as they come."""

    def __init__(self, port: int, token: str) -> None:
        self.count = 0
        self._socket = socket.create_connection(("127.0.0.1", port))
        head = (
            f"GET /api/events HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\nAuthorization: Bearer {token}\r\n"
        )
        self._socket.sendall(head.encode() + b"\r\n")
        first = self._socket.recv(65536)
        if b" 200 " not in first:
            raise RuntimeError(first[:200].decode(errors="replace"))
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while piece := self._socket.recv(65536):
            self.count += piece.count(b"event: cycle")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


@contextmanager
def _stream(port: int, token: str) -> Iterator[_Stream]:
    stream = _Stream(port, token)
    try:
        yield stream
    finally:
        stream.close()


def _spent(pid: int, loop_s: float, streams: list[_Stream]) -> float:
    """Returns the part of one core that the server takes while the tasks run. Raises RuntimeError when streams miss
    events.
    """
    began, before, recorded = time.monotonic(), cpu_seconds(pid), 0
    for task_id in itertools.cycle(range(1, TASKS + 1)):
        due = began + recorded * loop_s / TASKS
        if due - began >= SECONDS:
            break
        time.sleep(max(0.0, due - time.monotonic()))
        written = {"time_ms": time.time_ns() // 1_000_000, "action": _ACTION, "error": None}
        cycles.record_cycle(task_id, 0, **written, detail="{}", memory="{}")
        recorded += 1
    if streams:
        time.sleep(1.0)  # the last ones are on their way
        _until_read(streams, math.ceil(0.9 * recorded * STREAMS / (TASKS / traders_database.TASKS_EACH)))
    return (cpu_seconds(pid) - before) / (time.monotonic() - began)


def _until_read(streams: list[_Stream], count: int) -> None:
    """Waits until so many events have come. Raises RuntimeError when they do not."""
    ends = time.monotonic() + 60
    while (read := sum(stream.count for stream in streams)) < count:
        if time.monotonic() > ends:
            raise RuntimeError(f"{read} events were read of at least {count}")
        time.sleep(0.1)


@contextmanager
def _server() -> Iterator[tuple[int, int, list[str]]]:
    with tempfile.TemporaryDirectory(prefix="bk-bench-") as name:
        home, (port,) = Path(name), free_ports(1)
        tokens = traders_database.make(f"sqlite:///{home / 'bidkeeper.db'}")
        environment = {"BIDKEEPER_DATA_DIR": name, "BIDKEEPER_PORT": str(port), "BIDKEEPER_WHITELIST": "*"}
        with serving([sys.executable, "-m", "cli.main", "server"], port, home / "server.log", environment) as pid:
            base.connect(f"sqlite:///{home / 'bidkeeper.db'}")
            try:
                yield port, pid, tokens
            finally:
                base.close()
