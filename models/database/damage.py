"""Damage to an SQLite database: a page that cannot be read, or a file that was removed while programs have it open.

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
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from peewee import DatabaseError

from core.files import is_short

log = logging.getLogger(__name__)

BACKUPS = "backups"  # the directory next to the database in which its backups are looked for
_WORDS = ("database disk image is malformed", "file is not a database")
_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WAITS_S = 15.0
_MOST_BACKUPS = 5  # of which the newest intact one is looked for
_DELETED = " (deleted)"  # the kernel's mark of a removed file
_unwritten: dict[str, Damage] = {}  # notes that could not be written, by the path of their database


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage in words. `is_lost`: a file was removed or replaced, and programs still use the former one."""

    text: str
    is_lost: bool = False


def words_of(error: BaseException | None) -> str:
    """Returns the words of damage in a database's error, or in one that led to it; "" if there is none.

    Only a database's own errors count: the text of any other may come from a stranger or a marketplace.
    """
    while error is not None:
        if isinstance(error, sqlite3.DatabaseError | DatabaseError):
            code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
            if code & 0xFF in _CODES or str(error) in _WORDS:
                return str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return ""


def note_of(path: str) -> Path:
    """Returns the place of the note of a database."""
    return Path(f"{path}.damaged")


def known(path: str) -> Damage | None:
    """Returns the damage that is known of a database."""
    if path in _unwritten:
        return _unwritten[path]
    note = f"{path}.damaged"
    if not os.path.exists(note):  # noqa: PTH110 - this is read before each reservation
        return None
    try:
        found = json.loads(Path(note).read_bytes())
        return Damage(str(found["text"]), bool(found["is_lost"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError):
        return Damage("a program noted damage, and its note cannot be read")


def write_note(path: str, damage: Damage) -> None:
    """Keeps the damage of a database, for all its programs; the first note stays unless a file is lost, too."""
    former = known(path)
    if former is not None and (former.is_lost or not damage.is_lost):
        return
    note = note_of(path)
    fresh = note.with_name(f"{note.name}.{os.getpid()}")
    try:
        fresh.write_text(json.dumps({"text": damage.text, "is_lost": damage.is_lost}))
        fresh.replace(note)
    except OSError as error:
        log.error("the note of the damage stays in memory, since it cannot be written: %s", error)
        _unwritten[path] = damage


def remove_note(path: str) -> None:
    """Removes the note of a database that was checked."""
    _unwritten.pop(path, None)
    note_of(path).unlink(missing_ok=True)


def lost_file(path: str, connection: sqlite3.Connection) -> str:
    """Says which file of the database this process has open, and the path does not lead to; "" for none.

    `connection` is this process's own. A write to such a file is lost with the last program that has it open.
    """
    real = os.path.realpath(path)
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # opens the files of WAL
    opened = dict(_open_files(real))
    for name in (real, f"{real}-wal", f"{real}-shm") if mode == "wal" else (real,):
        if name + _DELETED in opened:
            return f"{Path(name).name} was removed or replaced while Bidkeeper runs"
        try:
            there = Path(name).stat()
        except FileNotFoundError:
            return f"{Path(name).name} was moved away while Bidkeeper runs"
        if opened.get(name) not in (None, (there.st_dev, there.st_ino)):
            return f"{Path(name).name} was replaced while Bidkeeper runs"
    return ""


def is_open(path: str) -> bool:
    """Tells whether this process has the file at the path open."""
    real = os.path.realpath(path)
    try:
        there = Path(real).stat()
    except FileNotFoundError:
        return False
    return dict(_open_files(real)).get(real) == (there.st_dev, there.st_ino)


def _open_files(real: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yields each open file of this process whose name begins with `real`, with its device and inode."""
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            name = os.fspath(descriptor.readlink())
            if name.startswith(real):
                found = descriptor.stat()
                yield name, (found.st_dev, found.st_ino)
        except OSError:  # closed meanwhile
            continue


def fault(path: str, *, is_copy: bool = False) -> str:
    """Reads every page of a database; says in short what is wrong with one, "" if all are whole.

    It sees pages whose structure is broken, and not a changed letter within a value. `is_copy`: no program has the file
    open, and this one leaves no other file there.
    """
    try:
        with closing(_opened(path, is_copy=is_copy)) as connection:
            rows = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
    except sqlite3.DatabaseError as error:
        is_unreadable = "disk I/O error" in str(error) and not is_short(Path(path).parent)
        return words_of(error) or (str(error) if is_unreadable else "")
    return "" if rows == ["ok"] else rows[0].splitlines()[-1]


def _opened(path: str, *, is_copy: bool) -> sqlite3.Connection:
    options = "mode=ro&immutable=1" if is_copy else "mode=rw"
    return sqlite3.connect(f"file:{quote(path)}?{options}", uri=True, timeout=_WAITS_S, isolation_level=None)


def fault_at_start(path: str) -> str:
    """Says why a database must not be used, "" if it may be: for a start, while no program has it open."""
    file, former = Path(path), known(path)
    if file.exists():
        return fault(path) if file.stat().st_size else ""
    if former is not None or any(Path(f"{path}{end}").exists() for end in ("-wal", "-shm")):
        return "the file is missing, and files that belong to it are there"
    return ""


def remedy(path: str) -> str:
    """Says how to mend a database: by a restart, the copy that the manager has saved, or the newest intact backup."""
    file, former = Path(path), known(path)
    if former is not None and former.is_lost and file.exists():
        return "stop Bidkeeper, run `bidkeeper migrate`, which checks the database, and start"
    saved, backup = file.with_name(f"{file.name}.saved"), _newest_backup(file)
    if saved.exists() and not fault(str(saved), is_copy=True):
        return f"the manager has saved a copy: {_exchange(file, f'$d/{shlex.quote(saved.name)}')}"
    if backup is not None:
        return f"the newest backup is {backup}: {_exchange(file, shlex.quote(str(backup)))}"
    return (
        f"no intact backup is in {file.parent / BACKUPS}: stop Bidkeeper, put a backup from elsewhere in its place, and"
        " start (docs/operations.md#a-damaged-database)"
    )


def _exchange(file: Path, source: str) -> str:
    """Returns the command that puts the files of a database aside, and `source`, a word of the shell, in its place."""
    target, aside = shlex.quote(str(file)), f"{shlex.quote(str(file.parent))}/damaged-$(date +%s)"
    command = f"d={aside} && mkdir -m 700 $d && mv {target}* $d/ && cp {source} {target}"
    return f"stop Bidkeeper, run `{command}`, and start"


def _newest_backup(database: Path) -> Path | None:
    """Returns the newest intact backup among `backups/NAME` and `backups/*/NAME`."""
    directory = database.parent / BACKUPS
    try:
        found = [*directory.glob(database.name), *directory.glob(f"*/{database.name}")]
        newest = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST_BACKUPS]
    except OSError:
        return None
    return next((path for path in newest if path.stat().st_size and not fault(str(path), is_copy=True)), None)
