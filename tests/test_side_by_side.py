"""Several pytests that share the files: each test runs once, and no end of any of them is lost."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.installation import PATIENCE, until
from tests.ordering import FOLDERS, groups_of
from tests.sharing import SHARING

ROOT = Path(__file__).parents[1]
QUICKLY = ("-p", "no:hypothesispytest")  # which none of these needs, and each would load

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
    command = [sys.executable, "-m", "tests.side_by_side", str(processes), *QUICKLY, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    return done.returncode, done.stdout


@contextmanager
def begun(command: list[str], **how: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that has ended when its test has."""
    with subprocess.Popen(command, cwd=ROOT, **how) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_each_test_runs_once_and_a_fixture_of_the_session_once_in_a_process(here: Path) -> None:
    names = [f"test_{letter}" for letter in "abcdefgh"]
    files = [write(here, name, GOOD) for name in names]
    status, output = run(3, "-m", "not faults", *files[:3], here, f"{files[0]}::test_left_out")
    assert status == 0 and output.splitlines()[-1].startswith("160 passed, 8 skipped in "), output
    assert "for show" in output and "...." not in output
    for name in names:
        assert len(list(here.glob(f"{name} *"))) == 20
    assert not list(here.glob("fixture *"))
    assert 1 <= len(list(here.glob("ended *"))) <= 3


@pytest.mark.slow
def test_a_run_of_low_priority_makes_none_of_its_processes_less_nice() -> None:
    """Only root may do so: an ordinary user's `nice make test` would break off."""
    code = (
        "import os, sys; from tests.side_by_side import _start\n"
        "with _start(['--version'], '', (), sys.stderr, is_last=True) as made:\n"
        "    print(os.getpriority(os.PRIO_PROCESS, made.pid))"
    )
    niced = ["nice", "-n", "15", sys.executable, "-c", code]
    done = subprocess.run(niced, capture_output=True, text=True, cwd=ROOT, check=True)
    assert int(done.stdout) >= 15


@pytest.mark.thorough
@pytest.mark.slow
def test_single_tests_can_be_asked_for(here: Path) -> None:
    first, second = (write(here, name, GOOD) for name in ("test_a", "test_b"))
    status, output = run(1, f"{first}::test_it[3]", f"{first}::test_another", f"{second}::test_it[4]")
    assert status == 0 and output.splitlines()[-1].startswith("3 passed in "), output


@pytest.mark.slow
def test_what_goes_wrong_is_told_and_the_others_go_on(here: Path) -> None:
    write(here, "test_bad", "def test_bad(): assert 1 == 2")
    write(here, "test_unread", "import nowhere")
    write(here, "test_wanting", "def test_wanting(nothing): pass")
    write(here, "test_good", GOOD)
    status, output = run(2, here)
    assert status == 1 and "1 failed, 21 passed, 1 skipped, 2 error in " in output, output
    for words in ("FAILED ::test_bad", "assert 1 == 2", "No module named 'nowhere'", "fixture 'nothing' not found"):
        assert words in output
    assert len(list(here.glob("test_good *"))) == 21


