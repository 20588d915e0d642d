"""The server and the starts of workers on a database of either kind."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import traders_database
from bench.installed import installed
from bench.measuring import cpu_seconds, get, press
from bench.reads_and_writes import server_on
from bench.starts import BURST, ONE_BY_ONE, our_starts
from tests.databases import another

READ_S = 3.0
_COMMITS_EVERY_S = 0.02


class Readers:
    """Our server over the database at `url`, and 200 users who look at their tasks."""

    def __init__(self, url: str, port: int, pid: int, tokens: list[str]) -> None:
        self._url, self._port, self._pid = url, port, pid
        self._requests = [get("/api/tasks", token) for token in tokens]
        press(port, iter(self._requests))  # each user once, to fill the caches

    def per_cpu_second(self, *, is_busy: bool) -> float:
        """Returns the answers for each second of the server's CPU time; `is_busy`: while cycles are recorded."""
        before = cpu_seconds(self._pid)
        with _cycles_being_recorded(self._url) if is_busy else _nothing():
            answered = press(self._port, itertools.cycle(self._requests), READ_S)
        return answered / (cpu_seconds(self._pid) - before)


@contextmanager
def readers(url: str, home: Path) -> Iterator[Readers]:
    """Fills the database at `url`, and serves it."""
    tokens = traders_database.make(url)
    (home / "data").mkdir(parents=True)
    with server_on(url, home) as (port, pid):
        yield Readers(url, port, pid, tokens)


def starts(urls: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Returns the median milliseconds from a POST start to its answer, for each kind and round."""
    found: dict[str, list[float]] = {kind: [] for kind in urls}
    for _ in range(rounds):
        for kind, url in urls.items():
            with installed(max_tasks=100, BIDKEEPER_DATABASE_URL=url) as home:
                tasks = home.user_with_tasks(ONE_BY_ONE + BURST, loopSeconds=300)
                found[kind].append(our_starts(home, tasks)[0] * 1e3)
                home.stop_all([tasks])
    return found


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _cycles_being_recorded(url: str) -> Iterator[None]:
    """Commits to one task after another, as workers do, while the block lasts."""
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
