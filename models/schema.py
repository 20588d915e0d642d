"""Brings the database to the schema of this version."""

from __future__ import annotations

from pathlib import Path

from playhouse.migrations import Runner

from models.base import database

_DIRECTORY = Path(__file__).parent / "migrations"


def migrate() -> list[str]:
    """Applies what is missing on the open connection and returns the names of what was applied."""
    return list(Runner(database.obj, str(_DIRECTORY)).up())


def pending() -> list[str]:
    """Names of the migrations that this version needs and the database has not seen."""
    return [row.name for row in Runner(database.obj, str(_DIRECTORY)).status() if not row.applied]
