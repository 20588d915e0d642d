"""The timer that ends a process: in time, once, though the process is stopped, and not those that it started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import need_root

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="is the Linux kernel's")
_BEGIN = "import os, signal, time\nfrom core.process import DeathTimer, now_s\ntimer = DeathTimer()\n"


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


# Each has seconds between arming and what must come before the moment: a busy machine stops it for long anywhere.
_OUTLIVING = {
    "moved": "timer.arm(now_s() + 3)\ntimer.arm(now_s() + 60)\ntime.sleep(4)",
    "disarmed": "timer.arm(now_s() + 3)\ntimer.disarm()\ntime.sleep(4)",
    "forked": "timer.arm(now_s() + 3)\nif os.fork(): time.sleep(30)\ntime.sleep(4)\nprint('lives')",
}


@pytest.fixture(scope="module")
def ends() -> dict[str, tuple[int, str]]:
    """Exit codes and words of the programs that outlive a moment: they wait side by side."""
    running = {
        name: subprocess.Popen(
            [sys.executable, "-c", _BEGIN + program], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
        )
        for name, program in _OUTLIVING.items()
    }
    said = {name: process.communicate(timeout=60)[0] for name, process in running.items()}
    return {name: (process.returncode, said[name]) for name, process in running.items()}


@pytest.mark.slow
def test_a_later_moment_takes_the_place_of_the_earlier_one(ends: dict[str, tuple[int, str]]) -> None:
    assert ends["moved"] == (0, "")


@pytest.mark.slow
def test_it_can_be_disarmed(ends: dict[str, tuple[int, str]]) -> None:
    assert ends["disarmed"] == (0, "")


@pytest.mark.slow
def test_it_is_of_its_own_process_alone(ends: dict[str, tuple[int, str]]) -> None:
    assert ends["forked"] == (-signal.SIGKILL, "lives\n")


_ALONE = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c"]
_CLAIM = """
from core.errors import BidkeeperError
from models.leases.held_lease import claim
from models.leases.leases import Holder
try:
    claim("postgresql:///none?host=/nowhere", "slot 0", Holder("home", "machine"), 15, waits=True, kind="manager")
except BidkeeperError as error:
    print(error)
"""


@pytest.mark.slow
def test_process_1_of_a_container_outlives_it_and_so_takes_no_lease() -> None:
    need_root("be process 1 of something")
    root = Path(__file__).parents[2]
    program = _BEGIN + "timer.arm(now_s() + 0.1)\ntime.sleep(0.6)"
    assert subprocess.run([*_ALONE, program], cwd=root, timeout=60).returncode == 0
    done = subprocess.run([*_ALONE, _CLAIM], cwd=root, timeout=60, stdout=subprocess.PIPE, text=True)
    assert done.stdout.startswith("as process 1 of its container this program would outlive its lease"), done.stdout
