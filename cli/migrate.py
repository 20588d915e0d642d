"""`bidkeeper migrate`: the upgrade of the database to this version's schema, once it is known to be intact."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.arguments import up_to
from core import version
from core.errors import BidkeeperError
from core.process import hold_lock
from core.settings import MOST_SLOTS, Settings
from models import schema
from models.database import base, damage
from models.database.base import is_postgresql
from models.database.damage import NotRead
from models.leases import leases


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds --slots N."""
    text = "number of slots to divide the users into, each with its own manager; stop all managers first"
    parser.add_argument("--slots", type=up_to(MOST_SLOTS), help=text)


def migrate(settings: Settings, slots: int | None = None) -> list[str]:
    """Applies what is missing and returns its names; `slots` sets their number, if given.

    Raises OtherVersion and CannotChangeSlots.
    """
    base.connect(settings.database_url)
    try:
        applied = schema.migrate(version.running)
        if slots is not None:
            leases.set_slots(slots)
        return applied
    finally:
        base.close()


@contextmanager
def migrated(settings: Settings) -> Iterator[None]:
    """Opens the database for the block, at this version's schema. Raises OtherVersion."""
    migrate(settings)
    base.connect(settings.database_url)
    try:
        yield
    finally:
        base.close()


def check_database(settings: Settings, *, of_up: bool = False) -> None:
    """Reads every page of an SQLite database before anything runs on it. `of_up`: the caller holds the lock of `up`.

    Raises BidkeeperError for a damaged database, and for one that cannot be read: then its note stays.
    """
    if is_postgresql(settings.database_url):
        return
    path = settings.database_url.removeprefix("sqlite:///")
    known = damage.known(path)
    if known is not None and known.is_lost and _is_running(settings, of_up=of_up):
        raise BidkeeperError(f"{known.text}: stop Bidkeeper first, since its programs still have the former file")
    try:
        fault = damage.fault_at_start(path)
    except NotRead as error:
        raise BidkeeperError(f"{error}; stop what else uses it, or let this user read it and make room") from None
    if fault:
        raise BidkeeperError(f"the database {path} is damaged: {fault}; {damage.remedy(path)}")
    if missing := missing_with_logs(settings):
        anew = f"to begin anew with the keys that are here, put {settings.log_dir}/task-*.log and {path}* aside"
        raise BidkeeperError(f"the database {path} is {missing}; {damage.remedy(path)}; {anew}")
    damage.remove_note(path)


def missing_with_logs(settings: Settings) -> str:
    """Returns the words for an SQLite database that is missing or empty although tasks have run; "" for any other."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    if not damage.is_missing(str(path)) or not any(settings.log_dir.glob("task-*.log")):
        return ""
    return f"{'empty' if path.exists() else 'missing'}, and tasks have run here"


def _is_running(settings: Settings, *, of_up: bool) -> bool:
    """Tells whether a program holds its lock that may have the database open; `of_up` leaves the lock of `up` out."""
    patterns = ("manager*.lock", "hooks.lock", "task-*.lock", *(() if of_up else ("up.lock",)))
    for path in (path for pattern in patterns for path in settings.run_dir.glob(pattern)):
        lock = hold_lock(path)
        if lock is None:
            return True
        os.close(lock)
    return False


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the migrations it applied."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_database(settings)
    applied = migrate(settings, options.slots)
    print("\n".join(f"applied {name}" for name in applied) or "the database is up to date")
    if options.slots is not None:
        print(f"slots: {options.slots}")
    return 0
