"""The manager's watch over an SQLite database: files that were removed, and pages that cannot be read.

A file that was removed while programs have it open is found within seconds. All pages are read, also those that no
program reads: every ten minutes, or less often if that takes long. A note of the damage reaches all programs
(models/database/damage.py).
"""

from __future__ import annotations

import logging
import os
import threading
import time

from models import base
from models.database import damage
from models.database.damage import Damage
from models.database.sqlite import Sqlite
from workers.manager.background import in_thread

log = logging.getLogger(__name__)

_PAGES_EVERY_S = 600.0
_MOST_SHARE = 0.01  # of the time in which pages are read
_NICENESS = 10


class DatabaseWatch:
    """Use it in the manager's loop, with its connection open. The first look reads all pages."""

    def __init__(self) -> None:
        self._pages_due = time.monotonic()
        self._was_saved = False
        self._told: Damage | None = None

    async def look(self) -> None:
        """Looks for removed files and saves what they hold, and now and then reads every page."""
        found = base.look_for_damage()
        if found is not None and found != self._told:
            log.critical("the database is damaged: %s; nothing new is placed", found.text)
            self._told = found
        if found is not None and found.is_lost:
            self._save()
        elif time.monotonic() >= self._pages_due:
            database, began = base.database.obj, time.monotonic()
            if not isinstance(database, Sqlite):
                return
            fault = await in_thread(lambda: _unhurried(database))
            took_s = time.monotonic() - began
            self._pages_due = time.monotonic() + max(_PAGES_EVERY_S, took_s / _MOST_SHARE)
            if fault:
                damage.write_note(database.file, Damage(fault))

    def _save(self) -> None:
        """Saves what a removed file holds, for as long as this process has it open."""
        copy = base.database.obj.save_lost()
        if copy:
            log.critical("the database was removed: this program still had it, and has copied it to %s", copy)
        elif not self._was_saved:
            log.critical("what was committed to the removed file is saved in the database; restart Bidkeeper soon")
        self._was_saved = True


def _unhurried(database: Sqlite) -> str:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
    return database.fault()
