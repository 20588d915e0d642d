"""The doctor on the database: whole, safe in a power cut, of this version. It changes nothing there."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peewee import PeeweeException, fn

from cli.doctor import leases_check, postgresql_check
from cli.doctor.check import Check, fail, ok, unreadable, warn
from cli.migrate import missing_with_logs
from core.errors import BidkeeperError
from core.settings import Settings
from models import schema
from models.database import base, damage, servers
from models.database.base import is_postgresql, place
from models.database.damage import Unfit
from models.summaries import running_tasks
from models.tasks.cycles import Cycle
from models.tasks.tasks import RUNNING, Task
from models.users import User, Whitelist
from strategy import monthly

_WAL_FORMAT = (2, 2)  # bytes 18 and 19 of a database in WAL mode


@dataclass(slots=True)
class DatabaseState:
    """The database's contents: wanted tasks (their number, and by venue), the newest slugs traded, and people.

    `users` are (sign-in, receive) addresses; None, as are the others, if the contents were not read. `fault` says why.
    """

    tasks: int | None = None
    collection: str | None = None
    rune: str | None = None
    running: dict[str, list[monthly.Task]] | None = None
    listed: frozenset[str] = frozenset()
    users: list[tuple[str, str]] | None = None
    fault: Check | None = None


def examine(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    for check in _server(settings, seen) if is_postgresql(settings.database_url) else _file(settings, seen):
        if seen.users is None:
            seen.fault = check
        yield check


def _server(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    try:
        with base.reading(settings.database_url):
            yield from _contents(settings, seen, "on PostgreSQL")
            yield from postgresql_check.examine(seen.tasks, servers.look_at_each(settings.database_url))
            yield from leases_check.examine(settings.run_dir)
    except (BidkeeperError, PeeweeException) as error:
        text = f"{place(settings.database_url)} cannot be used: {error}"
        remedy = "check that the server runs and that its address is right (docs/operations.md)"
        if isinstance(error, Unfit):
            remedy = "see docs/operations.md#postgresql for the requirements"
        yield fail("database", text, remedy)


def _file(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    name, path = "database", Path(settings.database_url.removeprefix("sqlite:///"))
    try:
        if (known := damage.known(str(path))) is not None:
            yield fail(name, f"damaged: {known.text}", damage.remedy(str(path)))
            return
        if damage.is_missing(str(path)):
            if fault := damage.fault_at_start(str(path)):
                yield fail(name, f"damaged: {fault}", damage.remedy(str(path)))
                return
            if missing := missing_with_logs(settings):
                yield fail(name, missing, damage.remedy(str(path)))
                return
        if not os.path.lexists(path):
            yield warn(name, f"{path} does not exist yet", "bidkeeper up (or migrate) creates it")
            return
        is_open = path.with_name(path.name + "-wal").exists()
        with path.open("rb") as file:
            is_wal = tuple(file.read(20)[18:]) == _WAL_FORMAT
        with base.reading(settings.database_url, alone=not is_open):
            faults = [row[0] for row in base.database.execute_sql("PRAGMA quick_check(3)")]
            if faults != ["ok"]:
                yield fail(name, f"damaged: {'; '.join(faults)}", damage.remedy(str(path)))
            elif not is_wal:
                yield fail(
                    name, "not in WAL mode", "bidkeeper migrate turns it on; if it does not, the disk is not local"
                )
            else:
                yield from _contents(settings, seen, "intact, in WAL mode")
    except (OSError, sqlite3.Error, BidkeeperError, PeeweeException) as error:
        if damage.words_of(error):
            yield fail(name, f"damaged: {error}", damage.remedy(str(path)))
        else:
            yield unreadable(name, path, error, "see docs/operations.md#a-damaged-database")


def _contents(settings: Settings, seen: DatabaseState, state: str) -> Iterator[Check]:
    try:
        schema.refuse_foreign()
    except schema.OtherVersion as error:
        yield fail("database", error.text, error.remedy)
        return
    if pending := schema.pending():
        yield fail("database", f"migrations missing: {', '.join(pending)}", "bidkeeper migrate")
        return
    seen.tasks = Task.select().where(Task.desired == RUNNING, Task.deleted_ms.is_null()).count()
    seen.running = running_tasks()
    seen.listed = frozenset(str(row.address) for row in Whitelist.select())
    seen.users = [(str(user.address), str(user.ordinals_address)) for user in User.select().order_by(User.id)]
    seen.collection, seen.rune = _newest("ordinals"), _newest("rune")
    text = f"{state}, migrations up to date; {seen.tasks} tasks are set to run"
    yield ok("database", f"{text}; last migrated by {schema.written_by()[-1]}")
    yield from _unknown_bids()
    if not (settings.whitelist or settings.admins or seen.listed):
        yield warn("whitelist", "empty: no address can sign in", "bidkeeper whitelist add ADDRESS")


def _unknown_bids() -> Iterator[Check]:
    """Yields a warning if the last cycles of running tasks saw own bids without an order here."""
    newest = Cycle.select(fn.MAX(Cycle.id)).group_by(Cycle.task_id)
    rows: Any = Cycle.select(Cycle.detail, Task.venue).join(Task, on=(Task.id == Cycle.task_id))
    wanted = rows.where(Cycle.id.in_(newest), Task.desired == RUNNING, Task.deleted_ms.is_null()).tuples()
    seen = {(venue, bid["venue_id"]) for detail, venue in wanted for bid in json.loads(detail).get("foreign", ())}
    if seen:
        text = f"running tasks see {len(seen)} bids that no order here knows, as after a restored backup"
        yield warn("bids without an order", text, "bidkeeper reconcile shows them; --cancel cancels them")


def _newest(kind: str) -> str | None:
    rows = Task.select(Task.slug).where(Task.type == kind, Task.deleted_ms.is_null())
    row = rows.order_by(Task.id.desc()).first()
    return None if row is None else str(row.slug)
