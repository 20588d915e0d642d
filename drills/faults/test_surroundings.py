"""The machine's attacks on a running installation: a full disk, a locked database, full logs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from core.layout import LOG_FILES
from drills.faults.fleet import Fleet
from tests.databases import kept_from_writing
from tests.e2e.installation import Installation, until
from tests.needs import need_root, require
from workers.kernel import MAX_BYTES

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
    with kept_from_writing(service.database_url):
        time.sleep(1)  # what was reserved before the lock may still arrive
        before = fleet.placed()
        time.sleep(10)
        assert fleet.placed() <= before + len(fleet.tasks), "only what was reserved before the lock"
    until(lambda: fleet.all_run() and fleet.placed() >= 8, "the ladders, once it is free again")
    assert fleet.disagreements() == []
    fleet.check_quiet_after_stop()
    print(f"database locked for 11 s: {fleet.placed()} placed, 0 disagreements")


def test_a_full_disk_places_nothing_and_recovers_alone(service: Installation) -> None:
    need_root("mount a small disk")
    options = ["-t", "tmpfs", "-o", "size=320m,mode=0700"]
    mounted = subprocess.run(["mount", *options, "tmpfs", str(service.data_dir)], capture_output=True, text=True)
    require(f"mount: {mounted.stderr.strip()}" if mounted.returncode else "")
    ballast = service.data_dir / "ballast"
    try:
        service.up()
        fleet = Fleet(service, tasks=5)
        _fill(ballast)
        full_answer = requests.get(f"{service.url}/readyz", timeout=30)
        assert (full_answer.status_code, full_answer.json()["error"]) == (503, "Disk full")
        for task in fleet.tasks:
            fleet.trader.call("POST", f"/api/tasks/{task}/start")
        time.sleep(8)
        assert [line for line in fleet.disagreements() if line.startswith("untracked")] == []
        full = fleet.placed()
        ballast.unlink()
        until(lambda: _started(fleet), "every start, once there is room")
        until(lambda: fleet.placed() >= 8, "the ladders")
        assert fleet.disagreements() == []
        fleet.check_quiet_after_stop()
        print(f"disk full for 8 s: {full} placed meanwhile, {fleet.placed()} in all, 0 disagreements")
        service.down()
    finally:
        if service.process is not None and service.process.poll() is None:
            service.process.kill()
            service.process.wait()
        until(lambda: service.processes() == [], "the end of every process")
        subprocess.run(["umount", str(service.data_dir)], check=True)


def test_logs_are_rotated_while_tasks_write(service: Installation) -> None:
    service.up()
    fleet = Fleet(service, tasks=3)
    logs = [service.data_dir / "logs" / f"task-{task}.log" for task in fleet.tasks]
    _stuff(logs)
    fleet.start()
    until(lambda: fleet.placed() >= 6, "the ladders")
    fleet.trader.next_cycle_of_all(fleet.tasks, 2)  # a log is rotated after a cycle
    assert [log.with_name(f"{log.name}.1").stat().st_size > MAX_BYTES for log in logs] == [True] * 3
    placed = [_lines(log).count(" of fleet-") for log in logs]
    for _ in range(LOG_FILES):
        _stuff(logs)
        fleet.trader.next_cycle_of_all(fleet.tasks, 2)
    assert placed == [2, 2, 2], "a line of each bid"
    assert [len(list(log.parent.glob(f"{log.name}*"))) for log in logs] == [LOG_FILES] * 3
    assert all(": placed 0, kept 2" in _lines(log) for log in logs), "it still writes"
    fleet.check_quiet_after_stop()
    print(f"{3 * (1 + LOG_FILES)} rotations while 3 tasks ran, 0 lines lost, 0 disagreements")


def _stuff(logs: list[Path]) -> None:
    for log in logs:
        with log.open("a") as file:
            file.write("filled by the test\n" * (MAX_BYTES // 19 + 1))


def _lines(log: Path) -> str:
    return "".join(path.read_text() for path in sorted(log.parent.glob(f"{log.name}*"), reverse=True))


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65536)
                file.flush()
        except OSError:
            pass


def _started(fleet: Fleet) -> bool:
    answers = [fleet.trader.call("POST", f"/api/tasks/{task}/start").status_code for task in fleet.tasks]
    return answers == [200] * len(answers)
