"""Another process's view of a database of either kind, past everything that the models know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from models.database import postgresql as kinds
from models.database.base import is_postgresql


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

    def table(self, name: str) -> list[dict[str, Any]]:
        """Returns all rows of a table, by their columns' names."""
        cursor = self.execute(f'SELECT * FROM "{name}"')
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


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


def tables(url: str, *names: str) -> dict[str, list[dict[str, Any]]]:
    """Returns all rows of these tables as of one moment, and disturbs nobody who writes."""
    if is_postgresql(url):
        with another(url) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return {name: reader.table(name) for name in names}
    path = url.partition(":///")[2]
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
        connection.execute("BEGIN")
        reader = Another(connection, "?")
        return {name: reader.table(name) for name in names}


@contextmanager
def kept_from_writing(url: str) -> Iterator[None]:
    """Keeps everybody from writing to the database for the block, as a transaction that does not end."""
    with another(url) as holder:
        holder.execute(f"SELECT pg_advisory_xact_lock({kinds._GATE})" if is_postgresql(url) else "BEGIN IMMEDIATE")
        yield
        holder.rollback()


def dump(url: str) -> str:
    """Returns all that is in the database, as text."""
    if not is_postgresql(url):
        with closing(sqlite3.connect(url.partition(":///")[2])) as connection:
            return "\n".join(connection.iterdump())
    with another(url) as other:
        tables = other.rows("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return "\n".join(str(row) for (table,) in tables for row in other.rows(f'SELECT * FROM "{table}"'))


class Questions(list[str]):
    """The statements that were asked, without those that begin and end a transaction; `commits` counts these."""

    commits = 0


@contextmanager
def questions(opened: Any) -> Iterator[Questions]:
    """Notes, for the block, what this process asks an open database (base.database.obj)."""
    asked, ask, commit = Questions(), opened.execute_sql, opened.commit

    def noted(sql: str, params: Any = None) -> Any:
        if not sql.startswith(("BEGIN", "PRAGMA", "COMMIT", "ROLLBACK")):
            asked.append(sql)
        return ask(sql, params)

    def counted() -> Any:
        asked.commits += 1
        return commit()

    def rows(sql: str, values: Any) -> Any:
        return noted(sql, values).fetchall()  # which would go past execute_sql

    opened.execute_sql, opened.rows, opened.commit = noted, rows, counted
    try:
        yield asked
    finally:
        del opened.execute_sql, opened.rows, opened.commit
