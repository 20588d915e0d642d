"""Many processes that write to one database at once."""

from __future__ import annotations

import multiprocessing
import queue
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

from models.database import base, damage
from models.database.base import Sqlite

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
