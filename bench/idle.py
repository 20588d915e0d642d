"""The cost of idle workers: CPU time of 500 of them on 30 s cycles that place no bid.

Each user has 20 tasks, all on the same 20 collections, where no bid is possible. Everything but the venue is real; the
time of venue, server and signer is not counted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from bench.installed import WITHOUT_BIDS, Home, Tasks, installed
from bench.measuring import Row, cpu_seconds, pss_mib

USERS, TASKS_EACH = 25, 20
LOOP_S, LOOPS = 30, 2
_AT_ONCE = 16
IN_TIME = 0.9  # of the cycles that are due


def rows() -> Iterator[Row]:
    with installed(max_tasks=TASKS_EACH) as home:
        made = _started(home)
        workers, helpers = home.workers(), home.programs("manager", "gateway", "zygote")
        _settle_down(home, made)
        cycles, spent = home.cycles(), (_cpu(workers), _cpu(helpers))
        began = time.monotonic()
        time.sleep(LOOP_S * LOOPS)
        seconds = time.monotonic() - began
        ours, theirs = _cpu(workers) - spent[0], _cpu(helpers) - spent[1]
        cycles = home.cycles() - cycles
        memory = [pss_mib(pid) for pid in workers]
    count = USERS * TASKS_EACH
    if len(workers) != count or cycles < count * LOOPS * IN_TIME:
        raise RuntimeError(f"{len(workers)} workers of {count} had {cycles} cycles")
    yield Row(f"{count} workers on {LOOP_S} s cycles, of one core", f"{ours / seconds:.1%}", "", "", "5 %")
    yield Row("... CPU of one cycle", f"{1000 * ours / cycles:.2f} ms")
    yield Row("... manager, zygote and gateway meanwhile", f"{theirs / seconds:.1%}")
    yield Row(f"PSS of a worker, one of {count}, no bids", f"{statistics.median(memory):.2f} MiB", "", "", "4 MiB")


def _started(home: Home) -> list[Tasks]:
    slugs = [f"c-{number}" for number in range(TASKS_EACH)]
    home.put_collections(slugs, WITHOUT_BIDS)
    made = [home.user(slugs, loopSeconds=LOOP_S) for _ in range(USERS)]
    home.start_all(made, _AT_ONCE)
    return made


def _settle_down(home: Home, made: list[Tasks]) -> None:
    for tasks in made:
        home.until_cycled(tasks, tasks.ids)
    time.sleep(LOOP_S * 1.25)  # until each worker has had its turn


def _cpu(pids: list[int]) -> float:
    return sum(map(cpu_seconds, pids))
