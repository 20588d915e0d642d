"""Wakes of a worker by its manager: when the signal is sent, and how often."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from workers.kernel import WAKE
from workers.manager import child as module
from workers.manager.child import Child


class FakeHandle:
    """A process whose signals are noted with their times on the loop's clock."""

    pid = start_time = 1

    def __init__(self) -> None:
        self.status_fd, self.status_end = os.pipe2(os.O_NONBLOCK)
        self.pidfd, self.pid_end = os.pipe2(os.O_NONBLOCK)
        self.sent: list[tuple[signal.Signals, float]] = []
        self.ended: int | None = None

    def poll(self) -> int | None:
        return self.ended

    def signal(self, number: signal.Signals) -> None:
        self.sent.append((number, asyncio.get_running_loop().time()))

    def close(self) -> None:
        pass

    def close_all(self) -> None:
        for fd in (self.status_fd, self.status_end, self.pidfd, self.pid_end):
            os.close(fd)


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHandle]:
    monkeypatch.setattr(module, "_LEAST_WAKE_S", 0.5)
    found = FakeHandle()
    yield found
    found.close_all()


def watched(handle: FakeHandle) -> Child:
    how: dict[str, Any] = {"token": 1, "revision": 1, "cycles_before": 0, "silent_s": 60.0, "rights_end_ms": 0}
    return Child(handle, kind="bidder", on_news=lambda: None, **how)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - by a descriptor or a timer
            await asyncio.sleep(0.01)


async def locked(handle: FakeHandle) -> Child:
    child = watched(handle)
    os.write(handle.status_end, b"locked\n")
    await until(lambda: child.has_lock)
    return child


async def test_worker_without_its_lock_is_not_woken(handle: FakeHandle) -> None:
    """Its handler may not be there yet, and the signal would end it."""
    watched(handle).wake()
    await asyncio.sleep(0.05)
    assert handle.sent == []


async def test_wake_is_sent_once_the_lock_is_held(handle: FakeHandle) -> None:
    child = await locked(handle)
    child.wake()
    await until(lambda: bool(handle.sent))
    assert [number for number, _ in handle.sent] == [WAKE]


async def test_wakes_right_after_one_are_one_more_when_its_time_has_come(handle: FakeHandle) -> None:
    """None is left out: a limit that changed after the first signal is seen by the cycle after the second."""
    child = await locked(handle)
    child.wake()
    await until(lambda: len(handle.sent) == 1)
    for _ in range(20):
        child.wake()
    await until(lambda: len(handle.sent) == 2)
    await asyncio.sleep(0.6)
    (_, first), (_, second) = handle.sent
    assert second - first >= 0.45


async def test_worker_that_has_ended_is_not_signalled(handle: FakeHandle) -> None:
    child = await locked(handle)
    handle.ended = 0
    child.look_for_end()
    child.wake()
    await asyncio.sleep(0.05)
    assert handle.sent == []
