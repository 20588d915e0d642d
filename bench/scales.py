"""`python -m bench.scales`: how large the program is, and how far one fact or one request spreads in it.

`--tree PATH` measures another checkout by the same rules, through its files, its commands and its HTTP interface alone.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import trips
from bench.installed import Home, installed
from bench.measuring import pss_mib

ROOT = Path(__file__).resolve().parents[1]
FIELDS = ["bidCount", "budgetId", "ignoreAddresses", "loopSeconds", "maxFills", "maxFillsPerDay"]
NOUN = "preset"
VERBS = ["draft_delist", "rune_asks", "sign_in_texts"]
PROGRAMS = ("server.app", "gateway.app", "workers.manager.manager")
IMPORTS, WORKERS = 7, 20

Number = int | float


class Scale(NamedTuple):
    """One line of the table: numbers by their names, and how they were counted."""

    what: str
    numbers: Mapping[str, Number]
    how: str


class Size(NamedTuple):
    """Files, and the lines in them."""

    lines: int
    files: int


def scales(tree: Path, python: str) -> Iterator[Scale]:
    """Yields the lines of the table for the checkout `tree`, whose packages the interpreter `python` has."""
    yield from sizes(tree)
    yield from spreads(tree)
    made = trips.measured(tree, python, product(tree))
    for what, trip, of in (
        ("one placed bid", made.placed_bid, f"a running task's cycle, in all programs; of {trips.BIDS}"),
        (
            "a start and its first placed bid",
            made.start,
            f"from request to end of cycle, all programs; of {trips.BIDS}",
        ),
        ("POST /api/tasks", made.post, f"the server's process; of {trips.POSTS} after a first one"),
    ):
        yield Scale(
            what, trip._asdict(), f"{of}; a change is a function entered in another file than the thread's last one"
        )
    yield from imports(tree, python)
    yield from memory(tree, python)


def sizes(tree: Path) -> Iterator[Scale]:
    """Counts lines and files by the newlines in them."""
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
    """Returns the packages that the tree's wheel holds. Raises FileNotFoundError for any other directory."""
    for statement in ast.parse((tree / "setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "TOP_LEVEL":
            return [str(name) for name in ast.literal_eval(statement.value)]
    raise FileNotFoundError(f"{tree / 'setup.py'} has no TOP_LEVEL")


def files(tree: Path, folders: Sequence[str], endings: Sequence[str]) -> Iterator[Path]:
    """Yields the files in these folders whose names end so; what a run has left there and links do not count."""
    for folder in folders:
        for ending in endings:
            for path in sorted((tree / folder).rglob(f"*.{ending}")):
                if path.is_file() and not path.is_symlink() and not {"node_modules", "vendor"} & set(path.parts):
                    yield path


def size_of(paths: Iterable[Path]) -> Size:
    counted = [path.read_bytes().count(b"\n") for path in paths]
    return Size(sum(counted), len(counted))


def naming(paths: Iterable[Path], pattern: str) -> int:
    """Returns the number of files whose text matches, whatever the case."""
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
    """Measures imports in fresh interpreters, the programs in turn. The first of each compiles and does not count."""
    found: dict[str, list[tuple[float, int]]] = {program: [] for program in PROGRAMS}
    for _ in range(IMPORTS + 1):
        for program, runs in found.items():
            runs.append(imported(tree, python, program))
    for program, runs in found.items():
        ms = statistics.median(ms for ms, _ in runs[1:])
        how = f"the median of {IMPORTS} fresh interpreters; modules that it adds"
        yield Scale(f"import {program}", {"ms": round(ms), "modules": runs[-1][1]}, how)


def imported(tree: Path, python: str, program: str) -> tuple[float, int]:
    """Returns the milliseconds of one import in a fresh interpreter, and the modules that it adds."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # only the first is to compile
    command = [python, "-P", "-c", _IMPORT.format(program)]
    said = subprocess.run(command, env=environment, cwd=tree, check=True, capture_output=True, text=True).stdout
    ms, modules = said.split()
    return float(ms), int(modules)


def memory(tree: Path, python: str) -> Iterator[Scale]:
    """Measures an installation whose tasks have each had a cycle."""
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
    """Returns the Python of the checkout's own environment, and this one where it has none."""
    own = tree / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def table(row: Scale) -> str:
    """Returns the line of the table without the way of counting, which is printed below all."""
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
