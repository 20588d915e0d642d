"""The two kinds of database: an SQLite file (sqlite.py) and a PostgreSQL server (postgresql.py).

Nobody else knows peewee's classes of databases. Both give the same promises: a writing transaction sees, and is seen,
as if it were alone; a durable one has reached the disk when it returns; ids are never given twice.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from models.database.damage import Unfit
from models.database.postgresql import Postgresql
from models.database.sqlite import Sqlite


def opened(
    url: str, *, read_only: bool = False, alone: bool = False, within_s: float | None = None
) -> Sqlite | Postgresql:
    """Makes the database at `url`, without a connection; see `Sqlite.read_only` for `alone`.

    `within_s` bounds, at a PostgreSQL server, each wait for a lock or an answer, and each silence in a transaction.

    Raises ValueError for a kind that we do not know, and DatabaseAway where the way there is missing.
    """
    scheme, _, path = url.partition(":///")
    if scheme == "sqlite" and path:
        return Sqlite.read_only(path, alone=alone) if read_only else Sqlite.at(path)
    if scheme == "unreadable":
        raise Unfit(f"this user may not read {path}, which has the database's address")
    if is_postgresql(url):
        return Postgresql.at(url, read_only=read_only, within_s=within_s)
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
