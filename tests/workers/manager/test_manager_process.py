"""The manager as a process: killed, restarted, doubled, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Collection

import pytest

from core.program_calls import Ping, Readiness
from tests.worlds.manager import Installation, eventually, lives

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("back_end")]


def end(process: subprocess.Popen[bytes]) -> str:
    """Kills the manager, if it runs still; what it said."""
    if process.poll() is None:
        process.kill()
    _, said = process.communicate(timeout=60)
    return said.decode()


def pids(installation: Installation, ids: list[int]) -> set[int]:
    return {installation.pid(task) for task in ids}


async def all_run(installation: Installation, ids: list[int], but: Collection[int] = ()) -> None:
    def running() -> bool:
        rows = [installation.row(task) for task in ids]
        return all(row.observed == "running" and row.pid not in but for row in rows)

    await eventually(running, "that all tasks run")


async def test_a_killed_manager_leaves_no_worker_and_its_successor_brings_all_back(installation: Installation) -> None:
    ids = [installation.task(f"cats-{number}") for number in range(5)]
    for task in ids:
        installation.want(task)
    async with installation.peers():
        first = installation.manager_process()
        second = None
        try:
            await all_run(installation, ids)
            workers = pids(installation, ids)
            first.kill()
            began = time.monotonic()
            await eventually(lambda: not any(lives(pid) for pid in workers), "the end of all workers")
            assert time.monotonic() - began < 30
            second = installation.manager_process()
            await all_run(installation, ids, but=workers)
            assert time.monotonic() - began < 120
            new = pids(installation, ids)
            await eventually(lambda: new <= {pid for _, pid in installation.acts()})
            assert not installation.two_acted_at_once()
        finally:
            end(first)
            if second:
                end(second)
        await eventually(lambda: not any(lives(pid) for _, pid in installation.acts()))


async def test_a_worker_that_survived_its_manager_is_killed_by_the_next(installation: Installation) -> None:
    """A stopped process cannot hear that its parent died; the next manager finds it by its lock."""

    task = installation.task()
    installation.want(task)
    async with installation.peers():
        first = installation.manager_process()
        second = None
        try:
            await all_run(installation, [task])
            pid = installation.pid(task)
            os.kill(pid, signal.SIGSTOP)
            first.kill()
            first.wait()
            second = installation.manager_process()
            await all_run(installation, [task], but=[pid])
            assert not lives(pid)
        finally:
            end(first)
            if second:
                end(second)


async def test_an_asked_manager_ends_its_workers_and_what_is_wanted_stays_wanted(installation: Installation) -> None:
    ids = [installation.task("cats"), installation.task("deaf")]
    for task in ids:
        installation.want(task)
    async with installation.peers():
        manager = installation.manager_process()
        try:
            await all_run(installation, ids)
            await eventually(lambda: {task for task, _ in installation.acts()} == set(ids))
            workers = pids(installation, ids)
            manager.send_signal(signal.SIGTERM)
            began = time.monotonic()
            await eventually(lambda: manager.poll() is not None)
            assert time.monotonic() - began < 60  # the deaf one is given 5 s
            assert manager.returncode == 0
            await eventually(lambda: not any(lives(pid) for pid in workers), "the end of the killed one")
            assert [installation.row(task).desired for task in ids] == ["running", "running"]
            assert [installation.row(task).observed for task in ids] == ["stopped", "stopped"]
            assert "revoke_place" not in installation.signer.ops()
            assert {pid for _, pid in installation.acts()} == workers, "none was started again meanwhile"
        finally:
            end(manager)


@pytest.mark.thorough_cases("popen")
async def test_a_second_manager_says_so_and_ends(installation: Installation) -> None:
    task = installation.task()
    installation.want(task)
    async with installation.peers():
        first = installation.manager_process()
        try:
            await all_run(installation, [task])
            pid = installation.pid(task)
            second = installation.manager_process()
            await eventually(lambda: second.poll() is not None)
            assert second.returncode == 1
            assert f"another manager runs in {installation.settings.data_dir}" in end(second).splitlines()[-1]
            assert lives(pid)
            assert await installation.ask(Ping()) == Readiness("ready")
        finally:
            end(first)
