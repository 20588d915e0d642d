"""The two kinds of database, an SQLite file and a PostgreSQL server, and all in which they differ.

Nobody else knows peewee's classes of databases. Both give the same promises: a writing transaction sees, and is seen,
as if it were alone; a durable one has reached the disk when it returns; ids are never given twice.
"""

from __future__ import annotations

import logging
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import get_ident
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from peewee import InterfaceError, OperationalError, PostgresqlDatabase, SqliteDatabase

from core.errors import BidkeeperError
from models import servers

log = logging.getLogger(__name__)

_BUSY_SECONDS = 15

# WAL lets readers go on while one writes. NORMAL may lose the newest commits in a power cut (never in a crash of ours):
# right for cycle rows, not for the ledger, whose transactions are `durable`.
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "normal",
    "foreign_keys": 1,
    "cache_size": -2000,
}

# Of every connection, whatever the server, the database or the role say. What is not durable says so itself.
_POSTGRESQL_SESSION = {
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "lock_timeout": f"{_BUSY_SECONDS}s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
    "idle_session_timeout": "0",
    # We have no use for it, but the server says what it is: so we see that these settings have reached it.
    "IntervalStyle": "iso_8601",
    # So that the locks of a machine that is gone are free soon.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20s",
}
_POSTGRESQL_PATIENCE = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
LEAST_POSTGRESQL = 14
# The lock that every writing transaction takes first: by those that are alone in the database exclusively.
_GATE = 0x42_69_64_4B_65_65_70_01
_SCHEMA_LOCK = _GATE + 1  # that of migrations
_NAMES = {"installation": _GATE + 2, "events": _GATE + 3}


class DatabaseAway(BidkeeperError):
    """The database cannot be opened; the message says why, without its password."""


class Unfit(DatabaseAway):
    """The database, or the way to it, does not do what we need: waiting does not help."""


class CommitUnknown(OperationalError):
    """The connection was lost between a commit and its answer: it may have been carried out."""


