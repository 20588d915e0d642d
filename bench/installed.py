"""A whole installation on the simulator, with users and tasks to measure."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench.measuring import call
from tests.e2e.installation import Installation, Trader, installation

PLAN = """
[plans.beta]
name = "Beta"
max_tasks = {max_tasks}
max_bids_per_task = 20
max_exposure = 2000000000
price_sats = 0
duration_days = 365
"""
# None of these asks leads to a bid that the simulator accepts: its minimum bid is 10,000 sats.
WITHOUT_BIDS = [12_000, 12_500, 13_000]
_PATIENCE_S = 120.0
_AT_ONCE = 8


class Tasks(NamedTuple):
    """A user's bearer token and the ids of some of the user's tasks."""

    token: str
    ids: list[int]


class Home:
    """A running installation."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self.port = installation.port
        self.data_dir: Path = installation.data_dir
        self.environment: Mapping[str, str] = installation.environment

    def user_with_tasks(self, count: int, asks: Iterable[int] = WITHOUT_BIDS, **config: Any) -> Tasks:
        """Creates a user with one stopped task for each of the collections c-0, c-1, ..., which have the `asks`."""
        slugs = [f"c-{number}" for number in range(count)]
        self.put_collections(slugs, asks)
        return self.user(slugs, **config)

    def put_collections(self, slugs: Iterable[str], asks: Iterable[int]) -> None:
        prices = list(asks)
        for slug in slugs:
            self._installation.put_collection(slug, prices)

    def user(self, slugs: Iterable[str], **config: Any) -> Tasks:
        """Creates a user with one stopped task for each of `slugs`."""
        trader = Trader(self._installation).sign_in()
        token = str(trader.session.headers["Authorization"]).removeprefix("Bearer ")
        fields = {"bidCount": 1, "hardcapSats": 5_000_000} | config
        return Tasks(token, [trader.task(slug=slug, **fields) for slug in slugs])

    def listed(self, made: Tasks) -> list[dict[str, Any]]:
        """Returns the user's tasks as the API lists them."""
        found: list[dict[str, Any]] = call(self.port, "GET", "/api/tasks", made.token)
        return found

    def until_cycled(self, made: Tasks, ids: Iterable[int], patience_s: float = _PATIENCE_S) -> None:
        """Waits until each of the tasks `ids` has finished a cycle. Raises TimeoutError."""
        wanted, deadline = set(ids), time.monotonic() + patience_s
        while left := wanted - {task["id"] for task in self.listed(made) if task["lastCycle"]}:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(left)} tasks have not finished a cycle in {patience_s:.0f} s")
            time.sleep(0.05)

    def start_all(self, made: Iterable[Tasks], at_once: int = _AT_ONCE) -> None:
        self._each("start", made, at_once)

    def stop_all(self, made: Iterable[Tasks], at_once: int = _AT_ONCE) -> None:
        self._each("stop", made, at_once)

    def _each(self, operation: str, made: Iterable[Tasks], at_once: int) -> None:
        jobs = [(tasks.token, task) for tasks in made for task in tasks.ids]
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda job: call(self.port, "POST", f"/api/tasks/{job[1]}/{operation}", job[0]), jobs))

    def workers(self) -> list[int]:
        """Returns the pids of all worker processes."""
        return self._installation.processes("bidkeeper: bidder") + self._installation.processes("bidkeeper: drain")

    def programs(self, *names: str) -> list[int]:
        """Returns the pids of the installation's programs with these names."""
        return [
            pid
            for name in names
            for command in (f"cli.main {name}", f"bidkeeper: {name}")
            for pid in self._installation.processes(command)
        ]

    def sim(self, method: str, path: str, body: Any = None) -> Any:
        """Makes one call of the simulator's control."""
        return self._installation.sim(method, path, body)

    @property
    def simulator_url(self) -> str:
        return f"http://127.0.0.1:{self.environment['BIDKEEPER_SIMULATOR_PORT']}"

    def cycles(self) -> int:
        """Counts the cycles of all tasks so far."""
        with closing(sqlite3.connect(f"file:{self.data_dir / 'bidkeeper.db'}?mode=ro", uri=True)) as database:
            [[count]] = database.execute("SELECT SUM(cycles) FROM tasks WHERE kind = 'bidding'").fetchall()
        return int(count)

    def live_bids(self, slugs: Iterable[str]) -> int:
        return sum(len(self._installation.live_prices(slug)) for slug in slugs)


@contextmanager
def installed(max_tasks: int, **settings: Any) -> Iterator[Home]:
    """Starts an installation whose first plan allows `max_tasks` bidding tasks; destroys it at the end."""
    with TemporaryDirectory(prefix="bk-bench-") as name:
        config = Path(name) / "bidkeeper.toml"
        config.write_text(PLAN.format(max_tasks=max_tasks))
        with installation(BIDKEEPER_CONFIG=str(config), BIDKEEPER_LOG_LEVEL="INFO", **settings) as made:
            yield Home(made)
