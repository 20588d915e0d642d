"""A worker's stop, and the target of its output: in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.layout import LOG_FILES
from workers.kernel import MAX_BYTES, WAKE

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
