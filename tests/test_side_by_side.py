"""Several pytests that share the files: each test runs once, and no end of any of them is lost."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ordering import groups_of
from tests.sharing import SHARING

ROOT = Path(__file__).parents[1]

FIXTURE = """
    import os, pytest

    @pytest.fixture(scope="session")
    def once():
        (HERE / f"fixture {os.getpid()}").open("x").close()
        yield
        (HERE / f"fixture {os.getpid()}").rename(HERE / f"ended {os.getpid()}")
"""
GOOD = """
    import pytest

    @pytest.mark.parametrize("number", range(20))
    def test_it(number, once):
        (HERE / f"{FILE} {number}").open("x").close()

    @pytest.mark.faults
    def test_another():
        (HERE / f"{FILE} faults").open("x").close()

    @pytest.mark.skip(reason="for show")
    def test_left_out(): pass
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a fixture for its tests."""
    write(tmp_path, "conftest", FIXTURE)
    return tmp_path


def write(here: Path, name: str, text: str) -> Path:
    path = here / f"{name}.py"
    head = f"from pathlib import Path\nHERE, FILE = Path({str(here)!r}), {name!r}\n"
    path.write_text(head + re.sub("(?m)^    ", "", text))
    return path


def run(processes: int, *arguments: str | Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "tests.side_by_side", str(processes), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 3])
def test_each_test_runs_once_and_a_fixture_of_the_session_once_in_a_process(here: Path, processes: int) -> None:
    names = "abcdefgh"
    files = [write(here, f"test_{name}", GOOD) for name in names]
    status, output = run(processes, "-m", "not faults", *files[:3], here, f"{files[0]}::test_left_out")
    assert status == 0 and output.splitlines()[-1].startswith("160 passed, 8 skipped in "), output
    assert output.count("for show") <= 8 and "....." not in output
    for name in names:
        assert len(list(here.glob(f"test_{name} *"))) == 20
    assert not list(here.glob("fixture *"))
    assert 1 <= len(list(here.glob("ended *"))) <= processes


@pytest.mark.slow
def test_single_tests_can_be_asked_for(here: Path) -> None:
    first, second = (write(here, f"test_{name}", GOOD) for name in "ab")
    status, output = run(2, f"{first}::test_it[3]", f"{first}::test_another", f"{second}::test_it[4]")
    assert status == 0 and output.splitlines()[-1].startswith("3 passed in "), output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def test_bad(): assert 1 == 2", ["FAILED", "::test_bad", "assert 1 == 2", "1 failed, 21 passed"]),
        ("import nowhere", ["ERROR", "No module named 'nowhere'", "21 passed, 1 skipped, 1 error"]),
        ("def test_bad(nothing): pass", ["ERROR", "fixture 'nothing' not found", "21 passed, 1 skipped, 1 error"]),
        ("import os\ndef test_bad(): os._exit(0)", ["a process ended with 0", "last taken", "test_bad.py"]),
        (
            "import os\ndef test_bad(): os.kill(os.getpid(), 9)",
            ["a process ended with -9", "last taken", "test_bad.py"],
        ),
    ],
    ids=["failed", "no module", "no fixture", "an early end", "killed"],
)
def test_what_goes_wrong_is_told_and_the_others_go_on(here: Path, text: str, said: list[str]) -> None:
    write(here, "test_bad", text)
    write(here, "test_good", GOOD)
    status, output = run(2, here)
    assert status == 1, output
    for words in said:
        assert words in output
    if "a process ended" not in said[0]:  # it may have taken them, too
        assert len(list(here.glob("test_good *"))) == 21


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "status"), [(("-m", "nothing_has_it"), 1), (("-m", "faults and slow"), 5)])
def test_no_test_is_no_success(here: Path, arguments: tuple[str, ...], status: int) -> None:
    ended, output = run(2, *arguments, write(here, "test_good", GOOD))
    assert ended == status and "no tests ran" in output


def test_what_shares_something_stays_together() -> None:
    groups = groups_of(["tests"])
    files = [file for group in groups for file in group]
    assert len(files) == len(set(files)) == len(list((ROOT / "tests").rglob("test_*.py")))
    for sharing in SHARING:
        assert sharing in groups
    assert sum(any(file.startswith("tests/web/") for file in group) for group in groups) == 2
    assert ["tests/test_side_by_side.py"] in groups


def test_single_tests_of_a_file_stay_together() -> None:
    asked = ["tests/test_ports.py::a", "tests/test_docs.py", "tests/test_ports.py::b"]
    assert sorted(groups_of(asked)) == [["tests/test_docs.py"], ["tests/test_ports.py::a", "tests/test_ports.py::b"]]
