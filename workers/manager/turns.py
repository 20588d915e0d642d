"""One operation at a time on a task, and when the present one gives way to the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class OperationTurns:
    """Who may change a task's worker. `askers` counts those with somebody waiting for them, who have no turn yet."""

    def __init__(self) -> None:
        self.askers = 0
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()

    @property
    def is_taken(self) -> bool:
        return self._lock.locked()

    def news(self) -> None:
        """Something happened that `until` may be waiting for."""
        self._news.set()

    @asynccontextmanager
    async def own(self) -> AsyncIterator[None]:
        """A turn of the manager's own accord."""
        async with self._lock:
            yield

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[None]:
        """A turn that somebody waits for; whoever has it now learns of that."""
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
        """For the holder of the turn: waits for `done`; False after `timeout_s` or when it is to give way.

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
