"""Starts that cannot be: signer or gateway away, owners who may not trade."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import PeerRefused
from core.program_calls import Enforce, Settled, Stopped
from models import accounts, summaries, users
from models.leases.leases import EVERYBODY
from models.ledger import orders
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.shapes import replace
from tests.worlds.manager import PATIENCE_S, QUICK, Installation, eventually, lives, now_ms, with_timing
from workers.manager import loop

pytestmark = pytest.mark.slow


def signer_gone(installation: Installation) -> None:
    installation.settings.signer_socket.unlink()


def signer_locked(installation: Installation) -> None:
    installation.signer.refusal = "locked"


def signer_says_no(installation: Installation) -> None:
    installation.signer.refusal = "market"


def gateway_gone(installation: Installation) -> None:
    installation.settings.gateway_socket.unlink()


@pytest.mark.thorough_cases("signer_says_no-start_failed")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (signer_gone, "signer_unavailable"),
        (signer_locked, "signer_locked"),
        (signer_says_no, "start_failed"),
        (gateway_gone, "gateway_unavailable"),
    ],
)
async def test_a_start_is_refused_and_nothing_runs(
    database: str, tmp_path: Path, fault: Callable[[Installation], None], code: str
) -> None:
    installation = with_timing(tmp_path, sweep_s=PATIENCE_S)
    async with installation.running():
        fault(installation)
        task = installation.task()
        with pytest.raises(PeerRefused) as refused:
            await installation.start(task)
        assert refused.value.code == code
        row = installation.row(task)
        assert (row.observed, row.desired, row.last_error) == ("stopped", "running", None)
        assert installation.log_of(task) == ""


@pytest.mark.thorough
async def test_a_start_of_its_own_accord_is_tried_until_the_signer_is_unlocked(installation: Installation) -> None:
    async with installation.running():
        installation.signer.refusal = "locked"
        task = installation.task()
        installation.want(task)

        def waits() -> bool:
            row = installation.row(task)  # soon it is tried again
            return row.observed == "backoff" and row.is_running and "locked" in str(row.last_error)

        await eventually(waits)
        installation.signer.refusal = None
        await eventually(lambda: installation.row(task).observed == "running")
        assert installation.row(task).last_error is None


async def test_whoever_finds_an_absent_peer_back_wakes_all_that_wait_for_it(database: str, tmp_path: Path) -> None:
    """Each by itself would rest for longer than this test may take; one asks every second."""
    installation = with_timing(tmp_path, first_rest_s=10 * PATIENCE_S)
    waiting = [installation.task(slug) for slug in ("a", "b", "c")]

    def observed() -> set[str]:
        return {installation.row(task).observed for task in waiting}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "SELDOM_S", 10 * PATIENCE_S)
        async with installation.running():
            installation.signer.refusal = "locked"
            for task in waiting:
                installation.want(task)
            await eventually(lambda: observed() == {"backoff"})
            installation.signer.refusal = None
            await eventually(lambda: observed() == {"running"})


async def test_a_stop_ends_the_worker_also_without_signer_and_gateway(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        installation.open_order(task)
        row = installation.row(task)
        signer_gone(installation)
        gateway_gone(installation)
        answer = await installation.stop(task, drain_s=0.5)
        assert answer == Settled("stopped", 1)
        assert not lives(row.pid)
        assert installation.row(task).token > row.token
        await eventually(lambda: "cannot be cancelled" in str(installation.row(task).last_error))
        async with installation.peers():
            await eventually(lambda: not orders.count_open(task))
            await eventually(lambda: installation.row(task).last_error is None)


async def test_who_is_not_entitled_cannot_start(database: str, tmp_path: Path) -> None:
    installation = with_timing(tmp_path, sweep_s=PATIENCE_S, full_sweep_s=PATIENCE_S)
    accounts.set_plan(installation.user.id, "beta", now_ms() - 1, now_ms())
    async with installation.running():
        task = installation.task()
        with pytest.raises(PeerRefused) as refused:
            await installation.start(task)
        assert (refused.value.code, refused.value.message) == ("not_entitled", "plan expired")


async def test_when_a_plan_ends_its_tasks_are_stopped_and_drained(installation: Installation) -> None:
    async with installation.running():
        task = await installation.started()
        installation.open_order(task)
        accounts.set_plan(installation.user.id, "beta", now_ms() - 1, now_ms())
        await eventually(lambda: installation.row(task).observed == "stopped")
        row = installation.row(task)
        assert (row.desired, row.last_error) == ("stopped", "plan expired")
        await eventually(lambda: "cancel" in str(installation.signer.grants(task)[-1]["operations"]))
        await eventually(lambda: "nothing left to do" in installation.log_of(task))


async def test_who_is_not_whitelisted_any_more_is_signed_out_and_stopped(database: str, tmp_path: Path) -> None:
    installation = Installation(tmp_path, whitelist="bc1qsomebodyelse")
    users.Whitelist.create(address=installation.user.address, added_ms=1)
    async with installation.running():
        task = installation.task()
        users.open_session("hash", installation.user.id, now_ms())
        await installation.start(task)
        assert users.user_and_mark("hash", now_ms())
        users.Whitelist.delete().execute()
        await eventually(lambda: installation.row(task).observed == "stopped")
        assert installation.row(task).last_error == "address is not whitelisted any more"
        await eventually(lambda: not users.user_and_mark("hash", now_ms()))


@pytest.mark.thorough
async def test_whoever_takes_somebody_off_the_whitelist_has_it_enforced_at_once(database: str, tmp_path: Path) -> None:
    """Long before the manager would look by itself; also what had no worker at that moment is not started again."""
    installation = Installation(
        tmp_path, replace(QUICK, sweep_s=PATIENCE_S, full_sweep_s=PATIENCE_S), whitelist="bc1qsomebodyelse"
    )
    users.Whitelist.create(address=installation.user.address, added_ms=1)
    async with installation.running():
        tasks_of_it = [installation.task("cats"), installation.task("dogs"), installation.listing()]
        for task in tasks_of_it:
            await installation.start(task)
        assert await installation.ask(Enforce()) == Stopped(0)
        pids = [installation.pid(task) for task in tasks_of_it]
        installation.signer.asked.clear()
        users.Whitelist.delete().execute()
        begun = time.monotonic()

        assert await installation.ask(Enforce()) == Stopped(3)

        print(f"stopped within {time.monotonic() - begun:.2f} s")
        assert installation.signer.ops().count("revoke_place") == 3
        assert not any(map(lives, pids))
        for task in tasks_of_it:
            row = installation.row(task)
            assert (row.desired, row.observed) == ("stopped", "stopped")
            assert row.last_error == "address is not whitelisted any more"
        assert await installation.ask(Enforce()) == Stopped(0)


async def test_a_wanted_task_of_a_user_without_plan_is_set_to_stopped(installation: Installation) -> None:
    users.Subscription.delete().execute()
    async with installation.running():
        task = installation.task()
        installation.want(task)
        await eventually(lambda: installation.row(task).desired == "stopped")
        assert installation.row(task).last_error == "plan expired"
        assert summaries.count_by_observed(EVERYBODY) == {"stopped": 1}


def with_places(data_dir: Path, most: int, first_rest_s: float = 0.05) -> Installation:
    installation = with_timing(data_dir, first_rest_s=first_rest_s, refused_rest_s=PATIENCE_S)
    installation.settings = replace(installation.settings, max_workers=most)
    return installation


async def test_no_more_run_than_there_are_places_and_a_stop_frees_one(database: str, tmp_path: Path) -> None:
    installation = with_places(tmp_path, 2)
    async with installation.running():
        first, second = await installation.started("a"), await installation.started_listing()
        third = installation.task("c")
        for _ in range(2):
            with pytest.raises(PeerRefused, match="2 tasks run, as many as this installation lets") as refused:
                await installation.start(third)
            assert refused.value.code == "too_many_workers"
            installation.want(third, STOPPED)
        assert installation.row(third).pid is None
        assert installation.signer.grants(third) == [], "no right was given either"
        # Those that run may be asked again, and changed: their place is theirs.
        await installation.start(first)
        row = installation.row(first)
        tasks.change_bidding_task(row, type="ordinals", slug="a", slug_key="a", config=row.config)
        await installation.settle(first)
        assert installation.row(first).pid not in (row.pid, None)
        # An open order of a stopped task is cancelled whatever runs.
        installation.open_order(third)
        await installation.stop(third)
        await eventually(lambda: orders.count_open(third) == 0)
        await installation.stop(second)
        await installation.start(third)
        assert installation.row(third).observed == "running"


@pytest.mark.thorough
async def test_what_finds_no_place_by_itself_says_so_and_gets_one_later(database: str, tmp_path: Path) -> None:
    """As after a restart with a lower limit."""
    installation = with_places(tmp_path, 1)
    ids = [installation.task(slug) for slug in ("a", "b", "c")]
    for task in ids:
        installation.want(task)
    async with installation.running():

        def running() -> list[int]:
            return [task for task in ids if installation.row(task).observed == "running"]

        def told() -> bool:
            return sum("lets run at once" in (installation.row(task).last_error or "") for task in ids) == 2

        await eventually(lambda: len(running()) == 1 and told())
        [first] = running()
        await installation.stop(first)
        await eventually(running)
        [second] = running()
        assert second != first and installation.row(second).last_error is None


@pytest.mark.thorough
async def test_a_worker_that_failed_to_start_leaves_its_place(database: str, tmp_path: Path) -> None:
    installation = with_places(tmp_path, 1)
    async with installation.running():
        installation.signer.refusal = "market"
        task = installation.task("a")
        with pytest.raises(PeerRefused):
            await installation.start(task)
        installation.want(task, STOPPED)
        installation.signer.refusal = None
        assert await installation.started("b")


async def test_a_worker_that_died_keeps_its_place_while_it_rests(database: str, tmp_path: Path) -> None:
    installation = with_places(tmp_path, 1, first_rest_s=30.0)
    async with installation.running():
        first, other = await installation.started("a"), installation.task("b")
        os.kill(installation.pid(first), signal.SIGKILL)
        await eventually(lambda: installation.row(first).observed == "backoff")
        with pytest.raises(PeerRefused) as refused:
            await installation.start(other)
        assert refused.value.code == "too_many_workers"
        installation.want(other, STOPPED)
        await installation.start(first)
        await installation.stop(first)
        await installation.start(other)
        assert installation.row(other).observed == "running"
