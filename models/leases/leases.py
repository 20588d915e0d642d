"""Leases: the right to be the only manager of a slot, the only gateway, or the only sender of hooks, for some seconds.

Each lease is a row, which its holder renews. A program that has seen no renewal for the lease's whole duration
(held_lease.py) takes it over, with the next higher token. An SQLite file is used by one machine, where a lock file in
the data directory is enough, so there are no leases and one slot.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from peewee import SQL, BigIntegerField, CharField

from core.errors import BidkeeperError
from models.database import base
from models.database.base import Row, Sqlite, database, is_postgresql, transaction
from models.database.postgresql import Postgresql


class Slot(Struct, frozen=True):
    """The part `number` of all users, who are divided into `of` parts by their ids."""

    number: int = 0
    of: int = 1

    def has(self, user_id: Any) -> Any:
        """Returns the SQL expression that is true for this slot's users; `user_id` is a column."""
        if self.of == 1:
            return SQL("1 = 1")
        ahead = user_id - self.number  # a multiple of `of`; not by %, which peewee turns into LIKE
        return ahead / self.of * self.of == ahead

    def __str__(self) -> str:
        return f"slot {self.number}"


def slot_of(user_id: int, slots: int) -> int:
    """Returns the number of the user's slot."""
    return user_id % slots


EVERYBODY = Slot()

GATEWAY, HOOKS = "gateway", "hooks"
_SLOTS_CHANGED = "before the slots were changed"  # stands for the former homes
_HOME = "home"  # file with a directory's random mark
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
# xmin is the transaction that wrote the row, so a changed row is detected without any clock.
_VERSION = "token || ':' || xmin || ':' || until_ms"


class CannotChangeSlots(BidkeeperError):
    """A refusal to change the number of slots."""


class Lease(Row):
    """A lease. `seconds` is the duration that its holder requested; 0: it was given back, or never taken.

    `until_ms` is its end by the database's clock, for display only: no right depends on it. `address` is where its
    holder answers other machines. `former_home` is the last other home that had it, as long as writes of that home may
    still arrive; a holder that restarts meanwhile needs it too.
    """

    name = CharField(max_length=30, primary_key=True)
    home = CharField(max_length=100, default="")
    machine = CharField(max_length=100, default="")
    address = CharField(max_length=260, default="")
    token = BigIntegerField(default=0)
    until_ms = BigIntegerField(default=0)
    seconds = BigIntegerField(default=0)
    former_home = CharField(max_length=100, default="")


class Holder(Struct, frozen=True):
    """A program that wants a lease: its home (`home_of`), its machine's name, and its address for other machines.

    `directory` is where the programs of this home record the leases that they have seen.
    """

    home: str
    machine: str
    address: str = ""
    directory: Path | None = None


class Taken(NamedTuple):
    """A taken lease: its token, and the last other home whose writes may still arrive ("" = none)."""

    token: int
    former_home: str


class Standing(NamedTuple):
    """A lease that another home has: `version` changes with each renewal, `seconds` is the requested duration."""

    machine: str
    version: str
    seconds: int


class Held(NamedTuple):
    """A lease as other programs see it: its holder, and the remaining milliseconds (below 0: it has expired)."""

    home: str
    machine: str
    address: str
    token: int
    left_ms: int


class LeaseLost(BidkeeperError):
    """A refusal: another program has the lease that this one needs."""


_acting_by: tuple[str, int] | None = None  # the lease (name, token) that this process needs to raise tokens, if any


def act_by(lease: tuple[str, int] | None) -> None:
    """Sets the lease (name and token) that this process needs to raise tasks' tokens; None = no lease."""
    global _acting_by
    _acting_by = lease


def keep_while_acting() -> None:
    """Locks this process's lease until the end of the open transaction. Raises LeaseLost.

    A machine that was frozen with its clocks does not know that its lease is over, so it must not raise tokens over
    those of the new holder. Call it after locking tasks' rows: a worker on a lost machine may hold these locks for
    seconds, and waiting for them with the lease's row locked would block its renewal.
    """
    if _acting_by is not None:
        name, token = _acting_by
        query = "SELECT 1 FROM leases WHERE name = %s AND token = %s FOR SHARE"
        if database.execute_sql(query, [name, token]).fetchone() is None:
            raise LeaseLost(f"the lease {name} is another program's")


