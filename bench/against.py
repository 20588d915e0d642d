"""`python -m bench.against COMMIT`: measures this checkout and another in turn, and prints ratios with an interval.

COMMIT may also be a checkout's directory. A ratio is the other's figure divided by ours in one pair: above 1, ours is
better. It prints the median of the pairs' ratios, and its interval by order statistics, which assume nothing about the
distribution. The other checkout is measured through its commands, its HTTP interface and its own `bench`."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.installed import Home, Tasks, installed
from bench.measuring import ROOT, ask, call, cpu_seconds, get, press, pss_mib, write
from bench.reads_and_writes import server_on
from bench.scales import PROGRAMS, imported, interpreter

READ_S, WRITES = 1.0, 300
OF_BENCH = ("decisions", "ledger", "signing")  # rows that each checkout measures by its own `python -m bench`
CONFIDENCE = 0.95
FEWEST = 6  # pairs: below this, the lowest and highest ratio enclose the median with less than 95 % confidence

Figures = dict[str, float]  # lower is better in each


class Tree(NamedTuple):
    """A checkout, and the Python that has its packages."""

    path: Path
    python: str


class Ratio(NamedTuple):
    """The median of the pairs' ratios, and its interval."""

    median: float
    low: float
    high: float


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Returns the ratio of (other, ours); with fewer than `FEWEST` pairs the confidence of the interval is lower."""
    ratios = sorted(other / ours for other, ours in pairs)
    number = len(ratios)
    outside, cut = 2 * 0.5**number, 0  # the chance that all ratios lie on one side of the median
    while cut + 1 < number // 2:
        more = outside + 2 * math.comb(number, cut + 1) * 0.5**number
        if more > 1 - CONFIDENCE:
            break
        outside, cut = more, cut + 1
    return Ratio(statistics.median(ratios), ratios[cut], ratios[-1 - cut])


def in_turn(
    pairs: int, measures: tuple[Callable[[], Figures], Callable[[], Figures]]
) -> dict[str, list[tuple[float, float]]]:
    """Measures (other, ours) `pairs` times, alternating the order. Leaves out figures that only one of them has."""
    for measure in measures:
        measure()  # to fill caches and compile
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(pairs):
        figures: dict[int, Figures] = {}
        for which in (0, 1) if number % 2 else (1, 0):
            figures[which] = measures[which]()
        for name, other in figures[0].items():
            if name in figures[1]:
                found.setdefault(name, []).append((other, figures[1][name]))
    return found


def import_times(trees: Sequence[Tree], pairs: int) -> dict[str, list[tuple[float, float]]]:
    def measure(tree: Tree) -> Figures:
        return {f"import {name}, ms": imported(tree.path, tree.python, name)[0] for name in PROGRAMS}

    return in_turn(pairs, (lambda: measure(trees[0]), lambda: measure(trees[1])))


def requests(trees: Sequence[Tree], pairs: int) -> dict[str, list[tuple[float, float]]]:
    """Measures the CPU time of one request in both servers, which run at the same time on equal databases."""
    with tempfile.TemporaryDirectory(prefix="bk-against-") as name, ExitStack() as stack:
        measures = [stack.enter_context(_server(tree, Path(name, str(number)))) for number, tree in enumerate(trees)]
        found: dict[str, list[tuple[float, float]]] = {}
        for other, ours in zip(*measures, strict=True):  # reads first, because each creation makes a list longer
            found |= in_turn(pairs, (other, ours))
        return found


@contextmanager
def _server(tree: Tree, home: Path) -> Iterator[list[Callable[[], Figures]]]:
    (home / "data").mkdir(parents=True)
    url = f"sqlite:///{home / 'data' / 'bidkeeper.db'}"
    made = _run(tree, "-c", f"from bench import traders_database as d; import json; print(json.dumps(d.make({url!r})))")
    tokens: list[str] = json.loads(made)
    with server_on(url, home, tree.path, tree.python) as (port, pid):
        owned = [(token, task["id"]) for token in tokens for task in ask(port, get("/api/tasks", token))]
        reads = itertools.cycle([get("/api/tasks", token) for token in tokens])
        created, changed = itertools.count(), itertools.count()

        def creations() -> Iterator[bytes]:
            for number in itertools.islice(created, WRITES):
                body = {"slug": f"new-{number}", "bidCount": 3, "hardcapSats": 5_000_000, "loopSeconds": 10}
                yield write("POST", "/api/tasks", tokens[number % len(tokens)], body)

        def changes() -> Iterator[bytes]:
            for number in itertools.islice(changed, WRITES):
                token, task = owned[number % len(owned)]
                yield write("PUT", f"/api/tasks/{task}", token, {"bidCount": 1 + (5 + number // len(owned)) % 20})

        def costs(what: str, load: Callable[[], int]) -> Callable[[], Figures]:
            def measure() -> Figures:
                before = cpu_seconds(pid)
                answered = load()
                return {f"{what}, CPU us": 1e6 * (cpu_seconds(pid) - before) / answered}

            return measure

        yield [
            costs("GET /api/tasks, 20 tasks", lambda: press(port, reads, READ_S)),
            costs("PUT /api/tasks/:id, stopped", lambda: press(port, changes())),
            costs("POST /api/tasks", lambda: press(port, creations())),
        ]


def starts(trees: Sequence[Tree], pairs: int) -> dict[str, list[tuple[float, float]]]:
    """Measures starts in two installations at the same time: the time of POST start, then the worker's memory."""
    with ExitStack() as stack:
        measures = []
        for tree in trees:
            home = stack.enter_context(installed(max_tasks=100, tree=tree.path, python=tree.python))
            measures.append(_starting(home, home.user_with_tasks(pairs + 1, loopSeconds=300)))
        return in_turn(pairs, (measures[0], measures[1]))


