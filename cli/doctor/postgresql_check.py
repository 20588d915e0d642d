"""The doctor on a PostgreSQL server: whether what is committed stays, and room for all connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cli.doctor.check import Check, fail, ok, warn
from models.database.base import database
from models.database.servers import Seen

_OTHERS = 20  # connections of all programs but the workers, and of whoever looks
_CUSTOMARY_TASKS = 100
_MOST_LAG_S = 10
_MONITOR = "GRANT pg_monitor to the user of the database's address"


def examine(tasks: int | None, seen: list[Seen]) -> Iterator[Check]:
    """Examines the server of the open connection, one of those `seen`, for `tasks` wanted tasks (None: not known)."""
    version = _setting("server_version").split()[0]
    unsafe = [name for name in ("fsync", "full_page_writes") if _setting(name) != "on"]
    if unsafe:
        yield fail(
            "postgresql", f"{version}: {', '.join(unsafe)} is off", "turn it on: a power cut would lose recorded bids"
        )
    else:
        yield ok("postgresql", f"{version}; commits are written to disk")
    if len(seen) > 1:
        yield _others(seen)
    yield _standby(len(seen))
    yield _connections(_CUSTOMARY_TASKS if tasks is None else tasks)


def _setting(name: str) -> str:
    return str(_value(f"SHOW {name}"))


def _value(query: str) -> Any:
    return database.execute_sql(query).fetchone()[0]


def _others(seen: list[Seen]) -> Check:
    """Tells whether the servers of the address are one primary and its standbys."""
    name = "servers"
    primaries = [f"{each.place} (timeline {each.timeline})" for each in seen if each.timeline is not None]
    if len(primaries) > 1:
        text = f"{' and '.join(primaries)} are both primaries: writes to one do not reach the other"
        return fail(name, text, "stop the one with the lower timeline immediately, and make it a standby (pg_rewind)")
    if away := [f"{each.place} ({each.away})" for each in seen if each.away]:
        return warn(name, f"does not answer: {'; '.join(away)}", "start it as a standby, or remove it from the address")
    return ok(name, f"{primaries[0] if primaries else 'none'} is the primary, the other {len(seen) - 1} standby")


def _standby(servers: int) -> Check:
    """Tells whether a standby that takes over would have all that was committed."""
    name, wanted = "standby", _setting("synchronous_standby_names")
    rows = database.execute_sql(
        "SELECT application_name, sync_state, EXTRACT(EPOCH FROM replay_lag)::bigint FROM pg_stat_replication"
    ).fetchall()
    if any(state is None for _, state, _ in rows):
        return warn(name, f"{len(rows)}, but this user may not see their state", _MONITOR)
    follows = [(who, lag or 0) for who, state, lag in rows if state in ("sync", "quorum")]
    late = [f"{who} ({lag or 0} s behind)" for who, state, lag in rows if state not in ("sync", "quorum")]
    if wanted and not follows:
        return fail(
            name, "no synchronous standby is connected, so commits hang", "start it (synchronous_standby_names)"
        )
    if late and not follows:
        text = f"{', '.join(late)} is asynchronous: after a failover, bids would be missing, and tokens given out twice"
        return fail(name, text, "name it in synchronous_standby_names, or never promote it")
    if not rows and servers > 1:
        text = "the address names several servers, but none is synchronous: after a failover, commits may be missing"
        return fail(name, text, "set synchronous_standby_names on each of them")
    if not rows:
        return ok(name, "none; only backups protect the data")
    if slow := [who for who, lag in follows if lag > _MOST_LAG_S]:
        return warn(name, f"{', '.join(slow)} is more than {_MOST_LAG_S} s behind in replay", "check its load")
    text = ", ".join(f"{who} has every commit (replay is {lag} s behind)" for who, lag in follows)
    return ok(name, text + (f"; never promote {', '.join(late)}" if late else ""))


def _connections(tasks: int) -> Check:
    reserved = int(_setting("superuser_reserved_connections"))
    room, needed = int(_setting("max_connections")) - reserved, tasks + _OTHERS
    if room < needed:
        text = f"max_connections leaves {room}, {tasks} tasks need {needed} (one each in a cycle, and {_OTHERS})"
        return fail("connections", text, f"set max_connections to at least {needed + reserved}")
    return ok("connections", f"{room} available, {needed} needed")
