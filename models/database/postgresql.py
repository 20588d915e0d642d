"""A database on a PostgreSQL server; models/database/base.py describes the guarantees of both kinds."""

from __future__ import annotations

import logging
import select
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from threading import get_ident
from typing import Any, ClassVar

from peewee import InterfaceError, InternalError, OperationalError, PostgresqlDatabase
from peewee import __exception_wrapper__ as as_peewees  # type: ignore[attr-defined]

from models.database import servers
from models.database.damage import CommitUnknown, Unfit

# A transaction that will write events locks this number plus the newest event's id at that time.
_EVENTS = 0x45 << 56
HOLD_BACK = (
    f"SELECT pg_advisory_xact_lock_shared({_EVENTS} + last_value - CASE WHEN is_called THEN 0 ELSE 1 END)"
    " FROM events_id_seq"
)
# The newest event is read from a snapshot that is taken before the locks are read. So a transaction with a lower id
# either still holds its lock, or has released it, and then its event is visible to the next statement.
SETTLED = f"""
    SELECT LEAST(
        GREATEST(
            (SELECT COALESCE(MAX(id), 0) FROM events),
            (SELECT COALESCE(MAX(GREATEST(lasting_id, passing_id)), 0) FROM forgotten_events)
        ),
        (
            SELECT MIN((classid::bigint << 32 | objid::bigint) - {_EVENTS}) FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 1
            AND classid::bigint BETWEEN {_EVENTS >> 32} AND {(_EVENTS >> 32) + 0xFF_FF_FF}
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        )
    )
"""

_OFTEN = 5  # as the driver's own: a connection of one cycle prepares nothing
_NEVER = -(2**62)


