"""Reads, creations and changes of tasks, by the server process's CPU time, compared with the same in FastAPI.

All servers run at the same time, each with a copy of the same database and the same pragmas, and take turns, so that
other load on the machine affects them equally. The client's time is not counted.
"""

from __future__ import annotations

import itertools
import json
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import traders_database
from bench.measuring import ROOT, Row, ask, cpu_seconds, get, peer_python, press, serving, write
from models.database.damage import PRAGMAS
from tests.databases import another
from tests.ports import free_ports

OURS, SQLMODEL = "ours", "FastAPI, SQLModel"
ROUNDS = 3
_READ_S = 3.0
_COMMITS_EVERY_S = 0.02  # as often as fifteen hundred tasks on 30 s cycles would write
_WRITES = 1_000  # a round and server, so that all tables grow equally
_PLAN = """
[plans.beta]
name = "Beta"
max_tasks = 100000
max_bids_per_task = 20
max_exposure = 50000000
price_sats = 0
duration_days = 365
"""


class Server(NamedTuple):
    name: str
    port: int
    pid: int
    database: Path


def read_rows() -> Iterator[Row]:
    with _servers() as (servers, tokens):
        answers = [ask(server.port, get("/api/tasks", tokens[0])) for server in servers]
        _require_same(answers)
        requests = [get("/api/tasks", token) for token in tokens]
        for server in servers:  # each user once, to fill the caches
            press(server.port, iter(requests))

        def read(server: Server) -> int:
            return press(server.port, itertools.cycle(requests), _READ_S)

        def read_while_tasks_run(server: Server) -> int:
            with cycles_being_recorded(f"sqlite:///{server.database}"):
                return read(server)

        quiet, busy = _rates(servers, read), _rates(servers, read_while_tasks_run)
    yield from _compared("GET /api/tasks, 20 tasks, per CPU second", quiet)
    yield from _compared("the same, 50 cycles a second recorded", busy)


def write_rows() -> Iterator[Row]:
    with _servers() as (servers, tokens):
        numbers = itertools.count()

        def creations() -> Iterator[bytes]:
            for number in itertools.islice(numbers, _WRITES):
                body = {"slug": f"new-{number}", "bidCount": 3, "hardcapSats": 5_000_000, "loopSeconds": 10}
                yield write("POST", "/api/tasks", tokens[number % len(tokens)], body)

        first = write("POST", "/api/tasks", tokens[0], {"slug": "first", "hardcapSats": 5_000_000})
        _require_same([_without_identity(ask(server.port, first)) for server in servers])
        rates = _rates(servers, lambda server: press(server.port, creations()))
    yield from _compared("POST /api/tasks, per CPU second", rates)


def change_rows() -> Iterator[Row]:
    with _servers() as (servers, tokens):
        owned = [(token, task["id"]) for token in tokens for task in ask(servers[0].port, get("/api/tasks", token))]
        numbers = itertools.count()

        def changes() -> Iterator[bytes]:
            for number in itertools.islice(numbers, _WRITES):
                token, task = owned[number % len(owned)]
                # All tasks have 5, so each request changes a value.
                yield write("PUT", f"/api/tasks/{task}", token, {"bidCount": 6 + number // len(owned)})

        first = write("PUT", f"/api/tasks/{owned[0][1]}", owned[0][0], {"bidPercentLow": 0.25, "traitType": "Hat"})
        _require_same([ask(server.port, first) for server in servers])
        rates = _rates(servers, lambda server: press(server.port, changes()))
    yield from _compared("PUT /api/tasks/:id, stopped, per CPU second", rates)


def _rates(servers: list[Server], load: Callable[[Server], int]) -> dict[str, float]:
    """Returns each server's requests per CPU second: the median of rounds in which the servers take turns."""
    found: dict[str, list[float]] = {server.name: [] for server in servers}
    for _ in range(ROUNDS):
        for server in servers:
            before = cpu_seconds(server.pid)
            answered = load(server)
            found[server.name].append(answered / (cpu_seconds(server.pid) - before))
    return {name: statistics.median(rates) for name, rates in found.items()}


def _compared(what: str, rates: dict[str, float]) -> Iterator[Row]:
    ratio = f"{rates[OURS] / rates[SQLMODEL]:.1f} x"
    yield Row(what, f"{rates[OURS]:,.0f}", f"{SQLMODEL} {rates[SQLMODEL]:,.0f}", ratio, ">= 20 x")


@contextmanager
def cycles_being_recorded(url: str) -> Iterator[None]:
    """Commits cycles of one task after another during the block, as workers do."""
    is_over = threading.Event()
    tasks = range(1, traders_database.USERS * traders_database.TASKS_EACH + 1)

    def commit() -> None:
        with another(url) as connection:
            for task in itertools.cycle(tasks):
                if is_over.wait(_COMMITS_EVERY_S):
                    return
                connection.execute("UPDATE tasks SET last_cycle_ms = last_cycle_ms + 30000 WHERE id = ?", [task])
                connection.commit()

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _servers() -> Iterator[tuple[list[Server], list[str]]]:
    """Starts all servers, each on a copy of one database; yields them and the users' bearer tokens."""
    with tempfile.TemporaryDirectory(prefix="bk-bench-") as name, ExitStack() as stack:
        home = Path(name)
        (home / "source").mkdir()
        tokens = traders_database.make(f"sqlite:///{home / 'source' / 'bidkeeper.db'}")
        yield [stack.enter_context(_our_server(home)), stack.enter_context(_peer(home))], tokens


@contextmanager
def _our_server(home: Path) -> Iterator[Server]:
    """Starts our server on a copy of the database in `home`'s `source`."""
    (home / "data").mkdir()
    database = home / "data" / "bidkeeper.db"
    shutil.copyfile(home / "source" / "bidkeeper.db", database)
    with server_on(f"sqlite:///{database}", home) as (port, pid):
        yield Server(OURS, port, pid, database)


@contextmanager
def server_on(url: str, home: Path, tree: Path = ROOT, python: str = sys.executable) -> Iterator[tuple[int, int]]:
    """Starts the server of `tree` on the database at `url`, with other files in `home`; yields its port and pid."""
    (home / "bidkeeper.toml").write_text(_PLAN)
    (port,) = free_ports(1)
    environment = {
        "BIDKEEPER_DATA_DIR": str(home / "data"),
        "BIDKEEPER_DATABASE_URL": url,
        "BIDKEEPER_CONFIG": str(home / "bidkeeper.toml"),
        "BIDKEEPER_PORT": str(port),
        "BIDKEEPER_WHITELIST": "*",
        "PYTHONPATH": str(tree),
    }
    command = [python, "-m", "cli.main", "server"]
    with serving(command, port, home / "ours.log", environment, tree) as pid:
        yield port, pid


@contextmanager
def _peer(home: Path) -> Iterator[Server]:
    module, (port,) = "fastapi_sqlmodel", free_ports(1)
    database = home / f"{module}.db"
    traders_database.copy_with_shown_configs(home / "source" / "bidkeeper.db", database)
    command = [peer_python(), "-m", f"bench.peers.{module}", str(database), str(port), json.dumps(PRAGMAS)]
    with serving(command, port, home / f"{module}.log") as pid:
        yield Server(SQLMODEL, port, pid, database)


def _without_identity(task: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in task.items() if key not in ("id", "createdAt")}


def _require_same(answers: list[Any]) -> None:
    if any(answer != answers[0] for answer in answers[1:]):
        raise RuntimeError("the servers do not give the same answer, so their speeds cannot be compared")
