"""Tools for all measurements: a row, a median, processes with their CPU time and memory, and an HTTP client."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One line of the table. `peer` is the figure of the compared program, measured in the same run."""

    what: str
    ours: str
    peer: str = ""
    ratio: str = ""
    aim: str = ""


def median_seconds(call: Callable[[], object], *, calls: int, rounds: int = 7) -> float:
    """Returns the median seconds of one call, over `rounds` of `calls` calls each."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - began) / calls)
    return statistics.median(found)


ROOT = Path(__file__).resolve().parents[1]
PEER_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
_ALL_THREADS = 2  # CPUCLOCK_SCHED: with the inverted pid it names the kernel's CPU clock of another process
_PATIENCE_S = 120.0


def peer_python() -> str:
    """Returns the interpreter that has the peers' packages. Raises FileNotFoundError."""
    if not PEER_PYTHON.exists():
        raise FileNotFoundError(f"{PEER_PYTHON.relative_to(ROOT)} is made by `make bench`")
    return str(PEER_PYTHON)


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of a process and all its threads so far, including the kernel's, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | _ALL_THREADS)


def pss_mib(pid: int | None) -> float:
    """Returns a process's memory; a page that n processes share counts as 1/n of a page."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


@contextmanager
def serving(
    command: Sequence[str], port: int, out: Path, environment: Mapping[str, str] | None = None, tree: Path = ROOT
) -> Iterator[int]:
    """Runs `command` in the checkout `tree`, with output to the file `out`; yields the pid once it is on `port`."""
    with out.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=dict(os.environ) | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(process, port, out)
        yield process.pid
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process by SIGTERM, or by SIGKILL if that fails."""
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, out: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                last = out.read_text(errors="replace").splitlines()[-1:]
                raise RuntimeError(f"{process.args!r} does not serve: {' '.join(last)}") from None
            time.sleep(0.05)


CONNECTIONS = 16
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def get(path: str, token: str) -> bytes:
    """Returns a GET request's bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def write(method: str, path: str, token: str, body: object) -> bytes:
    """Returns the bytes of a POST or PUT request with JSON."""
    text = json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


def call(port: int, method: str, path: str, token: str) -> Any:
    """Makes one request without a body over a new connection; returns the answer's JSON. Works in threads.

    Raises RuntimeError if the status is not 2xx.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.request(method, path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {text[:200].decode(errors='replace')}")
    return json.loads(text)


def ask(port: int, request: bytes) -> Any:
    """Makes one request; returns the answer's JSON. Raises RuntimeError if the status is not 2xx."""
    return json.loads(asyncio.run(_ask_once(port, request)))


def press(port: int, requests: Iterator[bytes], seconds: float = 60.0, connections: int = CONNECTIONS) -> int:
    """Sends `requests` until they are all answered or `seconds` are over; returns the number of answers.

    Raises RuntimeError if a status is not 2xx.
    """
    return asyncio.run(_press(port, requests, time.monotonic() + seconds, connections))


async def _press(port: int, requests: Iterator[bytes], until: float, connections: int) -> int:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_client(port, requests, until)) for _ in range(connections)]
    return sum(task.result() for task in tasks)


async def _client(port: int, requests: Iterator[bytes], until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    answered = 0
    try:
        for request in requests:
            await _exchange(reader, writer, request)
            answered += 1
            if time.monotonic() > until:
                break
    finally:
        writer.close()
    return answered


async def _ask_once(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    try:
        return await _exchange(reader, writer, request)
    finally:
        writer.close()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    if head[9:10] != b"2":
        raise RuntimeError(f"{head.splitlines()[0].decode()}: {body[:200].decode(errors='replace')}")
    return body
