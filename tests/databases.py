"""Another process's view of a database of either kind, past everything that the models know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from models.database import is_postgresql


class Another:
    """A connection of somebody else's. A change begins a transaction, which `commit` ends; `?` are places of values."""

    def __init__(self, connection: Any, place: str) -> None:
        self._connection = connection
        self._place = place

    def execute(self, text: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(text.replace("?", self._place), values)

    def executemany(self, text: str, values: Sequence[Sequence[Any]]) -> None:
        """Carries a change out once for each of these values."""
        self._connection.cursor().executemany(text.replace("?", self._place), values)

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Returns all rows of a query."""
        return list(self.execute(text, values).fetchall())

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()


@contextmanager
def another(url: str) -> Iterator[Another]:
    """Opens a connection to `url` for the block. What it leaves uncommitted is committed, unless it raises."""
    if is_postgresql(url):
        import psycopg

        with psycopg.connect(url) as connection:
            yield Another(connection, "%s")
        return
    with closing(sqlite3.connect(url.partition(":///")[2], timeout=30)) as connection, connection:
        yield Another(connection, "?")


def rows(url: str, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Returns the rows of one query."""
    with another(url) as connection:
        return connection.rows(text, values)


def dump(url: str) -> str:
    """Returns all that is in the database, as text."""
    if not is_postgresql(url):
        with closing(sqlite3.connect(url.partition(":///")[2])) as connection:
            return "\n".join(connection.iterdump())
    with another(url) as other:
        tables = other.rows("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return "\n".join(str(row) for (table,) in tables for row in other.rows(f'SELECT * FROM "{table}"'))
