"""Trips of one request through the programs of an installation: the files entered, and the changes of file.

Every process of the installation runs under `sys.setprofile` (`trip_hook/sitecustomize.py`). A file counts when one of
its functions is entered or resumed. A change is a function entered in another file than the same thread's last one.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.e2e.installation import Installation, Trader, until

HOOK = Path(__file__).parent / "trip_hook"
POSTS, BIDS = 5, 3
_FLOOR, _NO_ROOM = 1_000_000, 12_000
_CALM_S = 0.3  # the answer has come; what it leaves behind in the programs is over by then


class Trip(NamedTuple):
    """One trip: distinct files of the product, and changes of file on the way."""

    files: int
    changes: int


class Watch:
    """A directory in which watched processes write, and the switch that they look at."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        switch = directory / "on"
        switch.write_bytes(b"\0")
        with switch.open("r+b") as file:
            self._on = mmap.mmap(file.fileno(), 1)

    def environment(self, tree: Path, folders: Sequence[str]) -> dict[str, str]:
        """Returns the variables that have a process of `tree` watched."""
        return {
            "PYTHONPATH": os.pathsep.join((str(HOOK), str(tree))),
            "TRIP": str(self.directory),
            "TRIP_TREE": str(tree),
            "TRIP_FOLDERS": " ".join(folders),
        }

    @contextmanager
    def on(self) -> Iterator[None]:
        """Has processes count during the block, and no trip before it."""
        for file in self.directory.iterdir():
            if file.name != "on":
                file.unlink()
        self._on[0] = 1
        try:
            yield
        finally:
            self._on[0] = 0
            time.sleep(_CALM_S)

    def trip(self, of: Sequence[int] = (), during: int | None = None) -> Trip:
        """Returns the last trip, of all processes or those of `of`; with `during`, while that one was at work."""
        entered = {int(file.name): _read(file) for file in self.directory.iterdir() if file.name != "on"}
        if during is not None:
            first, last = entered[during][0][0], entered[during][-1][0]
            entered = {pid: [each for each in lines if first <= each[0] <= last] for pid, lines in entered.items()}
        found = [name for pid, lines in entered.items() if not of or pid in of for _, name in lines]
        return Trip(len(set(found)), len(found))


class Trips(NamedTuple):
    """The medians of the measured trips."""

    placed_bid: Trip
    start: Trip
    post: Trip


def measured(tree: Path, python: str, folders: Sequence[str]) -> Trips:
    """Makes the trips in an installation of `tree`. Raises RuntimeError where a cycle placed another number of bids."""
    with TemporaryDirectory(prefix="bk-trip-") as name:
        watch = Watch(Path(name))
        home = Installation(python=python, tree=tree, **watch.environment(tree, folders))
        try:
            home.up()
            trader = Trader(home).sign_in()
            posts = [_post(home, watch, trader, number) for number in range(POSTS + 1)]
            with closing(sqlite3.connect(f"file:{home.data_dir / 'bidkeeper.db'}?mode=ro", uri=True)) as database:
                database.isolation_level = None
                bids = [_placed_bid(home, watch, trader, database, number) for number in range(BIDS)]
                starts = [_start(home, watch, trader, database, number) for number in range(BIDS)]
        finally:
            home.destroy()
    return Trips(median(bids), median(starts), median(posts[1:]))  # the first request fills caches


def median(trips: Sequence[Trip]) -> Trip:
    return Trip(*(int(statistics.median_low(column)) for column in zip(*trips, strict=True)))


def _post(home: Installation, watch: Watch, trader: Trader, number: int) -> Trip:
    server = home.processes("cli.main server")
    with watch.on():
        trader.task(slug=f"post-{number}", bidCount=1, hardcapSats=2_000_000)
    return watch.trip(of=server)


def _placed_bid(home: Installation, watch: Watch, trader: Trader, database: sqlite3.Connection, number: int) -> Trip:
    """Measures the cycle in which a running task first finds room for a bid, from its first step to its last."""
    slug = f"bid-{number}"
    home.put_collection(slug, [_NO_ROOM])
    task = trader.task(slug=slug, bidCount=1, hardcapSats=2_000_000, loopSeconds=5)
    trader.start(task)
    _until_cycles(database, task, 2)
    home.put_collection(slug, [_FLOOR])
    cycles, pid = _row(database, task)
    with watch.on():
        _until_cycles(database, task, cycles + 1)
    trip = watch.trip(during=pid)
    _require_bids(home, slug)
    trader.stop_and_drain(task)
    return trip


def _start(home: Installation, watch: Watch, trader: Trader, database: sqlite3.Connection, number: int) -> Trip:
    """Measures a start and its first cycle, which places a bid: all programs, from the request to the cycle's end."""
    slug = f"start-{number}"
    home.put_collection(slug, [_FLOOR])
    task = trader.task(slug=slug, bidCount=1, hardcapSats=2_000_000, loopSeconds=300)
    with watch.on():
        trader.start(task)
        _until_cycles(database, task, 1)
    trip = watch.trip()
    _require_bids(home, slug)
    trader.stop_and_drain(task)
    return trip


def _until_cycles(database: sqlite3.Connection, task: int, cycles: int) -> None:
    # The ledger is read as a file: a question to a program would be part of the trip.
    until(lambda: _row(database, task)[0] >= cycles, f"cycle {cycles} of task {task}")


def _row(database: sqlite3.Connection, task: int) -> tuple[int, int]:
    cycles, pid = database.execute("SELECT cycles, pid FROM tasks WHERE id = ?", (task,)).fetchone()
    return cycles or 0, pid or 0


def _require_bids(home: Installation, slug: str) -> None:
    if len(home.live_prices(slug)) != 1:
        raise RuntimeError(f"the cycle was to place one bid on {slug}: {home.live_prices(slug)}")


def _read(file: Path) -> list[tuple[int, str]]:
    lines = (line.split(" ", 1) for line in file.read_text().splitlines())
    return [(int(at), name) for at, name in lines]