def slot_name(number: int) -> str:
    return f"slot {number}"


def home_of(run_dir: Path) -> str:
    """Returns an id of this directory that is unique across all machines until its machine restarts.

    Programs in one directory exclude each other by lock files, so a lease passes to the directory's next program
    immediately. A directory that was removed and created again is another home, even with the same inode. Returns "" if
    the directory is missing.
    """
    try:
        found = run_dir.stat()
    except FileNotFoundError:
        return ""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{found.st_dev}:{found.st_ino}:{_mark(run_dir)}"


def holder_in(run_dir: Path, address: str = "") -> Holder:
    """Returns the holder for a program whose sockets and locks are in this directory; writes the directory's mark."""
    if not _mark(run_dir):
        made = run_dir / f"{_HOME}.{os.getpid()}"
        made.write_text(secrets.token_hex(8))
        # Readable by those who may read the directory, because `bidkeeper doctor` may run as another user.
        made.chmod(0o600 | run_dir.stat().st_mode & 0o044)
        with suppress(FileExistsError):  # another program was first
            os.link(made, run_dir / _HOME)
        made.unlink()
    return Holder(home_of(run_dir), os.uname().nodename, address, run_dir)


def _mark(run_dir: Path) -> str:
    """Returns the directory's random mark; "" if no program there has held a lease yet."""
    try:
        return (run_dir / _HOME).read_text()
    except FileNotFoundError:
        return ""


def are_used() -> bool:
    """Returns whether several machines may use the open database."""
    return not isinstance(database.obj, Sqlite)


def slots() -> int:
    """Returns the number of slots, read with the open connection."""
    if not are_used():
        return 1
    return Lease.select().where(Lease.name.startswith("slot ")).count() or 1


def slots_at(url: str) -> int:
    """Returns the number of slots, read with a temporary connection to `url`."""
    base.connect(url)
    try:
        return slots()
    finally:
        base.close()


def names_at(url: str) -> list[str]:
    """Returns the names of the leases of managers and hooks on the database at `url`; [] before its first migration.

    Raises DatabaseAway.
    """
    if not is_postgresql(url):
        return []
    base.connect(url)
    try:
        if not Lease.table_exists():
            return []
        return [*map(slot_name, range(slots())), HOOKS]
    finally:
        base.close()


def set_slots(number: int) -> None:
    """Divides the users into `number` slots. Raises CannotChangeSlots on SQLite and while a manager runs."""
    if not are_used():
        if number != 1:
            raise CannotChangeSlots("several slots need PostgreSQL: an SQLite file is of one machine")
        return
    with transaction(durable=True):
        if slots() == number and Lease.select().exists():
            return
        ours = Lease.name.startswith("slot ")
        former = list(Lease.select().where(ours).order_by(Lease.name).for_update())  # so that none is taken meanwhile
        if found := Lease.select().where(ours, SQL(f"until_ms >= {_NOW}")).order_by(Lease.name).first():
            raise CannotChangeSlots(f"a manager runs on {found.machine} ({found.name}): stop all of them first")
        Lease.delete().where(ours).execute()
        # A higher token, so that a frozen manager loses its lease and its workers lose their rights.
        token = max((each.token + 1 for each in former), default=0)
        was_held = any(each.home or each.former_home for each in former)
        kept = {"token": token, "former_home": _SLOTS_CHANGED if was_held else ""}
        Lease.insert_many([{"name": slot_name(each)} | kept for each in range(number)]).execute()


_HELD = f"home, machine, address, token, until_ms - {_NOW}"


def held(name: str, within: Any = None) -> Held | None:
    """Returns the lease as it is now; None if it was never taken. Reads with the connection `within` if given."""
    query = f"SELECT {_HELD} FROM leases WHERE name = %s AND home != ''"
    row = (within or database.obj).execute_sql(query, [name]).fetchone()
    return None if row is None else Held(*row)


def held_by_slots() -> list[Held | None]:
    """Returns the leases of all slots as they are now, by number; None for a slot that was never taken."""
    if not are_used():
        return [None]
    rows = database.execute_sql(f"SELECT name, {_HELD} FROM leases WHERE name LIKE 'slot %%'").fetchall()
    found = {name: Held(*values) if values[0] else None for name, *values in rows}
    return [found.get(slot_name(number)) for number in range(len(found) or 1)]


