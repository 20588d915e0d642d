"""An SQLite file as our database; models/database/base.py tells what every kind promises."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from urllib.parse import quote

from peewee import DatabaseError, OperationalError, SqliteDatabase
from peewee import __exception_wrapper__ as as_peewees  # type: ignore[attr-defined]

from core.files import free_if_full, free_reserve, is_full
from models.database import damage
from models.database.damage import Damage

_BUSY_SECONDS = 15
_IN_MEMORY = ":memory:"

# WAL lets readers go on while one writes. NORMAL may lose the newest commits in a power cut (never in a crash of ours):
# right for cycle rows, not for the ledger, whose transactions are `durable`.
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "normal",
    "foreign_keys": 1,
    "cache_size": -2000,
}


class _Cursor(sqlite3.Cursor):
    """A cursor whose rows fail as statements do: peewee would let the driver's own errors through."""

    def fetchone(self) -> Any:
        try:
            return super().fetchone()
        except sqlite3.DatabaseError as error:
            self._fail(error)

    def fetchall(self) -> list[Any]:
        try:
            return super().fetchall()
        except sqlite3.DatabaseError as error:
            self._fail(error)

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except sqlite3.DatabaseError as error:
            self._fail(error)

    def _fail(self, error: sqlite3.DatabaseError) -> NoReturn:
        assert isinstance(self.connection, _Connection)
        _note(self.connection.file, error)
        with as_peewees:
            raise error


class _Connection(sqlite3.Connection):
    file = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.opened: damage.Opened = {}

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


def _note(file: str, error: BaseException) -> bool:
    """Notes the damage that an error reports of `file`; of "", which is only read here, nothing."""
    found = damage.words_of(error)
    if found and file:
        damage.write_note(file, Damage(found))
    return bool(found)


