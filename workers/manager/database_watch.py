"""Database watch."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from models.database import base, damage
from models.database.damage import Damage, NotRead
from models.database.sqlite import Sqlite
from workers.manager.loop import in_thread

log = logging.getLogger(__name__)

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