class Sqlite(SqliteDatabase):
    """An SQLite file, in which one process writes at a time."""

    name = "SQLite"
    has_rowid = True
    truths = ("0", "1")
    larger = "MAX"
    joined = "group_concat(COALESCE({value}, 'null'))"

    @classmethod
    def at(cls, path: str) -> Sqlite:
        """Makes the database in the file `path`; its directory is made, too."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return cls(path, pragmas=PRAGMAS, timeout=_BUSY_SECONDS, autoconnect=False)

    @classmethod
    def read_only(cls, path: str, *, alone: bool = False) -> Sqlite:
        """Makes the database for reading; `alone`: nobody has it open, so no lock is taken and no file left behind."""
        uri = f"file:{quote(path)}?mode=ro" + ("&immutable=1" if alone else "")
        return cls(uri, uri=True, timeout=_BUSY_SECONDS)

    @contextmanager
    def writing(self, *, durable: bool, alone: bool) -> Iterator[None]:
        """Holds a writing transaction, which always is alone."""
        if durable:
            self.execute_sql("PRAGMA synchronous=FULL")
        try:
            with self.atomic("IMMEDIATE"):
                yield
        finally:
            if durable and not self.is_closed():
                self.execute_sql("PRAGMA synchronous=NORMAL")

    def rest(self) -> None:
        """Does nothing: an open file costs nobody anything."""

    def lock_name(self, name: str) -> None:
        """Does nothing: the transaction has the file's only lock."""

    def lock_row(self, table: str, row_id: int, strength: str) -> None:
        """Does nothing, as `lock_name`."""

    @contextmanager
    def without_waiting(self) -> Iterator[None]:
        """Has statements fail (OperationalError) that would wait for another process."""
        self.execute_sql("PRAGMA busy_timeout=0")
        try:
            yield
        finally:
            self.execute_sql(f"PRAGMA busy_timeout={1000 * _BUSY_SECONDS}")

    def mark(self) -> Any:
        """Returns a value that changes with every commit.

        SQLite counts other connections' commits in `data_version` and our own changes in `total_changes`.
        """
        connection = self.connection()
        return connection, connection.total_changes, connection.execute("PRAGMA data_version").fetchone()

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """Holds nothing: each migration is a transaction, which is alone."""
        yield

    def columns(self) -> dict[str, list[tuple[str, bool]]]:
        """Returns the tables' columns in their order, and whether each must have a value."""
        return {
            table: [(row[1], bool(row[3])) for row in self.execute_sql(f'PRAGMA table_info("{table}")')]
            for table in self.get_tables()
            if not table.startswith("sqlite_")
        }

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Shows one state of the database for the block; nobody writes meanwhile."""
        with self.atomic("IMMEDIATE"):
            yield

    def truth_columns(self, table: str) -> set[str]:
        """Returns the columns that want true and false: none, they are numbers here."""
        return set()

    def last_id(self, table: str) -> int | None:
        """Returns the last id that was given to a row; None where there is none."""
        row = self.execute_sql("SELECT seq FROM sqlite_sequence WHERE name = ?", [table]).fetchone()
        return None if row is None else int(row[0])

    def go_on_after(self, table: str, last_id: int) -> None:
        """Has the next row get an id after this one."""
        self.execute_sql("DELETE FROM sqlite_sequence WHERE name = ?", [table])
        self.execute_sql("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [table, last_id])

    def index_names(self) -> set[str]:
        """Returns the names of the indexes that were made by name."""
        rows = self.execute_sql("SELECT name FROM sqlite_master WHERE type = 'index' AND sql != ''")
        return {name for (name,) in rows}

    @staticmethod
    def inserted(cursor: Any) -> int | None:
        """Returns the id of the row that an INSERT has written; None when it has written none."""
        return int(cursor.lastrowid) if cursor.rowcount == 1 else None


class Postgresql(PostgresqlDatabase):
    """A database at a PostgreSQL server."""

    name = "PostgreSQL"
    has_rowid = False
    truths = ("FALSE", "TRUE")
    larger = "GREATEST"
    joined = "string_agg(COALESCE(({value})::text, 'null'), ',' ORDER BY {by})"
    # A number of ours may be larger than its INTEGER, and a text longer than we thought, which SQLite takes.
    field_types = PostgresqlDatabase.field_types | {"BIGAUTO": "BIGINT GENERATED BY DEFAULT AS IDENTITY"}

    @classmethod
    def at(cls, url: str, *, read_only: bool = False) -> Postgresql:
        """Makes the database at `url`. Raises DatabaseAway without the driver."""
        if find_spec("psycopg") is None:
            raise Unfit(
                "PostgreSQL's driver is missing: deploy/install.sh --postgresql, or pip install 'psycopg[binary]>=3.2'"
            )
        return cls(url, prefer_psycopg3=True, autoconnect=False, read_only=read_only)

    def init(self, database: str | None, *args: Any, **kwargs: Any) -> None:
        self._read_only = kwargs.pop("read_only", False)
        self._thread: int | None = None
        self._opened: Any = None
        self._is_alone = True
        self._was_warned = False
        self._is_resting = False
        super().init(database, *args, **kwargs)

    def _connect(self) -> Any:
        from psycopg import conninfo

        self._thread = get_ident()  # whose later statements may connect anew
        given: dict[str, Any] = conninfo.conninfo_to_dict(self.database)
        session = _POSTGRESQL_SESSION | {"default_transaction_read_only": "on" if self._read_only else "off"}
        options = [given.pop("options", ""), *(f"-c {name}={_escaped(value)}" for name, value in session.items())]
        usual = {"application_name": "bidkeeper"} | _POSTGRESQL_PATIENCE
        chosen = usual | given | {"options": " ".join(filter(None, options)), "client_encoding": "UTF8"}
        connection = servers.open_newest(chosen, _refuse_unfit)
        connection.add_notice_handler(self._note)
        self._opened, self._is_resting = connection, False
        number, text = _readers()
        connection.adapters.register_loader("numeric", number)
        connection.adapters.register_dumper(str, text)
        return connection

    @contextmanager
    def writing(self, *, durable: bool, alone: bool) -> Iterator[None]:
        """Holds a writing transaction. One that is not `alone` goes on beside others of its kind."""
        lock = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        begin = "BEGIN" if durable else "BEGIN; SET LOCAL synchronous_commit TO off"
        # A statement of its own, so that all that follow see what was committed while it waited.
        with self.atomic(f"{begin}; SELECT {lock}({_GATE})"):
            self._is_alone = alone
            yield

    def lock_name(self, name: str) -> None:
        """Takes the lock of this name until the transaction's end."""
        if not self._is_alone:
            self.execute_sql("SELECT pg_advisory_xact_lock(%s)", [_NAMES[name]])

    def lock_row(self, table: str, row_id: int, strength: str) -> None:
        """Locks the row of this id, if there is one, until the transaction's end."""
        if not self._is_alone:
            self.execute_sql(f"SELECT 1 FROM {table} WHERE id = %s FOR {strength}", [row_id])

    @contextmanager
    def without_waiting(self) -> Iterator[None]:
        """Has statements fail (OperationalError) that would wait for another transaction."""
        with self.atomic("BEGIN; SET LOCAL synchronous_commit TO off; SET LOCAL lock_timeout TO 1"):
            yield

    def mark(self) -> Any:
        """Returns a value that changes with every commit: two equal snapshots show the same rows.

        Other databases of the same server change it, too, which costs a look in vain. The connection is part of it,
        since a server that took another's place may count its transactions anew.
        """
        row = self.execute_sql("SELECT pg_current_snapshot()::text").fetchone()
        return self.connection(), row[0]

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """Holds the lock of those who change the schema."""
        self.execute_sql(f"SELECT pg_advisory_lock({_SCHEMA_LOCK})")
        try:
            yield
        finally:
            if not self._is_lost():
                self.execute_sql(f"SELECT pg_advisory_unlock({_SCHEMA_LOCK})")

    def columns(self) -> dict[str, list[tuple[str, bool]]]:
        """Returns the tables' columns in their order, and whether each must have a value."""
        found: dict[str, list[tuple[str, bool]]] = {}
        for table, column, must in self.execute_sql(
            "SELECT c.relname, a.attname, a.attnotnull FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
            " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0"
            " AND NOT a.attisdropped ORDER BY c.relname, a.attnum"
        ):
            found.setdefault(table, []).append((column, must))
        return found

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Shows one state of the database for the block."""
        # The rows of one table may be long on their way to another database.
        patience = "SET LOCAL statement_timeout TO 0; SET LOCAL idle_in_transaction_session_timeout TO 0"
        with self.atomic(f"BEGIN ISOLATION LEVEL REPEATABLE READ; {patience}"):
            yield

    def truth_columns(self, table: str) -> set[str]:
        """Returns the columns that want true and false."""
        return {row.name for row in self.get_columns(table) if row.data_type == "boolean"}

    def last_id(self, table: str) -> int | None:
        """Returns the last id that was given to a row; None where there is none."""
        [(sequence,)] = self.execute_sql("SELECT pg_get_serial_sequence(%s, 'id')", [table]).fetchall()
        if sequence is None:
            return None
        [(last, was_given)] = self.execute_sql(f"SELECT last_value, is_called FROM {sequence}").fetchall()
        return int(last) if was_given else None

    def go_on_after(self, table: str, last_id: int) -> None:
        """Has the next row get an id after this one."""
        self.execute_sql("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [table, last_id])

    def index_names(self) -> set[str]:
        """Returns the names of the indexes that were made by name, without those of primary keys."""
        rows = self.execute_sql(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE c.relnamespace = current_schema()::regnamespace AND NOT i.indisprimary"
        )
        return {name for (name,) in rows}

    @staticmethod
    def inserted(cursor: Any) -> int | None:
        """Returns the id of the row that an INSERT has written; None when it has written none."""
        row = cursor.fetchone()
        return None if row is None else int(row[0])

    def execute_sql(self, sql: str, params: Any = None) -> Any:
        """Runs a statement; outside of a transaction on a new connection, if the old one was lost while it was idle.

        One that only reads is sent again when the connection is lost meanwhile. Others may have been carried out, so
        they fail, and the next one finds a connection.
        """
        if not self.in_transaction():
            self._revive()
        try:
            return super().execute_sql(sql, params)
        except (OperationalError, InterfaceError):
            if self.in_transaction() or not self._is_lost() or not sql.startswith("SELECT"):
                raise
        self._renew()
        return super().execute_sql(sql, params)

    def begin(self, isolation_level: str | None = None) -> None:
        """Begins a transaction, by this statement if one is given; on a new connection if the old one was lost."""
        statement = isolation_level or "BEGIN"
        self._revive()
        try:
            super().execute_sql(statement)
        except (OperationalError, InterfaceError):
            if not self._is_lost():
                self.rollback()  # a lock may have been waited for in vain
                raise
            self._renew()
            super().execute_sql(statement)

    def commit(self) -> None:
        """Commits. Raises CommitUnknown when the answer does not come, or with a warning.

        The server warns when somebody has it wait no longer for the standby that a durable commit must have reached.
        """
        self._was_warned = False
        try:
            super().commit()
        except (OperationalError, InterfaceError) as error:
            if self._is_lost():
                raise CommitUnknown(str(error)) from error
            raise
        if self._was_warned:
            raise CommitUnknown("the server did not wait for its standby")

    def rollback(self) -> None:
        """Takes the transaction back; where the connection was lost, the server has done so, or will."""
        if not self._is_lost():
            super().rollback()

    def rest(self) -> None:
        """Closes the connection until the next statement: a process of the server's is there for each."""
        self._is_resting = True
        super().close()

    def close(self) -> bool:
        """Closes the connection for good."""
        self._thread = None
        return bool(super().close())

    def _is_lost(self) -> bool:
        return self._thread == get_ident() and bool(self.is_closed() or self._opened.closed)

    def _revive(self) -> None:
        """Renews a connection that was lost while it was idle, which nothing but its socket tells."""
        if not self.is_closed() and not self._opened.closed:
            poll = select.poll()
            poll.register(self._opened.fileno(), select.POLLIN)
            if not poll.poll(0):
                return
            with suppress(Exception):  # what has come is a farewell, or a notice
                self._opened.execute("SELECT 1")
        if self._is_lost():
            self._renew()

    def _note(self, notice: Any) -> None:
        self._was_warned = self._was_warned or notice.severity_nonlocalized == "WARNING"

    def _renew(self) -> None:
        if not self._is_resting:
            log.warning("the connection to the database was lost; connects anew")
        super().close()
        self.connect()


