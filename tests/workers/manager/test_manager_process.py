"""The manager as a process: its start, second managers, and workers that die."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import PeerRefused
from core.program_calls import Ping, Readiness
from models.database import base
from tests import postgresql
from tests.databases import questions
from tests.worlds.manager import Installation, descriptors, eventually, lives, with_timing
from workers.manager.child import MAX_DEATHS

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


@pytest.fixture
def at_rest(installation: Installation) -> Installation:
    """A manager that does nothing of its own accord."""
    return with_timing(installation.settings.data_dir, sweep_s=600, full_sweep_s=600, fill_look_s=600)


async def test_a_start_asks_few_questions_in_two_commits(at_rest: Installation) -> None:
    async with at_rest.running():
        task = at_rest.task()
        at_rest.want(task)
        with questions(base.database.obj) as asked:
            assert (await at_rest.settle(task)).observed == "running"
        assert len(asked) <= 16, "\n".join(asked)
        assert len([each for each in asked if each.startswith("UPDATE")]) == 3
        assert asked.commits == 2
        await eventually(at_rest.acts)


@pytest.mark.thorough_cases("popen")
async def test_a_killed_worker_comes_back_after_a_rest_and_is_never_doubled(database: str, tmp_path: Path) -> None:
    installation = with_timing(tmp_path, first_rest_s=0.5)
    async with installation.running():
        task = await installation.started()
        await eventually(lambda: installation.row(task).cycles > 1)
        pid = installation.pid(task)
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: installation.row(task).observed == "backoff")
        row = installation.row(task)
        assert row.exit_status == "was killed by SIGKILL (perhaps out of memory)"
        assert row.is_running and row.pid is None and row.restarts == 1
        await eventually(lambda: installation.row(task).observed == "running")
        await eventually(lambda: len({pid for _, pid in installation.acts()}) == 2)
        assert not installation.two_acted_at_once()


async def test_what_a_dead_worker_left_on_the_wire_is_waited_for_by_a_stop(installation: Installation) -> None:
    """The worker dies just as its user stops the task: the gateway is asked all the same."""

    async with installation.running():
        task = await installation.started()
        token = installation.row(task).token
        installation.want(task, "stopped")
        os.kill(installation.pid(task), signal.SIGKILL)
        await eventually(lambda: installation.row(task).observed == "stopped")
        fenced = [asked for asked in installation.gateway.asked if asked["verb"] == "fence"]
        assert any(asked["task"] == task and asked["token"] > token for asked in fenced)
        assert {"op": "revoke_place", "task": task, "token": token} in installation.signer.asked


async def test_a_worker_that_only_dies_is_given_up_and_its_user_may_start_it_again(installation: Installation) -> None:
    async with installation.running():
        task = installation.task("dies")
        installation.want(task)
        await eventually(lambda: installation.row(task).observed == "crashed")
        row = installation.row(task)
        assert "5 times in 10 minutes" in str(row.last_error)
        assert not row.is_running
        assert row.restarts == 5
        starts = len(installation.signer.grants(task))
        await asyncio.sleep(3 * installation.timing.full_sweep_s)
        assert len(installation.signer.grants(task)) == starts
        with suppress(PeerRefused):  # it may die before the manager has seen it hold its lock
            await installation.start(task)
        assert len(installation.signer.grants(task)) > starts


async def test_deaths_between_finished_cycles_do_not_add_up(installation: Installation) -> None:
    async with installation.running():
        task = installation.task("dies-after-a-cycle")
        installation.want(task)
        await eventually(lambda: installation.row(task).restarts > MAX_DEATHS)
        assert installation.row(task).observed != "crashed"


@pytest.mark.thorough_cases("zygote-is-unwelcome-the key is not accepted")
@pytest.mark.parametrize(
    ("slug", "error"), [("is-misconfigured", "the config is nonsense"), ("is-unwelcome", "the key is not accepted")]
)
async def test_what_a_restart_would_not_help_is_given_up_at_once(
    installation: Installation, slug: str, error: str
) -> None:
    async with installation.running():
        task = installation.task(slug)
        installation.want(task)
        await eventually(lambda: installation.row(task).observed == "crashed")
        assert installation.row(task).last_error == error
        assert len(installation.signer.grants(task)) == 1


async def test_a_crashed_task_that_owes_orders_is_drained(installation: Installation) -> None:
    async with installation.running():
        task = installation.task("is-misconfigured")
        installation.open_order(task)
        await eventually(lambda: installation.row(task).observed == "crashed")
        await eventually(lambda: not installation.row(task).is_running and "cancel" in str(installation.signer.asked))
        await eventually(lambda: installation.signer.grants(task)[-1]["operations"] == ["cancel"])
        await eventually(lambda: "nothing left to do" in installation.log_of(task))
        assert installation.row(task).observed == "crashed"


async def test_a_cycle_that_fails_does_not_end_the_worker(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started("fails")
        await eventually(lambda: installation.row(task).last_error)
        row = installation.row(task)
        assert (row.last_error, row.observed) == ("RuntimeError: no luck", "running")
        assert "Traceback" in installation.log_of(task)


async def test_a_worker_without_sign_of_life_is_replaced(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started("stuck", loop_seconds=0)
        pid = installation.pid(task)
        assert installation.manager is not None
        child = installation.manager._keepers[task].child
        assert child is not None
        # Three cycles of 5 s, the shortest there are, would be longer than the test wants to wait for silence.
        child._silent_s = 1.0
        await eventually(lambda: installation.row(task).restarts == 1)
        assert not lives(pid)
        await eventually(lambda: installation.row(task).observed == "running")
        assert not installation.two_acted_at_once()


async def test_a_worker_holds_only_its_own_descriptors(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        await eventually(lambda: installation.row(task).cycles > 1)
        settings, found = installation.settings, descriptors(installation.pid(task))
        log = str(settings.log_dir / f"task-{task}.log")
        assert found.pop(0).startswith("pipe:")
        assert (found.pop(1), found.pop(2)) == (log, log)
        wake = [fd for fd, target in found.items() if target.startswith("pipe:")]
        assert len(wake) == 2
        database = str(settings.data_dir / "bidkeeper.db")
        known = {str(settings.run_dir / f"task-{task}.lock"), database, f"{database}-wal", f"{database}-shm"}
        acts = str(settings.data_dir / "acts")  # the stub's, for a moment
        others = {target for fd, target in found.items() if fd not in wake} - {acts}
        if postgresql.is_wanted():  # during a cycle
            assert len([target for target in others if target.startswith("socket:")]) <= 1
            others = {target for target in others if not target.startswith("socket:")}
        assert others <= known


async def test_a_worker_is_confined_and_named(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        process = Path(f"/proc/{installation.row(task).pid}")
        limits = {line[:26].strip(): line[26:].split()[:2] for line in (process / "limits").read_text().splitlines()}
        assert limits["Max open files"] == ["64", "64"]
        assert limits["Max core file size"] == ["0", "0"]
        assert (process / "oom_score_adj").read_text() == "500\n"
        await eventually(lambda: f"bidkeeper: bidder task {task} cats" in (process / "cmdline").read_text())
        assert f"BIDKEEPER_DATA_DIR={installation.settings.data_dir}" in (process / "environ").read_text()
        log = installation.settings.log_dir / f"task-{task}.log"
        assert log.stat().st_mode & 0o777 == 0o600


async def test_a_worker_whose_rights_are_about_to_end_gets_new_ones(installation: Installation) -> None:
    async with installation.running() as running:
        task = await installation.started()
        first = installation.row(task)
        assert running.manager is not None
        child = running.manager._keepers[task].child
        assert child is not None
        child.rights_end_ms = time.time_ns() // 1_000_000 + 60_000
        await eventually(lambda: installation.row(task).pid not in (None, first.pid))
        assert installation.row(task).token > first.token
