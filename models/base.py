"""The connection to the database: one per process, of either kind (models/database/kinds.py).

A process opens its connection after it was forked or started, never before. Rows hold times as whole milliseconds since
1970 and money as whole sats.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from peewee import (
    SQL,
    BigAutoField,
    DatabaseError,
    DatabaseProxy,
    Model,
    Node,
    NodeList,
    OperationalError,
    PeeweeException,
    fn,
)

from core.files import is_full
from models.database.damage import Damage, Damaged, DatabaseAway
from models.database.kinds import is_postgresql, opened, place
from models.database.postgresql import Postgresql
from models.database.sqlite import Sqlite

database = DatabaseProxy()
log = logging.getLogger(__name__)
_AGAIN_S = 2.0


def connect(url: str) -> None:
    """Opens this process's connection to `url` (sqlite:///FILE, postgresql://...) in place of the one it has, if any.

    It is of the thread that calls this: in another one a query is an error, where peewee would open a connection that
    nobody closes. Raises ValueError for another kind of database, DatabaseAway where it cannot be reached.
    """
    prepare_for(url)
    if (known := damage()) is not None and known.is_lost:  # another process has the former files, a new one would not
        raise DatabaseAway(f"{place(url)}: {known.text}: stop Bidkeeper, run `bidkeeper migrate`, and start")
    try:
        database.connect()
    except DatabaseError as error:
        note_damage(error)
        raise DatabaseAway(f"the database {place(url)} cannot be opened: {error}") from None


def connect_in_time(url: str) -> None:
    """Opens the connection as `connect`, and waits for a PostgreSQL server that is away or unfit, however long.

    For programs that are started with the machine, perhaps before the server is. Whoever keeps them running gives up
    one that ends again and again, and would not start it once the server is mended.
    """
    prepare_for(url)  # what is missing on this machine is no server's
    while True:
        try:
            return connect(url)
        except DatabaseAway as error:
            if not is_postgresql(url):
                raise
            log.error("%s; tries again", error)
            time.sleep(_AGAIN_S)


@contextmanager
def reading(url: str, *, alone: bool = False) -> Iterator[None]:
    """Opens a read-only connection to `url` for this block, for a process that may not write there.

    Without another process that has it open, a user who may not write beside an SQLite file cannot read it either.
    `alone`: no other process has it open, and this one leaves no file beside it. Raises ValueError, DatabaseAway and
    peewee's OperationalError.
    """
    _use(opened(url, read_only=True, alone=alone))
    with database.connection_context():
        yield


def prepare_for(url: str) -> None:
    """Uses the database at `url` from now on, without a connection: queries get its words. Raises as `connect`."""
    _use(opened(url))


def _use(made: Sqlite | Postgresql) -> None:
    close()
    database.initialize(made)


def rest() -> None:
    """Gives a server's connection up until the next query, for a process that asks nothing for seconds."""
    database.obj.rest()


def close() -> None:
    """Closes this process's connection, if it has one."""
    if database.obj is not None:
        database.close()


@contextmanager
def transaction(*, durable: bool = False, alone: bool = True) -> Iterator[None]:
    """Holds a writing transaction, with the write lock from its first line to its commit.

    With `durable` the commit has reached the disk when it returns. It must be the outermost one: nested, the lock would
    silently not be taken (peewee makes it a savepoint), so nesting is an error. One that is not `alone` goes on beside
    others of its kind where the database lets it: it locks by itself what it relies on, before it reads that, in the
    order of models/locks.py.
    """
    if database.in_transaction():
        raise RuntimeError("a writing transaction must be the outermost one")
    with database.obj.writing(durable=durable, alone=alone):
        yield


def write_if_free(query: Any) -> None:
    """Carries `query` out; leaves it out where another process is writing or the disk is full, and never waits.

    For notes that the next call makes as well, so that no reading waits or fails because of them.
    """
    try:
        with database.obj.without_waiting():
            query.execute()
    except OperationalError as error:
        log.info("a note is left to the next call: %s", error)


@contextmanager
def hurried() -> Iterator[None]:
    """Has writes fail (OperationalError) that would wait longer than a fifth of a second for another process."""
    database.execute_sql(database.obj.hurry)
    try:
        yield
    finally:
        database.execute_sql(database.obj.calm)


def write_fault() -> str:
    """Commits a write that changes nothing; returns why it failed, "" if it did not.

    It never waits: "" as well while another process is writing.
    """
    try:
        with database.obj.without_waiting():
            database.execute_sql(database.obj.same_write)
    except PeeweeException as error:
        return "" if database.obj.busy_words in str(error) else str(error)
    return ""


def is_away(error: BaseException | None) -> bool:
    """Tells whether an error says that the database cannot be asked now, and not that a statement is wrong."""
    kind = database.obj
    said = isinstance(error, kind.away_errors) and any(words in str(error) for words in kind.away_words)
    return said or isinstance(error, DatabaseAway)


def damage() -> Damage | None:
    """Returns the damage that is known of an SQLite database; None for a server's, which looks after its files."""
    file = _file()
    return None if file is None else file.damage()


def note_damage(error: BaseException) -> bool:
    """Keeps the damage that an error reports, for all programs; returns whether it reports any."""
    file = _file()
    return file is not None and file.note(error)


def look_for_damage() -> Damage | None:
    """Checks that the open database's files are at their paths; returns the damage that is known."""
    file = _file()
    return None if file is None else file.look_for_lost_files()


def require_sound() -> None:
    """Raises Damaged if the database is damaged, or one of its files was removed while this process has it open.

    To be called before each reservation, in its transaction: what is reserved must be found again after a crash.
    """
    if (found := look_for_damage()) is not None:
        raise Damaged(f"the database is damaged: {found.text}")


def _file() -> Sqlite | None:
    return database.obj if isinstance(database.obj, Sqlite) else None


@contextmanager
def unless_full(what: str) -> Iterator[None]:
    """Leaves a write out where the disk is full, with a line in the log. `what` begins that line."""
    try:
        yield
    except OperationalError as error:
        if not is_full(error):
            raise
        log.warning("%s is not stored: %s", what, error)


class _Truth(Node):
    """True or false as a literal of the statement, so that the database sees at once which index applies."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self._word = word

    def __sql__(self, ctx: Any) -> Any:
        return ctx.literal(database.obj.words[self._word])


NO, YES = _Truth("no"), _Truth("yes")


def larger(one: Any, other: Any) -> Any:
    """Makes the expression of the larger of two values."""
    return getattr(fn, database.obj.words["larger"])(one, other)


class _Id(BigAutoField):
    def ddl(self, ctx: Any) -> Any:
        made = super().ddl(ctx)
        return NodeList((made, SQL("AUTOINCREMENT"))) if database.obj.has_rowid else made


def primary_key() -> Any:
    """Makes an id that is never given twice, not even after its row was deleted: tokens, grants and logs name it."""
    return _Id()


class Row(Model):
    """Base of all tables."""

    class Meta:
        database = database
        legacy_table_names = False


def add_indexes(*indexes: tuple[str, tuple[Any, ...], Any, bool]) -> None:
    """Adds indexes to the columns' table: a name, the columns, the rows (None: all), whether no two may be alike."""
    for name, columns, where, is_unique in indexes:
        model = columns[0].model
        model.add_index(model.index(*columns, name=name, where=where, unique=is_unique))
