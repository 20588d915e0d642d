"""The right to be the one program of its kind on a database: the manager, the sender of hooks.

On one machine a lock in the data directory says so, which is all that SQLite needs. A server's database may be reached
from several data directories and machines, so there the right is a lock at the server, held on a connection of its own
from start to end. It is the server's to take away: whoever has lost the connection has lost the right, must look
(`check`) every second, and end.
"""

from __future__ import annotations

import time
from typing import Any

from peewee import InterfaceError, OperationalError

from core.errors import BidkeeperError
from models.database import DatabaseAway, Postgresql, is_postgresql, opened, place

_NUMBERS = {"manager": 1, "hooks program": 2}
_CLASS = 0x42_69_64_4B
_PREDECESSOR_S = 3.0


class NotTheOne(BidkeeperError):
    """Another program of this kind has the right, or has got it meanwhile."""


class Sole:
    """The right, until `release`. Use it in the thread that made it."""

    def __init__(self, database: Postgresql | None) -> None:
        self._database = database

    def check(self) -> None:
        """Raises NotTheOne when the connection that held the right is lost."""
        if self._database is None:
            return
        try:
            if not self._database.is_alive():
                raise NotTheOne("the connection to the database was lost, and with it the right to be the only one")
        except (OperationalError, InterfaceError) as error:
            raise NotTheOne(f"the right to be the only one cannot be checked: {error}") from None

    def release(self) -> None:
        """Gives the right back."""
        if self._database is not None:
            self._database.close()
            self._database = None


def claim(url: str, what: str) -> Sole:
    """Takes the right to be the one `what` on this database; waits for a predecessor that is about to end.

    Raises NotTheOne, which says who has it, and DatabaseAway.
    """
    if not is_postgresql(url):
        return Sole(None)
    database: Any = opened(url)
    try:
        database.connect()
        deadline = time.monotonic() + _PREDECESSOR_S
        while not _value(database, f"SELECT pg_try_advisory_lock({_CLASS}, {_NUMBERS[what]})"):
            if time.monotonic() > deadline:
                raise NotTheOne(f"another {what} runs on the database {place(url)}{_holder(database, what)}")
            time.sleep(0.1)
    except OperationalError as error:
        raise DatabaseAway(f"the database {place(url)} cannot be opened: {error}") from None
    except BaseException:
        if not database.is_closed():
            database.close()
        raise
    return Sole(database)


def _value(database: Postgresql, query: str) -> Any:
    return database.execute_sql(query).fetchone()[0]


def _holder(database: Postgresql, what: str) -> str:
    row = database.execute_sql(
        "SELECT COALESCE(host(client_addr), 'this machine'), backend_start::timestamp(0) FROM pg_locks"
        f" JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND classid = {_CLASS}"
        f" AND objid = {_NUMBERS[what]} AND objsubid = 2 AND granted"
    ).fetchone()
    return "" if row is None else f", connected from {row[0]} since {row[1]} (the server's time)"
