"""The timer that ends a process: in time, once, though the process is stopped, and not those that it started."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="is the Linux kernel's")
_BEGIN = "import os, signal, time\nfrom core.death_timer import DeathTimer, now_s\ntimer = DeathTimer()\n"


def ended(program: str) -> int:
    """Runs the program, and returns its exit code or, negative, the signal that ended it."""
    command = [sys.executable, "-c", _BEGIN + program]
    return subprocess.run(command, cwd=Path(__file__).parents[2], timeout=60).returncode


def test_it_kills_its_process() -> None:
    assert ended("timer.arm(now_s() + 0.1)\ntime.sleep(30)") == -signal.SIGKILL


def test_it_kills_a_process_that_is_stopped() -> None:
    assert ended("timer.arm(now_s() + 0.1)\nos.kill(os.getpid(), signal.SIGSTOP)") == -signal.SIGKILL


def test_a_moment_in_the_past_is_now() -> None:
    assert ended("timer.arm(now_s() - 5)\ntime.sleep(30)") == -signal.SIGKILL
    assert ended("timer.arm(-1)\ntime.sleep(30)") == -signal.SIGKILL


def test_a_later_moment_takes_the_place_of_the_earlier_one() -> None:
    begin = "timer.arm(now_s() + 0.2)\ntimer.arm(now_s() + 60)\n"
    assert ended(begin + "time.sleep(0.6)") == 0


def test_it_can_be_disarmed() -> None:
    assert ended("timer.arm(now_s() + 0.2)\ntimer.disarm()\ntime.sleep(0.6)") == 0


def test_it_is_of_its_own_process_alone() -> None:
    program = "timer.arm(now_s() + 0.3)\nif os.fork(): time.sleep(30)\ntime.sleep(1)\nprint('lives')"
    command = [sys.executable, "-c", _BEGIN + program]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], timeout=60, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "lives\n")


def test_the_first_process_of_a_container_whom_the_kernel_would_spare_may_have_none() -> None:
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*unshare, "true"], capture_output=True, timeout=60).returncode
    ):
        pytest.skip("no process may have a name space of its own here")
    command = [*unshare, sys.executable, "-c", _BEGIN + "timer.arm(now_s() + 0.1)\ntime.sleep(1)\nprint('lives')"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the first process of its container" in done.stderr
