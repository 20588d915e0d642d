"""The spawners: their reports of ends, and the fate of a zygote that dies, hangs or has to go."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.settings import Settings, load
from tests.workers.spawning.exiting import ABORTED, EXITS_WITH_TEXT, KILLED, LIVES, RAISES
from tests.worlds.manager import descriptors, eventually, lives
from workers.kernel import EXIT_UNKNOWN
from workers.spawning import spawner as zygote_spawner
from workers.spawning.spawner import Handle, PopenSpawner, Spawner, ZygoteSpawner

pytestmark = pytest.mark.slow

EXITING = (sys.executable, str(Path(__file__).with_name("exiting.py")))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({"BIDKEEPER_DATA_DIR": str(tmp_path), "BIDKEEPER_CONFIG": os.devnull})


@asynccontextmanager
async def opened(spawner: Spawner) -> AsyncIterator[None]:
    spawner.open()
    try:
        yield
    finally:
        await spawner.close()


def zygote_of(settings: Settings, kind: str = "zygote") -> ZygoteSpawner:
    return ZygoteSpawner(settings, (*EXITING, kind))


async def ended(handle: Handle) -> int:
    await eventually(lambda: handle.poll() is not None, "the end of a worker")
    status = handle.poll()
    assert status is not None
    assert not lives(handle.pid)
    handle.close()
    return status


@pytest.mark.thorough_cases("popen")
@pytest.mark.parametrize("back_end", ["zygote", "popen"])
async def test_how_a_worker_ended_is_told_alike(settings: Settings, back_end: str) -> None:
    expected = {
        0: 0,
        1: 1,
        3: 3,
        255: 255,
        KILLED: -signal.SIGKILL,
        ABORTED: -signal.SIGTERM,
        RAISES: 1,
        EXITS_WITH_TEXT: 1,
    }
    spawner = PopenSpawner(settings, EXITING) if back_end == "popen" else zygote_of(settings)
    async with opened(spawner):
        handles = {task: await spawner.start("bidder", task, 1, "") for task in expected}
        assert {task: await ended(handle) for task, handle in handles.items()} == expected


async def test_a_signal_reaches_the_worker_and_its_end_is_told(settings: Settings) -> None:
    spawner = zygote_of(settings)
    async with opened(spawner):
        handle = await spawner.start("bidder", LIVES, 1, "")
        assert handle.poll() is None
        await eventually(lambda: os.getsid(handle.pid) == handle.pid)
        handle.signal(signal.SIGUSR1)
        assert await ended(handle) == -signal.SIGUSR1


async def test_a_dead_zygotes_workers_end_unknown_and_another_zygote_follows(settings: Settings) -> None:
    spawner = zygote_of(settings)
    async with opened(spawner):
        handle = await spawner.start("bidder", LIVES, 1, "")
        told = await spawner.start("bidder", 5, 1, "")
        assert await ended(told) == 5
        first = spawner.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        # A stub's worker has no life line and no PDEATHSIG: it is killed after a while.
        assert await ended(handle) == EXIT_UNKNOWN
        after = await spawner.start("bidder", 3, 1, "")
        assert await ended(after) == 3
        assert spawner.pid != first


async def test_a_second_thread_in_the_zygote_forbids_the_fork_and_brings_a_new_zygote(settings: Settings) -> None:
    spawner = zygote_of(settings, "threaded-at-first")
    async with opened(spawner):
        with pytest.raises(OSError, match="2 threads"):
            await spawner.start("bidder", 3, 1, "")
        first = spawner.pid
        await eventually(lambda: spawner.pid not in (first, None))
        await eventually(lambda: not lives(first))
        assert await ended(await spawner.start("bidder", 3, 1, "")) == 3


async def test_a_new_zygote_takes_over_and_the_old_one_ends_with_its_last_worker(settings: Settings) -> None:
    spawner = zygote_of(settings)
    async with opened(spawner):
        old = await spawner.start("bidder", LIVES, 1, "")
        first = spawner.pid
        spawner.renew()
        await eventually(lambda: spawner.pid != first)
        new = await spawner.start("bidder", LIVES, 1, "")
        assert lives(first) and lives(old.pid)
        assert (parent(old.pid), parent(new.pid)) == (first, spawner.pid)
        old.signal(signal.SIGKILL)
        assert await ended(old) == -signal.SIGKILL
        await eventually(lambda: not lives(first))
        assert new.poll() is None
        new.signal(signal.SIGKILL)
        assert await ended(new) == -signal.SIGKILL


async def test_a_stopped_zygote_is_replaced_and_forks_nothing_when_it_goes_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawner = zygote_of(settings)
    async with opened(spawner):
        handle = await spawner.start("bidder", LIVES, 1, "")
        first = spawner.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        with monkeypatch.context() as hurried:
            hurried.setattr(zygote_spawner, "_ANSWER_S", 0.3)
            with pytest.raises(OSError, match="did not answer"):
                await spawner.start("bidder", LIVES, 1, "")
        assert await ended(await spawner.start("bidder", 3, 1, "")) == 3
        assert handle.poll() is None, "it goes on without its parent"
        monkeypatch.setattr(zygote_spawner, "_STATUS_S", 0.3)
        handle.signal(signal.SIGKILL)
        assert await ended(handle) == EXIT_UNKNOWN
        os.kill(first, signal.SIGCONT)
        await eventually(lambda: not lives(first))
        assert not children(first)


async def test_a_start_that_nobody_waits_for_leaves_no_worker(settings: Settings) -> None:
    spawner = zygote_of(settings)
    async with opened(spawner):
        assert await ended(await spawner.start("bidder", 0, 1, "")) == 0
        before = len(descriptors("self"))
        for _ in range(10):
            start = asyncio.create_task(spawner.start("bidder", LIVES, 1, ""))
            await asyncio.sleep(0)
            start.cancel()
        await eventually(lambda: not children(spawner.pid) and len(descriptors("self")) == before)


async def test_without_a_zygote_a_start_fails_after_a_while(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zygote_spawner, "_READY_S", 0.5)
    spawner = zygote_of(settings, "never-ready")
    async with opened(spawner):
        with pytest.raises(OSError, match="no zygote"):
            await spawner.start("bidder", 3, 1, "")
        assert not spawner.is_ready


async def test_closing_leaves_no_process_and_no_descriptor(settings: Settings) -> None:
    before = descriptors("self")
    spawner = zygote_of(settings)
    async with opened(spawner):
        assert await ended(await spawner.start("bidder", 0, 1, "")) == 0
        pid = spawner.pid
    assert not lives(pid)
    assert descriptors("self") == before


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid: int | None) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if parent(int(entry.name)) == pid:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