def _starting(home: Home, made: Tasks) -> Callable[[], Figures]:
    left, (server,) = iter(made.ids), home.programs("server")

    def start() -> Figures:
        task, before = next(left), set(home.workers())
        began = time.perf_counter()
        call(home.port, "POST", f"/api/tasks/{task}/start", made.token)
        ms = 1000 * (time.perf_counter() - began)
        home.until_cycled(made, [task])
        (worker,) = set(home.workers()) - before
        return {
            "start a worker, POST to its answer, ms": ms,
            "PSS of a worker after its first cycle, MiB": pss_mib(worker),
            "PSS of the server, MiB": pss_mib(server),
        }

    return start


def rows_of_bench(trees: Sequence[Tree], pairs: int) -> dict[str, list[tuple[float, float]]]:
    def measure(tree: Tree) -> Figures:
        return dict(figures_in(_run(tree, "-m", "bench", *OF_BENCH)))

    return in_turn(pairs, (lambda: measure(trees[0]), lambda: measure(trees[1])))


_ROW = re.compile(r"^(?P<what>.+?) +(?P<number>[\d,.]+)(?P<unit>/s| us| ms)(?: |$)")


def figures_in(table: str) -> Iterator[tuple[str, float]]:
    """Yields the rows of a table of `python -m bench` in us or ms; a rate becomes the us of one call."""
    for line in table.splitlines():
        if row := _ROW.match(line):
            number, what = float(row["number"].replace(",", "")), row["what"]
            if row["unit"] == "/s":
                yield f"{what}, us", 1e6 / number
            else:
                yield f"{what},{row['unit']}", number


MEASURES = {"imports": import_times, "requests": requests, "starts": starts, "bench": rows_of_bench}


@contextmanager
def checkout(of: str) -> Iterator[Tree]:
    """Yields a checkout: of a commit, made for the block, or in a directory. Raises ValueError if `of` is neither."""
    if Path(of).is_dir():
        path = Path(of).resolve()
        yield Tree(path, interpreter(path))
        return
    with tempfile.TemporaryDirectory(prefix="bk-tree-") as name:
        files = subprocess.run(["git", "archive", of], cwd=ROOT, capture_output=True, check=False)
        if files.returncode:
            raise ValueError(f"{of} is neither a directory nor a commit: {files.stderr.decode().strip()}")
        subprocess.run(["tar", "-x", "-C", name], input=files.stdout, check=True)
        tree = Tree(Path(name), sys.executable)
        if _lacks_packages(tree):
            print(f"{of} needs packages of its own, which are installed ...", file=sys.stderr, flush=True)
            subprocess.run(["make", "setup", f"PYTHON={sys.executable}"], cwd=name, check=True, stdout=sys.stderr)
            tree = Tree(Path(name), interpreter(Path(name)))
        yield tree


def _lacks_packages(tree: Tree) -> bool:
    try:
        _run(tree, "-c", f"import {', '.join(PROGRAMS)}, cli.main, wallet.signer.signer, simulator.app")
    except subprocess.CalledProcessError as error:
        return "ModuleNotFoundError" in error.stderr
    return False


def _run(tree: Tree, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(tree.path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [tree.python, "-P", *arguments]
    return subprocess.run(command, cwd=tree.path, env=environment, check=True, capture_output=True, text=True).stdout


def lines(found: Mapping[str, Sequence[tuple[float, float]]]) -> Iterator[str]:
    for what, pairs in found.items():
        other, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = ratio_of(pairs)
        yield f"{what:<66} {other:>9.2f} {ours:>9.2f}   {ratio.median:.3f} x  {ratio.low:.3f} to {ratio.high:.3f}"


def main(arguments: Sequence[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__)
    parser.add_argument("commit", help="a commit of this repository, or the directory of a checkout")
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)} (default: all)")
    parser.add_argument("--pairs", type=int, default=12, help="how often each is measured in both (default 12)")
    options = parser.parse_args(arguments)
    if unknown := set(options.measures) - MEASURES.keys():
        parser.error(f"unknown measure {', '.join(sorted(unknown))}: use {', '.join(MEASURES)}")
    if options.pairs < FEWEST:
        parser.error(f"--pairs must be at least {FEWEST}, or the interval says nothing")
    began = time.monotonic()
    try:
        with checkout(options.commit) as other:
            print(f"{options.pairs} pairs, load {os.getloadavg()[0]:.1f}; above 1 x this checkout is better\n")
            print(f"{'':<66} {options.commit[:9]:>9} {'here':>9}   ratio    95 % interval", flush=True)
            for name in options.measures or MEASURES:
                for line in lines(MEASURES[name]((other, Tree(ROOT, sys.executable)), options.pairs)):
                    print(line, flush=True)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"{error}\n{error.stderr or ''}", file=sys.stderr)
        return 1
    print(f"\n{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
