"""`python -m bench.scales`: measures how large the program is, and how far one fact or one request spreads in it.

`--tree PATH` measures another checkout by the same rules, only through its files, commands and HTTP interface.
"""

from __future__ import annotations

import argparse
import ast
import json
import mmap
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.installed import Home, installed
from bench.measuring import pss_mib
from tests.e2e.installation import Installation, Trader, until

HOOK = Path(__file__).parent / "trip_hook"
POSTS, BIDS = 5, 3
_FLOOR, _NO_ROOM = 1_000_000, 12_000
_CALM_S = 0.3  # after this, the work that an answer leaves behind in the programs is over


class Trip(NamedTuple):
    """The path of one request: the number of different product files, and of changes from one file to another."""

    files: int
    changes: int


class Watch:
    """A directory in which watched processes write, and the switch that they read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        switch = directory / "on"
        switch.write_bytes(b"\0")
        with switch.open("r+b") as file:
            self._on = mmap.mmap(file.fileno(), 1)

    def environment(self, tree: Path, folders: Sequence[str]) -> dict[str, str]:
        """Returns the variables that make a process of `tree` a watched one."""
        return {
            "PYTHONPATH": os.pathsep.join((str(HOOK), str(tree))),
            "TRIP": str(self.directory),
            "TRIP_TREE": str(tree),
            "TRIP_FOLDERS": " ".join(folders),
        }

    @contextmanager
    def on(self) -> Iterator[None]:
        """Counts during the block, starting a new trip."""
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
        """Returns the last trip, of all processes or those in `of`; with `during`, only while that process worked."""
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
    """Makes the trips in an installation of `tree`. Raises RuntimeError if a cycle placed another number of bids."""
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
    """Measures the cycle in which a running task can first place a bid, from its first step to its last."""
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
    """Measures a start and its first cycle, which places a bid, in all programs from the request to the cycle's end."""
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
    # The ledger is read as a file, because a request to a program would be part of the trip.
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


ROOT = Path(__file__).resolve().parents[1]
FIELDS = ["bidCount", "budgetId", "ignoreAddresses", "loopSeconds", "maxFills", "maxFillsPerDay"]
NOUN = "preset"
VERBS = ["draft_delist", "rune_asks", "sign_in_texts"]
PROGRAMS = ("server.app", "gateway.app", "workers.manager.manager")
IMPORTS, WORKERS = 7, 20

Number = int | float


class Scale(NamedTuple):
    """One line of the table: numbers by name, and how they were counted."""

    what: str
    numbers: Mapping[str, Number]
    how: str


class Size(NamedTuple):
    """Files, and the lines in them."""

    lines: int
    files: int


def scales(tree: Path, python: str) -> Iterator[Scale]:
    """Yields the lines of the table for the checkout `tree`; the interpreter `python` has its packages."""
    yield from sizes(tree)
    yield from spreads(tree)
    made = measured(tree, python, product(tree))
    for what, trip, of in (
        ("one placed bid", made.placed_bid, f"a running task's cycle, in all programs; of {BIDS}"),
        (
            "a start and its first placed bid",
            made.start,
            f"from request to end of cycle, all programs; of {BIDS}",
        ),
        ("POST /api/tasks", made.post, f"the server's process; of {POSTS} after a first one"),
    ):
        yield Scale(
            what, trip._asdict(), f"{of}; a change is a function entered in another file than the thread's last one"
        )
    yield from imports(tree, python)
    yield from memory(tree, python)


def sizes(tree: Path) -> Iterator[Scale]:
    """Counts files, and lines by their newlines."""
    packages = product(tree)
    for what, folders, ending, how in (
        ("product Python", packages, "py", f"*.py of {', '.join(packages)}"),
        ("page", ["web/js"], "js", "*.js of web/js"),
        ("tests", ["tests"], "py", "*.py of tests"),
        ("drills", ["drills"], "py", "*.py of drills"),
    ):
        if (tree / folders[0]).is_dir():
            size = size_of(files(tree, folders, [ending]))
            yield Scale(what, size._asdict() | {"lines a file": round(size.lines / size.files)}, how)


def spreads(tree: Path) -> Iterator[Scale]:
    """Counts the files that name one thing."""
    everything = list(files(tree, [*product(tree), "docs"], ["py", "js", "html", "md"]))
    python = list(files(tree, product(tree), ["py"]))
    found = {field: naming(everything, spellings(field)) for field in FIELDS}
    how = f"product, page and docs that name it as bidCount, bid_count or bid-count; the median of {_listed(found)}"
    yield Scale("files for a config field", {"files": round(statistics.median(found.values()))}, how)
    how = f"product that names {NOUN}, in any identifier or word; with page and docs"
    counts = {"files": naming(python, NOUN), "with page and docs": naming(everything, NOUN)}
    yield Scale("files for a CRUD noun", counts, how)
    found = {verb: naming(python, rf"\b_?{verb}\b") for verb in VERBS}
    how = f"product that names it, an adapter's and an asker's among them; the median of {_listed(found)}"
    yield Scale("files for a gateway verb", {"files": round(statistics.median(found.values()))}, how)


