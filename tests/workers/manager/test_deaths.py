"""Workers that die, hang or give up, and what the manager makes of it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import PeerRefused
from tests import postgresql
from tests.worlds.manager import Installation, descriptors, eventually, lives, with_timing
from workers.manager.child import MAX_DEATHS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("back_end")]


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