@pytest.mark.thorough_cases("15")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_broken_off_ends_what_its_tests_have_begun(here: Path, number: int) -> None:
    for name in ("test_a", "test_b", "test_c"):
        write(here, name, "import time\ndef test_long(once): time.sleep(300)")
    command = [sys.executable, "-m", "tests.side_by_side", "2", *QUICKLY, str(here)]
    with begun(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        until(lambda: len(list(here.glob("fixture *"))) == 2, "two tests have begun")
        process.send_signal(number)
        output = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 1 and "no tests ran in " in output, output
    assert len(list(here.glob("ended *"))) == 2 and not list(here.glob("fixture *"))


@pytest.mark.thorough
@pytest.mark.slow
def test_sigterm_ends_what_a_single_run_has_begun(here: Path) -> None:
    write(here, "test_a", "import time\ndef test_long(once): time.sleep(300)")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", str(here)]
    with begun(command, stdout=subprocess.DEVNULL) as process:
        until(lambda: list(here.glob("fixture *")), "the test has begun")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED
    assert len(list(here.glob("ended *"))) == 1


@pytest.mark.thorough
@pytest.mark.slow
def test_a_name_that_is_nowhere_is_a_failure(here: Path) -> None:
    good = write(here, "test_good", GOOD)
    status, output = run(1, "-m", "not faults", good, here / "test_goof.py")
    assert status == 1 and "no such file or folder: " in output and "test_goof.py" in output


@pytest.mark.thorough
@pytest.mark.slow
def test_a_file_is_read_in_with_warnings_for_errors(here: Path) -> None:
    write(here, "test_warns", "import warnings\nwarnings.warn('is old', DeprecationWarning)\ndef test_it(): pass")
    status, output = run(1, here)
    assert status == 1 and "DeprecationWarning: is old" in output and "1 error in " in output


@pytest.mark.thorough
@pytest.mark.slow
def test_a_file_may_be_named_by_a_way_round(here: Path) -> None:
    write(here, "test_good", GOOD)
    status, output = run(1, "-m", "not faults", here / ".." / here.name / "test_good.py")
    assert status == 0 and output.splitlines()[-1].startswith("20 passed, 1 skipped in "), output


@pytest.mark.thorough
@pytest.mark.slow
def test_a_failure_in_letters_that_are_none_is_told_once(here: Path) -> None:
    write(here, "test_bad", "def test_bad(): raise ValueError('\\udc80' * 900)")
    status, output = run(1, here)
    assert status == 1 and "1 failed in " in output and "INTERNALERROR" not in output
    assert output.count("FAILED ::test_bad\n") == 1


@pytest.mark.thorough
@pytest.mark.slow
def test_a_process_that_ends_before_its_tests_is_a_failure(here: Path) -> None:
    """Each has its own: one that dies may have taken the file of another, which then nobody runs."""
    for code, deed in ((0, "os._exit(0)"), (-9, "os.kill(os.getpid(), 9)")):
        bad = write(here, "test_bad", f"import os\ndef test_bad(): {deed}")
        status, output = run(1, bad)
        assert status == 1 and f"a process ended with {code}; it had last taken {bad}" in output, output


@pytest.mark.slow
def test_a_thread_that_a_test_left_ends_the_run_as_a_failure(here: Path) -> None:
    deed = "threading.Thread(target=threading.Event().wait, name='endless').start()"
    write(here, "test_bad", f"import threading\ndef test_bad(): {deed}")
    write(here, "conftest", "from tests import queued\nqueued._THREAD_S = 1")
    status, output = run(1, here)
    assert status == 1 and "1 passed in " in output and "a test left a thread running: endless" in output, output
    deed = "pool.submit(int)\ndef test_good(): pass"  # an executor's threads wait for work until Python ends them
    write(here, "test_bad", f"from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor()\n{deed}")
    status, output = run(1, here)
    assert status == 0, output


@pytest.mark.thorough_cases("not_a_mark-1", "faults and slow-5")
@pytest.mark.slow
@pytest.mark.parametrize(("marks", "status"), [("not_a_mark", 1), ("faults and slow", 5)])
def test_no_test_is_no_success(here: Path, marks: str, status: int) -> None:
    ended, output = run(1, "-m", marks, write(here, "test_good", GOOD))
    assert ended == status and "no tests ran" in output


def test_what_shares_something_stays_together() -> None:
    groups = [group for kind in groups_of(FOLDERS) for group in kind]
    files = [file for group in groups for file in group]
    assert len(files) == len(set(files)) == sum(len(list((ROOT / folder).rglob("test_*.py"))) for folder in FOLDERS)
    for sharing in SHARING:
        assert sharing in groups
    assert sum(any(file.startswith("tests/web/") for file in group) for group in groups) == 2
    assert ["tests/test_side_by_side.py"] in groups


def test_single_tests_of_a_file_stay_together() -> None:
    asked = ["tests/test_ports.py::a", "tests/test_docs.py", "tests/test_ports.py::b"]
    _, computing = groups_of(asked)
    assert sorted(computing) == [["tests/test_docs.py"], ["tests/test_ports.py::a", "tests/test_ports.py::b"]]


def test_what_takes_longest_begins_first_of_its_kind() -> None:
    waiting, computing = groups_of(FOLDERS)
    firsts = [group[0] for group in waiting]
    assert firsts[0] == "drills/soak/test_demo_lasts.py" and ["drills/machine/test_processes.py"] in waiting
    assert [firsts.index(room[0]) for room in SHARING] == list(range(4, 4 + len(SHARING)))  # after soak's two and web's
    assert computing[0] == ["drills/machine/test_rare_bugs.py"] and computing[3][0].startswith("drills/endurance/")
