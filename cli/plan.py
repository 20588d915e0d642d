"""`bidkeeper plan set|list`: the users' plans and their ends."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from cli import whitelist
from cli.arguments import address
from cli.migrate import migrate
from core.settings import Settings
from core.subscription_plans import MOST_DAYS
from models.accounts import set_plan
from models.database import base
from models.users import DAY_MS, Subscription, User


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds set ADDRESS PLAN [--days N] | list."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="set|list")
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
    """Changes or prints plans. The tasks of an ended plan are stopped immediately."""
    migrate(settings)
    base.connect(settings.database_url)
    try:
        return _set(settings, options) if options.action == "set" else _list(settings)
    finally:
        base.close()


def _set(settings: Settings, options: argparse.Namespace) -> int:
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
    whitelist.enforce(settings)
    return 0


def _list(settings: Settings) -> int:
    for key, plan in sorted(settings.plans.items()):
        print(f"{key}: {plan.max_tasks} tasks, {plan.max_bids_per_task} bids a task, {plan.max_exposure} sats exposure")
    for row in Subscription.select(Subscription, User).join(User).order_by(User.address):
        end = datetime.fromtimestamp(row.expires_ms / 1000, UTC)
        print(f"{row.user.address} {row.plan} until {end:%Y-%m-%dT%H:%M:%SZ}")
    return 0