def product(tree: Path) -> list[str]:
    """Returns the packages in the tree's wheel. Raises FileNotFoundError if `tree` is not a checkout."""
    for statement in ast.parse((tree / "setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "TOP_LEVEL":
            return [str(name) for name in ast.literal_eval(statement.value)]
    raise FileNotFoundError(f"{tree / 'setup.py'} has no TOP_LEVEL")


def files(tree: Path, folders: Sequence[str], endings: Sequence[str]) -> Iterator[Path]:
    """Yields the files in these folders with these endings, without links and what a run has left there."""
    for folder in folders:
        for ending in endings:
            for path in sorted((tree / folder).rglob(f"*.{ending}")):
                if path.is_file() and not path.is_symlink() and not {"node_modules", "vendor"} & set(path.parts):
                    yield path


def size_of(paths: Iterable[Path]) -> Size:
    counted = [path.read_bytes().count(b"\n") for path in paths]
    return Size(sum(counted), len(counted))


def naming(paths: Iterable[Path], pattern: str) -> int:
    """Returns the number of files whose text matches, ignoring case."""
    wanted = re.compile(pattern, re.IGNORECASE)
    return sum(wanted.search(path.read_text(errors="replace")) is not None for path in paths)


def spellings(camel: str) -> str:
    """Returns the pattern of a name in camelCase, snake_case or with hyphens, as a whole word."""
    return r"\b" + re.sub("(?=[A-Z])", "[_-]?", camel) + r"\b"


def _listed(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in found.items())


_IMPORT = """
import sys, time
before = len(sys.modules)
began = time.perf_counter()
import {}
print(1000 * (time.perf_counter() - began), len(sys.modules) - before)
"""


def imports(tree: Path, python: str) -> Iterator[Scale]:
    """Measures imports in fresh interpreters, the programs in turn. Each first import compiles and is not counted."""
    found: dict[str, list[tuple[float, int]]] = {program: [] for program in PROGRAMS}
    for _ in range(IMPORTS + 1):
        for program, runs in found.items():
            runs.append(imported(tree, python, program))
    for program, runs in found.items():
        ms = statistics.median(ms for ms, _ in runs[1:])
        how = f"the median of {IMPORTS} fresh interpreters; modules that it adds"
        yield Scale(f"import {program}", {"ms": round(ms), "modules": runs[-1][1]}, how)


def imported(tree: Path, python: str, program: str) -> tuple[float, int]:
    """Returns the milliseconds of one import in a fresh interpreter, and the number of modules that it adds."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # so that only the first import compiles
    command = [python, "-P", "-c", _IMPORT.format(program)]
    said = subprocess.run(command, env=environment, cwd=tree, check=True, capture_output=True, text=True).stdout
    ms, modules = said.split()
    return float(ms), int(modules)


def memory(tree: Path, python: str) -> Iterator[Scale]:
    """Measures an installation after a cycle of each task."""
    with installed(max_tasks=WORKERS, python=python, tree=tree) as home:
        tasks = home.user_with_tasks(WORKERS, loopSeconds=300)
        home.start_all([tasks])
        home.until_cycled(tasks, tasks.ids)
        (server,) = home.programs("server")
        workers = _workers(home)
        how = f"the median of {len(workers)} workers of one zygote after their first cycle"
        yield Scale("PSS of the server", {"MiB": round(pss_mib(server), 1)}, f"with {WORKERS} tasks running")
        yield Scale("PSS of a worker", {"MiB": round(statistics.median(map(pss_mib, workers)), 2)}, how)
        home.stop_all([tasks])


def _workers(home: Home) -> list[int]:
    if len(found := home.workers()) != WORKERS:
        raise RuntimeError(f"{len(found)} of {WORKERS} workers run")
    return found


def interpreter(tree: Path) -> str:
    """Returns the Python of the checkout's own environment, or this one if it has none."""
    own = tree / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def table(row: Scale) -> str:
    """Returns the line of the table without how it is counted, which is printed below the table."""
    return f"{row.what:<34} " + ", ".join(f"{value:,} {name}" for name, value in row.numbers.items())


def main(arguments: Sequence[str]) -> int:
    """Prints the table, or one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.scales", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout (default: this one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    tree = options.tree.resolve()
    try:
        product(tree)
    except FileNotFoundError as error:
        print(f"{tree} is not a checkout of Bidkeeper: {error}", file=sys.stderr)
        return 2
    began = time.monotonic()
    rows = []
    for row in scales(tree, interpreter(tree)):
        rows.append(row)
        if not options.json:
            print(table(row), flush=True)
    if options.json:
        print(json.dumps({row.what: {**row.numbers, "how": row.how} for row in rows}, indent=2))
        return 0
    print("\nHow it is counted")
    for row in rows:
        print(f"{row.what}: {row.how}")
    print(f"\n{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
