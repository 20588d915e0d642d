"""Starting, stopping and starting again, as an operator does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.e2e.installation import Installation, Trader, installation, until

pytestmark = pytest.mark.slow


def test_one_signal_ends_everything_and_the_next_start_resumes() -> None:
    made = Installation()
    try:
        made.up()
        made.put_collection("cats", [100_000])
        trader = Trader(made).sign_in()
        task = trader.task(slug="cats", hardcapSats=100_000, loopSeconds=5)
        trader.start(task)
        until(lambda: len(made.live_prices("cats")) == 5, "the ladder")
        assert made.down(signal.SIGINT) < 15
        assert made.processes() == []
        made.up()
        assert made.live_prices("cats") == [75_000, 60_000, 45_000, 30_000, 15_000], "stopping cancels nothing"
        assert trader.get(task)["isRunning"] is True
        until(lambda: made.workers(task), "the task's return", 30)
        until(lambda: "kept 5" in trader.get(task)["lastCycle"]["action"], "a cycle that finds its bids")
        assert len(made.history(event="accepted", slug="cats")) == 5
        assert made.down(signal.SIGTERM) < 15
        assert made.processes() == []
    finally:
        made.destroy()


def test_what_it_makes_is_its_users_alone_also_in_a_directory_that_others_may_enter() -> None:
    made = Installation()
    made.data_dir.chmod(0o755)
    before = os.umask(0o022)
    try:
        made.up()
        trader = Trader(made).sign_in()
        trader.start(trader.task(slug="cats", hardcapSats=100_000, loopSeconds=5))
        until(lambda: (made.data_dir / "journal").exists(), "the task's journal")
        assert f"WARNING: {made.data_dir} has mode 0755: other users of this machine may read" in made.output()
        open_to_others = [
            f"{path} {path.lstat().st_mode & 0o777:04o}"
            for path in made.data_dir.rglob("*")
            if path.name != "up.out" and path.lstat().st_mode & 0o077
        ]
        assert open_to_others == []
    finally:
        os.umask(before)
        made.destroy()


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_directory_that_others_may_write_to_is_refused(mode: int) -> None:
    made = Installation()
    made.data_dir.chmod(mode)
    try:
        command = [sys.executable, "-m", "cli.main", "up"]
        ended = subprocess.run(command, env=made.environment, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 1
        assert f"{made.data_dir} has mode {mode:04o}: other users of this machine may write there" in ended.stderr
        assert not (made.data_dir / "bidkeeper.db").exists()
    finally:
        made.destroy()


def test_a_killed_up_leaves_nothing_running() -> None:
    with installation() as made:
        assert made.process is not None
        made.process.kill()
        made.process.wait()
        until(lambda: made.processes() == [], "the end of what it started", 30)


def test_a_second_start_in_the_same_directory_is_refused() -> None:
    with installation() as made:
        command = [sys.executable, "-m", "cli.main", "up"]
        second = subprocess.run(command, env=made.environment, capture_output=True, text=True, timeout=60)
        assert second.returncode == 1
        assert "in use by another" in second.stderr
        assert made.process is not None and made.process.poll() is None


def test_wrong_settings_are_one_line_each() -> None:
    wrong = os.environ | {"BIDKEEPER_PORT": "x", "BIDKEEPER_MARKET": "moon"}
    command = [sys.executable, "-m", "cli.main", "up"]
    ended = subprocess.run(command, env=wrong, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert [line.split(" ")[1] for line in ended.stderr.splitlines()] == ["BIDKEEPER_PORT", "BIDKEEPER_MARKET"]
