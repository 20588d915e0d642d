"""Work next to the manager's loop: background tasks, calls that would block it, and the watch over an SQLite database.

A database's file that was removed while programs have it open is found within seconds. All pages are read, also those
that no program reads: every ten minutes, or less often if that takes long. A note of the damage reaches all programs
(models/database/damage.py).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from models.database import base, damage
from models.database.base import Sqlite
from models.database.damage import Damage, NotRead

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


_PAGES_EVERY_S = 600.0
_MOST_SHARE = 0.01  # of the time in which pages are read
_NICENESS = 10


class DatabaseWatch:
    """Use it in the manager's loop, with its connection open. The first reading of all pages is due immediately."""

    def __init__(self) -> None:
        self._pages_due = time.monotonic()
        self._is_copied = False
        self._was_saved = False
        self._told: Damage | None = None

    async def look_for_files(self) -> None:
        """Looks for removed files and saves what they hold."""
        found = base.look_for_damage()
        if found is not None and found != self._told:
            log.critical("the database is damaged: %s; nothing new is placed", found.text)
            self._told = found
        if found is not None and found.is_lost:
            await self._save()

    async def read_pages(self) -> None:
        """Reads every page in a thread, if that is due, unless a file is lost."""
        database = base.database.obj
        if not isinstance(database, Sqlite) or time.monotonic() < self._pages_due:
            return
        if (found := database.damage()) is not None and found.is_lost:
            return
        began = time.monotonic()
        try:
            fault = await in_thread(lambda: _unhurried(database.fault))
        except NotRead as error:
            log.warning("%s", error)
            fault = ""
        took_s = time.monotonic() - began
        self._pages_due = time.monotonic() + max(_PAGES_EVERY_S, took_s / _MOST_SHARE)
        if fault:
            damage.write_note(database.file, Damage(fault))

    async def _save(self) -> None:
        """Saves what a removed file holds, for as long as this process has it open: a removed database once."""
        copy = base.database.obj.save_lost()
        if copy is None:
            self._is_copied = False  # the database is at its path, and may be removed again
            if not self._was_saved:
                log.critical("what was committed to the removed file is saved in the database; restart Bidkeeper soon")
            self._was_saved = True
        elif not self._is_copied:
            fault = await in_thread(copy)
            self._is_copied = True
            log.critical(
                "the database was removed: this program still had it, and has copied it to %s.saved%s",
                base.database.obj.file,
                f", which is damaged: {fault}" if fault else "",
            )


def _unhurried(call: Callable[[], str]) -> str:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
    return call()
