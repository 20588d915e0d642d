"""The copy of a whole database into an empty one, of the same kind or the other."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from peewee import OperationalError, sort_models  # type: ignore[attr-defined]

import models
from core import version
from core.errors import BidkeeperError
from models import schema
from models.database import base
from models.database.base import opened, place
from models.database.damage import DatabaseAway
from models.database.postgresql import Postgresql
from models.database.sqlite import Sqlite
from models.leases.leases import Lease

_AT_ONCE = 500
_LIBRARYS = "schema_migration"
_OF_PROGRAMS = Lease._meta.table_name  # by the clock of its own server
_EXPOSURE = "SELECT dry_run, COUNT(*), SUM(price_sats) FROM orders WHERE state != 'closed' GROUP BY dry_run ORDER BY 1"


class CannotCopy(BidkeeperError):
    """A refusal to copy, or a copy that is not like its original; then nothing was written."""


class Copied(NamedTuple):
    """A table, and its number of rows."""

    table: str
    rows: int


def copy(source_url: str, target_url: str) -> list[Copied]:
    """Copies every row, and what ids come next, in one transaction of the target; returns what was copied.

    The target is brought to this version's schema, and must be empty. Nobody may write to the source meanwhile. Raises
    CannotCopy, OtherVersion and DatabaseAway.
    """
    base.connect(source_url)
    schema.check()
    base.connect(target_url)
    try:
        schema.migrate(version.running)
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
    """Raises CannotCopy unless both have as many rows, and as many sats in open orders."""
    for table in _tables():
        counts = [_value(each, f"SELECT COUNT(*) FROM {table}") for each in (source, target)]
        if counts[0] != counts[1]:
            raise CannotCopy(f"{table} has {counts[0]} rows, and its copy {counts[1]}")
    ours, theirs = _open_orders(source), _open_orders(target)
    if ours != theirs:
        raise CannotCopy(f"open orders are {ours}, and in the copy {theirs}")


def _open_orders(database: Sqlite | Postgresql) -> list[tuple[int, ...]]:
    """Returns number and sats of the real ones, and of those of dry runs."""
    return [tuple(map(int, row)) for row in database.execute_sql(_EXPOSURE).fetchall()]


def _value(database: Sqlite | Postgresql, query: str) -> Any:
    return database.execute_sql(query).fetchone()[0]
