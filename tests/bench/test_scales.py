"""The counts of `make scales`, in trees that are small enough to count by hand. It is run whole by CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.scales import ROOT, Size, Trip, Watch, files, main, median, naming, product, size_of, spellings

ASKER = """
import os, sys
from core import answer

def ask() -> None:
    answer.say()
    answer.say()

print("ready", flush=True)
sys.stdin.readline()
ask()
ask()
if child := os.fork():
    os.waitpid(child, 0)
else:
    answer.say()
    ask()
    os._exit(0)
print("done", flush=True)
sys.stdin.readline()
ask()
"""
ANSWER = """
import elsewhere

def say() -> None:
    elsewhere.nothing()
    again()

def again() -> None:
    pass
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "ask.py").write_text(ASKER)
    (tmp_path / "core" / "answer.py").write_text(ANSWER)
    (tmp_path / "elsewhere.py").write_text("def nothing() -> None: ...\n")
    return tmp_path


def test_trip_counts_product_files_and_changes_between_them_in_every_process(tree: Path, tmp_path: Path) -> None:
    directory = tmp_path / "trip"
    directory.mkdir()
    watch = Watch(directory)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", "import core.ask"],
        env=os.environ | watch.environment(tree, ["core"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    with process:
        assert process.stdout.readline() == "ready\n"
        with watch.on():
            print(file=process.stdin, flush=True)
            assert process.stdout.readline() == "done\n"
        whole, of_parent, during = watch.trip(), watch.trip(of=[process.pid]), watch.trip(during=process.pid)
        print(file=process.stdin, flush=True)
    assert process.returncode == 0

    # The parent: ask, answer, ask, answer. Its child starts in answer, then ask, answer.
    assert of_parent == Trip(files=2, changes=4)
    assert whole == Trip(files=2, changes=6)
    assert during == of_parent
    assert watch.trip() == whole  # what follows a trip does not count


def test_trip_of_an_unwatched_moment_counts_nothing(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    with watch.on():
        pass
    assert watch.trip() == Trip(0, 0)


def test_median_takes_each_number_by_itself() -> None:
    assert median([Trip(3, 10), Trip(1, 30), Trip(2, 20)]) == Trip(2, 20)


def test_sizes_count_lines_and_files_of_a_kind(tree: Path) -> None:
    (tree / "core" / "link.py").symlink_to(tree / "core" / "ask.py")
    (tree / "core" / "words.md").write_text("\n\n")
    lines = ASKER.count("\n") + ANSWER.count("\n")
    assert size_of(files(tree, ["core"], ["py"])) == Size(lines, 2)


def test_names_are_found_in_all_their_spellings_and_as_whole_words(tmp_path: Path) -> None:
    for number, text in enumerate(
        ("maxFills", "max_fills = 1", "a max-fills", "MAX_FILLS", "maxFillsPerDay", "max fills")
    ):
        (tmp_path / f"{number}.py").write_text(text)
    assert naming(tmp_path.iterdir(), spellings("maxFills")) == 4


def test_packages_of_the_product_are_those_of_the_wheel() -> None:
    assert set(product(ROOT)) == {path.parent.name for path in ROOT.glob("*/__init__.py")} - {
        "bench",
        "drills",
        "tests",
        "tools",
    }


def test_a_directory_that_is_not_a_checkout_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tree", str(tmp_path)]) == 2
    assert "is not a checkout of Bidkeeper" in capsys.readouterr().err
