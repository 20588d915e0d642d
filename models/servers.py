"""The servers that an address of PostgreSQL names: which of them is the one to work with.

A standby that takes over begins a new timeline, the next number of its cluster. Its former primary does not know that:
started again, it would write on the old timeline, and hand out tokens for a second time. So whoever has seen the newer
one refuses it: a process as long as it lives, and programs that `keep_in` a file, also after their next start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_TIMELINE = (
    "SELECT system_identifier::text, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint"
    " FROM pg_control_system()"
)
_seen: dict[str, int] = {}  # the newest timeline of each cluster
_file: Path | None = None


def keep_in(path: Path) -> None:
    """Reads and writes the newest timelines there from now on. Programs of one user share the file."""
    global _file
    _file = path


def open_newest(chosen: dict[str, Any], refuse_unfit: Callable[[Any], None]) -> Any:
    """Opens a connection to the first of the named servers that is a primary, and not a former one.

    Raises psycopg's OperationalError, with the fault of each of them, and whatever `refuse_unfit` raises.
    """
    from psycopg import OperationalError, connect

    faults = []
    for each in _one_by_one(chosen):
        try:
            # A standby is refused by the driver: it may not know the newest commits.
            connection = connect(**each, autocommit=True)
        except OperationalError as error:
            faults.append(str(error))
            continue
        try:
            refuse_unfit(connection.info)
            if not (fault := _is_superseded(connection)):
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        faults.append(fault)
    raise OperationalError("; ".join(faults))


def _one_by_one(chosen: dict[str, Any]) -> Iterator[dict[str, Any]]:
    lists = {name: str(chosen[name]).split(",") for name in ("host", "hostaddr", "port") if name in chosen}
    count = max(map(len, lists.values()), default=1)
    for place in range(count):
        one = {name: each[place % len(each)] for name, each in lists.items()}
        yield chosen | one | {"target_session_attrs": "primary"}


def _is_superseded(connection: Any) -> str:
    """Returns why the server is not to be used, "" if it is; notes its timeline then."""
    cluster, timeline = connection.execute(_TIMELINE).fetchone()
    newest = max(_seen.get(cluster, 0), _kept().get(cluster, 0))
    if timeline < newest:
        host, port = connection.info.host, connection.info.port
        return f"the server at {host}, port {port}, has timeline {timeline}, but a standby took over with {newest}"
    if timeline > newest:
        _seen[cluster] = timeline
        if _file is not None:
            _keep(_file)
    return ""


def _kept() -> dict[str, int]:
    if _file is None or not _file.exists():
        return {}
    return dict(json.loads(_file.read_text()))


def _keep(path: Path) -> None:
    # Two that write at once may lose what one of them saw; its next connection writes it again.
    made = path.with_name(f"{path.name}.{os.getpid()}")
    made.write_text(json.dumps(_kept() | _seen))
    made.replace(path)
