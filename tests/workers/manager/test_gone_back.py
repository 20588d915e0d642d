"""A database that has gone back (a restored copy, a standby that lacked commits) knows lower tokens than signer and
gateway. Its tasks start again by themselves, above every token that was ever given."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from core.errors import PeerRefused
from core.program_calls import Settled
from models.ledger import orders
from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from tests.worlds.manager import PATIENCE_S, Installation, eventually, lives, with_timing
from wallet.protocol import TOKEN_JUMP
from workers.manager.rights import Rights

pytestmark = pytest.mark.slow


def go_back(task: int, token: int) -> None:
    Task.update(token=token).where(Task.id == task).execute()


@pytest.mark.thorough_cases("popen")
@pytest.mark.usefixtures("back_end")
async def test_a_wanted_task_starts_again_by_itself(installation: Installation) -> None:
    task = installation.task()
    async with installation.peers():
        for _ in range(9):
            token = tasks.raise_token(task)
        installation.signer.highest[task] = installation.gateway.least[task] = token
        go_back(task, 3)
        installation.want(task)
    async with installation.running():
        await eventually(lambda: installation.row(task).observed == RUNNING)
        row = installation.row(task)
        assert (row.token, row.last_error) == (token + 1, None)
        assert [grant["token"] for grant in installation.signer.grants(task)] == [4, token + 1]
        await eventually(lambda: installation.row(task).cycles > 1)


@pytest.mark.thorough_cases("20-20", "9-0")
@pytest.mark.parametrize(("signers", "gateways"), [(9, 20), (20, 9), (9, 0), (0, 9), (20, 20)])
async def test_its_token_is_above_what_each_of_the_two_has_seen(
    signers: int, gateways: int, installation: Installation
) -> None:
    async with installation.running():
        task = installation.task()
        installation.signer.highest[task], installation.gateway.least[task] = signers, gateways
        assert await installation.start(task) == Settled("running", 0)
        token = installation.row(task).token
        assert token == max(signers, gateways) + 1
        assert installation.signer.grants(task)[-1]["token"] == token
        assert installation.gateway.least[task] == token


async def test_open_orders_of_a_stopped_task_are_cancelled_then_too(installation: Installation) -> None:
    async with installation.running():
        task = installation.task()
        installation.open_order(task)
        installation.signer.highest[task] = 30
        await installation.stop(task)
        await eventually(lambda: orders.count_open(task) == 0)


async def test_a_manager_whose_task_another_one_has_taken_over_does_not_take_it_back(
    installation: Installation,
) -> None:
    """The database tells the two cases apart: the task's own token is newer there, so it has not gone back."""
    async with installation.peers():
        task = installation.task()
        mine, newer = tasks.raise_token(task), tasks.raise_token(task)
        installation.signer.highest[task] = newer
        rights = Rights(installation.settings, 5.0, 5.0)
        with pytest.raises(PeerRefused, match="stale-token"):
            await rights.hand_over(installation.row(task), "drain", mine, 1)
        assert installation.row(task).token == newer
        assert len(installation.signer.grants(task)) == 1


async def test_a_gateway_that_was_told_nonsense_is_not_followed(installation: Installation) -> None:
    """The signer would refuse such a token for ever (`token-jump`), and the row cannot come down again."""
    async with installation.running():
        task = installation.task()
        installation.gateway.least[task] = 2 * TOKEN_JUMP
        with pytest.raises(PeerRefused, match="restart it"):
            await installation.start(task)
        assert installation.row(task).token < 100
        installation.gateway.least[task] = 0  # it was
        await installation.start(task)
        assert installation.row(task).observed == RUNNING


async def test_a_worker_that_a_database_has_forgotten_is_stopped_for_good(installation: Installation) -> None:
    """The row's next token would be the worker's own: it could still act."""
    async with installation.running():
        task = await installation.started()
        row = installation.row(task)
        go_back(task, row.token - 1)
        await installation.stop(task)
        assert not lives(row.pid)
        assert installation.row(task).token > row.token
        assert installation.gateway.least[task] > row.token


async def test_what_a_dead_worker_sent_that_a_database_has_forgotten_is_waited_for(
    database: str, tmp_path: Path
) -> None:
    """The row's next token would be the dead worker's own, which the gateway would let through."""
    installation = with_timing(tmp_path, first_rest_s=PATIENCE_S)  # it stays dead
    async with installation.running():
        task = await installation.started()
        row = installation.row(task)
        os.kill(row.pid, signal.SIGKILL)
        await eventually(lambda: installation.row(task).observed == "backoff")
        go_back(task, row.token - 1)
        await installation.stop(task)
        assert installation.row(task).token > row.token
        assert installation.gateway.least[task] > row.token