class Sqlite(SqliteDatabase):
    """An SQLite file, in which one process writes at a time."""

    name = "SQLite"
    has_rowid = True
    words: ClassVar = {  # of statements, where they differ
        "no": "0",
        "yes": "1",
        "mark": "NULL",
        "larger": "MAX",
        "joined": "group_concat",
        "returning_id": "",
    }
    # A write that changes nothing; of a row with the same values nothing is written.
    same_write = "PRAGMA user_version = 0"
    hurry, calm = "PRAGMA busy_timeout=200", f"PRAGMA busy_timeout={1000 * _BUSY_SECONDS}"
    busy_words = "locked"
    # Such an error ends by itself or by the operator's hand; with other words it is a wrong statement.
    away_errors = (OperationalError,)
    away_words = ("locked", "unable to open database file", "disk I/O error", "readonly database")
    file = ""  # the path of the database; "" in memory
    _noted = ""  # the same; "" for one that is only read

    @classmethod
    def at(cls, path: str) -> Sqlite:
        """Makes the database in the file `path`; its directory is made, too."""
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = cls(path, pragmas=PRAGMAS, timeout=_BUSY_SECONDS, autoconnect=False, factory=_Connection)
        made.file = made._noted = "" if path == _IN_MEMORY else path
        return made

    @classmethod
    def read_only(cls, path: str, *, alone: bool = False) -> Sqlite:
        """Makes the database for reading; `alone`: nobody has it open, so no lock is taken and no file left behind."""
        uri = f"file:{quote(path)}?mode=ro" + ("&immutable=1" if alone else "")
        made = cls(uri, uri=True, timeout=_BUSY_SECONDS, factory=_Connection)
        made.file = path
        return made

    def _connect(self) -> Any:
        made = super()._connect()  # type: ignore[misc]
        if isinstance(made, _Connection):
            made.file = self._noted
        return made

    def execute_sql(self, sql: str, params: Any = None) -> Any:
        """Runs a statement; outside of a transaction once more, if the full disk's reserve could be freed."""
        try:
            return super().execute_sql(sql, params)
        except OperationalError as error:
            if self.in_transaction() or not (is_full(error) and free_reserve(self._directory)):
                raise
            return super().execute_sql(sql, params)
        except DatabaseError as error:
            self.note(error)
            raise

    def rollback(self) -> None:
        if self.connection().in_transaction:  # a full disk has ended it
            super().rollback()

    def damage(self) -> Damage | None:
        """Returns the damage that is known of the file."""
        return damage.known(self.file) if self.file else None

    def note(self, error: BaseException) -> bool:
        """Keeps the damage that an error reports, for all programs; returns whether it reports any."""
        return _note(self._noted, error)

    def look_for_lost_files(self) -> Damage | None:
        """Compares this process's open files with their paths, and keeps what was found; returns what is known."""
        if self._noted and not self.is_closed():
            (mode,) = self.execute_sql("PRAGMA journal_mode").fetchone()
            opened = self.connection().opened
            if not opened:
                self.execute_sql("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # opens the files of WAL
            if found := damage.lost_file(self.file, ("", "-wal", "-shm") if mode == "wal" else ("",), opened):
                inodes = tuple((end, inode) for end, (_, _, inode) in opened.items())
                damage.write_note(self.file, Damage(found, is_lost=True, inodes=inodes))
        return self.damage()

    def save_lost(self) -> Callable[[], str] | None:
        """Writes commits in a removed WAL into the database. Returns None if it is at its path.

        Otherwise it returns a call for another thread, which saves a copy of what was removed
        (models/database/damage.py, save_open). This process must have looked for lost files before.
        """
        self.execute_sql("PRAGMA wal_checkpoint(PASSIVE)")
        path, opened = self.file, dict(self.connection().opened)
        return None if damage.is_open(path, opened) else lambda: damage.save_open(path, opened)

    def fault(self) -> str:
        """Reads every page by a connection of its own; says what is wrong, "" if nothing is. For another thread.

        Raises NotRead.
        """
        return damage.fault(self.file)

    @cached_property
    def _directory(self) -> Path:
        return Path(self.database).parent

    def rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Returns all rows of a statement. A SELECT goes past peewee, which takes as long for most as SQLite does.

        One that fails is asked once more peewee's way, which has its errors and remedies.
        """
        if sql.startswith("SELECT") and not self.is_closed():
            with suppress(sqlite3.Error):
                return sqlite3.Cursor(self.connection()).execute(sql, values).fetchall()
        return list(self.execute_sql(sql, values).fetchall())

    @contextmanager
    def writing(self, *, durable: bool, alone: bool) -> Iterator[None]:
        """Holds a writing transaction, which always is alone.

        A commit without room could not be tried again, so the reserve of a full disk is freed before it begins.
        """
        free_if_full(self._directory)
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

    def take_time(self) -> None:
        """Does nothing: an open transaction may last."""

    def lock_installation(self) -> None:
        """Does nothing: the transaction has the file's only lock."""

    def lock_row(self, table: str, row_id: int, strength: str) -> None:
        """Does nothing, as `lock_installation`."""

    def hold_back_events(self) -> None:
        """Does nothing: nobody else writes events before the commit."""

    def settled_event(self) -> int:
        """Returns the number of an event up to which no more will come: of any, since they come in their order."""
        return 2**63 - 1

    def may_tidy(self) -> bool:
        """Tells whether nobody else tidies up: so it is."""
        return True

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

    def mark_of(self, column: str | None) -> Any:
        """Returns None: no query brings a mark along."""
        return None

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """Holds one transaction, so that of several programs one migrates, and a failure leaves nothing behind.

        A migration may make a table anew, and its rows' references must not be followed meanwhile.
        """
        self.execute_sql("PRAGMA foreign_keys=0")  # which is of no effect within a transaction
        try:
            with self.atomic("IMMEDIATE"):
                yield
        finally:
            self.execute_sql("PRAGMA foreign_keys=1")

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
