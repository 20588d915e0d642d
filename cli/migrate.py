"""`bidkeeper migrate`: the upgrade of the database to this version's schema."""

from __future__ import annotations

import argparse

from core.settings import Settings
from models import base, schema


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds nothing."""


def migrate(settings: Settings) -> list[str]:
    """Applies what is missing and returns its names. Raises OtherVersion."""
    base.connect(settings.database_url)
    try:
        return schema.migrate()
    finally:
        base.close()


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the migrations it applied."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    applied = migrate(settings)
    print("\n".join(f"applied {name}" for name in applied) or "the database is up to date")
    return 0
