"""Auto-list tasks with real processes: they run as bidding tasks do, and their listing outlives everything but them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from core.program_calls import CountTasks, Settled, TaskCounts
from models import accounts
from models.ledger import listings
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from strategy.config.listing import ListingConfig
from tests.worlds.manager import Installation, eventually, lives
from workers.kernel import start_time
from workers.manager.child import MAX_DEATHS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("back_end")]


async def test_a_start_answers_when_the_lister_holds_its_lock(installation: Installation) -> None:
    async with installation.running():
        task = installation.listing(config=ListingConfig(min_price_sats=70_000, cost_sats=90_000))
        assert await installation.start(task) == Settled("running", 0)
        row = installation.row(task)
        lock = installation.settings.run_dir / f"task-{row.id}.lock"
        assert lock.read_text() == f"{row.pid} {start_time(installation.pid(task))}\n"
        [grant] = installation.signer.grants(task)
        assert (grant["token"], grant["operations"]) == (row.token, ["list", "cancel"])
        assert (grant["inscription_id"], grant["min_price_sats"]) == ("item", 90_000)
        assert {"verb": "fence", "args": {}, "task": task, "token": row.token} in installation.gateway.asked
        await eventually(lambda: installation.row(task).cycles > 2)
        assert "lister worker begins" in installation.log_of(task)
        assert row.observed == "running"


@pytest.mark.thorough
@pytest.mark.parametrize("back_end", ["zygote"], indirect=True)  # a started Python has room for its own arguments only
async def test_the_title_names_the_task_as_its_owner_knows_it(installation: Installation) -> None:
    async with installation.running():
        inscription = "ab" * 32 + "i0"
        task = await installation.started_listing(inscription)
        title, told = f"bidkeeper: lister task 1 {inscription}", Path(f"/proc/{installation.pid(task)}/cmdline")
        await eventually(lambda: told.read_text().rstrip("\0") == title)


async def test_a_bidding_and_an_auto_list_task_do_not_meet(installation: Installation) -> None:
    async with installation.running():
        bids, listing = installation.task(), installation.listing()
        await asyncio.gather(installation.start(bids), installation.start(listing))
        pids = installation.pid(bids), installation.pid(listing)
        assert pids[0] != pids[1]
        await eventually(lambda: {task for task, _ in installation.acts()} == {bids, listing})
        assert await installation.ask(CountTasks()) == TaskCounts({"running": 2}, 2)
        await installation.stop(bids)
        assert [lives(pid) for pid in pids] == [False, True]
        assert installation.row(listing).observed == "running"


async def test_a_stop_leaves_the_listing_and_drains_nothing(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started_listing()
        installation.open_listing(task)
        row = installation.row(task)
        began = asyncio.get_running_loop().time()
        assert await installation.stop(task, drain_s=60) == Settled("stopped", 1)
        assert asyncio.get_running_loop().time() - began < 45
        assert not lives(row.pid)
        assert {"op": "revoke_place", "task": task, "token": row.token} in installation.signer.asked
        assert installation.row(task).token > row.token
        await eventually(lambda: "end_rights" in installation.signer.ops())
        assert len(installation.signer.grants(task)) == 1
        assert listings.count_open(task) == 1


async def test_a_deleted_task_has_its_listing_cancelled_and_goes(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started_listing()
        installation.open_listing(task)
        row = installation.row(task)
        tasks.mark_deleted(row, 5)
        assert await installation.settle(task) == Settled("stopped", 0)
        grant = installation.signer.grants(task)[-1]
        assert (grant["operations"], grant["inscription_id"]) == (["cancel"], "item")
        await eventually(lambda: tasks.with_owner(task) is None)
        assert not (installation.settings.run_dir / f"task-{row.id}.lock").exists()
        newest = listings.newest(task)
        assert newest is not None and newest.close_reason == "cancelled"


async def test_a_stopped_task_that_is_deleted_is_drained_also_when_nobody_tells_of_it(
    installation: Installation,
) -> None:
    async with installation.running():
        task = installation.listing()
        installation.open_listing(task)
        tasks.set_desired(installation.row(task), STOPPED)
        tasks.mark_deleted(installation.row(task), 5)
        await eventually(lambda: tasks.with_owner(task) is None)
        assert listings.count_open(task) == 0


@pytest.mark.thorough
async def test_a_slow_cancel_is_not_waited_for_longer_than_told_and_goes_on(installation: Installation) -> None:
    async with installation.running():
        task = installation.listing("lazy-item")
        installation.open_listing(task)
        tasks.mark_deleted(installation.row(task), 5)
        assert await installation.settle(task, drain_s=0.3) == Settled("stopped", 1)
        await eventually(lambda: "drain worker begins" in installation.log_of(task))
        assert tasks.with_owner(task) is not None


@pytest.mark.thorough
async def test_a_new_revision_gets_a_new_lister_and_keeps_the_listing(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started_listing()
        installation.open_listing(task)
        first = installation.row(task)
        tasks.change_autolist_task(first, collection_id="cats", config=first.config)
        assert await installation.settle(task) == Settled("running", 1)
        assert installation.row(task).pid != first.pid
        assert not lives(first.pid)
        assert len(installation.signer.grants(task)) == 2


@pytest.mark.thorough
async def test_a_killed_lister_comes_back(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started_listing()
        await eventually(lambda: installation.row(task).cycles > 0)
        pid = installation.pid(task)
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: installation.row(task).pid not in (None, pid))
        assert installation.row(task).observed == "running"
        assert installation.row(task).restarts == 1
        assert not installation.two_acted_at_once()


@pytest.mark.thorough
async def test_one_that_only_dies_is_given_up_and_its_listing_stays(installation: Installation) -> None:
    async with installation.running():
        task = installation.listing("dies")
        installation.open_listing(task)
        await eventually(lambda: installation.row(task).observed == "crashed")
        row = installation.row(task)
        assert f"died {MAX_DEATHS} times" in str(row.last_error)
        assert not row.is_running
        assert {tuple(grant["operations"]) for grant in installation.signer.grants(task)} == {("list", "cancel")}
        assert listings.count_open(task) == 1


async def test_a_lister_with_nothing_left_to_do_is_stopped_and_stays_so(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started_listing("sells")
        await eventually(lambda: installation.row(task).observed == "stopped")
        row = installation.row(task)
        assert (row.desired, row.last_error, row.pid) == ("stopped", "sold", None)
        acts = len(installation.acts())
        await asyncio.sleep(5 * installation.timing.sweep_s)
        assert len(installation.acts()) == acts == 1


async def test_a_plan_that_is_over_stops_the_task_and_leaves_the_listing(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started_listing()
        installation.open_listing(task)
        accounts.set_plan(installation.user.id, "beta", 5, 4)
        await eventually(lambda: installation.row(task).observed == "stopped")
        assert "plan expired" in str(installation.row(task).last_error)
        assert listings.count_open(task) == 1


@pytest.mark.thorough
async def test_a_manager_that_comes_back_brings_its_listers_back(installation: Installation) -> None:
    task = installation.listing()
    installation.want(task)
    async with installation.peers():
        first = installation.manager_process()
        try:
            await eventually(lambda: installation.row(task).observed == "running")
            pid = installation.pid(task)
            first.kill()
            await eventually(lambda: not lives(pid))
        finally:
            first.kill()
            first.communicate()
        second = installation.manager_process()
        try:
            await eventually(lambda: installation.row(task).pid not in (None, pid))
            assert not installation.two_acted_at_once()
        finally:
            second.kill()
            second.communicate()
