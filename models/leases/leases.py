"""Leases: the right to be the one manager of a slot, the one gateway, the one sender of hooks, for some seconds.

A row each, which its holder renews. Whoever has watched it for all its time without a renewal (held_lease.py) takes
it, with the next higher token. An SQLite file is of one machine, where a lock in the data directory says as much: no
lease is needed there, and there is one slot.
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
    """The part `number` of all users, who are divided into `of` parts by their numbers."""

    number: int = 0
    of: int = 1

    def has(self, user_id: Any) -> Any:
        """Makes the expression that is true of this slot's users; `user_id` is a column."""
        if self.of == 1:
            return SQL("1 = 1")
        ahead = user_id - self.number  # a whole multiple; peewee takes % for LIKE
        return ahead / self.of * self.of == ahead

    def __str__(self) -> str:
        return f"slot {self.number}"


def slot_of(user_id: int, slots: int) -> int:
    """Returns the number of the user's slot, of so many."""
    return user_id % slots


EVERYBODY = Slot()

GATEWAY, HOOKS = "gateway", "hooks"
_SLOTS_CHANGED = "before the slots were changed"  # a home
_HOME = "home"  # the file that marks a directory
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
# xmin is the transaction that wrote the row, so no clock decides whether it is another one than before.
_VERSION = "token || ':' || xmin || ':' || until_ms"


class CannotChangeSlots(BidkeeperError):
    """A refusal to change the number of slots."""


class Lease(Row):
    """A lease. `seconds` is for how long its holder has asked; 0: it was given back, or nobody ever had it.

    `until_ms` is its end by the database's clock, for others' eyes: no right depends on it. `address` is where its
    holder answers other machines. `former_home` is the last other home that had it, until nothing of it is to be
    awaited any more: a holder that is started anew before that must know of it, too.
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
    """A program that wants a lease: the place of its files, its machine's name, and where it answers other machines.

    `directory`: where the programs of this home tell one another which leases they have seen.
    """

    home: str
    machine: str
    address: str = ""
    directory: Path | None = None


class Taken(NamedTuple):
    """A lease as it was taken: its token, and the last other home ("" = none) of which something may be awaited."""

    token: int
    former_home: str


class Standing(NamedTuple):
    """A lease that another home has: `version` changes with each renewal, by which its holder asks for `seconds`."""

    machine: str
    version: str
    seconds: int


class Held(NamedTuple):
    """A lease as others see it: who has it, where, and for how long yet (ms; below 0: nobody has it)."""

    home: str
    machine: str
    address: str
    token: int
    left_ms: int


class LeaseLost(BidkeeperError):
    """A refusal: another program has the lease by which this one acts."""


_acting_by: tuple[str, int] | None = None  # name and token of the lease by which this process gives rights, if any


def act_by(lease: tuple[str, int] | None) -> None:
    """Has this process give rights only while it has this lease (name and token); None: it needs none."""
    global _acting_by
    _acting_by = lease


def keep_while_acting() -> None:
    """Keeps the lease by which this process acts its own to the end of the open transaction. Raises LeaseLost.

    A machine that was frozen with its clocks does not know that its lease is over: it must not take back by a higher
    token what another one does by now. It comes after the locks of tasks' rows: a worker whose machine is gone may
    keep those for seconds, and whoever waited for them with the lease's row locked could not renew its own lease.
    """
    if _acting_by is not None:
        name, token = _acting_by
        query = "SELECT 1 FROM leases WHERE name = %s AND token = %s FOR SHARE"
        if database.execute_sql(query, [name, token]).fetchone() is None:
            raise LeaseLost(f"the lease {name} is another program's")


def slot_name(number: int) -> str:
    return f"slot {number}"


def home_of(run_dir: Path) -> str:
    """Returns what tells this directory from all others on all machines, for as long as its machine runs.

    Programs there keep one another out by locks, so what its former program held is its next one's at once. One that
    was made anew, with new locks, is another home, though the file system gives it the former one's number. "" where
    there is no directory: its programs make it again.
    """
    try:
        found = run_dir.stat()
    except FileNotFoundError:
        return ""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{found.st_dev}:{found.st_ino}:{_mark(run_dir)}"


def holder_in(run_dir: Path, address: str = "") -> Holder:
    """Describes a program whose sockets and locks are in this directory, and marks that."""
    if not _mark(run_dir):
        made = run_dir / f"{_HOME}.{os.getpid()}"
        made.write_text(secrets.token_hex(8))
        # Whoever may read the directory may read it: `bidkeeper doctor` may be another user's.
        made.chmod(0o600 | run_dir.stat().st_mode & 0o044)
        with suppress(FileExistsError):  # another program was first
            os.link(made, run_dir / _HOME)
        made.unlink()
    return Holder(home_of(run_dir), os.uname().nodename, address, run_dir)


def _mark(run_dir: Path) -> str:
    """Returns what is drawn by lot once for a directory; "" where no program has held a lease yet."""
    try:
        return (run_dir / _HOME).read_text()
    except FileNotFoundError:
        return ""


def are_used() -> bool:
    """Tells whether the open database is one that several machines may use."""
    return not isinstance(database.obj, Sqlite)


def slots() -> int:
    """Returns into how many slots the users are divided, by the open connection."""
    if not are_used():
        return 1
    return Lease.select().where(Lease.name.startswith("slot ")).count() or 1


def slots_at(url: str) -> int:
    """Returns into how many slots the users are divided, by a connection to `url` for this question alone."""
    base.connect(url)
    try:
        return slots()
    finally:
        base.close()


def names_at(url: str) -> list[str]:
    """Returns the names of all leases of managers and hooks on the database at `url`; none before its first migration.

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
    """Divides the users into so many slots. Raises CannotChangeSlots, on SQLite and while a manager runs."""
    if not are_used():
        if number != 1:
            raise CannotChangeSlots("several slots need PostgreSQL: an SQLite file is of one machine")
        return
    with transaction(durable=True):
        if slots() == number and Lease.select().exists():
            return
        ours = Lease.name.startswith("slot ")
        former = list(Lease.select().where(ours).order_by(Lease.name).for_update())  # nobody takes one meanwhile
        if found := Lease.select().where(ours, SQL(f"until_ms >= {_NOW}")).order_by(Lease.name).first():
            raise CannotChangeSlots(f"a manager runs on {found.machine} ({found.name}): stop all of them first")
        Lease.delete().where(ours).execute()
        # A manager that is frozen somewhere must not find its token again, and its workers' rights are to be ended.
        token = max((each.token + 1 for each in former), default=0)
        was_held = any(each.home or each.former_home for each in former)
        kept = {"token": token, "former_home": _SLOTS_CHANGED if was_held else ""}
        Lease.insert_many([{"name": slot_name(each)} | kept for each in range(number)]).execute()