class PreparedReads:
    """The reads of one connection, outside of transactions."""

    def __init__(self, connection: Any) -> None:
        from psycopg import Error, adapt, errors, generators, pq

        self._connection, self._server = connection, connection.pgconn
        self._values, self._text = adapt.Transformer(connection), adapt.PyFormat.TEXT
        self._answered, self._good = generators.execute, (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
        self._fault, self._told = Error, errors.error_from_result
        self._out_of_time = errors.QueryCanceled, errors.LockNotAvailable
        self._names: dict[str, bytes] = {}
        self._asked: Counter[str] = Counter()
        self._count = 0  # of the names that were given

    def rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """Returns the rows of a SELECT; None if it must be run unprepared, which also reports any error.

        Raises psycopg's QueryCanceled or LockNotAvailable if the server cancels it, because a repeat could take another
        minute.
        """
        try:
            name = self._names.get(sql) or self._prepare(sql)
            return self._ask(name, values) if name else None
        except self._out_of_time:
            raise
        except self._fault:  # from now on the usual way
            self._names.pop(sql, None)
            self._asked[sql] = _NEVER
            return None

    def _prepare(self, sql: str) -> bytes | None:
        """Prepares a read that is asked often; returns its name at the server."""
        self._asked[sql] += 1
        if self._asked[sql] <= _OFTEN or "%%" in sql:
            return None
        self._count += 1
        name = b"read %d" % self._count
        text, *others = sql.split("%s")
        for place, other in enumerate(others, 1):
            text += f"${place}{other}"
        self._server.send_prepare(name, text.encode())
        self._answer()
        self._names[sql] = name
        return name

    def _ask(self, name: bytes, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        self._server.send_query_prepared(name, self._values.dump_sequence(values, [self._text] * len(values)))
        result = self._answer()
        self._values.set_pgresult(result)
        return list(self._values.load_rows(0, result.ntuples, tuple))

    def _answer(self) -> Any:
        [result] = self._connection.wait(self._answered(self._server))
        if result.status not in self._good:
            raise self._told(result)
        return result


log = logging.getLogger(__name__)

_BUSY_SECONDS = 15
# A process that hangs, or whose machine is lost, keeps its locks at most this long. Others wait longer than that, even
# for two such processes, one after the other.
_SILENCE, _SILENT_SECONDS = "idle_in_transaction_session_timeout", 5

# Settings of every connection; they override the server's, database's and role's. Transactions that are not durable
# change `synchronous_commit` themselves.
_POSTGRESQL_SESSION = {
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "lock_timeout": f"{_BUSY_SECONDS}s",
    "statement_timeout": "60s",
    _SILENCE: f"{_SILENT_SECONDS}s",
    "idle_session_timeout": "0",
    # Not used, but the server reports its value, so we can check that these settings have reached it.
    "IntervalStyle": "iso_8601",
    # To detect a lost machine quickly, so that its locks are released, and it is not given locks that it waits for.
    "tcp_keepalives_idle": "1",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "3s",
    "client_connection_check_interval": "1s",
}
_POSTGRESQL_PATIENCE = {
    **servers.PATIENCE,
    # So that a client that waits for an answer soon notices that the server has closed the connection.
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
LEAST_POSTGRESQL = 14
# The lock that every writing transaction takes first: exclusively if it is `alone`, else shared.
_GATE = 0x42_69_64_4B_65_65_70_01
_SCHEMA_LOCK = _GATE + 1  # that of migrations
_INSTALLATION, _HOUSEKEEPING = _GATE + 2, _GATE + 3


class _Ended(OperationalError):
    """The server rolled the transaction back and closed the connection before the statement or commit arrived."""


class Postgresql(PostgresqlDatabase):
    """A database at a PostgreSQL server."""

    name = "PostgreSQL"
    has_rowid = False
    words: ClassVar = {
        "no": "FALSE",
        "yes": "TRUE",
        "mark": "pg_current_snapshot()::text",
        "larger": "GREATEST",
        "joined": "string_agg",
        "returning_id": "RETURNING id",
    }
    same_write = "UPDATE schema_migration SET applied = applied WHERE name = '0001_tables'"
    hurry, calm = "SET lock_timeout TO 200", f"SET lock_timeout TO '{_BUSY_SECONDS}s'"
    busy_words = "lock timeout"
    away_errors, away_words = (OperationalError, InterfaceError), ("",)
    # Ids may exceed PostgreSQL's INTEGER.
    field_types = PostgresqlDatabase.field_types | {"BIGAUTO": "BIGINT GENERATED BY DEFAULT AS IDENTITY"}

    @classmethod
    def at(cls, url: str, *, read_only: bool = False, within_s: float | None = None) -> Postgresql:
        """Makes the database at `url`. Raises DatabaseAway without the driver."""
        if find_spec("psycopg") is None:
            raise Unfit(
                "PostgreSQL's driver is missing: deploy/install.sh --postgresql, or pip install 'psycopg[binary]>=3.2'"
            )
        return cls(url, prefer_psycopg3=True, autoconnect=False, read_only=read_only, within_s=within_s)

    def init(self, database: str | None, *args: Any, **kwargs: Any) -> None:
        self._session = _POSTGRESQL_SESSION | {
            "default_transaction_read_only": "on" if kwargs.pop("read_only", False) else "off"
        }
        if (within_s := kwargs.pop("within_s", None)) is not None:
            self._session |= dict.fromkeys(("lock_timeout", "statement_timeout"), f"{1000 * within_s:.0f}ms")
            self._session[_SILENCE] = f"{1000 * min(within_s, _SILENT_SECONDS):.0f}ms"
        self._thread: int | None = None
        self._opened: Any = None
        self._reads: Any = None  # PreparedReads of the open connection
        self._opening: list[str] = []  # what begins the transaction, until it is sent with the locks
        self._is_alone = True
        self._holds_back = False
        self._settled = 0
        self._was_warned = False
        self._is_resting = False
        super().init(database, *args, **kwargs)

    def _connect(self) -> Any:
        from psycopg import conninfo

        self._thread = get_ident()  # whose later statements may connect anew
        given: dict[str, Any] = conninfo.conninfo_to_dict(self.database)
        session = (f"-c {name}={_escaped(value)}" for name, value in self._session.items())
        options = [given.pop("options", ""), *session]
        usual = {"application_name": "bidkeeper"} | _POSTGRESQL_PATIENCE
        chosen = usual | given | {"options": " ".join(filter(None, options)), "client_encoding": "UTF8"}
        connection = servers.open_newest(chosen, _refuse_unfit)
        connection.add_notice_handler(self._note)
        self._opened, self._is_resting = connection, False
        number, text = _readers()
        connection.adapters.register_loader("numeric", number)
        connection.adapters.register_dumper(str, text)
        self._reads = PreparedReads(connection)
        return connection

    @contextmanager
    def writing(self, *, durable: bool, alone: bool) -> Iterator[None]:
        """Holds a writing transaction; several that are not `alone` may run at the same time."""
        begin = "BEGIN" if durable else "BEGIN; SET LOCAL synchronous_commit TO off"
        with self.atomic(begin):
            self._is_alone, self._holds_back = alone, False
            # A separate statement, so that later ones see the commits made while it waited.
            self._take("SELECT pg_advisory_xact_lock%s(%s)", "" if alone else "_shared", _GATE)
            if alone:
                self._open()
            yield

    def lock_installation(self) -> None:
        """Takes the lock of all users' sums until the transaction's end."""
        if not self._is_alone:
            self._take("SELECT pg_advisory_xact_lock(%s)", _INSTALLATION)

    def lock_row(self, table: str, row_id: int, strength: str) -> None:
        """Locks the row of this id, if there is one, until the transaction's end."""
        if not self._is_alone:
            self._take("SELECT 1 FROM %s WHERE id = %d FOR %s", table, row_id, strength)

    def hold_back_events(self) -> None:
        """Makes `settled_event` stop before this transaction's events until it ends."""
        if not self._is_alone and not self._holds_back:
            self._holds_back = True
            self._take(HOLD_BACK)

    def settled_event(self) -> int:
        """Returns the event id up to which no more events will appear; the next read sees all of these.

        It never decreases, although a lock that was taken late may name an older event.
        """
        [(found,)] = self.execute_sql(SETTLED).fetchall()
        self._settled = max(self._settled, int(found))
        return self._settled

    def may_tidy(self) -> bool:
        """Returns whether this transaction may delete old rows, and then keeps others from it until this one ends."""
        if self._is_alone:
            return True
        [(is_first,)] = self.execute_sql("SELECT pg_try_advisory_xact_lock(%s)", [_HOUSEKEEPING]).fetchall()
        return bool(is_first)

    def _take(self, statement: str, *words: str | int) -> None:
        """Sends a statement that takes a lock; before the first query it goes there together with the others.

        Each statement of a message sees what was committed until it began, as if it had been sent alone.
        """
        if self._opening:
            self._opening.append(statement % words)
        else:
            self.execute_sql(statement % words)

    def _open(self) -> None:
        """Sends BEGIN and the first locks; on a new connection if the old one was lost meanwhile."""
        opening, self._opening = "; ".join(self._opening), []
        try:
            super().execute_sql(opening)
        except (OperationalError, InterfaceError):
            if not self._is_lost():
                raise
            self._renew()
            super().execute_sql(opening)

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
        return self.mark_of(self.execute_sql(f"SELECT {self.words['mark']}").fetchone()[0])

    def mark_of(self, column: str | None) -> Any:
        """Returns the mark that a query has brought along in this column: that of the rows that it has read."""
        return self.connection(), column

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """Holds the schema's lock and one transaction, so that a failed migration changes nothing."""
        self.execute_sql(f"SELECT pg_advisory_lock({_SCHEMA_LOCK})")
        try:
            with self.atomic():
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
        with self.atomic("BEGIN ISOLATION LEVEL REPEATABLE READ"):
            self.take_time()
            yield

    def take_time(self) -> None:
        """Removes the statement time-out of the open transaction, because copying a table may take long."""
        self.execute_sql("SET LOCAL statement_timeout TO 0")
        self.execute_sql(f"SET LOCAL {_SILENCE} TO 0")

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

        If the connection is lost during the statement, a SELECT is sent again. Any other statement may have been
        executed, so it fails, and the next statement gets a new connection.
        """
        if not self.in_transaction():
            self._revive()
        elif self._opening:
            self._open()
        try:
            with self._told_of_its_end():
                return super().execute_sql(sql, params)
        except (OperationalError, InterfaceError):
            if self.in_transaction() or not self._is_lost() or not sql.startswith("SELECT"):
                raise
        self._renew()
        return super().execute_sql(sql, params)

    def rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Returns all rows of a statement; a SELECT outside of a transaction may use a prepared statement."""
        if self.in_transaction() or self.is_closed() or not sql.startswith("SELECT"):
            found = None
        else:
            self._revive()
            with as_peewees:
                found = self._reads.rows(sql, values)
        return self.execute_sql(sql, values).fetchall() if found is None else found

    def begin(self, isolation_level: str | None = None) -> None:
        """Begins a transaction with this statement (default BEGIN), which is sent together with the first query."""
        self._revive()
        self._opening = [isolation_level or "BEGIN"]

    def commit(self) -> None:
        """Commits. Raises CommitUnknown if the answer is lost or has a warning.

        The server warns if its wait for the standby that a durable commit must reach was cancelled.
        """
        if self._opening:  # no statement was sent
            self._opening = []
            return
        self._was_warned = False
        try:
            with self._told_of_its_end():
                super().commit()
        except _Ended:
            raise  # because the server ended the transaction before the commit arrived
        except (OperationalError, InterfaceError) as error:
            if self._is_lost():
                raise CommitUnknown(str(error)) from error
            raise
        if self._was_warned:
            raise CommitUnknown("the server did not wait for its standby")

    def rollback(self) -> None:
        """Rolls the transaction back; if the connection was lost, the server does so itself."""
        if self._opening:
            self._opening = []
        elif not self._is_lost():
            with suppress(_Ended), self._told_of_its_end():
                super().rollback()

    @contextmanager
    def _told_of_its_end(self) -> Iterator[None]:
        """Raises _Ended if the server reports that it has ended an idle transaction."""
        try:
            yield
        except InternalError as error:
            if self._is_lost():
                raise _Ended(str(error)) from error
            raise

    def rest(self) -> None:
        """Closes the connection until the next statement, because each connection occupies a server process."""
        self._is_resting = True
        super().close()

    def close(self) -> bool:
        """Closes the connection for good."""
        self._thread = None
        return bool(super().close())

    def _is_lost(self) -> bool:
        return self._thread == get_ident() and bool(self.is_closed() or self._opened.closed)

    def _revive(self) -> None:
        """Renews a connection that was lost while it was idle; polls its socket to detect that."""
        if not self.is_closed() and not self._opened.closed:
            poll = select.poll()
            poll.register(self._opened.fileno(), select.POLLIN)
            if not poll.poll(0):
                return
            with suppress(Exception):  # the pending data is a notice, or the server's last message
                self._opened.execute("SELECT 1")
        if self._is_lost():
            self._renew()

    def _note(self, notice: Any) -> None:
        self._was_warned = self._was_warned or notice.severity_nonlocalized == "WARNING"

    def _renew(self) -> None:
        if not self._is_resting:
            log.warning("the connection to the database was lost; connects anew")
        begun = self.pop_transaction() if self.in_transaction() else None  # none of its statements was sent yet
        try:
            super().close()
            self.connect()
        finally:
            if begun is not None:
                self.push_transaction(begun)


def _escaped(value: str) -> str:
    return value.replace(" ", "\\ ")


def _refuse_unfit(info: Any) -> None:
    """Raises Unfit for a server that is too old, has another encoding, or does not get our settings."""
    if info.server_version < LEAST_POSTGRESQL * 10_000:
        raise Unfit(f"PostgreSQL {LEAST_POSTGRESQL} or newer is needed, not {info.server_version // 10_000}")
    if info.parameter_status("server_encoding") != "UTF8":
        raise Unfit("the database must be one of encoding UTF8 (CREATE DATABASE ... ENCODING 'UTF8')")
    if info.parameter_status("IntervalStyle") != _POSTGRESQL_SESSION["IntervalStyle"]:
        raise Unfit("our session's settings do not reach the server: a pooler must not stand in between")


@cache
def _readers() -> tuple[Any, Any]:
    """Returns psycopg's loader for sums and its dumper for texts."""
    from psycopg.adapt import Loader
    from psycopg.types.string import StrDumper

    class Whole(Loader):
        """Reads NUMERIC, which is the type of BIGINT's sums, as whole numbers."""

        def load(self, data: Any) -> int:
            return int(bytes(data))

    class Text(StrDumper):
        """Writes a text with NUL replaced, which PostgreSQL does not accept."""

        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)

    return Whole, Text
