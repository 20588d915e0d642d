"""Brings the database to the schema of this version."""

from __future__ import annotations

import logging
from pathlib import Path

from playhouse.migrations import Runner

from core.errors import BidkeeperError
from models.base import database

# Who migrates prints what was applied; the library's own line would be a second one.
logging.getLogger("peewee.migrations").setLevel(logging.WARNING)

_DIRECTORY = Path(__file__).parent / "migrations"


class OtherVersion(BidkeeperError):
    """The database is another version's, which this one can neither use nor bring to its own schema."""


def migrate() -> list[str]:
    """Applies what is missing on the open connection and returns the names of what was applied.

    Raises OtherVersion for a database that this version must not touch; then nothing was changed.
    """
    if names := foreign():
        raise OtherVersion(
            f"the database was made by another version of Bidkeeper (migrations {', '.join(names)}): run that version,"
            " or put the whole data directory aside, with the keys in it, and begin with an empty one"
        )
    return list(Runner(database.obj, str(_DIRECTORY)).up())


def pending() -> list[str]:
    """Names of the migrations that this version needs and the database has not seen."""
    return [row.name for row in Runner(database.obj, str(_DIRECTORY)).status() if not row.applied]


def foreign() -> list[str]:
    """Names of migrations that the database has seen and this version does not have."""
    return [row.name for row in Runner(database.obj, str(_DIRECTORY)).status() if row.path is None]
