"""What a worker opens, loads and is called, and cycles that fail."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from models import outbox
from tests import postgresql
from tests.models.test_orders import running_task
from tests.worlds.manager import Installation, eventually
from workers.kernel import EXIT_STOPPED
from workers.process import worker
from workers.process.worker import Worker


@pytest.mark.slow
@pytest.mark.usefixtures("back_end")
async def test_a_running_worker_opens_no_socket_but_a_unix_one(installation: Installation, tmp_path: Path) -> None:
    async with installation.running():
        await installation.started("calls-out")
        found = tmp_path / "families"
        await eventually(lambda: found.exists() and found.read_text())
        assert found.read_text() == str(int(socket.AF_UNIX))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("", ""),
        ("sqlite:////var/lib/bidkeeper/bidkeeper.db", ""),
        ("postgresql:///bidkeeper?host=/run/postgresql", ""),
        ("postgresql://bidkeeper@/bidkeeper?host=%2Frun%2Fpostgresql", ""),
        ("postgresql://127.0.0.1/bidkeeper", "127.0.0.1"),
        ("postgresql://bidkeeper:secret@db.example:5432/bidkeeper", "db.example"),
        ("postgresql:///bidkeeper?host=db.example", "db.example"),
        ("postgresql://bidkeeper@%2Frun%2Fpostgresql/bidkeeper", ""),
        ("postgresql://bidkeeper:secret@db1.example:5432,db2.example:5433/bidkeeper", "db1.example, db2.example"),
        ("postgresql:///bidkeeper?host=/run/postgresql,db2.example", "db2.example"),
        ("postgresql:///bidkeeper?host=/run/one,/run/two", ""),
    ],
)
def test_a_database_elsewhere_needs_the_network(url: str, host: str) -> None:
    assert worker.database_host(url) == host


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernel's refusal, if it is asked; ours must not be lost."""
    asked = []
    monkeypatch.setattr(worker.process, "give_up_network", lambda: asked.append("x") or "no filters here")
    return asked


def test_the_log_says_that_workers_keep_it_and_for_which_host(
    asked: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        worker.give_up_network("postgresql://bidkeeper:hush@db.example:5432/bidkeeper")
    assert [record.getMessage() for record in caplog.records] == [
        "workers keep the network: their database is at db.example"
    ]
    assert asked == []


def test_the_log_says_that_it_could_not_be_taken(asked: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        worker.give_up_network("sqlite:////x.db")
    assert [record.getMessage() for record in caplog.records] == [
        "the network cannot be taken from workers: no filters here"
    ]
    assert asked == ["x"]


HEAVY = {
    "asyncio",
    "bip322",
    "cryptography",
    "embit",
    "multiprocessing",
    "requests",
    "ssl",
    "tornado",
    "urllib3",
}


@postgresql.left_out("its driver loads some of them")
@pytest.mark.slow
def test_no_module_of_a_running_worker_is_heavy() -> None:
    program = (
        "import sys, workers.process.main, workers.process.worker, workers.spawning.zygote\n"
        "from workers.spawning.zygote import dry_run; dry_run()\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(loaded.stdout.split())


SAYS_ITS_TITLE = """
from pathlib import Path
from workers.process.worker import set_title
set_title("bidkeeper: a title")
print(Path("/proc/self/cmdline").read_text().rstrip(chr(0)), "PATH=" in Path("/proc/self/environ").read_text())
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [{}, {"SPT_NOENV": "1"}, {"HOME": "/", "SPT_NOENV": "1"}], ids=" ".join)
def test_it_is_set_and_the_environment_stays_to_be_seen(before: dict[str, str]) -> None:
    """Ray hands the variable down in no order of its own: it may be the first."""
    rest = {name: value for name, value in os.environ.items() if name not in ("SPT_NOENV", "HOME")}
    command = [sys.executable, "-c", SAYS_ITS_TITLE]
    said = subprocess.run(command, env=before | rest, capture_output=True, text=True, check=True, timeout=120)
    assert said.stdout == "bidkeeper: a title True\n"


class Failing:
    """A job whose first cycles fail."""

    def __init__(self, failures: int) -> None:
        self.left = failures

    def cycle(self) -> float | None:
        self.left -= 1
        if self.left >= 0:
            raise KeyError("a bug")
        return None


def run(failures: int) -> list[str]:
    """Runs a worker to its end; returns the events of errors that are told."""
    task, idle = running_task(), lambda *_: None
    life_line: Any = SimpleNamespace(pause=idle)
    context: Any = SimpleNamespace(signer=SimpleNamespace(has_lost_grant=False))
    lock: Any = SimpleNamespace(touch=idle)
    worker = Worker("bidder", task.id, task.token, life_line, idle)
    assert worker._cycles(Failing(failures), context, lock) == EXIT_STOPPED
    return [row.event for row in outbox.of_user_after(task.user_id, 0, 500, ["error"])]


def test_three_in_a_row_are_told(database: str) -> None:
    assert run(3) == ["error"]


def test_two_are_not(database: str) -> None:
    assert run(2) == []
