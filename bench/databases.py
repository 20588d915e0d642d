"""SQLite and PostgreSQL in turn, in one run: `.venv-postgresql/bin/python -m bench.databases`. Not part of make bench.

PostgreSQL is a cluster of its own with its usual settings, which wait for the disk as SQLite does, reached by a Unix
socket. Everything lies in TMPDIR, which must be on a disk.
"""

from __future__ import annotations

import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from core.subscription_plans import DEFAULT_PLANS
from models import base, schema, sessions, users
from models.ledger import orders
from models.ledger.order_table import CLOSED
from models.ledger.orders import ExposureLimits, LimitReached, NewOrder
from models.tasks import tasks
from models.tasks.cycles import record_cycle
from models.tasks.table import RUNNING
from models.tasks.task_list import bidding_task_list
from tests import postgresql

RACERS, SECONDS, ROUNDS = 8, 3.0, 3
USERS, TASKS_EACH = 8, 3

Ours = list[tuple[int, int, int]]  # (task, user, token)


def made(url: str) -> Ours:
    """Fills the database at `url` with users, their sessions and their running tasks; leaves it open."""
    base.connect(url)
    schema.migrate()
    found = []
    for number in range(USERS):
        user = users.find_or_create(f"bc1q{number}", DEFAULT_PLANS, 1)
        sessions.open_session(f"hash{number}", user.id, 1)
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
    """Reserves an order within limits that are mostly reached, and closes it again."""
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
    ends = time.monotonic() + SECONDS
    while (begin := time.monotonic()) < ends:
        reserve(ours, rng, number, done)
        done += 1
        slowest = max(slowest, time.monotonic() - begin)
    base.close()
    said.put((done, slowest))


def raced(url: str, ours: Ours) -> tuple[float, float]:
    """Returns the tries a second of all racers together, and the seconds of the slowest try."""
    context = multiprocessing.get_context("spawn")
    started, said = context.Barrier(RACERS), context.Queue()
    first = time.time_ns() % 10**12 * 100  # so that no intent comes twice
    racers = [context.Process(target=compete, args=(url, ours, first + n, started, said)) for n in range(RACERS)]
    for each in racers:
        each.start()
    answers = [said.get(timeout=120) for _ in racers]
    for each in racers:
        each.join()
    return sum(done for done, _ in answers) / SECONDS, max(slowest for _, slowest in answers)


def timed(call: Callable[[int], object], calls: int) -> tuple[float, float]:
    """Returns the milliseconds that a call takes, by the clock and of this process's CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    for turn in range(calls):
        call(turn)
    return (time.perf_counter() - began) * 1e3 / calls, (time.process_time() - cpu) * 1e3 / calls


def measured(url: str, ours: Ours) -> dict[str, tuple[float, ...]]:
    base.connect(url)
    rng, first = random.Random(1), time.time_ns() % 10**15
    *ours, (restarted, _, _) = ours
    task_id, user_id, token = ours[0]
    now = 2_000_000

    def listed(turn: int) -> None:
        assert sessions.user_of_session("hash0", 60_000)
        assert len(bidding_task_list(user_id)) == TASKS_EACH

    def cycle(turn: int) -> None:
        record_cycle(task_id, token, time_ms=now + turn * 30_000, action="kept 5", error=None, detail="{}", memory="{}")

    found = {
        "reserve and close, ms": timed(lambda turn: reserve(ours, rng, first, turn), 300),
        "record a cycle, ms": timed(cycle, 300),
        "session and task list, ms": timed(listed, 2_000),
        "raise a token, ms": timed(lambda turn: tasks.raise_token(restarted), 100),
    }
    base.close()
    found[f"{RACERS} racing reservers: tries/s, slowest s"] = raced(url, ours)
    return found


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    """Gives the address of an empty database of each kind."""
    with tempfile.TemporaryDirectory() as directory, postgresql.cluster("listen_addresses=''") as server:
        postgresql.command(server.url("postgres"), "CREATE DATABASE bench")
        yield {"SQLite": f"sqlite:///{Path(directory) / 'bench.db'}", "PostgreSQL": server.url("bench")}


def main() -> int:
    """Measures each kind in turn, and prints the medians: by the clock, and in brackets the second figure."""
    if postgresql.programs() is None:
        print("PostgreSQL is not installed: nothing was measured", file=sys.stderr)
        return 1
    rounds: dict[str, list[dict[str, tuple[float, ...]]]] = {}
    with servers() as urls:
        ours = {}
        for kind, url in urls.items():
            ours[kind] = made(url)
            base.close()
        for _ in range(ROUNDS):
            for kind, url in urls.items():
                rounds.setdefault(kind, []).append(measured(url, ours[kind]))
    print(f"{'':45}{'SQLite':>20}{'PostgreSQL':>20}")
    for what in rounds["SQLite"][0]:
        shown = [
            " ".join(f"{statistics.median(each[what][place] for each in found):9.2f}" for place in (0, 1))
            for found in rounds.values()
        ]
        print(f"{what:45}{shown[0]:>20}{shown[1]:>20}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
