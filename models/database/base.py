"""The process's connection to its database of either kind: transactions, locks, rows, statements and caches.

An SQLite file and a PostgreSQL server (postgresql.py) give the same promises: a writing transaction sees, and is seen,
as if it were alone; a durable one has reached the disk when it returns; ids are never given twice. A process opens its
connection after it was forked or started, never before. Times are milliseconds since 1970 (int), money is sats (int).

A transaction that is not `alone` takes its locks before it reads anything that depends on them, and always in this
order, so that there are no deadlocks: installation, user, task, order (by its own guarded change), events, a lease's
row. A statement after a lock sees all earlier commits. Locks before the first query are sent together with it, so they
cost no extra round trip. With an SQLite file they are no-ops.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from peewee import (  # type: ignore[attr-defined]
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
    make_snake_case,
)
from peewee import __exception_wrapper__ as as_peewees  # type: ignore[attr-defined]

from core.files import free_reserve, is_full
from models.database import damage as damages
from models.database.damage import Damage, Damaged, DatabaseAway, SqliteFile, Unfit
from models.database.postgresql import Postgresql

_AGAIN_S = 2.0
_LAST_BYTES = 1 << 20  # less than this is no room for a transaction
log = logging.getLogger(__name__)


def _as_peewee_fails(name: str) -> Any:
    """Makes a cursor's method that fails as statements do: peewee would let the driver's own errors through."""
    fetch = getattr(sqlite3.Cursor, name)

    def fetched(cursor: Any) -> Any:
        try:
            return fetch(cursor)
        except sqlite3.DatabaseError as error:
            damages.note_error(cursor.connection.file, error)
            with as_peewees:
                raise

    return fetched


class _Cursor(sqlite3.Cursor):
    fetchone, fetchall, __next__ = map(_as_peewee_fails, ("fetchone", "fetchall", "__next__"))


class _Connection(sqlite3.Connection):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.file = ""
        self.opened: damages.Opened = {}
        self.paths: dict[str, str] = {}  # of the database's files, by the end of the name

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


class Sqlite(SqliteFile):
    """An SQLite file, in which one process writes at a time."""

    factory = _Connection

    def execute_sql(self, sql: str, params: Any = None) -> Any:
        """Runs a statement; outside of a transaction once more, if the full disk's reserve could be freed."""
        try:
            return super().execute_sql(sql, params)
        except OperationalError as error:
            if self.in_transaction() or not (is_full(error) and free_reserve(Path(self.database).parent)):
                raise
            return super().execute_sql(sql, params)
        except DatabaseError as error:
            self.note(error)
            raise

    def rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Returns all rows of a statement. A SELECT goes past peewee, for its speed, unless it fails."""
        if sql.startswith("SELECT") and not self.is_closed():
            with suppress(sqlite3.Error):
                return sqlite3.Cursor(self.connection()).execute(sql, values).fetchall()
        return list(self.execute_sql(sql, values).fetchall())

    @staticmethod
    def inserted(cursor: Any) -> int | None:
        """Returns the id of the row that an INSERT has written; None when it has written none."""
        return int(cursor.lastrowid) if cursor.rowcount == 1 else None

    @contextmanager
    def writing(self, *, durable: bool, alone: bool) -> Iterator[None]:
        """Holds a writing transaction, which always is alone."""
        # A commit without room could not be tried again, so the reserve of a full disk is freed before it begins.
        with suppress(OSError):
            disk = os.statvfs(directory := os.path.dirname(self.database) or ".")  # noqa: PTH120 - for its speed
            if disk.f_bavail * disk.f_frsize < _LAST_BYTES:
                free_reserve(Path(directory))
        if durable:
            self.execute_sql("PRAGMA synchronous=FULL")
        try:
            with self.atomic("IMMEDIATE"):
                yield
        finally:
            if durable and not self.is_closed():
                self.execute_sql("PRAGMA synchronous=NORMAL")

    @contextmanager
    def without_waiting(self) -> Iterator[None]:
        """Has statements fail (OperationalError) that would wait for another process."""
        self.execute_sql("PRAGMA busy_timeout=0")
        try:
            yield
        finally:
            self.execute_sql(self.calm)

    def rollback(self) -> None:
        if self.connection().in_transaction:  # a full disk has ended it
            super().rollback()

    def lock_row(self, *row: object) -> None:
        """Does nothing: the transaction has the file's only lock."""

    lock_installation = hold_back_events = lock_row

    def settled_event(self) -> int:
        """Returns the number of an event up to which no more will come: of any, since they come in their order."""
        return 2**63 - 1

    def may_tidy(self) -> bool:
        """Tells whether nobody else tidies up: so it is."""
        return True

    def mark(self) -> Any:
        """Returns a value that changes with every commit.

        SQLite counts other connections' commits in `data_version` and our own changes in `total_changes`.
        """
        opened = self.connection()
        return opened, opened.total_changes, sqlite3.Cursor(opened).execute("PRAGMA data_version").fetchone()

    def mark_of(self, column: str | None) -> Any:
        """Returns None: no query brings a mark along."""
        return None

    def damage(self) -> Damage | None:
        """Returns the damage that is known of the file."""
        is_noted = self.file in damages.unwritten or os.path.exists(f"{self.file}.damaged")  # noqa: PTH110
        return damages.known(self.file) if self.file and is_noted else None

    def note(self, error: BaseException) -> bool:
        """Keeps the damage that an error reports, for all programs; returns whether it reports any."""
        return damages.note_error(self._noted, error)

    def look_for_lost_files(self) -> Damage | None:
        """Compares this process's open files with their paths, and keeps what was found; returns what is known."""
        if self._noted and not self.is_closed():
            connection = self.connection()
            # Neither changes while this connection is open: SQLite sets another journal mode only without one.
            if not connection.paths:
                (mode,) = self.execute_sql("PRAGMA journal_mode").fetchone()
                ends, real = ("-wal", "-shm") if mode == "wal" else (), os.path.realpath(self.file)
                connection.paths = {"": self.file, **{end: f"{real}{end}" for end in ends}}
            if not _are_at_their_paths(connection.opened, connection.paths):
                self.look_closely(tuple(connection.paths))
        return self.damage()


