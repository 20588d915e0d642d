"""In which order the files of tests are run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

from tests.sharing import SHARING

# What takes minutes begins first, so that no process of a parallel run is left with it alone at the end.
_LONGEST_FIRST = (
    "soak",
    "bench",
    "machine",
    "e2e",
    "hosts",
    "faults",
    "endurance",
    "web",
    "deploy",
    "cli",
    "workers",
    "wallet",
)
_WEB_PARTS = 2
_SHARING_PLACES = {file: place for place, file in enumerate(chain(*SHARING))}
_WAITING = ("soak", "bench", "e2e", "hosts", "faults", "machine")  # mostly, so that others can compute meanwhile


def ordered(items: list[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests by the length of their folders' work, and what shares an installation by that; within a file as
    they stood.
    """
    by_file: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
    return [item for file in sorted(by_file, key=_rank) for item in by_file[file]]


def groups_of(paths: Iterable[str]) -> list[list[str]]:
    """Returns what of these folders and files (or single tests) stays together in a process of several, in the order in
    which they begin: what waits takes turns with what computes, so that both come to their ends together.

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
    web = [file for file in files if _folder(file) == "web"]
    shared |= {file: f"web {place % _WEB_PARTS}" for place, file in enumerate(web)}
    groups: dict[str, list[str]] = {}
    for file in _taking_turns(files):
        groups.setdefault(shared.get(file, file), []).extend(chosen[file])
    return list(groups.values())


def _rank(file: str) -> tuple[int, int]:
    folder = _folder(file)
    place = _LONGEST_FIRST.index(folder) if folder in _LONGEST_FIRST else len(_LONGEST_FIRST)
    return place, _SHARING_PLACES.get(file, len(_SHARING_PLACES))


def _taking_turns(files: list[str]) -> list[str]:
    """Returns the files so that both kinds, each in its order, come to their ends together.

    What waits takes up to a minute a file, so the last of them begins when a quarter of the others are left.
    """
    waiting = [file for file in files if _folder(file) in _WAITING]
    others = [file for file in files if _folder(file) not in _WAITING]
    shares = {file: place / len(others) for place, file in enumerate(others)}
    shares |= {file: 0.75 * place / len(waiting) for place, file in enumerate(waiting)}
    return sorted(shares, key=shares.__getitem__)


def _file(path: str) -> str:
    return path.partition("::")[0]


def _folder(file: str) -> str:
    """Returns the folder of tests/ that the file is in, or its own name."""
    return next(iter(file.split("/")[1:]), file)
