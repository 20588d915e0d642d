"""An SQLite file: how it is opened, described and copied, and damage to it.

Damage is a page that cannot be read, or a file that was removed while programs have it open.

The first program that finds damage writes a note next to the database. Every program reads it before it reserves a
bid, a listing or a withdrawal, so that none follows. `bidkeeper up` and `bidkeeper migrate` check the database while
nothing else runs, and remove the note of one that is intact.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from msgspec import Struct
from peewee import DatabaseError, OperationalError, SqliteDatabase

from core.errors import BidkeeperError
from core.files import free_reserve, is_short, sync_directory


class DatabaseAway(BidkeeperError):
    """The database cannot be opened; the message says why, without its password."""


class Unfit(DatabaseAway):
    """The database or the connection to it does not meet our needs, so the operator must repair it."""


class NotRead(DatabaseAway):
    """The database could not be checked for damage; the message says why."""


class Damaged(OperationalError):
    """The database is damaged (models/database/damage.py), so nothing new is reserved in it."""


class CommitUnknown(OperationalError):
    """The connection was lost during a commit, which may have succeeded."""


log = logging.getLogger(__name__)

BACKUPS = "backups"  # directory of backups, next to the database
_WORDS = ("database disk image is malformed", "file is not a database")
_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
BUSY_SECONDS = 15  # how long a statement waits for another process
_MOST_BACKUPS = 5  # newest backups to check for an intact one
_MOST_COPIES = 5  # tries to copy a database that is written to meanwhile
_WAL_HEAD_BYTES = 32  # they change when SQLite begins to overwrite the file
unwritten: dict[str, Damage] = {}  # notes that could not be written, by the path of their database


# Ending of the file's name ("", "-wal", "-shm"): its descriptor in this process, its device and its inode.
Opened = dict[str, tuple[int, int, int]]


class Damage(Struct, frozen=True):
    """The damage in words. `is_lost`: a file was removed or replaced, and programs still use the former one.

    `inodes` are the former files', by the end of the name, as far as they are known.
    """

    text: str
    is_lost: bool = False
    inodes: tuple[tuple[str, int], ...] = ()

    @property
    def for_owners(self) -> str:
        """The damage as a text for tasks' owners."""
        return (
            f"the installation's database is damaged ({self.text}): nothing is placed until the operator has mended it"
        )


def words_of(error: BaseException | None) -> str:
    """Returns the words of damage in a database's error, or in one that led to it; "" if it is of another kind.

    Only a database's own errors count: the text of any other may come from a stranger or a marketplace.
    """
    while error is not None:
        if isinstance(error, sqlite3.DatabaseError | DatabaseError):
            code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
            if code & 0xFF in _CODES or str(error) in _WORDS:
                return str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return ""


def note_error(file: str, error: BaseException) -> bool:
    """Notes the damage that an error reports, unless `file` is "" (read only); returns whether it reports any."""
    found = words_of(error)
    if found and file:
        write_note(file, Damage(found))
    return bool(found)


def note_of(path: str) -> Path:
    """Returns the place of the note of a database."""
    return Path(f"{path}.damaged")


def known(path: str) -> Damage | None:
    """Returns the damage that is known of a database."""
    if path in unwritten:
        return unwritten[path]
    note = f"{path}.damaged"
    if not os.path.exists(note):  # noqa: PTH110 - this is read before each reservation
        return None
    try:
        found = json.loads(Path(note).read_bytes())
        inodes = tuple((str(end), int(inode)) for end, inode in found["inodes"].items())
        return Damage(str(found["text"]), bool(found["is_lost"]), inodes)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Damage("a program noted damage, and its note cannot be read")


def write_note(path: str, damage: Damage) -> None:
    """Writes the note of a database's damage for all its programs; only a lost file replaces an earlier note."""
    former = known(path)
    if former is not None and (former.is_lost or not damage.is_lost):
        return
    note = note_of(path)
    fresh = note.with_name(f"{note.name}.{os.getpid()}")
    try:
        told = {"text": damage.text, "is_lost": damage.is_lost, "inodes": dict(damage.inodes)}
        fresh.write_text(json.dumps(told))
        fresh.replace(note)
    except OSError as error:
        log.error("the note of the damage stays in memory, since it cannot be written: %s", error)
        unwritten[path] = damage


