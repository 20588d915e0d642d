"""What the machine may do to a running installation: a full disk, a locked database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import need
from tests.e2e.installation import Installation, until
from tests.faults.fleet import Fleet

pytestmark = [pytest.mark.slow, pytest.mark.faults]


@pytest.fixture
def service() -> Iterator[Installation]:
    made = Installation()
    yield made
    made.destroy()


def test_nothing_is_placed_while_the_database_is_locked(service: Installation) -> None:
    service.up()
    fleet = Fleet(service, tasks=5)
    fleet.start()
    until(lambda: fleet.placed() >= 2, "the midst of placing")
    lock = sqlite3.connect(service.data_dir / "bidkeeper.db", timeout=30, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    time.sleep(1)  # what was reserved before the lock may still arrive
    before = fleet.placed()
    time.sleep(10)
    assert fleet.placed() <= before + len(fleet.tasks), "only what was reserved before the lock"
    lock.execute("ROLLBACK")
    lock.close()
    until(lambda: fleet.all_run() and fleet.placed() >= 8, "the ladders, once it is free again")
    assert fleet.disagreements() == []
    fleet.check_quiet_after_stop()
    print(f"database locked for 11 s: {fleet.placed()} placed, 0 disagreements")


def test_a_full_disk_places_nothing_and_recovers_alone(service: Installation) -> None:
    need("root", os.getuid() == 0)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(service.data_dir)], capture_output=True, text=True
    )
    need(f"mount ({mounted.stderr.strip()})", mounted.returncode == 0)
    ballast = service.data_dir / "ballast"
    try:
        service.up()
        fleet = Fleet(service, tasks=5)
        _fill(ballast)
        for task in fleet.tasks:
            fleet.trader.call("POST", f"/api/tasks/{task}/start")
        time.sleep(8)
        assert [line for line in fleet.disagreements() if line.startswith("untracked")] == []
        full = fleet.placed()
        ballast.unlink()
        until(lambda: _started(fleet), "every start, once there is room", 60)
        until(lambda: fleet.placed() >= 8, "the ladders", 60)
        assert fleet.disagreements() == []
        fleet.check_quiet_after_stop()
        print(f"disk full for 8 s: {full} placed meanwhile, {fleet.placed()} in all, 0 disagreements")
        service.down()
    finally:
        if service.process is not None and service.process.poll() is None:
            service.process.kill()
            service.process.wait()
        until(lambda: service.processes() == [], "the end of every process", 30)
        subprocess.run(["umount", str(service.data_dir)], check=True)


def _fill(ballast: Path) -> None:
    with ballast.open("wb") as file:
        try:
            while True:
                file.write(b"\0" * 65536)
                file.flush()
        except OSError:
            pass


def _started(fleet: Fleet) -> bool:
    answers = [fleet.trader.call("POST", f"/api/tasks/{task}/start").status_code for task in fleet.tasks]
    return answers == [200] * len(answers)
