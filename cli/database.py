"""`bidkeeper database copy --to URL`: all that the database holds, into an empty one of the same kind or the other."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import BidkeeperError
from core.process import hold_lock
from core.setting_values import database as read_address
from core.settings import Settings
from core.untrusted import NotText, read_text
from models import schema
from models.database.base import place
from models.leases import leases
from models.leases.held_lease import HeldLease, claim


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds copy --to URL | --to-file FILE."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="copy")
    copy = actions.add_parser("copy", help="copy everything into an empty database; the service must be stopped")
    target = copy.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--to", type=_address, help="the new address: sqlite:///FILE or postgresql://...", metavar="URL"
    )
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
    """Copies, and prints how many rows of each table, and what is to be set then."""
    settings.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _nobody_else(settings, options.to):
        copied = schema.copy(settings.database_url, options.to)
    for table, rows in copied:
        print(f"{table}: {rows}")
    print(f"copied and compared. To use it, set BIDKEEPER_DATABASE_URL to the address of {place(options.to)}")
    return 0


@contextmanager
def _nobody_else(settings: Settings, target: str) -> Iterator[None]:
    """Keeps manager and hooks of both databases from running for the block. Raises BidkeeperError when one runs."""
    held: list[int] = []
    taken: list[HeldLease] = []
    names = {url: leases.names_at(url) for url in (settings.database_url, target)}
    # A lease that a program of this directory holds is given to us, too, so its lock comes first.
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
                taken.append(
                    # Copying takes as long as it takes, and gives no sign of life.
                    claim(url, name, holder, settings.lease_seconds, waits=False, kind=kind, silent_s=math.inf)
                )
        yield
    finally:
        for lease in taken:
            lease.release()
        for lock in held:
            os.close(lock)