def remove_note(path: str) -> None:
    """Removes the note of a database that was checked; a copy that was saved before is renamed to its date."""
    put_away(_saved_of(path))
    unwritten.pop(path, None)
    note_of(path).unlink(missing_ok=True)


def put_away(saved: Path) -> None:
    """Renames a saved copy, if it is there, to a name with its date, under which no remedy offers it."""
    try:
        at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(saved.stat().st_mtime))
    except FileNotFoundError:
        return
    dated, number = saved.with_name(f"{saved.name}-{at}"), 1
    while dated.exists():
        dated, number = saved.with_name(f"{saved.name}-{at}-{number}"), number + 1
    saved.rename(dated)


def _saved_of(path: str) -> Path:
    return Path(f"{path}.saved")


def lost_file(path: str, ends: Sequence[str], opened: Opened) -> str:
    """Returns a text naming an open file of the database that is no longer at its path; "" if there is none.

    The process must have the files of all `ends` open. Writes to a lost file disappear with the last program that has
    it open. `opened` is a cache for one connection, initially empty, because a process may have thousands of
    descriptors.
    """
    real = os.path.realpath(path)
    if opened.keys() != set(ends) or not all(_is_still(each) for each in opened.values()):
        opened.clear()
        opened.update(_find_opened(real, ends))
    for end in ends:
        name = Path(f"{real}{end}")
        try:
            there = name.stat()
        except OSError:
            return f"{name.name} was removed or moved away while Bidkeeper runs"
        if end not in opened or opened[end][1:] != (there.st_dev, there.st_ino):
            return f"{name.name} was removed or replaced while Bidkeeper runs"
    return ""


def is_open(path: str, opened: Opened) -> bool:
    """Tells whether the path leads to the database that this process has open."""
    try:
        there = Path(path).stat()
    except OSError:
        return False
    return "" in opened and opened[""][1:] == (there.st_dev, there.st_ino)


def _is_still(opened: tuple[int, int, int]) -> bool:
    """Tells whether a descriptor is the file's that it was found for."""
    try:
        found = os.fstat(opened[0])
    except OSError:
        return False
    return opened[1:] == (found.st_dev, found.st_ino)


def _find_opened(real: str, ends: Sequence[str]) -> Opened:
    """Returns the descriptors of this process that are of the files at the paths."""
    wanted: dict[tuple[int, int], str] = {}
    for end in ends:
        try:
            there = Path(f"{real}{end}").stat()
        except OSError:
            continue
        wanted[there.st_dev, there.st_ino] = end
    found: Opened = {}
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - the names are numbers
        try:
            each = os.fstat(descriptor)
        except OSError:  # closed meanwhile
            continue
        if (each.st_dev, each.st_ino) in wanted:
            found[wanted[each.st_dev, each.st_ino]] = (descriptor, each.st_dev, each.st_ino)
    return found


def save_open(path: str, opened: Opened) -> str:
    """Copies a database that was removed, and that this process has open, to `.saved`; returns what is wrong with it.

    For another thread. It reads by SQLite's own descriptors: closing another one of the same file would end SQLite's
    locks. Raises OSError and sqlite3.Error, and then leaves the last saved copy as it is.
    """
    saved = _saved_of(path)
    fresh = saved.with_name(f"{saved.name}.tmp")
    _copy_unchanged(opened, fresh)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:  # its close writes the WAL into the copy
        rows = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
    with fresh.open("rb") as copy:
        os.fsync(copy.fileno())
    put_away(saved)
    fresh.rename(saved)
    sync_directory(saved.parent)
    return "" if rows == ["ok"] else rows[0].splitlines()[-1]


