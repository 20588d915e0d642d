"""The upgrade of the database to this version's schema."""

from __future__ import annotations

import logging
from pathlib import Path

from playhouse.migrations import Runner

from core.errors import BidkeeperError
from models.base import database
from models.database.postgresql import Postgresql
from models.database.sqlite import Sqlite

# The caller prints the applied migrations; the library's own line would be a second one.
logging.getLogger("peewee.migrations").setLevel(logging.WARNING)

_DIRECTORY = Path(__file__).parent / "migrations"


class OtherVersion(BidkeeperError):
    """A database of another version, which this one can neither use nor bring to its own schema."""


def migrate() -> list[str]:
    """Applies the missing migrations on the open connection and returns their names.

    Raises OtherVersion for a database that this version must not touch; then nothing was changed.
    """
    with database.obj.migrating():
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
    strange = [f"migrations {', '.join(names)}" if (names := foreign()) else "", _other_tables()]
    if why := "; ".join(filter(None, strange)):
        raise OtherVersion(
            f"the database was made by another version of Bidkeeper ({why}): run that version,"
            " or put the whole data directory aside, with the keys in it, and begin with an empty one"
        )


def _other_tables() -> str:
    """Names the tables and indexes that the applied migrations of this version make otherwise; empty when none.

    A development version may have had a migration of the same name with other columns.
    """
    applied = [row.name for row in Runner(database.obj, str(_DIRECTORY)).status() if row.applied and row.path]
    if not applied:
        return ""
    fresh = Sqlite(":memory:")
    made = _made if isinstance(database.obj, Sqlite) else _outlined
    with fresh.connection_context():
        Runner(fresh, str(_DIRECTORY)).up(applied[-1])
        expected = made(fresh)
    found = made(database.obj)
    others = sorted(name for name, text in expected.items() if found.get(name) != text)
    return f"other tables: {', '.join(others)}" if others else ""


def _outlined(made_in: Sqlite | Postgresql) -> dict[str, str]:
    """Returns the columns of each table, and the indexes' names, which are the same in every kind of database."""
    outlined = {table: str(columns) for table, columns in made_in.columns().items()}
    outlined |= dict.fromkeys(made_in.index_names(), "")
    return {name: text for name, text in outlined.items() if not name.startswith("schema_migration")}


def _made(made_in: Sqlite) -> dict[str, str]:
    rows = made_in.execute_sql("SELECT name, sql FROM sqlite_master WHERE sql != ''").fetchall()
    return {name: text for name, text in rows if not name.startswith("schema_migration")}  # the library's own
