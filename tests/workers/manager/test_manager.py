"""The manager with real processes: starts, stops, and what it makes of rows."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from peewee import OperationalError

from core.call import Request
from core.errors import PeerRefused
from core.layout import log_path
from core.program_calls import CountTasks, Heed, Ping, ReadLog, Settle, Settled
from models.database import base
from models.ledger import orders
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED
from tests import postgresql
from tests.worlds.manager import PATIENCE_S, QUICK, Installation, descriptors, eventually, lives, with_timing
from workers.kernel import start_time
from workers.manager.rights import Rights

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("back_end")]


async def test_start_answers_when_the_worker_holds_its_lock(installation: Installation) -> None:
    async with installation.running():
        task = installation.task()
        answer = await installation.start(task)
        row = installation.row(task)
        assert answer == Settled("running", 0)
        assert (row.observed, row.last_error) == ("running", None)
        lock = installation.settings.run_dir / f"task-{task}.lock"
        assert lock.read_text() == f"{row.pid} {start_time(installation.pid(task))}\n"
        [grant] = installation.signer.grants(task)
        assert (grant["token"], grant["operations"]) == (row.token, ["bid", "cancel"])
        assert {"verb": "fence", "args": {}, "task": task, "token": row.token} in installation.gateway.asked
        await eventually(lambda: installation.row(task).cycles > 2)


async def test_starting_what_runs_changes_nothing(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        pid = installation.pid(task)
        await installation.start(task)
        assert installation.row(task).pid == pid
        assert len(installation.signer.grants(task)) == 1


async def test_manager_that_starts_on_a_full_disk_has_its_brakes(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not begin before, and nothing cancelled a bid until there was room."""

    def full(*_: object) -> None:
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as disk:
        disk.setattr(tasks, "forget_workers", full)
        async with installation.running():
            assert await installation.ask(Ping())
            await installation.ask(Heed("global", 0, "halt", 1))
            disk.undo()


