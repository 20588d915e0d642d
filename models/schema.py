"""Brings the database to the schema of this version."""

from __future__ import annotations

import logging
from pathlib import Path

from playhouse.migrations import Runner

from models.base import database

# Who migrates prints what was applied; the library's own line would be a second one.
logging.getLogger("peewee.migrations").setLevel(logging.WARNING)

_DIRECTORY = Path(__file__).parent / "migrations"


def migrate() -> list[str]:
    """Applies what is missing on the open connection and returns the names of what was applied."""
    return list(Runner(database.obj, str(_DIRECTORY)).up())


def pending() -> list[str]:
    """Names of the migrations that this version needs and the database has not seen."""
    return [row.name for row in Runner(database.obj, str(_DIRECTORY)).status() if not row.applied]
