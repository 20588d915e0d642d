"""Workers that are forked: what they share with the zygote, what they do not, and what happens when it dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from models.database import base
from tests import postgresql
from tests.workers.spawning.test_spawners import children
from tests.worlds.manager import ROOT, Installation, descriptors, eventually, lives
from workers.spawning.spawner import ZygoteSpawner

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIDKEEPER_SPAWNER", "zygote")


def zygote(installation: Installation) -> int:
    assert installation.manager is not None
    spawner = installation.manager._shared.spawner
    assert isinstance(spawner, ZygoteSpawner) and spawner.pid
    return spawner.pid


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


async def test_a_killed_zygote_leaves_no_worker_and_all_come_back(installation: Installation) -> None:
    async with installation.running():
        ids = [installation.task(slug) for slug in ["stands", *(f"cats-{number}" for number in range(9))]]
        await asyncio.gather(*map(installation.start, ids))
        await eventually(lambda: {task for task, _ in installation.acts()} == set(ids))
        workers = {installation.pid(task) for task in ids}
        (installation.settings.data_dir / "stand").touch()
        await eventually(lambda: is_stopped(installation.pid(ids[0])), "that one is stopped")
        # On SQLite nobody can write until the stopped one has ended: the manager would wait so long at each death.
        if not postgresql.is_wanted():
            base.database.execute_sql("PRAGMA busy_timeout = 60000")
        os.kill(zygote(installation), signal.SIGKILL)
        began = time.monotonic()
        await eventually(lambda: not any(map(lives, workers)), "the end of all workers")
        assert time.monotonic() - began < 45

        def all_back() -> bool:
            rows = [installation.row(task) for task in ids]
            return all(row.observed == "running" and row.pid not in workers for row in rows)

        await eventually(all_back, "that all run again")
        assert {installation.row(task).exit_status for task in ids} == {None}
        assert "5 times" not in "".join(str(installation.row(task).last_error) for task in ids)
        assert not installation.two_acted_at_once()


async def test_deaths_with_the_zygote_are_not_counted(installation: Installation) -> None:
    async with installation.running() as running:
        task = await installation.started("fails")
        pid = installation.pid(task)
        os.kill(zygote(installation), signal.SIGKILL)
        await eventually(lambda: installation.row(task).observed == "backoff")
        assert installation.row(task).exit_status == "ended when the zygote did"
        await eventually(lambda: installation.row(task).pid not in (None, pid))
        assert running.manager is not None
        assert running.manager._keepers[task]._restarts._deaths == []


async def test_a_title_has_room_for_a_long_slug(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started("a-collection-with-a-rather-long-name")
        title = f"bidkeeper: bidder task {task} a-collection-with-a-rather-long-name"
        told = Path(f"/proc/{installation.pid(task)}/cmdline")
        await eventually(lambda: told.read_text().rstrip("\0") == title)


async def test_workers_have_chances_of_their_own(installation: Installation) -> None:
    async with installation.running():
        for number in range(3):
            await installation.start(installation.task(f"rolls:{number}"))
        rolls = installation.settings.data_dir / "rolls"
        await eventually(lambda: rolls.exists() and len(rolls.read_text().splitlines()) == 3)
        assert len(set(rolls.read_text().split())) == 9


async def test_the_zygote_holds_nothing_of_its_manager_and_runs_one_thread(installation: Installation) -> None:
    async with installation.running():
        await installation.start(installation.task())
        pid = zygote(installation)
        # One of the worker's may still be open when the worker runs already.
        await eventually(lambda: len(descriptors(pid)) == 6, "the descriptors of a zygote at rest")
        found = descriptors(pid)
        assert found.pop(0) == "/dev/null"
        assert {found.pop(1), found.pop(2)} == {descriptors("self")[1], descriptors("self")[2]}
        kinds = sorted(target.partition(":")[0] for target in found.values())
        assert kinds == ["pipe", "pipe", "socket"], found
        assert len(list(Path(f"/proc/{pid}/task").iterdir())) == 1
        assert Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"bidkeeper: zygote")
        assert f"BIDKEEPER_DATA_DIR={installation.settings.data_dir}" in Path(f"/proc/{pid}/environ").read_text()


async def test_a_manager_takes_its_zygotes_with_it_and_has_a_new_one_at_sighup(installation: Installation) -> None:
    task = installation.task()
    installation.want(task)
    async with installation.peers():
        manager = installation.manager_process()
        try:
            await eventually(lambda: installation.row(task).observed == "running")
            [first] = children(manager.pid)
            manager.send_signal(signal.SIGHUP)
            await eventually(lambda: len(children(manager.pid)) == 2)
            pid, zygotes = installation.pid(task), children(manager.pid)
            assert pid in children(first)
            manager.kill()
            await eventually(lambda: not any(map(lives, [pid, *zygotes])))
        finally:
            manager.kill()
            manager.communicate()


def test_a_process_with_two_threads_is_not_forked() -> None:
    program = (
        "import threading, time\n"
        "from workers.spawning.zygote import Unfit, require_one_thread\n"
        "require_one_thread()\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "try:\n    require_one_thread()\nexcept Unfit as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout == "the zygote has 2 threads\n"


def test_the_warm_up_places_keeps_and_cancels_and_leaves_nothing_open() -> None:
    program = (
        "import json, os\n"
        "from workers.spawning.zygote import dry_run\n"
        "before = os.listdir('/proc/self/fd')\n"
        "print(json.dumps([dry_run(), os.listdir('/proc/self/fd') == before]))\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    reports, as_before = json.loads(said.stdout)
    assert reports[0] == "placed 5, kept 0, cancelled 0; 5 open"
    assert reports[1] == "placed 0, kept 5, cancelled 0; 5 open"
    assert reports[-1].endswith("; 0 open")
    assert as_before