_HELD = f"home, machine, address, token, until_ms - {_NOW}"


def held(name: str, within: Any = None) -> Held | None:
    """Returns the lease as it is now; None when nobody ever had it. `within`: by this connection, not the open one."""
    query = f"SELECT {_HELD} FROM leases WHERE name = %s AND home != ''"
    row = (within or database.obj).execute_sql(query, [name]).fetchone()
    return None if row is None else Held(*row)


def held_by_slots() -> list[Held | None]:
    """Returns the leases of all slots as they are now, by number; None where nobody ever had it."""
    if not are_used():
        return [None]
    rows = database.execute_sql(f"SELECT name, {_HELD} FROM leases WHERE name LIKE 'slot %%'").fetchall()
    found = {name: Held(*values) if values[0] else None for name, *values in rows}
    return [found.get(slot_name(number)) for number in range(len(found) or 1)]


def kept_elsewhere(name: str, run_dir: Path) -> Held | None:
    """Returns the lease, if a program of another machine or directory has it now."""
    found = held(name) if are_used() else None
    return found if found is not None and found.left_ms >= 0 and found.home != home_of(run_dir) else None


def take(within: Postgresql, name: str, holder: Holder, seconds: int, over: str = "") -> Taken | Standing:
    """Takes the lease for so long, if nobody has it, or this home; or its version is the one whose time is `over`.

    Returns what stands where another home has it. Raises BidkeeperError when there is no such slot any more.
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
        # On the right there is the row as it was: what this home had itself says nothing new.
        row = within.execute_sql(
            "UPDATE leases SET former_home = CASE WHEN home NOT IN ('', %s) THEN home ELSE former_home END,"
            f" home = %s, machine = %s, address = %s, token = token + 1, until_ms = {_NOW} + %s, seconds = %s"
            " WHERE name = %s RETURNING token, former_home",
            [holder.home, holder.home, holder.machine, holder.address, 1000 * seconds, seconds, name],
        ).fetchone()
    return Taken(int(row[0]), str(row[1]))


def renew(within: Postgresql, name: str, token: int, seconds: int, *, forgets_former: bool = False) -> bool:
    """Holds the lease for so long from now on; returns False when another one has it.

    One that has run out by the database's clock is renewed, too: that clock may have jumped, and nobody else has it.
    """
    with within.atomic():  # whose commit tells when a standby lacks it
        changed = within.execute_sql(
            f"UPDATE leases SET until_ms = {_NOW} + %s, seconds = %s, {_former(forgets_former)}"
            " WHERE name = %s AND token = %s",
            [1000 * seconds, seconds, name, token],
        )
    return bool(changed.rowcount == 1)


def is_of(within: Postgresql, name: str, token: int) -> bool:
    """Tells whether the lease is this one now."""
    return (
        within.execute_sql("SELECT 1 FROM leases WHERE name = %s AND token = %s", [name, token]).fetchone() is not None
    )


def versions(within: Postgresql) -> dict[str, str]:
    """Returns the versions of all leases as they stand now, by their names."""
    return dict(within.execute_sql(f"SELECT name, {_VERSION} FROM leases").fetchall())


def addresses_beside(within: Postgresql, name: str, home: str) -> list[str]:
    """Returns where managers of other homes answer, one for each, without the home that has this lease."""
    rows = within.execute_sql(
        "SELECT DISTINCT ON (home) address FROM leases WHERE address != '' AND name LIKE 'slot %%'"
        " AND home NOT IN ('', %s, (SELECT home FROM leases WHERE name = %s)) ORDER BY home, name",
        [home, name],
    ).fetchall()
    return [address for (address,) in rows]


def give_back(within: Postgresql, name: str, token: int, *, forgets_former: bool = False) -> None:
    """Ends the lease now, if it is still this one."""
    within.execute_sql(
        f"UPDATE leases SET until_ms = LEAST(until_ms, {_NOW} - 1), seconds = 0, {_former(forgets_former)}"
        " WHERE name = %s AND token = %s",
        [name, token],
    )


def _former(forgets: bool) -> str:
    return "former_home = ''" if forgets else "former_home = former_home"
