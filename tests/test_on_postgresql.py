"""The lists of what runs on PostgreSQL leave nothing out that runs nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

from tests import postgresql
from tests.ordering import FOLDERS

ROOT = Path(__file__).parents[1]
OF_ITSELF = {ROOT / "drills" / "engines" / "test_ray.py"}  # in an environment of its own: make test-ray
OF_BOTH = re.compile(r"\bpostgresql\.only\b|\bpostgresql\.is_wanted\b")


def files(choice: str) -> set[Path]:
    """The test files of a choice; each of its paths has some."""
    found: set[Path] = set()
    for name in postgresql.CHOICES[choice]:
        path = ROOT / name
        here = set(path.rglob("test_*.py")) if path.is_dir() else {path} & set(path.parent.iterdir())
        assert here, name
        found |= here
    return found


def test_every_test_that_knows_postgresql_is_run_there() -> None:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py")]
    knows = {path for path in paths if OF_BOTH.search(path.read_text())} - {Path(__file__)} - OF_ITSELF
    assert len(knows) > 8
    assert sorted(map(str, knows - files("all"))) == []
    # CI has no time for every whole installation.
    in_ci = {
        path
        for path in knows
        if "postgresql.only" in path.read_text() and path.parent.name not in ("e2e", "hosts", "engines")
    }
    assert sorted(map(str, in_ci - files("part"))) == []


def test_the_part_is_one_of_all() -> None:
    assert files("part") < files("all")