def _are_at_their_paths(opened: damages.Opened, paths: Mapping[str, str]) -> bool:
    """Tells whether a database's files are still those that were found open before, here and at their paths."""
    try:
        return opened.keys() == paths.keys() and all(
            opened[end][1:] == (found.st_dev, found.st_ino)
            for end, path in paths.items()
            for found in (os.fstat(opened[end][0]), os.stat(path))  # noqa: PTH116
        )
    except OSError:
        return False


def opened(
    url: str, *, read_only: bool = False, alone: bool = False, within_s: float | None = None
) -> Sqlite | Postgresql:
    """Makes the database at `url`, without a connection; see `Sqlite.read_only` for `alone`.

    `within_s` bounds, at a PostgreSQL server, each wait for a lock or an answer, and each silence in a transaction.
    Raises ValueError for a kind that we do not know, and DatabaseAway where the way there is missing.
    """
    scheme, _, path = url.partition(":///")
    if scheme == "sqlite" and path:
        return Sqlite.read_only(path, alone=alone) if read_only else Sqlite.at(path)
    if scheme == "unreadable":
        raise Unfit(f"this user may not read {path}, which has the database's address")
    if is_postgresql(url):
        return Postgresql.at(url, read_only=read_only, within_s=within_s)
    raise ValueError(f"not a database this version can use: {scheme}")


def is_postgresql(url: str) -> bool:
    return url.startswith("postgresql://")


def place(url: str) -> str:
    """Returns `url` as it may be shown: without a password."""
    if not is_postgresql(url):
        return url
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2] or ",".join(parse_qs(parts.query).get("host", ()))
    return f"postgresql://{hosts}{parts.path}"


database = DatabaseProxy()


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

    For programs that start with the machine, perhaps before the server. If they ended instead, their supervisor would
    give up after some restarts and not start them once the server is back.
    """
    prepare_for(url)  # outside of the loop, because waiting does not help if the driver is missing on this machine
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

    Without another process that has it open, a user who may not write beside an SQLite file cannot read it either,
    unless `alone` as in `opened`. Raises ValueError, DatabaseAway and peewee's OperationalError.
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
    """Closes a server's connection until the next query, for a process that makes no query for seconds."""
    if isinstance(database.obj, Postgresql):
        database.obj.rest()


def close() -> None:
    """Closes this process's connection, if it has one."""
    if database.obj is not None:
        database.close()


def transaction(*, durable: bool = False, alone: bool = True) -> AbstractContextManager[None]:
    """Holds a writing transaction, with the write lock from its first line to its commit.

    With `durable` the commit is on disk when it returns. It must be the outermost transaction, because a nested one
    would silently take no lock (peewee makes it a savepoint); nesting raises RuntimeError. Transactions that are not
    `alone` may run at the same time if the database allows it; each locks what it relies on before reading it.
    """
    if database.in_transaction():
        raise RuntimeError("a writing transaction must be the outermost one")
    held: AbstractContextManager[None] = database.obj.writing(durable=durable, alone=alone)
    return held