def _copy_unchanged(opened: Opened, target: Path) -> None:
    """Copies the database and its WAL. Raises OSError.

    The WAL is copied last, and has every page that was written into the database meanwhile, unless SQLite has begun to
    overwrite it: then both are copied again.
    """
    for _ in range(_MOST_COPIES):
        before = _state(opened)
        for end in ("", "-wal", "-shm"):
            Path(f"{target}{end}").unlink(missing_ok=True)
        for end in ("", "-wal"):
            if end in opened:
                _copy(opened[end][0], Path(f"{target}{end}"))
        if _state(opened) == before:
            return
    raise BlockingIOError(f"the removed database was written to {_MOST_COPIES} times while it was copied: tries again")


def _state(opened: Opened) -> object:
    """Returns a value that changes when a copy begun before becomes unusable. Raises OSError."""
    if "" not in opened or not all(_is_still(each) for each in opened.values()):
        raise FileNotFoundError("the removed database cannot be copied: this program does not have it open")
    if "-wal" in opened:
        return os.pread(opened["-wal"][0], _WAL_HEAD_BYTES, 0)
    found = os.fstat(opened[""][0])
    return found.st_mtime_ns, found.st_size


def _copy(source: int, target: Path) -> None:
    mode = stat.S_IMODE(os.fstat(source).st_mode)
    copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(copy, "wb") as file:  # noqa: PTH123 - it is a descriptor
        at = 0
        while chunk := os.pread(source, 1 << 20, at):
            at += file.write(chunk)


def fault(path: str, *, is_copy: bool = False) -> str:
    """Reads every page of a database; returns a short description of a fault, "" if all pages are intact.

    It detects pages with a broken structure, but not a changed letter within a value. It leaves the WAL unchanged.
    `is_copy`: no program has the file open, and no WAL files are created. Raises NotRead.
    """
    try:
        with closing(_opened(path, is_copy=is_copy)) as connection:
            rows = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
    except sqlite3.DatabaseError as error:
        directory = Path(path).parent
        is_full = "locked" not in str(error) and directory.exists() and is_short(directory)
        if found := words_of(error) or (str(error) if "disk I/O error" in str(error) and not is_full else ""):
            return found
        if is_full and not is_copy and free_reserve(directory):
            return fault(path)
        reason = f"{error}, and the disk is full" if is_full else str(error)
        raise NotRead(f"the database {path} could not be checked: {reason}") from None
    return "" if rows == ["ok"] else rows[0].splitlines()[-1]


