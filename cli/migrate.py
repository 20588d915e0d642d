"""`bidkeeper migrate`: the upgrade of the database to this version's schema."""

from __future__ import annotations

import argparse

from core.settings import Settings
from models import base, schema
from models.ledger.venues_in_use import name_venues


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds nothing."""


def migrate(settings: Settings) -> list[str]:
    """Applies the missing migrations and returns their names."""
    base.connect(settings.database_url)
    try:
        applied = schema.migrate()
        name_venues(settings.market)
        return applied
    finally:
        base.close()


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the migrations it applied."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    applied = migrate(settings)
    print("\n".join(f"applied {name}" for name in applied) or "the database is up to date")
    return 0