def write_if_free(query: Any) -> None:
    """Runs `query`, or skips it if another process is writing or the disk is full; never waits.

    For writes that the next call would repeat.
    """
    try:
        with database.obj.without_waiting():
            query.execute()
    except OperationalError as error:
        log.info("a note is left to the next call: %s", error)


def write_fault() -> str:
    """Tries a commit that changes nothing; returns why it failed, "" if it succeeded or another process is writing."""
    try:
        with database.obj.without_waiting():
            database.execute_sql(database.obj.same_write)
    except PeeweeException as error:
        return "" if database.obj.busy_words in str(error) else str(error)
    return ""


@contextmanager
def unless_full(what: str) -> Iterator[None]:
    """Skips a write if the disk is full, and logs that; the log line begins with `what`."""
    try:
        yield
    except OperationalError as error:
        if not is_full(error):
            raise
        log.warning("%s is not stored: %s", what, error)


def is_away(error: BaseException | None) -> bool:
    """Returns whether an error means that the database is unavailable, rather than that a statement is wrong."""
    kind = database.obj
    said = isinstance(error, kind.away_errors) and any(words in str(error) for words in kind.away_words)
    return said or isinstance(error, DatabaseAway)


def damage() -> Damage | None:
    """Returns the damage that is known of an SQLite database; None for a server's, which looks after its files."""
    return database.obj.damage() if isinstance(database.obj, Sqlite) else None


def note_damage(error: BaseException) -> bool:
    """Keeps the damage that an error reports, for all programs; returns whether it reports any."""
    return isinstance(database.obj, Sqlite) and database.obj.note(error)


def look_for_damage() -> Damage | None:
    """Checks that the open database's files are at their paths; returns the damage that is known."""
    return database.obj.look_for_lost_files() if isinstance(database.obj, Sqlite) else None


def require_sound() -> None:
    """Raises Damaged if the database is damaged, or one of its files was removed while this process has it open.

    To be called before each reservation, in its transaction: what is reserved must be found again after a crash.
    """
    if (found := look_for_damage()) is not None:
        raise Damaged(f"the database is damaged: {found.text}")


def lock_installation() -> None:
    """Locks the sums over all users until the transaction ends."""
    database.obj.lock_installation()


def lock_user(user_id: int) -> None:
    """Locks this user's sums and row until the transaction ends."""
    database.obj.lock_row("users", user_id, "NO KEY UPDATE")


def lock_task(task_id: int, strength: str = "NO KEY UPDATE") -> None:
    """Locks the task's row until the transaction ends; several transactions may hold it with `SHARE`."""
    database.obj.lock_row("tasks", task_id, strength)


def hold_back_events() -> None:
    """Hides events with later ids from readers until this transaction's own events are committed.

    It does not block other writers, because transactions may commit in another order than their events' ids.
    """
    database.obj.hold_back_events()


def commit_mark() -> Any:
    """Returns a value that changes with every commit; it needs no read of a table.

    Take the mark before reading rows: a commit in between makes the next mark differ.
    """
    return database.obj.mark()


class CommitCache:
    """A cache of up to `most_bytes` of values made from rows; any commit empties it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[int, bytes] = {}
        self._bytes = 0
        self._version: Any = None

    def get(self, key: int, make: Callable[[], bytes], mark: Any = None) -> bytes:
        """Returns the result of `make`, called only if it could have changed since the last call for this key.

        `mark` is a commit mark taken after the commits that the result must show; None = take one now.
        """
        if database.in_transaction():  # its reads may never be committed
            return make()
        version = commit_mark() if mark is None else mark
        if version != self._version:
            self._kept, self._bytes, self._version = {}, 0, version
        found = self._kept.get(key)
        if found is None:
            found = make()
            if self._bytes + len(found) > self._most_bytes:
                self._kept, self._bytes = {}, 0
            if len(found) <= self._most_bytes:
                self._kept[key] = found
                self._bytes += len(found)
        return found


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
    """Returns an id column whose ids are never reused, not even after deletions, because grants and logs name them."""
    return _Id()


def _plural(model: type[Model]) -> str:
    return make_snake_case(model.__name__).removesuffix("y") + ("ies" if model.__name__.endswith("y") else "s")


class Row(Model):
    """Base of all tables; a table has the plural of its class's name unless it says another."""

    class Meta:
        database = database
        legacy_table_names = False
        table_function = _plural


