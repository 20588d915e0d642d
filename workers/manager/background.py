"""Work next to the manager's loop: background tasks, calls that would block it, and the watch over an SQLite database.

A database's file that was removed while programs have it open is found within seconds. All pages are read, also those
that no program reads: every ten minutes, or less often if that takes long. A note of the damage reaches all programs
(models/database/damage.py).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class Background:
    """Background tasks, which nothing awaits. They are held here, since the loop itself would forget them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("failed in the background", exc_info=error)

    async def cancel(self) -> None:
        """Cancels all of them and waits until they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_thread(call: Callable[[], T]) -> T:
    """Makes the call in a thread of its own, which the end of the process does not wait for; returns its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        try:
            outcome: tuple[T | None, BaseException | None] = (call(), None)
        except Exception as error:
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop was closed meanwhile: nothing waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, daemon=True).start()
    return await future
