"""Starts of workers: the time of the API's start request, compared with supervisord's start of the same worker.

A start is over once the worker holds its task's lock. Ours passes through HTTP, server and manager, which asks signer
and gateway for the worker's rights; supervisord is called over XML-RPC, and the rights exist already.
"""

from __future__ import annotations

import os
import select
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from xmlrpc.client import ServerProxy

from supervisor.xmlrpc import SupervisorTransport

from bench.installed import Home, Tasks, installed
from bench.measuring import ROOT, Row, call, end
from core.settings import Settings, load
from models.database import base
from models.tasks import tasks
from models.tasks.tasks import RUNNING
from models.users import Subscription
from strategy.config.bid import load_bid_config
from wallet.signer_client import SignerClient
from workers.manager.rights import bidder_grant

_SUPERVISOR_PATIENCE_S = 120.0
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
    """Yields the XML-RPC operations of the supervisord that listens at `listening`."""
    transport = SupervisorTransport(None, None, f"unix://{listening}")
    with ServerProxy("http://127.0.0.1", transport=transport) as server:
        yield server.supervisor


def _listens(path: Path) -> bool:
    """Returns True if a program accepts connections at `path`; the socket's file exists before that."""
    with socket.socket(socket.AF_UNIX) as way:
        return way.connect_ex(str(path)) == 0


@contextmanager
def of_workers(home: Path, workers: list[Assigned], environment: Mapping[str, str]) -> Iterator[Any]:
    """Starts a supervisord with one stopped program for each of `workers`; yields its XML-RPC operations."""
    programs = [_PROGRAM.format(home=home, python=sys.executable, **worker._asdict()) for worker in workers]
    (home / "s.conf").write_text(_HEAD.format(home=home) + "".join(programs))
    process = subprocess.Popen(
        [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(home / "s.conf")],
        cwd=ROOT,
        env=dict(os.environ) | dict(environment),
        stdin=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + _SUPERVISOR_PATIENCE_S
        while not _listens(home / "s.sock"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("supervisord does not answer")
            time.sleep(0.05)
        with proxy(home / "s.sock") as operations:
            yield operations
    finally:
        end(process)


ONE_BY_ONE, BURST = 9, 24
_PATIENCE_S = 60.0


def rows() -> Iterator[Row]:
    with installed(max_tasks=100) as home:
        all_tasks = home.user_with_tasks(2 * (ONE_BY_ONE + BURST), loopSeconds=300)
        made, others = (Tasks(all_tasks.token, ids) for ids in (all_tasks.ids[0::2], all_tasks.ids[1::2]))
        ours = our_starts(home, made)
        home.stop_all([made])
        with proxy(home.data_dir / "run" / "supervisor.sock") as operations:
            operations.stopProcess("manager")
        theirs = _supervised(home, others)
    for what, mine, peer, unit, aim in (
        ("start a worker: POST start to its answer", ours[0], theirs[0], "ms", ">= 20 x, <= 10 ms"),
        (f"start {BURST} workers in a burst", ours[1], theirs[1], "s", ">= 8 x"),
    ):
        scale = 1000 if unit == "ms" else 1
        digits = 1 if unit == "ms" else 2
        theirs_text = f"supervisord {peer * scale:.{digits}f} {unit}"
        yield Row(what, f"{mine * scale:.{digits}f} {unit}", theirs_text, f"{peer / mine:.1f} x", aim)


def our_starts(home: Home, made: Tasks) -> tuple[float, float]:
    """Returns the median seconds of one start, and the seconds of a burst."""
    single = []
    for task in made.ids[:ONE_BY_ONE]:
        began = time.monotonic()
        call(home.port, "POST", f"/api/tasks/{task}/start", made.token)
        single.append(time.monotonic() - began)
        home.until_cycled(made, [task])
    burst = made.ids[ONE_BY_ONE:]
    with ThreadPoolExecutor(BURST) as pool:
        began = time.monotonic()
        list(pool.map(lambda task: call(home.port, "POST", f"/api/tasks/{task}/start", made.token), burst))
        seconds = time.monotonic() - began
    home.until_cycled(made, burst)
    return statistics.median(single), seconds


def _supervised(home: Home, made: Tasks) -> tuple[float, float]:
    """Measures supervisord's starts; it does not wait for each, so that it takes a burst as fast as it can."""
    single, first, burst = [], made.ids[:ONE_BY_ONE], made.ids[ONE_BY_ONE:]
    with TemporaryDirectory(prefix="bks-") as name:
        os.mkfifo(f"{name}/status")
        status = os.open(f"{name}/status", os.O_RDWR | os.O_NONBLOCK)
        settings = load(home.environment)
        environment = dict(home.environment) | {"BENCH_STATUS": f"{name}/status"}
        try:
            with of_workers(Path(name), _assigned(settings, made.ids), environment) as operations:

                def start(some: list[int]) -> None:
                    for task in some:
                        operations.startProcess(f"task-{task}", False)

                for task in first:
                    single.append(_seconds(status, 1, partial(start, [task])))
                    home.until_cycled(made, [task])
                seconds = _seconds(status, BURST, partial(start, burst))
                home.until_cycled(made, burst)
        finally:
            os.close(status)
    return statistics.median(single), seconds


def _seconds(status: int, count: int, start: Callable[[], None]) -> float:
    """Returns the seconds from before `start` until `count` workers have reported that they hold their locks."""
    began = time.monotonic()
    start()
    said = b""
    while said.count(b"\n") < count:
        left = began + _PATIENCE_S - time.monotonic()
        if not select.select([status], [], [], max(0.0, left))[0]:
            raise TimeoutError(f"{said.count(b'locked')} of {count} workers came up under supervisord")
        said += os.read(status, 4096)
    return time.monotonic() - began


def _assigned(settings: Settings, ids: list[int]) -> list[Assigned]:
    """Prepares these workers as the manager does: it sets them to run, and gives each a token and a right to bid."""
    signer = SignerClient(settings.signer_socket)
    base.connect(settings.database_url)
    try:
        found = []
        for task_id in ids:
            row = tasks.with_owner(task_id)
            assert row is not None
            tasks.set_desired(row, RUNNING)
            token = tasks.raise_token(task_id)
            subscription = Subscription.get(Subscription.user == row.user.id)
            plan, config = settings.plans[subscription.plan], load_bid_config(row.config)
            grant = bidder_grant(row, config, plan, token, subscription.expires_ms, spent_sats=0)
            found.append(Assigned(task_id, token, signer.grant(grant)))
        return found
    finally:
        base.close()
