"""The database's schema: its upgrade, the record of the versions that did so, and the copy of a whole database."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from peewee import OperationalError, sort_models  # type: ignore[attr-defined]

import models
from core.errors import BidkeeperError
from models.database import base
from models.database.base import Sqlite, database, opened, place
from models.database.damage import DatabaseAway
from models.database.postgresql import Postgresql
from models.leases.leases import Lease

if TYPE_CHECKING:
    from playhouse.migrations import Runner

    from core.version import Version  # which workers do without

# The caller prints the applied migrations; the library's own line would be a second one.
logging.getLogger("peewee.migrations").setLevel(logging.WARNING)

_DIRECTORY = Path(__file__).parent / "migrations"
_HISTORY = "schema_migration"  # the library's table, to which 0003_versions adds the version


class OtherVersion(BidkeeperError):
    """The database is of another version, which this version can neither use nor migrate.

    `text` names both versions and the difference; `remedy` says what to run.
    """

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(f"{text}: {remedy}")
        self.text = text
        self.remedy = remedy


def migrate(by: Callable[[], Version] | None = None) -> list[str]:
    """Applies the missing migrations on the open connection, all or none, and returns their names.

    The database records the version that `by` returns; without `by` it records none. Raises OtherVersion for a database
    that this version must not touch; then nothing was changed.
    """
    writer = by() if by is not None and pending() else None  # before the lock, because it may run git
    with database.obj.migrating():
        refuse_foreign()
        applied = list(_runner().up())
        if applied and writer is not None:
            _record(applied, writer)
        return applied


def _runner(of: Sqlite | Postgresql | None = None) -> Runner:
    from playhouse.migrations import Runner  # with the drivers of other databases; tools that only read rows do without

    return Runner(of or database.obj, str(_DIRECTORY), table_name=_HISTORY)


def _record(names: list[str], by: Version) -> None:
    mark = database.obj.param
    places = ", ".join([mark] * len(names))
    update = f"UPDATE {_HISTORY} SET by_version = {mark}, by_commit = {mark} WHERE name IN ({places})"
    database.execute_sql(update, [by.number, by.commit, *names])


def check() -> None:
    """Raises OtherVersion unless the database has this version's schema."""
    refuse_foreign()
    if missing := pending():
        text = f"the database lacks {', '.join(missing)}, which {_this()} needs"
        if writers := written_by():
            text += f"; it was last migrated by {writers[-1]}"
        raise OtherVersion(text, "run `bidkeeper migrate`")


def pending() -> list[str]:
    """Returns the names of the migrations that this version needs and the database lacks."""
    return [row.name for row in _runner().status() if not row.applied]


def written_by() -> list[str]:
    """Returns the versions that migrated the database, each with its day, oldest first."""
    return list(dict.fromkeys(_writers().values()))


def _writers() -> dict[str, str]:
    """Returns the version that applied each migration, in words."""
    columns = {name for name, _ in database.obj.columns().get(_HISTORY, [])}
    recorded = "by_version, by_commit" if "by_version" in columns else "NULL, NULL"
    if not columns:
        return {}
    rows = database.execute_sql(f"SELECT name, applied, {recorded} FROM {_HISTORY} ORDER BY name").fetchall()
    return {name: _writer(number, commit, str(applied)[:10]) for name, applied, number, commit in rows}


def _writer(number: str | None, commit: str | None, day: str) -> str:
    from core.version import Version

    return f"{Version(number, commit or '')} on {day}" if number else f"one that did not record itself, on {day}"


def _this() -> str:
    from core.version import running

    return f"Bidkeeper {running()}"


def refuse_foreign() -> None:
    """Raises OtherVersion for a database that a newer version migrated, or that has other tables than ours."""
    status = _runner().status()
    strange = [row.name for row in status if row.path is None]
    why = f"migrations {', '.join(strange)}" if strange else _other_tables()
    if not why:
        return
    writers = _writers()
    of_others = dict.fromkeys(writer for name, writer in writers.items() if name in (strange or writers))
    is_newer = bool(strange) and all(row.applied and row.name < strange[0] for row in status if row.path)
    if is_newer:
        remedy = "run that version or a newer one; to go back, restore the backup from before the upgrade"
    else:
        remedy = "run that version, or put the whole data directory aside, keys included, and begin with an empty one"
    raise OtherVersion(
        f"the database was made by {'a newer' if is_newer else 'another'} version of Bidkeeper ({why}),"
        f" {', '.join(of_others) or 'one that recorded no migrations'}; this is {_this()}",
        remedy,
    )


def _other_tables() -> str:
    """Returns a text naming the tables and indexes that differ from this version's migrations; "" if none do.

    A development version may have had a migration of the same name with other columns. Tables with our names but
    without any applied migration count as different too.
    """
    applied = [row.name for row in _runner().status() if row.applied and row.path]
    made = _made if isinstance(database.obj, Sqlite) else _outlined
    found = made(database.obj)
    if not found:
        return ""
    fresh = Sqlite(":memory:")
    with fresh.connection_context():
        _runner(fresh).up(applied[-1] if applied else None)
        expected = made(fresh)
    others = sorted(name for name, text in expected.items() if found.get(name) != text)
    if not applied:
        others = sorted(expected.keys() & found.keys())
    return f"other tables: {', '.join(others)}" if others else ""


