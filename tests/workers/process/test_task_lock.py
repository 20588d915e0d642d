"""The task's lock: one holder, and only the right process is killed for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers import kernel
from workers.context import TaskLock
from workers.kernel import open_process, start_time

pytestmark = pytest.mark.slow

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
