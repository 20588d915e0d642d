"""In which order the files of tests are run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pytest

from tests.sharing import SHARING

# What takes minutes begins first, so that no process of a parallel run is left with it alone at the end.
_LONGEST_FIRST = (
    "soak",
    "bench",
    "e2e",
    "hosts",
    "faults",
    "machine",
    "endurance",
    "web",
    "deploy",
    "cli",
    "workers",
    "wallet",
)
_WAITING = ("soak", "bench", "e2e", "hosts", "faults", "machine")  # mostly, so that others can compute meanwhile


def ordered(items: Iterable[pytest.Item], *, is_parallel: bool) -> list[pytest.Item]:
    """Returns the tests by the length of their folders' work, and what shares an installation by that; within a file as
    they stood. Where other processes run the others, what waits takes turns with what computes.
    """
    sharing = {file: place for place, file in enumerate(chain(*SHARING))}

    def rank(file: str) -> tuple[int, int]:
        folder = _folder(file)
        place = _LONGEST_FIRST.index(folder) if folder in _LONGEST_FIRST else len(_LONGEST_FIRST)
        return place, sharing.get(file, len(sharing))

    by_file: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
    files = sorted(by_file, key=rank)
    return [item for file in (_taking_turns(files) if is_parallel else files) for item in by_file[file]]


def _taking_turns(files: list[str]) -> list[str]:
    """Returns the files so that both kinds, each in its order, come to their ends together."""
    waiting = [file for file in files if _folder(file) in _WAITING]
    others = [file for file in files if _folder(file) not in _WAITING]
    shares = {file: place / len(kind) for kind in (waiting, others) for place, file in enumerate(kind)}
    return sorted(shares, key=shares.__getitem__)


def _folder(file: str) -> str:
    """Returns the folder of tests/ that the file is in, or its own name."""
    return file.split("/", 2)[1]