def _opened(path: str, *, is_copy: bool) -> sqlite3.Connection:
    options = "mode=ro&immutable=1" if is_copy else "mode=ro"
    if not is_copy and Path(f"{path}-journal").exists():  # SQLite must write to take an unfinished transaction back
        options = "mode=rw"
    return sqlite3.connect(f"file:{quote(path)}?{options}", uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def is_missing(path: str) -> bool:
    """Tells whether the file of a database is missing or empty."""
    return not _size(path)


def fault_at_start(path: str) -> str:
    """Returns why a database must not be used, "" if it may be. For a start, while no program has it open.

    Raises NotRead.
    """
    real, former = os.path.realpath(path), known(path)
    if is_missing(real):
        if former is not None or any(_size(f"{real}{end}") is not None for end in ("-wal", "-shm")):
            return f"the file is {'missing' if _size(real) is None else 'empty'}, and files that belong to it are there"
        return ""
    if foreign := _foreign(real, former):
        return f"{Path(real).name} was replaced, or {foreign} was: one does not belong to the other"
    return fault(path)


def _size(path: str) -> int | None:
    """Returns the size of a file; None if it is missing."""
    try:
        return Path(path).stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _foreign(real: str, former: Damage | None) -> str:
    """Returns the name of a WAL file that belongs to another database file; "" if there is none.

    SQLite would not notice, and would mix the pages of both.
    """
    if former is None or not former.is_lost or is_missing(real):
        return ""
    inodes = dict(former.inodes)
    is_former = Path(real).stat().st_ino == inodes.get("")
    for end in ("-wal",) if is_former else ("-wal", "-shm"):
        name = f"{real}{end}"
        if _size(name) and (Path(name).stat().st_ino == inodes.get(end)) != is_former:
            return Path(name).name
    return ""


def remedy(path: str) -> str:
    """Returns how to repair a database: by a restart, the manager's saved copy, or the newest intact backup."""
    file, former = Path(os.path.realpath(path)), known(path)
    saved, backup = _offered_copy(path), None
    if former is not None and former.is_lost and not is_missing(path):
        check = "run `bidkeeper migrate`, which checks the database"
        if _foreign(str(file), former):
            check = f"run `{_aside(file, f'{shlex.quote(str(file))}-*')}`"
        if saved is not None and file.stat().st_ino != dict(former.inodes).get(""):
            check += f", or, to use what the former {file.name} held, run `{_exchange(path, saved)}`"
        return f"stop Bidkeeper, {check}, and start"
    if saved is not None:
        return f"the manager has saved a copy: stop Bidkeeper, run `{_exchange(path, saved)}`, and start"
    if (backup := _newest_backup(Path(path))) is not None:
        return f"the newest backup is {backup}: stop Bidkeeper, run `{_exchange(path, backup)}`, and start"
    return (
        f"no intact backup is in {Path(path).parent / BACKUPS}: stop Bidkeeper, put a backup from elsewhere in its"
        " place, and start (docs/operations.md#a-damaged-database)"
    )


def _aside(file: Path, files: str) -> str:
    """Returns the command that puts `files`, words of the shell, into a directory of their own."""
    directory = f"{shlex.quote(str(file.parent))}/damaged-$(date +%s)"
    return f"d={directory} && mkdir -m 700 $d && mv {files} $d/"


def _exchange(path: str, source: Path) -> str:
    """Returns the command that puts the files of a database aside, and a copy of `source` in its place.

    The copy gets the owner and the mode of the former one, since root may run the command.
    """
    file = Path(os.path.realpath(path))
    target = shlex.quote(str(file))
    names = [file, *(Path(f"{file}{end}") for end in ("-wal", "-shm")), _saved_of(path), note_of(path)]
    like = next((_after(file, each) for each in names if each.exists()), None)
    copy = f"cp {_after(file, source)} {target}"
    command = f"{_aside(file, f'{target}*')} && {copy}" if any(file.parent.glob(f"{file.name}*")) else copy
    if like is None:
        return f"{command} && chown --reference={shlex.quote(str(file.parent))} {target}"
    return f"{command} && chown --reference={like} {target} && chmod --reference={like} {target}"


def _after(file: Path, each: Path) -> str:
    """Returns the word of the shell for a path once the files of the database `file` were put aside."""
    is_moved = each.parent == file.parent and each.name.startswith(file.name)
    return f"$d/{shlex.quote(each.name)}" if is_moved else shlex.quote(str(each))


def _offered_copy(path: str) -> Path | None:
    """Returns the copy that the manager has saved since the file was lost, if it is intact."""
    saved, former = _saved_of(path), known(path)
    try:
        if former is None or not former.is_lost or saved.stat().st_mtime_ns < note_of(path).stat().st_mtime_ns:
            return None
    except OSError:
        return None
    return saved if _is_intact(saved) else None


def _is_intact(copy: Path) -> bool:
    try:
        return bool(_size(str(copy))) and not fault(str(copy), is_copy=True)
    except (OSError, NotRead):
        return False


def _newest_backup(database: Path) -> Path | None:
    """Returns the newest intact backup among `backups/NAME` and `backups/*/NAME`."""
    directory = database.parent / BACKUPS
    try:
        found = [*directory.glob(database.name), *directory.glob(f"*/{database.name}")]
        newest = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST_BACKUPS]
    except OSError:
        return None
    return next((path for path in newest if _is_intact(path)), None)


# WAL lets processes read while one writes. NORMAL may lose the newest commits in a power cut, but not in a crash of our
# programs. That is acceptable for cycle rows, but not for the ledger, whose transactions are `durable`.
PRAGMAS = {"journal_mode": "wal", "synchronous": "normal", "foreign_keys": 1, "cache_size": -2000}


