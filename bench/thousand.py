"""`python -m bench.thousand [--tasks N] [--bids]`: starts and stops a thousand tasks together.

Each user has 20 tasks, all on the same 20 collections. Without `--bids` no bid is possible, so it measures only our
part; with it each task places one bid, and the venue's 5 requests a second set the pace (a place or cancel each). Every
wait is limited. The exit code is 1 if an aim is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.installed import WITHOUT_BIDS, Home, Tasks, installed
from bench.measuring import call

TASKS_EACH = 20
WITH_BIDS = [1_000_000, 1_010_000]
_AT_ONCE = 64
_LOOK_S = 0.02
_PATIENCE_S = 240.0
_GRACE_S = 10.0  # a stop waits this long for bids to be cancelled; the cancels may end a little later


class Watcher:
    """Reads one user's task list after another, as dashboards do, and records answer times and first cycles."""

    def __init__(self, home: Home, users: list[Tasks]) -> None:
        self.seconds: list[float] = []
        self.failures = 0
        self.cycled: set[int] = set()
        self.all_cycled = threading.Event()
        self._home = home
        self._users = users
        self._stop = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._stop.clear()

    def take_seconds(self) -> list[float]:
        """Returns the answers' seconds since the last call."""
        taken, self.seconds = self.seconds, []
        return taken

    def _watch(self) -> None:
        count = sum(len(user.ids) for user in self._users)
        while not self._stop.is_set():
            for user in self._users:
                self._look(user)
                if self._stop.wait(_LOOK_S):
                    return
            if len(self.cycled) == count:
                self.all_cycled.set()

    def _look(self, user: Tasks) -> None:
        began = time.monotonic()
        try:
            listed = call(self._home.port, "GET", "/api/tasks", user.token)
        except (OSError, RuntimeError):
            self.failures += 1
            return
        self.seconds.append(time.monotonic() - began)
        self.cycled |= {task["id"] for task in listed if task["lastCycle"]}


def main() -> int:
    """Runs the measurement and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000, help="how many, in twenties (default 1000)")
    parser.add_argument("--bids", action="store_true", help="leave room for one bid of each task")
    options = parser.parse_args()
    with installed(max_tasks=TASKS_EACH) as home:
        return _measure(home, options.tasks // TASKS_EACH, options.bids)


def _measure(home: Home, count: int, bids: bool) -> int:
    slugs = [f"c-{number}" for number in range(TASKS_EACH)]
    home.put_collections(slugs, WITH_BIDS if bids else WITHOUT_BIDS)
    users = [home.user(slugs) for _ in range(count)]
    tasks = sum(len(user.ids) for user in users)
    watcher = Watcher(home, users)
    free_before = _available_mib()
    with watcher.watching():
        began = time.monotonic()
        home.start_all(users, _AT_ONCE)
        answered_s = time.monotonic() - began
        watcher.all_cycled.wait(_PATIENCE_S)
        cycled_s, cycled = time.monotonic() - began, len(watcher.cycled)
        starting = watcher.take_seconds()
        used = free_before - _available_mib()
        running = len(home.workers())
        began = time.monotonic()
        home.stop_all(users, _AT_ONCE)
        stopped_s = time.monotonic() - began
        stopping = watcher.take_seconds()
    deadline = time.monotonic() + _GRACE_S
    while home.workers() and time.monotonic() < deadline:
        time.sleep(0.1)
    left, live = len(home.workers()), home.live_bids(slugs)
    kind = "one bid each" if bids else "no room for bids"
    print(f"{tasks} tasks of {count} users on {len(slugs)} slugs, {kind}\n")
    lines = [
        ("all starts answered", f"{answered_s:.1f} s", "", True),
        ("worker processes then", f"{running}", f"{tasks}", running == tasks),
        (f"{cycled} tasks have finished a cycle", f"{cycled_s:.1f} s", "<= 60 s", cycled == tasks and cycled_s <= 60),
        ("GET /api/tasks meanwhile, median", f"{1000 * statistics.median(starting):.0f} ms", "", True),
        ("GET /api/tasks meanwhile, p99", f"{1000 * _p99(starting):.0f} ms", "<= 250 ms", _p99(starting) <= 0.25),
        ("memory taken from the machine", f"{used:,.0f} MiB", "", True),
        ("all stops answered", f"{stopped_s:.1f} s", "<= 60 s", stopped_s <= 60),
        ("GET /api/tasks meanwhile, p99", f"{1000 * _p99(stopping):.0f} ms", "<= 250 ms", _p99(stopping) <= 0.25),
        (f"worker processes left after {_GRACE_S:.0f} s", f"{left}", "0", left == 0),
        ("live bids left", f"{live}", "0", live == 0),
        ("requests of the API that failed", f"{watcher.failures}", "0", watcher.failures == 0),
    ]
    for what, found, aim, is_met in lines:
        print(f"{what:<44} {found:>12}   {aim:<10} {'' if is_met else 'MISSED'}".rstrip(), flush=True)
    return 0 if all(is_met for *_, is_met in lines) else 1


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98] if len(seconds) > 1 else 0.0


def _available_mib() -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/meminfo does not say how much memory is available")


if __name__ == "__main__":
    sys.exit(main())
