"""`bidkeeper whitelist add|remove|list`: addresses that may sign in, besides those of the settings."""

from __future__ import annotations

import argparse
import time

from cli.arguments import address
from cli.migrate import migrate
from core.call import call
from core.errors import PeerError
from core.program_calls import Enforce
from core.settings import Settings
from models import accounts
from models.database import base
from models.leases.manager_places import address_at, places
from models.users import Entitlements, Whitelist

_PATIENCE_S = 60.0


def enforce(settings: Settings) -> None:
    """Has the manager stop the tasks of users who may no longer trade; returns when it has, and prints the result.

    A manager that is down runs no workers, and checks when it starts.
    """
    try:
        answers = [
            call(address_at(settings, place), "manager", Enforce(), timeout=_PATIENCE_S) for place in places(settings)
        ]
    except PeerError as error:
        print(f"the manager was not notified ({error.message}); if it runs, it stops the affected tasks within 10 s")
    else:
        print(f"{sum(answer.stopped for answer in answers)} tasks were stopped")


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds add ADDRESS [--admin] | remove ADDRESS | list."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="add|remove|list")
    add = actions.add_parser("add", help="let this address sign in")
    add.add_argument("address", type=address)
    add.add_argument("--admin", action="store_true", help="as an administrator")
    remove = actions.add_parser("remove", help="remove this address: its sessions end and its tasks stop")
    remove.add_argument("address", type=address)
    actions.add_parser("list", help="print the addresses")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Changes or prints the list. The tasks of a removed address are stopped immediately."""
    migrate(settings)
    base.connect(settings.database_url)
    try:
        if options.action == "add":
            found = accounts.find(options.address)
            is_admin = options.admin or (found is not None and found.is_admin)  # only `remove` takes that away
            accounts.put(options.address, time.time_ns() // 1_000_000, is_admin=is_admin)
            print(f"{options.address} may sign in{' as an administrator' if is_admin else ''}")
        elif options.action == "remove":
            return _remove(settings, options.address)
        else:
            for row in Whitelist.select().order_by(Whitelist.address):
                print(row.address + (" admin" if row.is_admin else ""))
    finally:
        base.close()
    return 0


def _remove(settings: Settings, address: str) -> int:
    removed = accounts.remove(Entitlements(settings), address)
    if removed.may_still:
        print(f"{address} may still sign in: the settings allow it")
        return 1
    print(f"{address} can no longer sign in" if removed.was_listed else f"{address} was not on the list")
    enforce(settings)
    return 0 if removed.was_listed else 1
