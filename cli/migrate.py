"""`bidkeeper migrate`: the upgrade of the database to this version's schema."""

from __future__ import annotations

import argparse

from core import version
from core.settings import MOST_SLOTS, Settings
from models import base, schema
from models.leases import leases


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds --slots N."""
    parser.add_argument(
        "--slots",
        type=_slots,
        help="number of slots to divide the users into, each with its own manager; stop all managers first",
    )


def _slots(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_SLOTS:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_SLOTS}")


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


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the migrations it applied."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    applied = migrate(settings, options.slots)
    print("\n".join(f"applied {name}" for name in applied) or "the database is up to date")
    if options.slots is not None:
        print(f"slots: {options.slots}")
    return 0
