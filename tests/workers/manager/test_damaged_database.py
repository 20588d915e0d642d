"""The manager over a damaged SQLite database, with real processes: notes, copies, and tasks without a worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused
from core.program_calls import Ping
from models.database import damage
from models.database.base import Sqlite
from models.tasks import tasks
from strategy.config.bid import BidConfig, dump_bid_config
from tests import postgresql
from tests.worlds.manager import PATIENCE_S, eventually, lives, with_timing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("back_end"),
    postgresql.left_out("its files are its server's"),
]


async def test_a_lost_wal_is_noted_its_commits_are_saved_and_no_worker_follows(database: str, tmp_path: Path) -> None:
    installation = with_timing(tmp_path, files_s=0.1)
    file = database.removeprefix("sqlite:///")
    async with installation.running():
        task = await installation.started()
        Path(f"{file}-wal").unlink()
        await eventually(lambda: damage.known(file) is not None)
        another = installation.task(slug="another")
        with pytest.raises(PeerRefused, match=r"bidkeeper\.db-wal was removed"):
            await installation.start(another)
        token = installation.row(another).token
        await eventually(lambda: _stored_token(file, another) == token)
        await installation.stop(task)


async def test_a_worker_is_not_restarted_while_a_file_is_lost(database: str, tmp_path: Path) -> None:
    installation = with_timing(tmp_path, files_s=0.1)
    file = database.removeprefix("sqlite:///")
    async with installation.running():
        task, dead = await installation.started(), await installation.started("dogs")
        pid = installation.pid(task)
        Path(f"{file}-wal").unlink()
        tasks.change_bidding_task(installation.row(task), **_columns("cats", hardcap_sats=50_000))
        with pytest.raises(PeerRefused) as refused:  # before the watch has looked, too
            await installation.settle(task)
        assert refused.value.code == "database_damaged"
        with contextlib.suppress(ProcessLookupError):  # a worker that opens the database only now has ended
            os.kill(installation.pid(dead), signal.SIGKILL)
        await eventually(lambda: installation.row(dead).last_error_code == "database_damaged")
        assert installation.manager is not None
        assert installation.manager._unwatched() == [dead]
        await asyncio.sleep(0.5)  # some sweeps
        assert (installation.pid(task), lives(pid)) == (pid, True)
        await installation.stop(task)
        assert not lives(pid)


async def test_a_task_over_a_broken_page_is_unwatched_only_while_its_start_fails(database: str, tmp_path: Path) -> None:
    installation = with_timing(tmp_path, first_rest_s=PATIENCE_S)
    async with installation.running():
        task, dead = await installation.started(), await installation.started("dogs")
        assert installation.manager is not None
        os.kill(installation.pid(dead), signal.SIGKILL)
        await eventually(lambda: installation.row(dead).observed == "backoff")
        assert installation.manager._unwatched() == []
        damage.write_note(database.removeprefix("sqlite:///"), damage.Damage("page 9"))
        assert installation.manager._unwatched() == [dead]
        tasks.change_bidding_task(installation.row(task), **_columns("cats", hardcap_sats=50_000))
        pid = installation.pid(task)
        assert (await installation.settle(task)).observed == "running"
        assert installation.pid(task) != pid


def _columns(slug: str, **config: int) -> dict[str, Any]:
    text = dump_bid_config(BidConfig(slug=slug, bid_mode="fixed", **config))
    return {"type": "ordinals", "slug": slug, "slug_key": slug, "config": text}


def _stored_token(file: str, task: int) -> int | None:
    """Returns the token in the database's own file, without its WAL."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as copy:
        found = copy.execute("SELECT token FROM tasks WHERE id = ?", [task]).fetchone()
    return found and int(found[0])


async def test_a_broken_page_that_nothing_reads_is_noted(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = with_timing(tmp_path, files_s=0.1)
    file = database.removeprefix("sqlite:///")
    monkeypatch.setattr(Sqlite, "fault", lambda _: "Tree 9 page 9: btreeInitPage() returns error code 11")
    async with installation.running():
        await eventually(lambda: damage.known(file) is not None)
    found = damage.known(file)
    assert found is not None
    assert (found.is_lost, "page 9" in found.text) == (False, True)


async def test_a_removed_database_is_copied_while_the_manager_answers_and_pages_are_read(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = with_timing(tmp_path, files_s=0.1)
    file = database.removeprefix("sqlite:///")
    copying, reading, goes_on, save = threading.Event(), threading.Event(), threading.Event(), damage.save_open

    def slow_save(*given: Any) -> str:
        copying.set()
        goes_on.wait(PATIENCE_S)
        return save(*given)

    def slow_fault(_: Sqlite) -> str:
        reading.set()
        goes_on.wait(PATIENCE_S)
        return ""

    monkeypatch.setattr(damage, "save_open", slow_save)
    monkeypatch.setattr(Sqlite, "fault", slow_fault)
    async with installation.running():
        task = installation.task()
        await eventually(reading.is_set, "the reading of all pages")
        Path(file).unlink()
        await eventually(copying.is_set, "the copy, during a reading of all pages")
        assert (await installation.ask(Ping())).state
        goes_on.set()
        await eventually(Path(f"{file}.saved").exists)
    with closing(sqlite3.connect(f"file:{file}.saved?mode=ro&immutable=1", uri=True)) as copy:
        assert copy.execute("SELECT count(*) FROM tasks WHERE id = ?", [task]).fetchone() == (1,)
