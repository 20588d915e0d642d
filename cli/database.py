"""`bidkeeper migrate|database`: upgrades the schema to this version, or copies the database into an empty one."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.arguments import up_to
from core import version
from core.errors import BidkeeperError
from core.fields import NotText, read_text
from core.process import hold_lock
from core.setting_values import database as read_address
from core.settings import MOST_SLOTS, Settings
from models import schema
from models.database import base, damage
from models.database.base import is_postgresql, place
from models.database.damage import NotRead
from models.leases import leases
from models.leases.held_lease import HeldLease, claim


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds --slots N, or copy --to URL | --to-file FILE."""
    if verb == "migrate":
        text = "number of slots to divide the users into, each with its own manager; stop all managers first"
        parser.add_argument("--slots", type=up_to(MOST_SLOTS), help=text)
        return
    actions = parser.add_subparsers(dest="action", required=True, metavar="copy")
    copy = actions.add_parser("copy", help="copy everything into an empty database; the service must be stopped")
    target = copy.add_mutually_exclusive_group(required=True)
    text = "the new address: sqlite:///FILE or postgresql://..."
    target.add_argument("--to", type=_address, help=text, metavar="URL")
    target.add_argument("--to-file", type=_address_in, dest="to", help="a file that holds the address", metavar="FILE")


def _address(text: str) -> str:
    try:
        found = read_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not found:
        raise argparse.ArgumentTypeError("must not be empty")
    return found


def _address_in(name: str) -> str:
    try:
        return _address(read_text(Path(name)).strip())
    except NotText as error:
        raise argparse.ArgumentTypeError(f"{name} {error}") from None
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name} cannot be read: {error.strerror}") from None


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the applied migrations, or the number of rows copied per table and the settings to change."""
    if options.verb == "database":
        return _copy(settings, options.to)
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_database(settings)
    applied = migrate(settings, options.slots)
    print("\n".join(f"applied {name}" for name in applied) or "the database is up to date")
    if options.slots is not None:
        print(f"slots: {options.slots}")
    return 0


def migrate(settings: Settings, slots: int | None = None) -> list[str]:
    """Applies the missing migrations and returns their names. `slots` sets the number of slots, if given.

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
    """Reads every page of an SQLite database before a program uses it. `of_up`: the caller holds the lock of `up`.

    Raises BidkeeperError if the database is damaged or cannot be read; an unreadable one keeps its note of damage.
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
    """Describes an SQLite database that is missing or empty although tasks have run; "" for any other database."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    if not damage.is_missing(str(path)) or not any(settings.log_dir.glob("task-*.log")):
        return ""
    return f"{'empty' if path.exists() else 'missing'}, and tasks have run here"


def _is_running(settings: Settings, *, of_up: bool) -> bool:
    """Returns True if a program that uses the database is running. `of_up` ignores the lock of `up`."""
    patterns = ("manager*.lock", "hooks.lock", "task-*.lock", *(() if of_up else ("up.lock",)))
    for path in (path for pattern in patterns for path in settings.run_dir.glob(pattern)):
        lock = hold_lock(path)
        if lock is None:
            return True
        os.close(lock)
    return False


def _copy(settings: Settings, target: str) -> int:
    settings.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _kept_stopped(settings, target):
        copied = schema.copy(settings.database_url, target)
    for table, rows in copied:
        print(f"{table}: {rows}")
    print(f"copied and compared. To use it, set BIDKEEPER_DATABASE_URL to the address of {place(target)}")
    return 0


@contextmanager
def _kept_stopped(settings: Settings, target: str) -> Iterator[None]:
    """Stops managers and hooks of both databases from starting during the block. Raises BidkeeperError if one runs."""
    held: list[int] = []
    taken: list[HeldLease] = []
    names = {url: leases.names_at(url) for url in (settings.database_url, target)}
    # The locks come first, because a lease that a program of this directory holds would be given to us as well.
    managers = [settings.manager_file("lock", slot) for slot in (None, *range(max(map(len, names.values()))))]
    try:
        for path in (*managers, settings.run_dir / "hooks.lock"):
            lock = hold_lock(path)
            if lock is None:
                raise BidkeeperError(f"the service runs in {settings.data_dir} ({path.stem}): stop it first")
            held.append(lock)
        for url in names:
            for name in names[url]:
                kind = name if name == leases.HOOKS else f"manager of {name}"
                holder = leases.holder_in(settings.run_dir)
                # A copy takes any time and renews no lease meanwhile.
                lease = claim(url, name, holder, settings.lease_seconds, waits=False, kind=kind, silent_s=math.inf)
                taken.append(lease)
        yield
    finally:
        for lease in taken:
            lease.release()
        for lock in held:
            os.close(lock)
