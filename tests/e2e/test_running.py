"""Starting, as an operator does it: what is refused, what is kept from others, what a killed start leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.up import _processes_of
from tests.e2e.installation import Installation, Trader, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened(service: Installation) -> Installation:
    """An installation in a directory that others may enter."""
    assert service.data_dir.stat().st_mode & 0o777 == 0o755
    return service


def mode_of(path: Path) -> int:
    """Returns the mode; 0 for a file that has been renamed or removed since it was found."""
    with contextlib.suppress(FileNotFoundError):
        return path.lstat().st_mode & 0o777
    return 0


def test_what_it_makes_is_its_users_alone_also_in_a_directory_that_others_may_enter(opened: Installation) -> None:
    trader = Trader(opened).sign_in()
    task = trader.task(slug="kept-cats", hardcapSats=100_000, loopSeconds=5)
    trader.start(task)
    until(lambda: trader.get(task)["lastCycle"], "a cycle")
    until(lambda: (opened.data_dir / "journal").exists(), "the task's journal")
    assert f"WARNING: {opened.data_dir} has mode 0755: other users of this machine may read" in opened.output()
    open_to_others = [
        f"{path} {mode:04o}"
        for path in opened.data_dir.rglob("*")
        if path.name != "up.out" and (mode := mode_of(path)) & 0o077
    ]
    assert open_to_others == []


def test_a_second_start_in_the_same_directory_is_refused(opened: Installation) -> None:
    command = [sys.executable, "-m", "cli.main", "up"]
    second = subprocess.run(command, env=opened.environment, capture_output=True, text=True, timeout=60)
    assert second.returncode == 1
    assert "in use by another" in second.stderr
    assert opened.process is not None and opened.process.poll() is None


def test_a_killed_up_leaves_nothing_running(opened: Installation) -> None:
    assert opened.process is not None and opened.processes()
    opened.process.kill()
    opened.process.wait()
    until(lambda: opened.processes() == [], "the end of what it started")


def test_a_program_that_hides_its_environment_is_found_by_its_session_after_supervisord_was_killed(
    tmp_path: Path,
) -> None:
    """As the signer does: no process of its user may read there, so that it seems to belong to no directory."""
    hidden = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"
    starts = (
        f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {hidden!r}]).pid); sys.stdin.read()"
    )
    command = [sys.executable, "-uc", starts]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, start_new_session=True) as supervisord:
        assert supervisord.stdout is not None
        left = int(supervisord.stdout.readline())
        try:
            supervisord.stdout.readline()
            supervisord.kill()
            supervisord.wait()
            assert _processes_of(tmp_path, supervisord.pid) == [left]
        finally:
            os.kill(left, signal.SIGKILL)


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


def test_wrong_settings_are_one_line_each() -> None:
    wrong = os.environ | {"BIDKEEPER_PORT": "x", "BIDKEEPER_MARKET": "moon"}
    command = [sys.executable, "-m", "cli.main", "up"]
    ended = subprocess.run(command, env=wrong, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert [line.split(" ")[1] for line in ended.stderr.splitlines()] == ["BIDKEEPER_PORT", "BIDKEEPER_MARKET"]
