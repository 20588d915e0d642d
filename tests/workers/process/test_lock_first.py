"""A worker says that it holds its lock before it connects, which takes its time, and checks its token after that."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from core.layout import log_path
from tests.worlds.manager import Installation
from workers import kernel

pytestmark = pytest.mark.slow


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
