"""One operation at a time on a task, and the moment when it gives way to the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class OperationTurns:
    """The right to change a task's worker. `askers` counts operations with a waiting client and without a turn."""

    def __init__(self) -> None:
        self.askers = 0
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()

    @property
    def is_taken(self) -> bool:
        return self._lock.locked()

    def news(self) -> None:
        """Wakes `until` up after an event that it may be waiting for."""
        self._news.set()

    @asynccontextmanager
    async def own(self) -> AsyncIterator[None]:
        """Holds a turn of the manager's own accord."""
        async with self._lock:
            yield

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[None]:
        """Holds a turn that a client waits for; the present holder learns of that."""
        self.askers += 1
        self.news()
        try:
            await self._lock.acquire()
        finally:
            self.askers -= 1
        try:
            yield
        finally:
            self._lock.release()

    async def until(
        self, done: Callable[[], bool], gives_way: Callable[[], bool], timeout_s: float | None = None
    ) -> bool:
        """Waits for `done` as the holder of the turn; returns False after `timeout_s` or when it must give way.

        Both are looked at again at each `news`.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        while not done():
            if gives_way():
                return False
            self._news.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                return done()
        return True
