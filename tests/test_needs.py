"""A missing program is one line that names its package: a skip here, an error in CI."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.needs import DRILLS, NEEDS, PACKAGES, need, need_root

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def lacking(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the package of a program that is no longer found from now on."""
    table = NEEDS if name in NEEDS else DRILLS
    monkeypatch.setitem(table, name, table[name]._replace(find=lambda: None))
    return table[name].package


@pytest.mark.parametrize("name", [*NEEDS, *DRILLS])
def test_a_missing_program_skips_with_one_line_that_names_its_package(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = lacking(name, monkeypatch)
    with pytest.raises(pytest.skip.Exception) as skipped:
        need(name)
    assert str(skipped.value) == f"missing: {name} (apt-get install {package})"


@pytest.mark.parametrize("name", NEEDS)
def test_ci_fails_where_a_program_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = lacking(name, monkeypatch)
    for value in ("true", "1"):
        monkeypatch.setenv("CI", value)
        with pytest.raises(pytest.fail.Exception, match=re.escape(f"apt-get install {package}")):
            need(name)


def test_ci_skips_a_drill_whose_program_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking("podman", monkeypatch)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.skip.Exception):
        need("podman")


def test_several_missing_programs_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nginx", "git"):
        lacking(name, monkeypatch)
    assert needs.missing("nginx", "git") == "missing: nginx, git (apt-get install nginx-light git)"


def test_what_only_root_can_do_is_skipped_for_others_also_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    need_root("mount a disk")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="only root can mount a disk"):
        need_root("mount a disk")


def test_the_packages_are_printed_without_an_environment() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "tests.needs"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == PACKAGES


def test_programs_are_looked_for_in_one_place() -> None:
    """A search of its own in a test would skip in silence, or name no package."""
    searching = re.compile(r"shutil\.which|is not installed|skipif\(os\.get")
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "drills")
        for path in (ROOT / folder).rglob("*.py")
        if searching.search(path.read_text())
    }
    assert found - {"tests/test_needs.py"} == {"tests/needs.py"}
