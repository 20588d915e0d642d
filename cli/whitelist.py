"""`bidkeeper whitelist add|remove|list`: addresses that may sign in, besides those of the settings."""

from __future__ import annotations

import argparse
import time

from cli import entitlements
from cli.migrate import migrate
from core.settings import Settings
from models import base, sessions
from models.users import User, Whitelist
from wallet.address import AddressError, sign_in_address


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds add ADDRESS [--admin] | remove ADDRESS | list."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="add|remove|list")
    add = actions.add_parser("add", help="let this address sign in")
    add.add_argument("address", type=_address)
    add.add_argument("--admin", action="store_true", help="as an administrator")
    remove = actions.add_parser("remove", help="take that back: its sessions end, its tasks stop")
    remove.add_argument("address", type=_address)
    actions.add_parser("list", help="print them")


def _address(text: str) -> str:
    try:
        return sign_in_address(text)
    except AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Changes or prints the list. The tasks of a removed address are stopped at once."""
    migrate(settings)
    base.connect(settings.database_url)
    try:
        if options.action == "add":
            now_ms = time.time_ns() // 1_000_000
            Whitelist.insert(address=options.address, is_admin=options.admin, added_ms=now_ms).on_conflict(
                conflict_target=[Whitelist.address], preserve=[Whitelist.is_admin, Whitelist.added_ms]
            ).execute()
            print(f"{options.address} may sign in")
        elif options.action == "remove":
            return _remove(settings, options.address)
        else:
            for row in Whitelist.select().order_by(Whitelist.address):
                print(row.address + (" admin" if row.is_admin else ""))
    finally:
        base.close()
    return 0


def _remove(settings: Settings, address: str) -> int:
    removed = Whitelist.delete().where(Whitelist.address == address).execute()
    if {address, "*"} & (settings.whitelist | settings.admins):
        print(f"{address} may still sign in: the settings allow it")
        return 1
    user = User.get_or_none(User.address == address)
    if user:
        sessions.end_sessions(user.id)
    print(f"{address} may not sign in any more" if removed else f"{address} was not on the list")
    entitlements.enforce(settings)
    return 0 if removed else 1
