"""A task's lock and the line to its manager: no two workers of one task act."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.layout import LOG_FILES, log_path
from tests.worlds.manager import Installation
from workers import kernel
from workers.context import TaskLock
from workers.kernel import MAX_BYTES, WAKE, open_process, start_time

pytestmark = pytest.mark.slow

LINE = """
import sys, time
from workers.process.worker import LifeLine, StopAsked
try:
    life_line = LifeLine(int(sys.argv[1]))
    print(life_line.read_line(60).decode().strip(), flush=True)
    if sys.argv[2] == "busy":
        while True:
            sum(range(1000))
    if sys.argv[2] == "swallows":
        try:
            print("sleeps", flush=True)
            time.sleep(60)
        except BaseException:
            print("swallowed", flush=True)
    if sys.argv[2] == "in a cycle":
        print("works", flush=True)
        time.sleep(1)  # a signal does not end it
    while True:
        life_line.pause(60)
        print("woken", flush=True)
except StopAsked:
    sys.exit(7)
"""

LOG = """
import os, sys
from pathlib import Path
from workers.kernel import WAKE
from workers.kernel import OwnLog
log = OwnLog(Path(sys.argv[1]))
for number in range(5):
    os.write(2, bytes([65 + number]) * (1 << 20))
    log.rotate()
print("end", file=sys.stderr, flush=True)
"""


class Line:
    """A process on a life line of ours."""

    def __init__(self, what: str, parent: int | None = None) -> None:
        command = [sys.executable, "-c", LINE, str(parent or os.getpid()), what]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin and self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def begin(self) -> None:
        self.stdin.write("hello\n")
        self.stdin.flush()
        assert self.stdout.readline() == "hello\n"

    def ended(self) -> int:
        try:
            return self.process.wait(50)
        finally:
            self.process.kill()
            self.process.wait()
            self.stdin.close()
            self.stdout.close()


@pytest.mark.parametrize("what", ["waits", "busy"])
def test_the_end_of_stdin_ends_it_wherever_it_is(what: str) -> None:
    line = Line(what)
    line.begin()
    line.stdin.close()
    assert line.ended() == 7


@pytest.mark.parametrize("what", ["waits", "busy"])
def test_sigterm_ends_it_wherever_it_is(what: str) -> None:
    line = Line(what)
    line.begin()
    line.process.send_signal(signal.SIGTERM)
    assert line.ended() == 7


def test_a_stop_that_something_swallowed_is_raised_again() -> None:
    line = Line("swallows")
    line.begin()
    assert line.stdout.readline() == "sleeps\n"
    line.process.send_signal(signal.SIGTERM)
    assert line.stdout.readline() == "swallowed\n"
    assert line.ended() == 7


def test_wake_ends_the_wait_and_not_the_worker() -> None:
    line = Line("waits")
    line.begin()
    for _ in range(3):
        line.process.send_signal(WAKE)
        assert line.stdout.readline() == "woken\n"
    with pytest.raises(subprocess.TimeoutExpired):
        line.process.wait(0.3)
    line.process.send_signal(signal.SIGTERM)
    assert line.ended() == 7


def test_wake_in_a_cycle_ends_the_next_wait_once() -> None:
    line = Line("in a cycle")
    line.begin()
    assert line.stdout.readline() == "works\n"
    for _ in range(3):
        line.process.send_signal(WAKE)
    assert line.stdout.readline() == "woken\n"
    line.process.send_signal(signal.SIGTERM)
    assert line.stdout.read() == "", "three wakes are one cycle"
    assert line.ended() == 7


def test_data_on_stdin_is_no_reason_to_end() -> None:
    line = Line("waits")
    line.begin()
    line.stdin.write("more\n")
    line.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        line.process.wait(0.3)
    line.stdin.close()
    assert line.ended() == 7


def test_stdin_closed_before_its_first_line_ends_it() -> None:
    line = Line("waits")
    line.stdin.close()
    assert line.ended() == 7


def test_a_parent_that_was_gone_before_is_noticed() -> None:
    line = Line("waits", parent=2**22)
    assert line.ended() == 1


def test_a_worker_log_keeps_its_newest_files(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "task-1.log"
    subprocess.run([sys.executable, "-c", LOG, str(path)], check=True)
    assert path.read_text() == "end\n"
    older = [path.with_name(f"task-1.log.{number}") for number in range(1, LOG_FILES)]
    assert sorted(path.parent.iterdir()) == [path, *older]
    assert [(file.read_bytes()[:1], file.stat().st_size) for file in older] == [(b"E", MAX_BYTES), (b"D", MAX_BYTES)]


def begun(installation: Installation, task: int, token: int, **environment: str) -> tuple[bytes, int]:
    """Runs a worker without a manager to its end; returns what it said, and its exit code."""
    said, status = os.pipe()
    command = [sys.executable, "-m", "workers.process.main", "bidder", *map(str, (task, token, os.getpid(), status))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, pass_fds=(status,), env=installation.environment | environment
    ) as worker:
        os.close(status)
        assert worker.stdin is not None
        worker.stdin.write(json.dumps({"secret": "ab", "wait_s": 0}).encode() + b"\n")
        worker.stdin.flush()
        with os.fdopen(said, "rb") as read:
            found = read.read()
        return found, worker.wait(60)


def test_a_database_that_cannot_be_reached_comes_after_the_lock(installation: Installation) -> None:
    installation.settings.run_dir.mkdir(parents=True, exist_ok=True)
    nowhere = {"BIDKEEPER_DATABASE_URL": "sqlite:////proc/nowhere/bidkeeper.db"}
    assert begun(installation, 1, 1, **nowhere) == (b"locked\n", 1)


def test_one_that_was_overtaken_holds_the_lock_for_a_moment_and_does_nothing(installation: Installation) -> None:
    installation.settings.run_dir.mkdir(parents=True, exist_ok=True)
    task = installation.task()
    assert begun(installation, task, 7) == (b"locked\n", kernel.EXIT_SUPERSEDED)
    assert "token 7 is not the task's any more" in log_path(installation.settings.data_dir, task).read_text()
    assert installation.row(task).cycles == 0


HOLD = """
import fcntl, os, sys, time
from workers import kernel
if sys.argv[2] == "named":
    lock = kernel.take_lock(__import__("pathlib").Path(sys.argv[1]))