def _escaped(value: str) -> str:
    return value.replace(" ", "\\ ")


def _refuse_unfit(info: Any) -> None:
    """Raises DatabaseAway for a server whose promises are not ours."""
    if info.server_version < LEAST_POSTGRESQL * 10_000:
        raise Unfit(f"PostgreSQL {LEAST_POSTGRESQL} or newer is needed, not {info.server_version // 10_000}")
    if info.parameter_status("server_encoding") != "UTF8":
        raise Unfit("the database must be one of encoding UTF8 (CREATE DATABASE ... ENCODING 'UTF8')")
    if info.parameter_status("IntervalStyle") != _POSTGRESQL_SESSION["IntervalStyle"]:
        raise Unfit("our session's settings do not reach the server: a pooler must not stand in between")


@cache
def _readers() -> tuple[Any, Any]:
    """Returns how sums are read, and how texts are written."""
    from psycopg.adapt import Loader
    from psycopg.types.string import StrDumper

    class Whole(Loader):
        """Reads NUMERIC, which is the type of BIGINT's sums, as whole numbers."""

        def load(self, data: Any) -> int:
            return int(bytes(data))

    class Text(StrDumper):
        """Writes a text, in which PostgreSQL takes every character but NUL."""

        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)

    return Whole, Text


def opened(url: str, *, read_only: bool = False, alone: bool = False) -> Sqlite | Postgresql:
    """Makes the database at `url`, without a connection; see `Sqlite.read_only` for `alone`.

    Raises ValueError for a kind that we do not know, and DatabaseAway where the way there is missing.
    """
    scheme, _, path = url.partition(":///")
    if scheme == "sqlite" and path:
        return Sqlite.read_only(path, alone=alone) if read_only else Sqlite.at(path)
    if scheme == "unreadable":
        raise Unfit(f"this user may not read {path}, which has the database's address")
    if is_postgresql(url):
        return Postgresql.at(url, read_only=read_only)
    raise ValueError(f"not a database this version can use: {scheme}")


def is_postgresql(url: str) -> bool:
    """Tells whether the database at `url` is PostgreSQL's."""
    return url.startswith("postgresql://")


def place(url: str) -> str:
    """Returns `url` as it may be shown: without a password."""
    if not is_postgresql(url):
        return url
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2] or ",".join(parse_qs(parts.query).get("host", ()))
    return f"postgresql://{hosts}{parts.path}"
