"""The database: one connection per process, and the only file that knows its kind.

A process opens its connection after it was forked or started, never before. Rows hold times as whole milliseconds since
1970 and money as whole sats.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from peewee import DatabaseProxy, Model, OperationalError, SqliteDatabase
from playhouse.sqlite_ext import AutoIncrementField

database = DatabaseProxy()
log = logging.getLogger(__name__)

# WAL lets readers go on while one writes. NORMAL may lose the newest commits in a power cut (never in a crash of ours):
# right for cycle rows, not for the ledger, whose transactions are `durable`.
_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "normal",
    "foreign_keys": 1,
    "cache_size": -2000,
}
_BUSY_SECONDS = 15


def connect(url: str) -> None:
    """Opens this process's connection to `url` (sqlite:///FILE) in place of the one it has, if any.

    It is of the thread that calls this: in another one a query is an error, where peewee would open a connection that
    nobody closes. Raises ValueError for another kind of database.
    """
    scheme, _, path = url.partition(":///")
    if scheme != "sqlite" or not path:
        raise ValueError(f"not a database this version can use: {scheme}")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    close()
    database.initialize(SqliteDatabase(path, pragmas=_PRAGMAS, timeout=_BUSY_SECONDS, autoconnect=False))
    database.connect()


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Opens a read-only connection to `url` for this block, for a process that may not write there.

    Without another process that has the database open, a user who may not write beside it cannot read it either. Raises
    ValueError and peewee's OperationalError.
    """
    scheme, _, path = url.partition(":///")
    if scheme != "sqlite" or not path:
        raise ValueError(f"not a database this version can use: {scheme}")
    close()
    database.initialize(SqliteDatabase(f"file:{quote(path)}?mode=ro", uri=True, timeout=_BUSY_SECONDS))
    with database.connection_context():
        yield


def close() -> None:
    """Closes this process's connection, if it has one."""
    if database.obj is not None and not database.is_closed():
        database.close()


@contextmanager
def transaction(*, durable: bool = False) -> Iterator[None]:
    """Holds a writing transaction, with the write lock from its first line to its commit.

    With `durable` the commit has reached the disk when it returns. It must be the outermost one: nested, the lock would
    silently not be taken (peewee makes it a savepoint), so nesting is an error.
    """
    if database.in_transaction():
        raise RuntimeError("a writing transaction must be the outermost one")
    if durable:
        database.execute_sql("PRAGMA synchronous=FULL")
    try:
        with database.atomic("IMMEDIATE"):
            yield
    finally:
        if durable and not database.is_closed():
            database.execute_sql("PRAGMA synchronous=NORMAL")


def write_if_free(query: Any) -> None:
    """Carries `query` out; leaves it out where another process is writing or the disk is full, and never waits.

    For notes that the next call makes as well, so that no reading waits or fails because of them.
    """
    database.execute_sql("PRAGMA busy_timeout=0")
    try:
        query.execute()
    except OperationalError as error:
        log.info("a note is left to the next call: %s", error)
    finally:
        database.execute_sql(f"PRAGMA busy_timeout={1000 * _BUSY_SECONDS}")


def primary_key() -> Any:
    """Makes an id that is never given twice, not even after its row was deleted: tokens, grants and logs name it."""
    return AutoIncrementField()


class Row(Model):
    """Base of all tables."""

    class Meta:
        database = database
        legacy_table_names = False
