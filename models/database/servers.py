"""Chooses the server to use among those that a PostgreSQL address names.

A standby that takes over starts a new timeline, with the cluster's next number. Its former primary does not know that:
after a restart it would write on the old timeline and issue the same tokens again. So a process that has seen the newer
timeline refuses the older one; programs that `keep_in` a file remember it after a restart. The last used server is
stored next to that file, so that new processes do not first wait for a server that is away.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

log = logging.getLogger(__name__)

_TIMELINE = (
    "SELECT system_identifier::text, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint"
    " FROM pg_control_system()"
)
TIMELINES_FILE, PLACE_FILE = "timelines.json", "server"
_SHORT_S = 2  # libpq's minimum
PATIENCE = {"connect_timeout": 5}
_seen: dict[str, int] = {}  # the newest timeline of each cluster
_file: Path | None = None
_taken: int | None = None  # index of the last used server in the address


def keep_in(path: Path) -> None:
    """Reads and writes the newest timelines there, and in a file beside it the server that was taken last.

    Programs of one user share them.
    """
    global _file
    _file = path


def longest_s(url: str) -> int:
    """Returns the maximum seconds to open a connection to one of the servers that the address names.

    Returns 0 for an invalid address, because opening it fails immediately.
    """
    from psycopg import ProgrammingError, conninfo

    try:
        ways = list(_one_by_one(PATIENCE | conninfo.conninfo_to_dict(url)))
        return sum(_SHORT_S + int(each["connect_timeout"]) for each in ways)
    except (ProgrammingError, ValueError):
        return 0


def open_newest(chosen: dict[str, Any], refuse_unfit: Callable[[Any], None]) -> Any:
    """Opens a connection to the first of the named servers that is a primary and not a former one.

    It starts with the last used server. If several are named, the first round has a short time-out, because a frozen
    primary accepts connections without answering. A second round uses the time-out in `chosen`; it is needed only if no
    server was found, or if nothing is known of the cluster yet. Raises psycopg's OperationalError with each server's
    fault, and the errors of `refuse_unfit`.
    """
    from psycopg.errors import ConnectionTimeout

    ways = list(_one_by_one(chosen))
    if len(ways) > 1:
        with suppress(ConnectionTimeout):
            hasty = [each | {"connect_timeout": _SHORT_S} for each in ways]
            return _open_newest(hasty, refuse_unfit, in_haste=True)
    return _open_newest(ways, refuse_unfit)


def _open_newest(ways: Sequence[dict[str, Any]], refuse_unfit: Callable[[Any], None], *, in_haste: bool = False) -> Any:
    """Opens as `open_newest`. Raises ConnectionTimeout if one of them did not answer, else OperationalError."""
    from psycopg import OperationalError, connect
    from psycopg.errors import ConnectionTimeout

    global _taken
    faults, kind = [], OperationalError
    former = _kept_place() if _taken is None else _taken
    for place in sorted(range(len(ways)), key=lambda place: place != former):
        try:
            # A standby is refused by the driver: it may not know the newest commits.
            connection = connect(**ways[place], autocommit=True)
        except OperationalError as error:
            faults.append(_in_a_line(error))
            kind = ConnectionTimeout if isinstance(error, ConnectionTimeout) else kind
            continue
        try:
            refuse_unfit(connection.info)
            if not (fault := _why_not(connection, in_doubt=in_haste and kind is ConnectionTimeout)):
                _taken = place
                _keep_place(place)
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        faults.append(fault)
    raise kind("; ".join(faults))


class Seen(NamedTuple):
    """A server: its place as text, the `timeline` if it is a primary, `away` if it cannot be asked."""

    place: str
    timeline: int | None = None
    away: str = ""


def look_at_each(url: str) -> list[Seen]:
    """Reads each named server's role and timeline, and notes the newest timeline.

    So this process refuses a former primary from now on, even if it has not used the new one.
    """
    from psycopg import OperationalError, connect, conninfo

    found = []
    for each in _one_by_one(PATIENCE | conninfo.conninfo_to_dict(url)):
        place = ":".join(str(each[name]) for name in ("host", "port") if each.get(name))
        try:
            with connect(**each | {"target_session_attrs": "any"}, autocommit=True) as connection:
                is_primary = connection.info.parameter_status("in_hot_standby") == "off"
                row = connection.execute(_TIMELINE).fetchone() if is_primary else None
                if row is not None:
                    _newest_seen(*row)
                found.append(Seen(place, None if row is None else int(row[1])))
        except OperationalError as error:
            found.append(Seen(place, away=_in_a_line(error)))
    return found


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _one_by_one(chosen: dict[str, Any]) -> Iterator[dict[str, Any]]:
    lists = {name: str(chosen[name]).split(",") for name in ("host", "hostaddr", "port") if name in chosen}
    count = max(map(len, lists.values()), default=1)
    if any(len(each) not in (1, count) for each in lists.values()):
        raise ValueError(f"the database's address has not one of each for {count} servers: {', '.join(lists)}")
    for place in range(count):
        one = {name: each[place % len(each)] for name, each in lists.items()}
        yield chosen | one | {"target_session_attrs": "primary"}


def _why_not(connection: Any, *, in_doubt: bool) -> str:
    """Returns why the server must not be used, "" if it may be; notes its timeline then.

    `in_doubt`: an earlier server did not answer in the short time. If no timeline of the cluster is known, this server
    may be a former primary and that one its successor.
    """
    cluster, timeline = connection.execute(_TIMELINE).fetchone()
    server = f"the server at {connection.info.host}, port {connection.info.port},"
    if in_doubt and not _newest_known(cluster):
        return f"{server} may be a former primary: another one has not answered yet"
    if timeline < (newest := _newest_seen(cluster, timeline)):
        return f"{server} has timeline {timeline}, but a standby took over with {newest}"
    return ""


def _newest_known(cluster: str) -> int:
    return max(_seen.get(cluster, 0), _kept().get(cluster, 0))


def _newest_seen(cluster: str, timeline: int) -> int:
    """Returns the newest timeline of the cluster that was seen, with this one, which is noted if it is that."""
    newest = _newest_known(cluster)
    if timeline > newest:
        _seen[cluster] = newest = timeline
        if _file is not None:
            _keep(_file)
    return newest


def _kept() -> dict[str, int]:
    if _file is None or not _file.exists():
        return {}
    try:
        return dict(json.loads(_file.read_text()))
    except (OSError, ValueError) as error:  # better than that nothing runs here until somebody takes the file away
        log.error("the newest timelines cannot be read, so a former primary may be taken: %s: %s", _file, error)
        return {}


def _keep(path: Path) -> None:
    # Two that write at once may lose what one of them saw; its next connection writes it again.
    _write(path, json.dumps(_kept() | _seen))


def _kept_place() -> int:
    """Returns the place that is kept; the first one where there is none."""
    try:
        return int(_file.with_name(PLACE_FILE).read_text()) if _file is not None else 0
    except (OSError, ValueError):
        return 0


def _keep_place(place: int) -> None:
    # A file of its own: what is written here in a race may be old, which a timeline must not be.
    if _file is not None and place != _kept_place():
        _write(_file.with_name(PLACE_FILE), str(place))


def _write(path: Path, text: str) -> None:
    made = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with made.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # or a power cut may leave it empty
        made.replace(path)
    except OSError as error:  # a full disk, say: this process knows it all the same
        log.error("what was seen of the database's servers cannot be kept: %s", error)
