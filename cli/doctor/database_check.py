"""The doctor on the database: whole, in WAL mode, of this version. Changes nothing and leaves no file behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from peewee import PeeweeException, SqliteDatabase

from cli.doctor.check import Check, fail, ok, warn
from core.settings import Settings
from models import base, schema
from models.tasks.running_tasks import running_tasks
from models.tasks.table import RUNNING, Task
from models.users import Whitelist
from strategy import monthly

_BUSY_S = 5
_WAL_FORMAT = (2, 2)  # bytes 18 and 19 of a database in WAL mode


@dataclass(slots=True)
class DatabaseState:
    """The database's contents: the number of wanted tasks, by venue, and the newest slugs traded."""

    tasks: int | None = None
    collection: str | None = None
    rune: str | None = None
    running: dict[str, list[monthly.Task]] | None = None


def examine(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    name, path = "database", Path(settings.database_url.removeprefix("sqlite:///"))
    if not path.exists():
        yield warn(name, f"{path} is not there yet", "bidkeeper migrate (or up) makes it")
        return
    try:
        with path.open("rb") as file:
            is_wal = tuple(file.read(20)[18:]) == _WAL_FORMAT
        with _reading(path):
            faults = [row[0] for row in base.database.execute_sql("PRAGMA quick_check(3)")]
            if faults != ["ok"]:
                yield fail(name, f"damaged: {'; '.join(faults)}", "stop, and restore a backup (docs/operations.md)")
            elif not is_wal:
                yield fail(name, "not in WAL mode", "bidkeeper migrate sets it; if it does not, the disk is not local")
            else:
                yield from _contents(settings, seen)
    except (OSError, sqlite3.Error, PeeweeException) as error:
        yield fail(name, f"{path} cannot be read: {error}", "restore a backup if it is damaged (docs/operations.md)")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Opens a connection that leaves no file behind; if no other process has the database open, it takes no locks."""
    is_open = path.with_name(path.name + "-wal").exists()
    uri = f"file:{quote(str(path))}?mode=ro" + ("" if is_open else "&immutable=1")
    base.database.initialize(SqliteDatabase(uri, uri=True, timeout=_BUSY_S))
    with base.database.connection_context():
        yield


def _contents(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    if names := schema.foreign():
        yield fail("database", f"made by another version: {', '.join(names)}", "install that version, or restore")
        return
    if pending := schema.pending():
        yield fail("database", f"behind by {', '.join(pending)}", "bidkeeper migrate")
        return
    seen.tasks = Task.select().where(Task.desired == RUNNING, Task.deleted_ms.is_null()).count()
    seen.running = running_tasks()
    seen.collection, seen.rune = _newest("ordinals"), _newest("rune")
    yield ok("database", f"whole, WAL, migrations are current; {seen.tasks} tasks are wanted to run")
    if not (settings.whitelist or settings.admins or Whitelist.select().exists()):
        yield warn("whitelist", "empty: nobody may sign in", "bidkeeper whitelist add ADDRESS")


def _newest(kind: str) -> str | None:
    rows = Task.select(Task.slug).where(Task.type == kind, Task.deleted_ms.is_null())
    row = rows.order_by(Task.id.desc()).first()
    return None if row is None else str(row.slug)