else:
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


class Other:
    """Another process, that holds the lock under its name, or without it."""

    def __init__(self, path: Path, how: str) -> None:
        command = [sys.executable, "-c", HOLD, str(path), how]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "held\n"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return kernel.lock_path(tmp_path, 17)


@pytest.fixture
def named(path: Path) -> Iterator[Other]:
    other = Other(path, "named")
    yield other
    other.end()


@pytest.fixture
def nameless(path: Path) -> Iterator[Other]:
    other = Other(path, "nameless")
    yield other
    other.end()


def test_a_lock_names_its_holder(path: Path) -> None:
    kernel.take_lock(path)
    assert path.read_text() == f"{os.getpid()} {start_time(os.getpid())}\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_lock_of_this_process_is_not_taken_twice(path: Path) -> None:
    held = TaskLock(path)
    with pytest.raises(kernel.LockHeld):
        kernel.take_lock(path, wait_s=0.05)
    held.touch()


def test_its_holder_is_killed(named: Other, path: Path) -> None:
    kernel.take_lock(path, wait_s=60)
    assert named.process.wait(60) == -signal.SIGKILL


def test_a_stopped_holder_is_killed(named: Other, path: Path) -> None:
    named.process.send_signal(signal.SIGSTOP)
    kernel.take_lock(path, wait_s=60)
    assert named.process.wait(60) == -signal.SIGKILL


def test_a_pid_that_is_somebody_elses_by_now_is_left_alone(nameless: Other, path: Path) -> None:
    """The file names a living pid, but with another start time than that process has."""
    started = start_time(nameless.process.pid)
    assert started is not None
    path.write_text(f"{nameless.process.pid} {started + 1}\n")
    with pytest.raises(kernel.LockHeld):
        kernel.take_lock(path, wait_s=0.1)
    assert nameless.process.poll() is None


@pytest.mark.parametrize("content", ["", "17", "x y", "0 0", "1 1", "-1 5", f"{2**70} 1"])
def test_an_unreadable_name_kills_nobody(nameless: Other, path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(kernel.LockHeld):
        kernel.take_lock(path, wait_s=0.05)
    assert nameless.process.poll() is None


def test_freeing_leaves_no_name(named: Other, path: Path) -> None:
    """The manager's own, left in the file, would have the manager killed by a worker."""
    kernel.free_lock(path, wait_s=60)
    assert named.process.wait(60) == -signal.SIGKILL
    assert path.read_text() == ""
    kernel.take_lock(path)


def test_touching_moves_the_files_time(path: Path) -> None:
    lock = TaskLock(path)
    os.utime(path, (1, 1))
    lock.touch()
    assert path.stat().st_mtime > 1000


def test_an_ended_process_is_not_opened() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    started = start_time(process.pid)
    process.wait()
    assert started is not None
    assert open_process(process.pid, started) is None


def test_a_lock_whose_file_was_removed_is_taken_anew(path: Path) -> None:
    lock = TaskLock(path)
    path.unlink()
    lock.touch()
    assert path.read_text().split()[0] == str(os.getpid())
    with pytest.raises(kernel.LockHeld):
        kernel.free_lock(path, wait_s=0)


def test_a_lock_that_a_successor_has_taken_over_is_not_taken_back(path: Path) -> None:
    lock = TaskLock(path)
    path.unlink()
    successor = Other(path, "named")
    with pytest.raises(kernel.LockHeld):
        lock.touch()
    assert successor.process.poll() is None
    successor.end()