def kept_elsewhere(name: str, run_dir: Path) -> Held | None:
    """Returns the lease if a program on another machine or in another directory has it now, else None."""
    found = held(name) if are_used() else None
    return found if found is not None and found.left_ms >= 0 and found.home != home_of(run_dir) else None


def take(within: Postgresql, name: str, holder: Holder, seconds: int, over: str = "") -> Taken | Standing:
    """Takes the lease for `seconds` if it is free, if this home has it, or if its version is `over` (expired).

    Returns Standing if another home has it. Raises BidkeeperError if the slot no longer exists.
    """
    with within.atomic():
        within.execute_sql(
            "INSERT INTO leases (name, home, machine, address, token, until_ms, seconds, former_home)"
            " SELECT %s, '', '', '', 0, 0, 0, ''"
            " WHERE NOT (%s LIKE 'slot %%' AND EXISTS (SELECT 1 FROM leases WHERE name LIKE 'slot %%'))"
            " ON CONFLICT (name) DO NOTHING",
            [name, name],
        )
        query = f"SELECT home, machine, {_VERSION}, seconds FROM leases WHERE name = %s FOR UPDATE"
        row = within.execute_sql(query, [name]).fetchone()
        if row is None:
            raise BidkeeperError(f"there is no {name}: the number of slots was changed")
        home, standing = row[0], Standing(*row[1:])
        if home not in ("", holder.home) and standing.seconds and standing.version != over:
            return standing
        # The right-hand sides read the old row; `former_home` stays if this home had the lease itself.
        row = within.execute_sql(
            "UPDATE leases SET former_home = CASE WHEN home NOT IN ('', %s) THEN home ELSE former_home END,"
            f" home = %s, machine = %s, address = %s, token = token + 1, until_ms = {_NOW} + %s, seconds = %s"
            " WHERE name = %s RETURNING token, former_home",
            [holder.home, holder.home, holder.machine, holder.address, 1000 * seconds, seconds, name],
        ).fetchone()
    return Taken(int(row[0]), str(row[1]))


def renew(within: Postgresql, name: str, token: int, seconds: int, *, forgets_former: bool = False) -> bool:
    """Renews the lease for `seconds` from now on; returns False if another program has it.

    A lease that has expired by the database's clock is renewed too, because that clock may have jumped.
    """
    with within.atomic():  # because its commit raises CommitUnknown if a standby lacks it
        changed = within.execute_sql(
            f"UPDATE leases SET until_ms = {_NOW} + %s, seconds = %s, {_former(forgets_former)}"
            " WHERE name = %s AND token = %s",
            [1000 * seconds, seconds, name, token],
        )
    return bool(changed.rowcount == 1)


def is_of(within: Postgresql, name: str, token: int) -> bool:
    """Returns whether the lease has this token now."""
    return (
        within.execute_sql("SELECT 1 FROM leases WHERE name = %s AND token = %s", [name, token]).fetchone() is not None
    )


def versions(within: Postgresql) -> dict[str, str]:
    """Returns the current versions of all leases, by name."""
    return dict(within.execute_sql(f"SELECT name, {_VERSION} FROM leases").fetchall())


def addresses_beside(within: Postgresql, name: str, home: str) -> list[str]:
    """Returns one manager's address for each other home, except the home that has this lease."""
    rows = within.execute_sql(
        "SELECT DISTINCT ON (home) address FROM leases WHERE address != '' AND name LIKE 'slot %%'"
        " AND home NOT IN ('', %s, (SELECT home FROM leases WHERE name = %s)) ORDER BY home, name",
        [home, name],
    ).fetchall()
    return [address for (address,) in rows]


def give_back(within: Postgresql, name: str, token: int, *, forgets_former: bool = False) -> None:
    """Ends the lease now, if it still has this token."""
    within.execute_sql(
        f"UPDATE leases SET until_ms = LEAST(until_ms, {_NOW} - 1), seconds = 0, {_former(forgets_former)}"
        " WHERE name = %s AND token = %s",
        [name, token],
    )


def _former(forgets: bool) -> str:
    return "former_home = ''" if forgets else "former_home = former_home"