def _outlined(made_in: Sqlite | Postgresql) -> dict[str, str]:
    """Returns the columns of each table, and the indexes' names, which are the same in every kind of database."""
    outlined = {table: str(columns) for table, columns in made_in.columns().items()}
    outlined |= dict.fromkeys(made_in.index_names(), "")
    return {name: text for name, text in outlined.items() if not name.startswith(_HISTORY)}


def _made(made_in: Sqlite) -> dict[str, str]:
    rows = made_in.execute_sql("SELECT name, sql FROM sqlite_master WHERE sql != ''").fetchall()
    return {name: text for name, text in rows if not name.startswith(_HISTORY)}  # the library's own


_AT_ONCE = 500
_LIBRARYS = "schema_migration"
_OF_PROGRAMS = Lease._meta.table_name  # not copied, because leases use their own server's clock
_EXPOSURE = "SELECT dry_run, COUNT(*), SUM(price_sats) FROM orders WHERE state != 'closed' GROUP BY dry_run ORDER BY 1"


class CannotCopy(BidkeeperError):
    """The copy was refused, or differs from the original; nothing was written."""


class Copied(NamedTuple):
    """A table, and its number of rows."""

    table: str
    rows: int


def copy(source_url: str, target_url: str) -> list[Copied]:
    """Copies all rows and the next ids, in one transaction of the target; returns the copied tables.

    The target must be empty; it is migrated to this version's schema. No process may write to the source meanwhile.
    Raises CannotCopy, OtherVersion and DatabaseAway.
    """
    from core.version import running

    base.connect(source_url)
    check()
    base.connect(target_url)
    try:
        migrate(running)
        source, target = opened(source_url), base.database.obj
        try:
            source.connect()
        except OperationalError as error:
            raise DatabaseAway(f"the database {place(source_url)} cannot be opened: {error}") from None
        with closing(source), source.snapshot(), base.transaction(durable=True):
            target.take_time()
            _refuse_others(source, target, target_url)
            copied = [Copied(table, _copy_table(source, target, table)) for table in _tables()]
            _compare(source, target)
            return copied
    finally:
        base.close()


def _tables() -> list[str]:
    """Returns the names of all tables to be copied, each after those that it refers to."""
    found = [str(model._meta.table_name) for model in sort_models(every_model())]
    return [name for name in found if name != _OF_PROGRAMS]


def every_model() -> list[type[base.Row]]:
    """Returns the classes of all tables."""
    import pkgutil

    for module in pkgutil.walk_packages(models.__path__, "models."):
        if not module.name.startswith("models.migrations."):
            importlib.import_module(module.name)
    return base.Row.__subclasses__()


def _refuse_others(source: Sqlite | Postgresql, target: Sqlite | Postgresql, target_url: str) -> None:
    known = {*_tables(), _LIBRARYS, _OF_PROGRAMS}
    if strange := (source.columns().keys() | target.columns().keys()) ^ known:
        raise CannotCopy(f"there are tables that are not ours: {', '.join(sorted(strange))}")
    if full := [table for table in _tables() if _value(target, f"SELECT COUNT(*) FROM {table}")]:
        raise CannotCopy(f"the database {place(target_url)} is not empty: {', '.join(full)}")


def _copy_table(source: Sqlite | Postgresql, target: Sqlite | Postgresql, table: str) -> int:
    names = [name for name, _ in target.columns()[table]]
    of_truths = target.truth_columns(table)
    truths = [place for place, name in enumerate(names) if name in of_truths]
    columns = ", ".join(f'"{name}"' for name in names)
    cursor = source.execute_sql(f"SELECT {columns} FROM {table} ORDER BY 1")
    count = 0
    for rows in _parts(cursor):
        values = [value for row in rows for value in _with_truths(row, truths)]
        places = ", ".join([f"({', '.join([target.param] * len(names))})"] * len(rows))
        target.execute_sql(f"INSERT INTO {table} ({columns}) VALUES {places}", values)
        count += len(rows)
    if "id" in names and (last := source.last_id(table)) is not None:
        target.go_on_after(table, last)
    return count


def _parts(cursor: Any) -> Iterator[list[tuple[Any, ...]]]:
    while rows := cursor.fetchmany(_AT_ONCE):
        yield rows


def _with_truths(row: tuple[Any, ...], truths: list[int]) -> tuple[Any, ...]:
    return tuple(bool(value) if place in truths else value for place, value in enumerate(row)) if truths else row


def _compare(source: Sqlite | Postgresql, target: Sqlite | Postgresql) -> None:
    """Raises CannotCopy unless both have the same number of rows and the same open orders."""
    for table in _tables():
        counts = [_value(each, f"SELECT COUNT(*) FROM {table}") for each in (source, target)]
        if counts[0] != counts[1]:
            raise CannotCopy(f"{table} has {counts[0]} rows, and its copy {counts[1]}")
    ours, theirs = _open_orders(source), _open_orders(target)
    if ours != theirs:
        raise CannotCopy(f"open orders are {ours}, and in the copy {theirs}")


def _open_orders(database: Sqlite | Postgresql) -> list[tuple[int, ...]]:
    """Returns the number and sats of the open real orders, and of those of dry runs."""
    return [tuple(map(int, row)) for row in database.execute_sql(_EXPOSURE).fetchall()]


def _value(database: Sqlite | Postgresql, query: str) -> Any:
    return database.execute_sql(query).fetchone()[0]
