"""A supervisord that holds workers as its own programs, and calls to it over its Unix socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xmlrpc.client import ServerProxy

from supervisor.xmlrpc import SupervisorTransport

from bench.measuring import ROOT, end

_PATIENCE_S = 120.0
_HEAD = """
[supervisord]
nodaemon=true
silent=true
minfds=4096
logfile={home}/supervisord.log
pidfile={home}/supervisord.pid

[unix_http_server]
file={home}/s.sock
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""
_PROGRAM = """
[program:task-{task}]
command={python} -m bench.peers.supervised_worker bidder {task} {token}
environment=BENCH_SECRET="{secret}"
autostart=false
autorestart=true
stopsignal=TERM
redirect_stderr=true
stdout_logfile={home}/task-{task}.out
"""


class Assigned(NamedTuple):
    """A task with its worker's token and secret."""

    task: int
    token: int
    secret: str


@contextmanager
def proxy(listening: Path) -> Iterator[Any]:
    """Gives the XML-RPC operations of the supervisord that listens at `listening`."""
    transport = SupervisorTransport(None, None, f"unix://{listening}")
    with ServerProxy("http://127.0.0.1", transport=transport) as server:
        yield server.supervisor


def _listens(path: Path) -> bool:
    """Tells whether somebody takes connections there: a socket's file is made before."""
    with socket.socket(socket.AF_UNIX) as way:
        return way.connect_ex(str(path)) == 0


@contextmanager
def of_workers(home: Path, workers: list[Assigned], environment: Mapping[str, str]) -> Iterator[Any]:
    """Starts a supervisord with one program for each of `workers`, none running; gives its XML-RPC operations."""
    programs = [_PROGRAM.format(home=home, python=sys.executable, **worker._asdict()) for worker in workers]
    (home / "s.conf").write_text(_HEAD.format(home=home) + "".join(programs))
    process = subprocess.Popen(
        [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(home / "s.conf")],
        cwd=ROOT,
        env=dict(os.environ) | dict(environment),
        stdin=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while not _listens(home / "s.sock"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("supervisord does not answer")
            time.sleep(0.05)
        with proxy(home / "s.sock") as operations:
            yield operations
    finally:
        end(process)
