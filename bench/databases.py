"""`.venv-postgresql/bin/python -m bench.databases`: SQLite and PostgreSQL in turn, in one run. Not in make bench.

PostgreSQL is a cluster of this run with default settings, which wait for the disk as SQLite does, reached by a Unix
socket. All files are in TMPDIR, which must be on a disk. A ratio is the median of the rounds' ratios, so that other
load on the machine affects both.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from bench import traders_database
from bench.installed import installed
from bench.measuring import cpu_seconds, get, press
from bench.reads_and_writes import cycles_being_recorded, server_on
from bench.starts import BURST, ONE_BY_ONE, our_starts
from core.subscription_plans import DEFAULT_PLANS
from models import schema, users
from models.database import base
from models.ledger import orders
from models.ledger.orders import ExposureLimits, LimitReached, NewOrder
from models.ledger.states import CLOSED
from models.tasks import tasks
from models.tasks.cycles import record_cycle
from models.tasks.tasks import RUNNING, bidding_task_list
from tests import postgresql

READ_S = 3.0


class Readers:
    """Our server on the database at `url`, and 200 users who read their tasks."""

    def __init__(self, url: str, port: int, pid: int, tokens: list[str]) -> None:
        self._url, self._port, self._pid = url, port, pid
        self._requests = [get("/api/tasks", token) for token in tokens]
        press(port, iter(self._requests))  # each user once, to fill the caches

    def per_cpu_second(self, *, is_busy: bool) -> float:
        """Returns the answers per second of the server's CPU time; `is_busy`: while cycles are recorded."""
        before = cpu_seconds(self._pid)
        with cycles_being_recorded(self._url) if is_busy else nullcontext():
            answered = press(self._port, itertools.cycle(self._requests), READ_S)
        return answered / (cpu_seconds(self._pid) - before)


@contextmanager
def readers_of(url: str, home: Path) -> Iterator[Readers]:
    """Fills the database at `url`, and serves it."""
    tokens = traders_database.make(url)
    (home / "data").mkdir(parents=True)
    with server_on(url, home) as (port, pid):
        yield Readers(url, port, pid, tokens)


