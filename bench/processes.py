"""Processes to measure: started on a free port, waited for, and their CPU time."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

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
    """Returns the CPU time of the process and all its threads so far, with the kernel's for them, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | _ALL_THREADS)


def pss_mib(pid: int | None) -> float:
    """Returns the memory of the process; a page that it shares with n - 1 others counts as an nth."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


@contextmanager
def serving(
    command: Sequence[str], port: int, out: Path, environment: Mapping[str, str] | None = None, tree: Path = ROOT
) -> Iterator[int]:
    """Runs `command` in the checkout `tree`, its output going to the file `out`; gives its pid once it is on `port`."""
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
    """Ends a process by SIGTERM, or SIGKILL if that fails."""
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