class SqliteFile(SqliteDatabase):
    """The rare operations on an SQLite file; models/database/base.py (Sqlite) has those of each request."""

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
    same_write = "PRAGMA user_version = 0"  # changes nothing; of a row with the same values nothing is written
    hurry, calm = "PRAGMA busy_timeout=200", f"PRAGMA busy_timeout={1000 * BUSY_SECONDS}"
    busy_words = "locked"
    # Errors that pass by themselves or that the operator can mend; any other text means a wrong statement.
    away_errors = (OperationalError,)
    away_words = ("locked", "unable to open database file", "disk I/O error", "readonly database")
    factory: Any
    file = ""  # the path of the database; "" in memory
    _noted = ""  # the same; "" for one that is only read

    @classmethod
    def at(cls, path: str) -> Any:
        """Makes the database in the file `path`; its directory is made, too."""
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = cls(path, pragmas=PRAGMAS, timeout=BUSY_SECONDS, autoconnect=False, factory=cls.factory)
        made.file = made._noted = "" if path == ":memory:" else path
        return made

    @classmethod
    def read_only(cls, path: str, *, alone: bool = False) -> Any:
        """Returns the database for reading; `alone`: no program has it open, so no lock or WAL file is needed."""
        uri = f"file:{quote(path)}?mode=ro" + ("&immutable=1" if alone else "")
        made = cls(uri, uri=True, timeout=BUSY_SECONDS, factory=cls.factory)
        made.file = path
        return made

    def _connect(self) -> Any:
        made = super()._connect()  # type: ignore[misc]
        if isinstance(made, self.factory):
            made.file = self._noted
        return made

    def look_closely(self, ends: Sequence[str]) -> None:
        """Notes which of the files, of these ends of their names, this process has open, and no path leads to."""
        opened = self.connection().opened
        if not opened:
            self.execute_sql("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # opens the files of WAL
        if found := lost_file(self.file, ends, opened):
            inodes = tuple((end, inode) for end, (_, _, inode) in opened.items())
            write_note(self.file, Damage(found, is_lost=True, inodes=inodes))

    def save_lost(self) -> Callable[[], str] | None:
        """Writes commits in a removed WAL into the database. Returns None if it is at its path.

        Otherwise it returns a call for another thread, which saves a copy of what was removed (`save_open`). This
        process must have looked for lost files before.
        """
        self.execute_sql("PRAGMA wal_checkpoint(PASSIVE)")
        path, opened = self.file, dict(self.connection().opened)
        return None if is_open(path, opened) else lambda: save_open(path, opened)

    def fault(self) -> str:
        """Reads every page by a connection of its own, for another thread; see `fault`, above."""
        return fault(self.file)

    def take_time(self) -> None:
        """Does nothing: an open transaction may last."""

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

    def snapshot(self) -> Any:
        """Shows one state of the database for the block; blocks writers meanwhile."""
        return self.atomic("IMMEDIATE")

    def columns(self) -> dict[str, list[tuple[str, bool]]]:
        """Returns the tables' columns in their order, and whether each must have a value."""
        return {
            table: [(row[1], bool(row[3])) for row in self.execute_sql(f'PRAGMA table_info("{table}")')]
            for table in self.get_tables()
            if not table.startswith("sqlite_")
        }

    def truth_columns(self, table: str) -> set[str]:
        """Returns the columns that want true and false: none, they are numbers here."""
        return set()

    def last_id(self, table: str) -> int | None:
        """Returns the last id that was given to a row, or None."""
        row = self.execute_sql("SELECT seq FROM sqlite_sequence WHERE name = ?", [table]).fetchone()
        return None if row is None else int(row[0])

    def go_on_after(self, table: str, last_id: int) -> None:
        """Makes the next row's id follow this one."""
        self.execute_sql("DELETE FROM sqlite_sequence WHERE name = ?", [table])
        self.execute_sql("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [table, last_id])

    def index_names(self) -> set[str]:
        """Returns the names of the indexes that were made by name."""
        rows = self.execute_sql("SELECT name FROM sqlite_master WHERE type = 'index' AND sql != ''")
        return {name for (name,) in rows}
