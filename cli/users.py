"""`bidkeeper whitelist|plan`: addresses that may sign in, in addition to BIDKEEPER_WHITELIST, and the users' plans."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from cli.arguments import address
from cli.database import migrated
from core.call import call
from core.errors import PeerError
from core.program_calls import Enforce
from core.settings import Settings
from core.subscription_plans import MOST_DAYS
from models import accounts
from models.accounts import set_plan
from models.leases.manager_places import address_at, places
from models.users import DAY_MS, Entitlements, Subscription, User, Whitelist


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds add ADDRESS [--admin] | remove ADDRESS | list, or set ADDRESS PLAN [--days N] | list."""
    metavar = "add|remove|list" if verb == "whitelist" else "set|list"
    actions = parser.add_subparsers(dest="action", required=True, metavar=metavar)
    if verb == "whitelist":
        add = actions.add_parser("add", help="let this address sign in")
        add.add_argument("address", type=address)
        add.add_argument("--admin", action="store_true", help="as an administrator")
        remove = actions.add_parser("remove", help="remove this address: its sessions end and its tasks stop")
        remove.add_argument("address", type=address)
        actions.add_parser("list", help="print the addresses")
        return
    change = actions.add_parser("set", help="give a user a plan, from now on")
    change.add_argument("address", type=address, help="the address that user signs in with")
    change.add_argument("plan", help="a plan of the settings")
    days = "for how long (default: the plan's duration); 0 ends it now"
    change.add_argument("--days", type=_days, metavar="N", help=days)
    actions.add_parser("list", help="print the plans and who has them")


def _days(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_DAYS:
        raise argparse.ArgumentTypeError(f"must be 0 to {MOST_DAYS}")
    return int(text)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Changes or prints the list. Tasks of users who may no longer trade are stopped immediately."""
    with migrated(settings):
        match options.verb, options.action:
            case _, "add":
                found = accounts.find(options.address)
                is_admin = options.admin or (found is not None and found.is_admin)  # only `remove` takes it away
                accounts.put(options.address, time.time_ns() // 1_000_000, is_admin=is_admin)
                print(f"{options.address} may sign in{' as an administrator' if is_admin else ''}")
            case _, "remove":
                return _remove(settings, options.address)
            case _, "set":
                return _set_plan(settings, options)
            case "whitelist", _:
                for row in Whitelist.select().order_by(Whitelist.address):
                    print(row.address + (" admin" if row.is_admin else ""))
            case _:
                _list_plans(settings)
    return 0


def _remove(settings: Settings, address: str) -> int:
    removed = accounts.remove(Entitlements(settings), address)
    if removed.may_still:
        print(f"{address} may still sign in: the settings allow it")
        return 1
    print(f"{address} can no longer sign in" if removed.was_listed else f"{address} was not on the list")
    _enforce(settings)
    return 0 if removed.was_listed else 1


def _set_plan(settings: Settings, options: argparse.Namespace) -> int:
    if options.plan not in settings.plans:
        print(f"no such plan: {options.plan} (plans: {', '.join(sorted(settings.plans))})")
        return 1
    user = User.get_or_none(User.address == options.address)
    if user is None:
        print(f"{options.address} has not signed in yet")
        return 1
    days = settings.plans[options.plan].duration_days if options.days is None else options.days
    now_ms = time.time_ns() // 1_000_000
    set_plan(user.id, options.plan, now_ms + days * DAY_MS, now_ms)
    print(f"{user.address} has {options.plan} for {days} days")
    _enforce(settings)
    return 0


def _list_plans(settings: Settings) -> None:
    for key, plan in sorted(settings.plans.items()):
        print(f"{key}: {plan.max_tasks} tasks, {plan.max_bids_per_task} bids a task, {plan.max_exposure} sats exposure")
    for row in Subscription.select(Subscription, User).join(User).order_by(User.address):
        end = datetime.fromtimestamp(row.expires_ms / 1000, UTC)
        print(f"{row.user.address} {row.plan} until {end:%Y-%m-%dT%H:%M:%SZ}")


def _enforce(settings: Settings) -> None:
    """Has the manager stop the tasks of users who may no longer trade; waits for it, and prints the result.

    A manager that is down has no workers running, and checks this when it starts.
    """
    try:
        answers = [call(address_at(settings, place), "manager", Enforce(), timeout=60.0) for place in places(settings)]
    except PeerError as error:
        print(f"the manager was not notified ({error.message}); if it runs, it stops the affected tasks within 10 s")
    else:
        print(f"{sum(answer.stopped for answer in answers)} tasks were stopped")