async def test_stop_answers_when_the_worker_is_gone_and_its_rights_are(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        row = installation.row(task)
        await eventually(installation.acts)
        answer = await installation.stop(task)
        acts = len(installation.acts())
        assert answer == Settled("stopped", 0)
        assert not lives(row.pid)
        assert installation.row(task).observed == STOPPED
        assert {"op": "revoke_place", "task": task, "token": row.token} in installation.signer.asked
        assert installation.row(task).token > row.token
        assert installation.gateway.asked[-1]["token"] == installation.row(task).token
        await eventually(lambda: "end_rights" in installation.signer.ops())
        assert len(installation.acts()) == acts


async def test_stop_drains_open_orders_with_a_grant_that_only_cancels(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        installation.open_order(task)
        answer = await installation.stop(task)
        assert answer == Settled("stopped", 0)
        assert installation.signer.grants(task)[-1]["operations"] == ["cancel"]


async def test_stop_does_not_wait_for_a_slow_drain_longer_than_told(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started("lazy-cats")
        installation.open_order(task)
        assert await installation.stop(task, drain_s=0.3) == Settled("stopped", 1)
        # The drain goes on; a start ends it first.
        await eventually(lambda: "drain worker begins" in installation.log_of(task))
        assert (await installation.start(task)).observed == "running"
        assert not installation.two_acted_at_once()


async def test_stop_does_not_wait_for_bids_that_are_to_stay(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started("lazy-cats", cancel_on_stop=False)
        installation.open_order(task)
        began = asyncio.get_running_loop().time()
        assert await installation.stop(task, drain_s=60) == Settled("stopped", 1)
        assert asyncio.get_running_loop().time() - began < 45


async def test_a_deleted_task_goes_when_its_orders_are_closed(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        installation.open_order(task)
        assert log_path(installation.settings.data_dir, task).exists()
        tasks.mark_deleted(installation.row(task), 5)
        answer = await installation.settle(task)
        assert answer == Settled("stopped", 0)
        await eventually(lambda: tasks.with_owner(task) is None)
        left = {path.name for path in installation.settings.data_dir.rglob("task-*")}
        assert not any(name.startswith(f"task-{task}.") for name in left), left
        with pytest.raises(PeerRefused) as refused:
            await installation.settle(task)
        assert refused.value.code == "unknown_task"


async def test_a_new_revision_gets_a_new_worker_and_no_drain(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        installation.open_order(task)
        first = installation.row(task)
        tasks.change_bidding_task(first, type="ordinals", slug="cats", slug_key="cats", config=first.config)
        answer = await installation.settle(task)
        assert answer == Settled("running", 1)
        assert installation.row(task).pid != first.pid
        assert not lives(first.pid)
        assert orders.count_open(task) == 1


async def test_rows_are_followed_also_when_nobody_tells_of_them(installation: Installation) -> None:
    async with installation.running():
        task = installation.task()
        installation.want(task)
        await eventually(lambda: installation.row(task).observed == "running")
        installation.want(task, STOPPED)
        await eventually(lambda: installation.row(task).observed == "stopped")


@pytest.mark.parametrize("slug", ["deaf", "cats"])
async def test_a_worker_that_does_not_listen_is_killed_at_a_stop(installation: Installation, slug: str) -> None:
    async with installation.running():
        task = await installation.started(slug)
        await eventually(lambda: installation.row(task).cycles > 1)
        pid = installation.pid(task)
        if slug == "cats":
            stand_still(installation, task)
        await installation.stop(task)
        assert not lives(pid)


def stand_still(installation: Installation, task: int) -> None:
    """Stops the task's worker at a moment at which it does not hold the row that says what is wanted of it."""
    while True:
        os.kill(installation.pid(task), signal.SIGSTOP)
        try:
            return installation.want(task, STOPPED)
        except OperationalError:  # after the time for which a lock is waited for
            os.kill(installation.pid(task), signal.SIGCONT)


async def test_a_worker_that_hangs_in_a_transaction_is_killed_at_a_stop(database: str, tmp_path: Path) -> None:
    installation = with_timing(tmp_path, sweep_s=PATIENCE_S, full_sweep_s=PATIENCE_S)
    async with installation.running():
        task = await installation.started("hoards")
        pid = installation.pid(task)
        installation.want(task, STOPPED)
        (installation.settings.data_dir / "hoard").touch()
        await eventually((installation.settings.data_dir / "hoarding").exists)
        # Shorter than a server lets it hang, and longer than one needs to see that it has ended.
        base.database.execute_sql("SET lock_timeout = 2000" if postgresql.is_wanted() else "PRAGMA busy_timeout = 2000")
        assert (await installation.settle(task)).observed == "stopped"
        assert not lives(pid)
        assert installation.row(task).observed == "stopped"


async def test_a_worker_that_came_up_while_the_database_was_away_is_told_of_later(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe, refused = tasks.observe, []

    def away_at_first(task_id: int, observed: str, *rest: Any, **facts: Any) -> None:
        if observed == RUNNING and not refused:
            refused.append(task_id)
            raise OperationalError("the server closed the connection unexpectedly")
        observe(task_id, observed, *rest, **facts)

    monkeypatch.setattr(tasks, "observe", away_at_first)
    async with installation.running():
        task = installation.task()
        installation.want(task)
        await eventually(lambda: installation.row(task).observed == "running")
        assert refused == [task]
        assert lives(installation.pid(task))
        await eventually(lambda: bool(installation.acts()))
        assert {pid for _, pid in installation.acts()} == {installation.pid(task)}, "it is the same one"


async def test_a_stop_ends_a_start_that_takes_long(installation: Installation) -> None:
    async with installation.running():
        manager = installation.manager
        assert manager is not None
        # A stop would wait for a zygote, too.
        await eventually(lambda: manager._shared.spawner.is_ready)
        (installation.settings.data_dir / "slow-to-start").touch()
        task = installation.task()
        started = asyncio.create_task(installation.start(task))
        await eventually(lambda: installation.row(task).observed == "starting")
        began = asyncio.get_running_loop().time()
        assert (await installation.stop(task)).observed == "stopped"
        assert (await started).observed == "stopped"
        assert asyncio.get_running_loop().time() - began < installation.timing.locked_s / 2


async def test_a_worker_that_does_not_come_up_is_refused(database: str, tmp_path: Path) -> None:
    installation = with_timing(tmp_path, locked_s=0.5)
    async with installation.running():
        (installation.settings.data_dir / "slow-to-start").touch()
        task = installation.task()
        with pytest.raises(PeerRefused) as refused:
            await installation.start(task)
        assert refused.value.code == "start_failed"
        installation.want(task, STOPPED)
        await eventually(lambda: installation.row(task).observed == "stopped")


async def test_a_worker_that_comes_up_too_late_ends_though_the_database_is_away(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation, take_back, away = with_timing(tmp_path, locked_s=0.5), Rights.take_back, []
    slow = installation.settings.data_dir / "slow-to-start"

    async def away_at_first(rights: Rights, task_id: int, token: int) -> None:
        if not away:
            assert installation.manager is not None
            child = installation.manager._keepers[task_id].child
            assert child is not None
            away.append(child.pid)
            slow.unlink()
            # The next one is given time: on a busy machine a fresh Python alone takes longer than half a second.
            object.__setattr__(installation.manager._shared, "timing", QUICK)
            raise OperationalError("the server closed the connection unexpectedly")
        await take_back(rights, task_id, token)

    monkeypatch.setattr(Rights, "take_back", away_at_first)
    async with installation.running():
        slow.touch()
        task = installation.task()
        installation.want(task)
        await eventually(lambda: bool(away), "the first one's giving up")
        await eventually(lambda: not lives(away[0]), "the end of the one that nobody has heard of")
        await eventually(lambda: installation.row(task).observed == "running")
        assert installation.pid(task) != away[0]


async def test_a_storm_of_starts_and_stops_leaves_one_worker_or_none(installation: Installation) -> None:
    async with installation.running():
        task = installation.task()
        asked = []
        for number in range(30):
            asked.append(asyncio.create_task(installation.stop(task) if number % 2 else installation.start(task)))
            await asyncio.sleep(0.03)
        await asyncio.gather(*asked)
        assert (await installation.start(task)).observed == "running"
        pid = installation.pid(task)
        await eventually(lambda: (task, pid) in installation.acts())
        assert not installation.two_acted_at_once()
        assert (await installation.ask(CountTasks())).workers == 1
        await installation.stop(task)
        assert not any(lives(pid) for _, pid in installation.acts())


async def test_the_manager_keeps_no_descriptor_of_ended_workers(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        await installation.stop(task)
        before = len(descriptors("self"))
        for _ in range(5):
            await installation.start(task)
            await installation.stop(task)
        await eventually(lambda: len(descriptors("self")) <= before)


class Dance(Request[None], frozen=True, tag="dance"):
    """What a manager of this version does not know."""


async def test_requests_are_read_strictly(installation: Installation) -> None:
    async with installation.running():
        while (state := (await installation.ask(Ping())).state) != "ready":
            assert state == "without a zygote"
            await asyncio.sleep(0.02)
        odd: Any = Settle
        for request, code in (
            (Settle(99), "unknown_task"),
            (odd("1"), "unreadable"),
            (odd(True), "unreadable"),
            (Settle(1, 1e9), "unreadable"),
            (Dance(), "unknown_op"),
        ):
            with pytest.raises(PeerRefused) as refused:
                await installation.ask(request)
            assert refused.value.code == code


async def test_the_end_of_a_tasks_log_is_given_to_other_machines(installation: Installation) -> None:
    async with installation.running():
        task = installation.task()
        log_path(installation.settings.data_dir, task).parent.mkdir(exist_ok=True)
        log_path(installation.settings.data_dir, task).write_text("one\ntwo\nBearer abcdefghijklmnop\n")
        first, second = (await installation.ask(ReadLog(task, 2))).lines
        assert first == "two" and "abcdefgh" not in second
        odd: tuple[Any, ...] = (0, 1001, True, "2")
        for lines in odd:
            with pytest.raises(PeerRefused, match="log: lines: expected int"):
                await installation.ask(ReadLog(task, lines))
