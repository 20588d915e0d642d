"""The parts of `bidkeeper ray` that need no Ray; drills/engines/test_ray.py has a real cluster."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import main
from cli.on_ray import slot_to_move
from tests.e2e.installation import until
from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
# A program of ours stands for the manager.
_ACTOR = """
import sys, time
from cli import on_ray
on_ray._YOUNG_S, answers = float(sys.argv[1]), [each == "acts" for each in sys.argv[2].split()]
actor = on_ray.SlotActor(("cli.main", "simulator"), lambda: answers.pop(0) if len(answers) > 1 else answers[0], 3)
print(actor._manager.pid, flush=True)
for asked in map(str.strip, sys.stdin):
    if asked == "stop":
        actor.stop()
        print(actor._manager.returncode, flush=True)
    elif asked == "break":
        on_ray.PYTHON = ("/nowhere",)
        print("broken", flush=True)
    else:
        print(actor._manager.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("machines", "machine_of", "slot"),
    [
        ("ab", {0: "a", 1: "a"}, 1),
        ("ab", {0: "a", 1: "b"}, None),
        ("ab", {0: "a", 1: "b", 2: "b"}, None),
        ("abc", {0: "a", 1: "b", 2: "b"}, 2),
        ("abc", {0: "b", 1: "a", 2: "b", 3: "a"}, 3),
        ("ab", {}, None),
    ],
)
def test_a_slot_moves_while_one_machine_has_two_more_than_another(
    machines: str, machine_of: dict[int, str], slot: int | None
) -> None:
    assert slot_to_move(machines, machine_of) == slot


def test_without_ray_it_says_so(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if importlib.util.find_spec("ray"):
        pytest.skip("Ray is installed here")
    monkeypatch.setenv("BIDKEEPER_DATA_DIR", str(tmp_path))
    assert main(["ray", "show"]) == 1
    assert "it is the extra bidkeeper[ray]" in capsys.readouterr().err


@pytest.fixture
def actor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Starts an actor whose manager is young for so many seconds, and acts or does not."""
    settings = {"BIDKEEPER_DATA_DIR": str(tmp_path), "BIDKEEPER_SIMULATOR_PORT": str(free_ports(1)[0])}
    started = subprocess.Popen(
        [sys.executable, "-c", _ACTOR, *getattr(request, "param", ("1000", "acts"))],
        cwd=ROOT,
        env=os.environ | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield started
    started.kill()
    started.communicate()


def manager_of(actor: subprocess.Popen[str]) -> int:
    """Returns the pid of the actor's program, once that one knows whose child it is and ends in order at a SIGTERM."""
    assert actor.stdout is not None
    pid = int(actor.stdout.readline())
    until(lambda: handles_sigterm(pid), "the program")
    return pid


def asked(actor: subprocess.Popen[str], what: str) -> str:
    assert actor.stdin is not None and actor.stdout is not None
    actor.stdin.write(f"{what}\n")
    actor.stdin.flush()
    return actor.stdout.readline().strip()


def handles_sigterm(pid: int) -> bool:
    """Tells whether a SIGTERM is handled; before it is, one ends the process at once. It follows all that is asked of
    the kernel."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.slow
def test_a_killed_actor_leaves_no_manager_behind(actor: subprocess.Popen[str]) -> None:
    pid = manager_of(actor)
    actor.kill()
    until(lambda: is_gone(pid), "the manager's end")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("actor", "number"),
    [(("1000", "acts"), signal.SIGKILL), (("0", "waits"), signal.SIGKILL), (("0", "acts"), signal.SIGTERM)],
    indirect=["actor"],
    ids=["a young one fails", "the next one does not act in time", "one ends in order"],
)
def test_what_is_left_to_ray(actor: subprocess.Popen[str], number: int) -> None:
    os.kill(manager_of(actor), number)
    assert actor.wait(60) == 1


@pytest.mark.slow
@pytest.mark.parametrize("actor", [("0", "acts"), ("0", "waits acts waits")], indirect=True)
def test_an_older_manager_that_fails_is_started_again_in_its_place(actor: subprocess.Popen[str]) -> None:
    former = manager_of(actor)
    os.kill(former, signal.SIGKILL)
    until(lambda: asked(actor, "pid") != str(former), "another manager")
    time.sleep(4)  # until it should have acted, which it need not be seen to do just then
    assert actor.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize("actor", [("0", "acts")], indirect=True)
def test_an_actor_fails_when_no_manager_can_be_started_again(actor: subprocess.Popen[str]) -> None:
    pid = manager_of(actor)
    assert asked(actor, "break") == "broken"
    os.kill(pid, signal.SIGKILL)
    assert actor.wait(60) == 1


@pytest.mark.slow
@pytest.mark.parametrize("actor", [("0", "acts")], indirect=True)
def test_a_manager_is_stopped_in_order(actor: subprocess.Popen[str]) -> None:
    manager_of(actor)
    assert asked(actor, "stop") == "0"