def starts_on(urls: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Returns the median milliseconds of POST start, for each kind of database and each round."""
    found: dict[str, list[float]] = {kind: [] for kind in urls}
    for _ in range(rounds):
        for kind, url in urls.items():
            with installed(max_tasks=100, BIDKEEPER_DATABASE_URL=url) as home:
                tasks = home.user_with_tasks(ONE_BY_ONE + BURST, loopSeconds=300)
                found[kind].append(our_starts(home, tasks)[0] * 1e3)
                home.stop_all([tasks])
    return found


RACERS, SECONDS, ROUNDS = (8, 64), 3.0, 3
USERS, TASKS_EACH = 8, 3

Ours = list[tuple[int, int, int]]  # (task, user, token)


def made(url: str) -> Ours:
    """Fills the database at `url` with users, their sessions and their running tasks; leaves it open."""
    base.connect(url)
    schema.migrate()
    found = []
    for number in range(USERS):
        user = users.find_or_create(f"bc1q{number}", DEFAULT_PLANS, 1)
        users.open_session(f"hash{number}", user.id, 1)
        for slug in map(str, range(TASKS_EACH)):
            task = tasks.create_bidding_task(
                user.id,
                type="ordinals",
                slug=slug,
                slug_key=slug,
                config="{}",
                venue="simulator",
                max_tasks=20,
                now_ms=1,
            )
            tasks.set_desired(task, RUNNING)
            found.append((task.id, user.id, tasks.raise_token(task.id)))
    return found


def reserve(ours: Ours, rng: random.Random, number: int, turn: int) -> None:
    """Reserves an order within limits that are nearly reached, and closes it again."""
    task_id, user_id, token = rng.choice(ours)
    new = NewOrder(
        f"{number:016x}{turn:016x}",
        task_id,
        user_id,
        "simulator",
        f"bc1q{user_id}",
        "cats",
        rng.randint(1, 5_000),
        "1",
        turn,
        token,
    )
    try:
        made = orders.reserve(new, ExposureLimits(14_000, 33_000, 0, 5), 1)
    except LimitReached:
        return
    orders.move(made, CLOSED, 2, reason="cancelled")


def compete(url: str, ours: Ours, number: int, started: Barrier, said: Any) -> None:
    base.connect(url)
    rng, done, slowest = random.Random(number), 0, 0.0
    started.wait(60)
    ends, cpu = time.monotonic() + SECONDS, time.process_time()
    while (begin := time.monotonic()) < ends:
        reserve(ours, rng, number, done)
        done += 1
        slowest = max(slowest, time.monotonic() - begin)
    said.put((done, slowest, time.process_time() - cpu))
    base.close()


def raced(url: str, ours: Ours, racers: int, servers_cpu: Callable[[], float]) -> tuple[float, float, float]:
    """Returns the tries a second of all racers together, the seconds of the slowest racer, and the tries a CPU second.

    The CPU time includes the database server's, if there is one.
    """
    context = multiprocessing.get_context("fork")
    started, said = context.Barrier(racers), context.Queue()
    first = time.time_ns() % 10**12 * 100  # so that no intent is repeated
    running = [context.Process(target=compete, args=(url, ours, first + n, started, said)) for n in range(racers)]
    before = servers_cpu()
    for each in running:
        each.start()
    answers = [said.get(timeout=120) for _ in running]
    for each in running:
        each.join()
    tries, cpu = sum(done for done, _, _ in answers), sum(cpu for _, _, cpu in answers)
    return tries / SECONDS, max(slowest for _, slowest, _ in answers), tries / (cpu + servers_cpu() - before)


def timed(call: Callable[[int], object], calls: int) -> tuple[float, float]:
    """Returns the milliseconds that a call takes, by the clock and of this process's CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    for turn in range(calls):
        call(turn)
    return (time.perf_counter() - began) * 1e3 / calls, (time.process_time() - cpu) * 1e3 / calls


def measured(url: str, ours: Ours, servers_cpu: Callable[[], float]) -> dict[str, float]:
    base.connect(url)
    rng, first = random.Random(1), time.time_ns() % 10**15
    *ours, (restarted, _, _) = ours
    task_id, user_id, token = ours[0]
    now = 2_000_000

    def listed(turn: int) -> None:
        assert users.user_and_mark("hash0", 60_000)
        assert len(bidding_task_list(user_id)) == TASKS_EACH

    def cycle(turn: int) -> None:
        record_cycle(task_id, token, time_ms=now + turn * 30_000, action="kept 5", error=None, detail="{}", memory="{}")

    found = {}
    for what, call, calls in (
        ("reserve and close", lambda turn: reserve(ours, rng, first, turn), 300),
        ("record a cycle", cycle, 300),
        ("session and task list", listed, 2_000),
        ("raise a token", lambda turn: tasks.raise_token(restarted), 100),
    ):
        found[f"{what}, ms"], found[f"{what}, ms of the program's CPU"] = timed(call, calls)
    base.close()
    for racers in RACERS:
        tries, slowest, of_cpu = raced(url, ours, racers, servers_cpu)
        found[f"{racers} racing reservers, tries a second"] = tries
        found[f"{racers} racing reservers, the slowest, s"] = slowest
        found[f"{racers} racing reservers, tries a CPU second"] = of_cpu
    return found


def cpu_of_all(pid: int) -> float:
    """Returns the CPU seconds of a process and its children, including children that have ended."""
    while True:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        with suppress(FileNotFoundError):  # it has just ended, so its parent has its times
            return _times(pid, 4) + sum(_times(child, 2) for child in children)


def _times(pid: int, count: int) -> float:
    """Returns utime and stime, and with `count` 4 also those of ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 11 + count])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def servers() -> Iterator[tuple[Callable[[str], dict[str, str]], int]]:
    """Yields the function that makes an empty database of each kind under a name, and PostgreSQL's pid."""
    with tempfile.TemporaryDirectory() as directory, postgresql.cluster("listen_addresses=''") as server:

        def made(name: str) -> dict[str, str]:
            postgresql.command(server.url("postgres"), f"CREATE DATABASE {name}")
            return {"SQLite": f"sqlite:///{Path(directory) / name}.db", "PostgreSQL": server.url(name)}

        yield made, server.pid


def main() -> int:
    """Measures each kind in turn; prints the medians and PostgreSQL's ratios to SQLite."""
    if postgresql.programs() is None:
        print("PostgreSQL is not installed: nothing was measured", file=sys.stderr)
        return 1
    found: dict[str, dict[str, list[float]]] = {}

    def note(what: str, kind: str, value: float) -> None:
        found.setdefault(what, {}).setdefault(kind, []).append(value)

    with servers() as (empty, pid), tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        urls, ours = empty("race"), {}
        for kind, url in urls.items():
            ours[kind] = made(url)
            base.close()
        served = {kind: stack.enter_context(readers_of(url, Path(home) / kind)) for kind, url in empty("read").items()}
        servers_cpu = {"SQLite": lambda: 0.0, "PostgreSQL": lambda: cpu_of_all(pid)}
        for _ in range(ROUNDS):
            for kind, url in urls.items():
                for what, value in measured(url, ours[kind], servers_cpu[kind]).items():
                    note(what, kind, value)
            for is_busy, when in ((False, "quiet"), (True, "50 commits a second")):
                for kind, readers in served.items():
                    note(f"GET /api/tasks for each CPU second, {when}", kind, readers.per_cpu_second(is_busy=is_busy))
        for kind, values in starts_on(empty("start"), ROUNDS).items():
            for value in values:
                note("POST start to its answer, ms", kind, value)
    print(f"load {os.getloadavg()[0]:.1f} at the end\n{'':50}{'SQLite':>12}{'PostgreSQL':>12}{'ratio':>8}")
    for what, by_kind in found.items():
        lite, post = by_kind["SQLite"], by_kind["PostgreSQL"]
        ratio = statistics.median(theirs / ours for ours, theirs in zip(lite, post, strict=True))
        print(f"{what:50}{statistics.median(lite):12.2f}{statistics.median(post):12.2f}{ratio:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
