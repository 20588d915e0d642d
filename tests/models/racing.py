"""Many processes that write to one database at once."""

from __future__ import annotations

import multiprocessing
import queue
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from models.database import base, damage
from models.database.base import Sqlite
from models.leases import held_lease, leases
from models.leases.held_lease import HeldLease
from models.leases.leases import Holder, Standing, Taken
from tests.databases import another

START_S, RUN_S = 120, 550
Worker = Callable[[str, Any, int, int, Barrier, Any], None]


def connect(url: str) -> None:
    """Opens a racing process's connection, which waits for a lock as long as the others need.

    SQLite's waiting is not fair: on a busy machine one of many may wait its usual 15 s for nothing.
    """
    damage.BUSY_SECONDS = 300
    base.connect(url)


def race(worker: Worker, database: str, what: Any, processes: int, tries: int) -> Counter[str]:
    """Starts so many of `worker(database, what, number, tries, started, said)`; returns the sum of what they say.

    Each waits for `started`, and says a Counter of its results and the seconds of its slowest try.
    """
    # Processes of their own, forked from one that has read everything in and has nothing open: reading it in would cost
    # each of them more than its tries do.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker.__module__])
    started, said = context.Barrier(processes), context.Queue()
    # Daemons, so that they end with this process when something fails.
    workers = [
        context.Process(target=worker, args=(database, what, number, tries, started, said), daemon=True)
        for number in range(processes)
    ]
    begin = time.monotonic()
    for each in workers:
        each.start()
    answers: list[tuple[Counter[str], float]] = []
    while len(answers) < processes:
        try:
            answers.append(said.get(timeout=1))
        except queue.Empty:
            assert not any(each.exitcode for each in workers), "one of them died"
            assert time.monotonic() < begin + START_S + RUN_S
    for each in workers:
        each.join(START_S)
    assert [each.exitcode for each in workers] == [0] * processes
    found = sum((each for each, _ in answers), Counter[str]())
    slowest, took = max(slowest for _, slowest in answers), time.monotonic() - begin
    print(f"\n{processes} processes x {tries} in {took:.1f} s: {dict(found)}; slowest {slowest:.2f} s")
    return found


def watch_inserts(look: str) -> None:
    """Has the database run these statements after every insert of an order, which is NEW there."""
    if isinstance(base.database.obj, Sqlite):
        base.database.execute_sql(f"CREATE TRIGGER watch AFTER INSERT ON orders BEGIN {look} END")
        return
    body = f"$$ BEGIN {look} RETURN NULL; END $$"
    base.database.execute_sql(f"CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS {body}")
    base.database.execute_sql("CREATE TRIGGER watch AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION watch()")


HERE, THERE = Holder("here", "a"), Holder("there", "b", "10.0.0.2:7100")
# Long, so that a machine which stands still for some seconds ends no holder that a test needs alive.
SECONDS = 15
BRIEF_S = 8  # of a holder that is only to end: nobody waits for that longer than need be
HOLDS = """
import sys, time
from pathlib import Path
from models.leases.held_lease import claim
from models.leases.leases import Holder
url, home, seconds, name, directory = sys.argv[1:]
holder = Holder(home, "its machine", directory=Path(directory) if directory else None)
lease = claim(url, name, holder, int(seconds), waits=True, kind="manager")
print("held", flush=True)
for _ in range(2400):
    lease.alive()
    time.sleep(0.1)
"""


def claimed(url: str, holder: Holder = HERE, *, waits: bool = False) -> HeldLease:
    return held_lease.claim(url, "slot 0", holder, SECONDS, waits=waits, kind="manager")


@contextmanager
def in_a_process(
    url: str,
    home: str,
    program: str = HOLDS,
    seconds: int = SECONDS,
    name: str = "slot 0",
    directory: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Runs a process that waits for a lease, and says so when it has it."""
    command = [sys.executable, "-c", program, url, home, str(seconds), name, str(directory or "")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], within_s: float = 60) -> str:
    """Returns the line that the process says within this time, "" for none."""
    assert process.stdout is not None
    return process.stdout.readline() if select.select([process.stdout], [], [], within_s)[0] else ""


def clock_jumps(url: str, by_s: int) -> None:
    """Has the database's clock jump, for whoever connects to it after the first call."""
    name = url.removeprefix("postgresql:///").partition("?")[0]
    with another(url) as other:
        other.execute("CREATE TABLE IF NOT EXISTS ahead (by_s INTEGER)")
        other.execute("INSERT INTO ahead VALUES (?)", [by_s])
        other.execute(
            "CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
            " 'SELECT pg_catalog.clock_timestamp() + sum(by_s) * interval ''1 second'' FROM public.ahead'"
        )
        other.execute(f"ALTER DATABASE {name} SET search_path TO public, pg_catalog")


def run_out(url: str) -> None:
    with another(url) as other:
        other.execute("UPDATE leases SET until_ms = until_ms - 1000000")


def taken(holder: Holder, over: str = "") -> Taken | None:
    found = leases.take(base.database.obj, "slot 0", holder, SECONDS, over)
    return found if isinstance(found, Taken) else None


def version() -> str:
    """Returns the version of the lease, as one sees it who is to wait for it."""
    found = leases.take(base.database.obj, "slot 0", Holder("elsewhere", "c"), SECONDS)
    assert isinstance(found, Standing)
    return found.version
