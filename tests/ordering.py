"""In which order the files of tests are run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.sharing import SHARING

if TYPE_CHECKING:
    import pytest

# What mostly waits, for programs that it has started, and what computes: the folders and files whose parts take longest
# first, so that no process of a parallel run is left with one of them alone at the end.
_ROOMS = (file for room in SHARING for file in room)
_MACHINE, _STORM = "drills/machine/test_processes.py", "drills/faults/test_storm.py"
_OF_MODELS = ("tests/models/test_lease_holders.py", "tests/models/test_sightings.py")
_LEASES = (*_OF_MODELS, "tests/workers/manager/test_take_over.py", "tests/gateway/test_gateway_lease.py")
_LATER = (
    "tests/e2e",
    "drills/hosts",
    "tests/test_side_by_side.py",
    "drills/faults",
    "tests/deploy",
    "tests/cli",
    "tests/workers",
)
_WAITING = ("drills/soak", "tests/web", *_ROOMS, "tests/bench", _MACHINE, _STORM, *_LEASES, *_LATER)
# Most of an hour in make faults, each on a processor of its own.
_SEARCHES = tuple(f"drills/machine/test_{name}.py" for name in ("rare_bugs", "planted_bugs", "in_process"))
_LONG = ("tests/strategy/test_plan_properties.py", "tests/test_english.py", "tests/test_imports.py")
_FOLDERS = tuple(f"tests/{name}" for name in ("server", "wallet", "gateway", "simulator", "replay"))
_COMPUTING = (*_SEARCHES, "drills/endurance", "drills/machine", *_FOLDERS, *_LONG)
_WEB_PARTS = 2
FOLDERS = ("tests", "drills")


def ordered(items: list[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests by the length of their folders' work, and what shares an installation by that; within a file as
    they stood.
    """
    by_file: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
    return [item for file in sorted(by_file, key=_rank) for item in by_file[file]]


def groups_of(paths: Iterable[str]) -> tuple[list[list[str]], list[list[str]]]:
    """Returns what of these folders and files (or single tests) stays together in a process of several, in the order in
    which they begin: first what mostly waits, then what computes.

    A group is a file. Those of tests/web are a few, since each process with any of them starts an installation and a
    browser, which is more than most of its files cost; so are those of tests/e2e that share an installation.
    """
    chosen: dict[str, list[str]] = {}
    for path in paths:
        found = sorted(Path(path).rglob("test_*.py")) if Path(path).is_dir() else [path]
        for each in map(str, found):
            chosen.setdefault(_file(each), []).append(each)
    files = sorted(chosen, key=_rank)
    shared = {file: f"sharing {room}" for room, names in enumerate(SHARING) for file in names}
    web = [file for file in files if _within(file, "tests/web")]
    shared |= {file: f"web {place % _WEB_PARTS}" for place, file in enumerate(web)}
    kinds: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for file in files:
        kinds[not _waits(file)].setdefault(shared.get(file, file), []).extend(chosen[file])
    waiting, computing = (list(kind.values()) for kind in kinds)
    return waiting, computing


def _rank(file: str) -> int:
    places = _WAITING if _waits(file) else _COMPUTING
    return next((place for place, path in enumerate(places) if _within(file, path)), len(places))


def _waits(file: str) -> bool:
    return any(_within(file, path) for path in _WAITING)


def _within(file: str, path: str) -> bool:
    """Tells whether a file of tests is this one, or in this folder."""
    return f"{file}/".startswith(f"{path}/")


def _file(path: str) -> str:
    return path.partition("::")[0]