def add_indexes(*indexes: tuple[str, tuple[Any, ...], Any, bool]) -> None:
    """Adds indexes to the columns' table: a name, the columns, the rows (None: all), whether no two may be alike."""
    for name, columns, where, is_unique in indexes:
        model = columns[0].model
        model.add_index(model.index(*columns, name=name, where=where, unique=is_unique))


Kind = TypeVar("Kind", bound=Row)
_NAME = re.compile(r"(?<!:):(\w+)|\$(\w+)")
STATEMENTS: list[Statement] = []


class Statement:
    """A statement, with `:name` in the place of a value and `$word` for a word of the kind of database.

    The words are in `words` of the database's class. All that run it take the values by their names, and raise
    TypeError unless exactly these are given. Only the text of a SELECT may begin with SELECT.
    """

    def __init__(self, text: str) -> None:
        self._source = " ".join(text.split())
        self._kind = ""  # of database that the text is ready for
        self._text = ""
        self._places: tuple[str, ...] = ()
        self._names: frozenset[str] = frozenset()
        STATEMENTS.append(self)

    def run(self, **values: Any) -> Any:
        """Runs the statement; returns the database's cursor, which has the `rowcount` of a change."""
        return database.execute_sql(*self._filled(values))

    def insert(self, **values: Any) -> int | None:
        """Inserts a row; returns its id, None when none was written. The text ends with $returning_id."""
        written: int | None = database.obj.inserted(self.run(**values))
        return written

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """Returns all rows as the database gives them."""
        found: list[tuple[Any, ...]] = database.obj.rows(*self._filled(values))
        return found

    def row(self, **values: Any) -> tuple[Any, ...] | None:
        """Returns the only possible row, or None."""
        rows = database.obj.rows(*self._filled(values))
        return rows[0] if rows else None

    def value(self, **values: Any) -> Any:
        """Returns the only value of the only row, which is always there."""
        return database.obj.rows(*self._filled(values))[0][0]

    def instances(self, model: type[Kind], **values: Any) -> list[Kind]:
        """Returns all rows, of this table and with its `columns`."""
        return [instance(model, found) for found in database.obj.rows(*self._filled(values))]

    def instance(self, model: type[Kind], **values: Any) -> Kind | None:
        """Returns the only possible row, as `instances`, or None."""
        return next(iter(self.instances(model, **values)), None)

    def _filled(self, values: dict[str, Any]) -> tuple[str, list[Any]]:
        if self._kind != database.obj.name:
            self.prepare()
        if values.keys() != self._names:
            raise TypeError(f"wanted: {sorted(self._names)}; given: {sorted(values)}")
        return self._text, [values[place] for place in self._places]

    def prepare(self) -> None:
        """Makes the text for the kind of database in use; it needs no connection."""
        kind, places = database.obj, []

        def written(found: re.Match[str]) -> str:
            if found[2]:
                return str(kind.words[found[2]])
            places.append(found[1])
            return str(kind.param)

        self._text = _NAME.sub(written, self._source)
        self._places, self._names, self._kind = tuple(places), frozenset(places), kind.name


def prepare_all() -> None:
    """Makes the text of every statement that there is now, for the kind of database in use."""
    for statement in STATEMENTS:
        statement.prepare()


def columns(model: type[Row], of: str = "") -> str:
    """Returns the names of all columns in the order that `instance` wants; `of` is the table's name in the statement.

    A table may have them in another order: later migrations add theirs at its end.
    """
    return ", ".join(f"{of}.{field.column_name}" if of else field.column_name for field in model._meta.sorted_fields)


def insertion(model: type[Row]) -> str:
    """Returns the text that inserts a row with values for all columns, except its id."""
    names = [field.column_name for field in model._meta.sorted_fields if field.column_name != "id"]
    places = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {model._meta.table_name} ({', '.join(names)}) VALUES ({places})"


def listed(name: str, count: int) -> str:
    """Returns the places of `count` values, with commas between them; `each` names the values."""
    return ", ".join(f":{name}_{place}" for place in range(count))


def each(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """Names the values for the places of `listed`."""
    return {f"{name}_{place}": value for place, value in enumerate(values)}


def instance(model: type[Kind], values: Sequence[Any]) -> Kind:
    """Makes the row of `model` with these values of all its columns, which are numbers and texts as in the database.

    They go in at once: by its attributes, each of thirty columns would be a Python call.
    """
    row = model(__no_default__=True)
    row.__data__.update(zip(model._meta.sorted_field_names, values, strict=True))
    return row
