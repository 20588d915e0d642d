"""The upgrade of the database to this version's schema."""

from __future__ import annotations

import logging
from pathlib import Path

from playhouse.migrations import Runner

from core.errors import BidkeeperError
from models.base import database

# The caller prints the applied migrations; the library's own line would be a second one.
logging.getLogger("peewee.migrations").setLevel(logging.WARNING)

_DIRECTORY = Path(__file__).parent / "migrations"


class OtherVersion(BidkeeperError):
    """A database of another version, which this one can neither use nor bring to its own schema."""


def migrate() -> list[str]:
    """Applies the missing migrations on the open connection and returns their names.

    Raises OtherVersion for a database that this version must not touch; then nothing was changed.
    """
    _refuse_foreign()
    return list(Runner(database.obj, str(_DIRECTORY)).up())


def check() -> None:
    """Raises OtherVersion unless the database has this version's schema."""
    _refuse_foreign()
    if missing := pending():
        raise OtherVersion(f"the database lacks {', '.join(missing)}: run `bidkeeper migrate`")


def pending() -> list[str]:
    """Returns the names of the migrations that this version needs and the database lacks."""
    return [row.name for row in Runner(database.obj, str(_DIRECTORY)).status() if not row.applied]


def foreign() -> list[str]:
    """Returns the names of migrations in the database that this version does not have."""
    return [row.name for row in Runner(database.obj, str(_DIRECTORY)).status() if row.path is None]


def _refuse_foreign() -> None:
    if names := foreign():
        raise OtherVersion(
            f"the database was made by another version of Bidkeeper (migrations {', '.join(names)}): run that version,"
            " or put the whole data directory aside, with the keys in it, and begin with an empty one"
        )
