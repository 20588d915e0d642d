"""The doctor on the data directory, the signer's files, the database and its leases; changes none of them."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from peewee import PeeweeException, fn

from cli.database import missing_with_logs
from cli.doctor.check import Check, fail, first, named, ok, unreadable, warn
from core.errors import BidkeeperError
from core.settings import Settings
from models import schema
from models.database import base, damage, servers
from models.database.base import database, is_postgresql, place
from models.database.damage import Unfit
from models.database.servers import Seen
from models.leases import leases
from models.leases.leases import Held
from models.summaries import running_tasks
from models.tasks.cycles import Cycle
from models.tasks.tasks import RUNNING, Task
from models.users import User, Whitelist
from strategy import monthly
from wallet.signer.signer_process import KEYSTORE, LEARNT_FILE, former_forms

_MIN_FREE_BYTES, _LOW_FREE_BYTES = 100 << 20, 1 << 30
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "ncpfs", "vboxsf"}
_IN_MEMORY = {"tmpfs", "ramfs"}
_AUDIT_TAIL_BYTES = 1 << 20
_WAL_FORMAT = (2, 2)  # bytes 18 and 19 of a database in WAL mode
CUSTOMARY_TASKS = 100
_OTHERS = 20  # connections of all programs except the workers, and of an operator's tools
_MOST_LAG_S = 10
_PAGE = "docs/several-machines.md"


class DatabaseState(Struct):
    """The database's contents: wanted tasks (their number, and by venue), the newest slugs traded, and people.

    `users` are (sign-in, receive) addresses. Fields are None if the contents were not read; `fault` then says why.
    """

    tasks: int | None = None
    collection: str | None = None
    rune: str | None = None
    running: dict[str, list[monthly.Task]] | None = None
    listed: frozenset[str] = frozenset()
    users: list[tuple[str, str]] | None = None
    fault: Check | None = None


def examine(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    """Examines all of them, and stores the database's contents in `seen`."""
    directory, signer = settings.data_dir, settings.signer_files
    if (missing := _missing(directory)) is not None:
        seen.fault = missing
        yield missing
        if is_postgresql(settings.database_url):
            yield from _database(settings, seen)
        return
    yield from named("data directory", _directory(settings))
    yield from named("file system", _file_system(settings))
    yield from named("disk space", _disk_space(directory))
    yield from named("signer's files", _signer_files(signer))
    yield from named("learnt forms", _former_forms(signer))
    yield from _database(settings, seen)
    yield from named("audit log", _audit(signer / "audit.jsonl"))


def _missing(directory: Path) -> Check | None:
    try:
        if stat.S_ISDIR(directory.stat().st_mode):
            return None
        found = fail(f"{directory} is not a directory", "move it away, or set another BIDKEEPER_DATA_DIR")
    except FileNotFoundError:
        found = warn(f"{directory} does not exist yet", "bidkeeper up creates it")
    except OSError as error:
        found = unreadable(directory, error, "set another BIDKEEPER_DATA_DIR")
    return found._replace(name="data directory")


def _directory(settings: Settings) -> Check:
    directory = settings.data_dir
    found = directory.stat()
    mode, owner, user = stat.S_IMODE(found.st_mode), _user(found.st_uid), _user(os.geteuid())
    is_shared, has = settings.signer_dir is not None, f"{directory} has mode {mode:04o}:"
    can_write = os.access(directory, os.R_OK | os.W_OK | os.X_OK)
    return first(
        (found.st_uid != os.geteuid(), fail(f"{directory} belongs to {owner}, not to {user}", f"run it as {owner}")),
        (mode & 0o007, fail(f"{has} other users can enter it", f"chmod o-rwx {directory}")),
        (mode & 0o020, fail(f"{has} its group can write to it", f"chmod g-w {directory}")),
        (mode & 0o050 and not is_shared, warn(f"{has} its group can enter it", f"chmod 700 {directory}")),
        (not can_write, fail(f"{has} you cannot write to it", f"chmod u+rwx {directory}")),
        (True, ok(f"{directory}, mode {mode:04o}")),
    )


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _file_system(settings: Settings) -> Check:
    kind = file_system(settings.data_dir) or ""
    is_far = kind in _NETWORK or kind.startswith("fuse.sshfs")
    is_gone = kind in _IN_MEMORY and settings.market != "simulator"
    return first(
        (not kind, warn("its type is unknown", "make sure that it is a local disk")),
        (is_far, fail(f"{kind} is a network file system, where SQLite loses data", "use a local disk")),
        (is_gone, fail(f"{kind} is in memory: a restart of the machine deletes everything", "use a disk")),
        (True, ok(f"{kind}, local")),
    )


def file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Returns the file system type of `path` (ext4, nfs4, ...), None if it is unknown."""
    best, kind = -1, None
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4].encode().decode("unicode_escape")  # a space is \040
        # Of two mounts at one point, the later one hides the earlier one.
        if path.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), rest.split(" ")[0]
    return kind


def _disk_space(directory: Path) -> Check:
    free, nodes = shutil.disk_usage(directory).free, os.statvfs(directory)
    text, remedy = f"{free / (1 << 30):.1f} GiB free", f"free space on the disk of {directory}"
    return first(
        (free < _MIN_FREE_BYTES, fail(text + ": without space to record bids, none is placed", remedy)),
        (nodes.f_files and not nodes.f_favail, fail("no more files can be created (no inodes left)", remedy)),
        (free < _LOW_FREE_BYTES, warn(text, remedy)),
        (True, ok(text)),
    )


def _signer_files(directory: Path) -> list[Check] | Check:
    try:
        if not os.path.lexists(directory):
            return ok(f"{directory} does not exist yet; the signer creates it")
        files = (directory, directory / KEYSTORE)
        if not directory.is_dir():
            raise NotADirectoryError
        modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in files if os.path.lexists(path)}
    except NotADirectoryError:
        return fail(f"{directory} is not a directory", "move it away; the signer creates it")
    except PermissionError:
        return ok(f"{_user(os.geteuid())} cannot enter {directory}, as intended when the signer has its own user")
    wrong = [
        fail(f"{path} has mode {mode:04o}: users other than its owner can access it", f"chmod go-rwx {path}")
        for path, mode in modes.items()
        if mode & 0o077
    ]
    return wrong or ok(f"only their owner can access {directory}")


def _former_forms(directory: Path) -> Check | None:
    """Reports a file of draft forms that an operator confirmed in an older version; this version ignores it."""
    path = directory / LEARNT_FILE
    remedy = f"see bidkeeper judge and docs/custody.md; delete {path} when you have read this"
    try:
        forms = former_forms(directory)
    except PermissionError:
        return ok(f"only the signer's user can see whether {path} is there; the signer's log says so at its start")
    except NotADirectoryError:
        return None  # another check reports this
    except OSError as error:
        return unreadable(path, error, remedy)
    text = f"{forms}: a draft of another form is no longer refused, and is signed when every rule holds"
    return warn(text, remedy) if forms else None


def _audit(path: Path) -> Check:
    remedy = "run bidkeeper audit verify; keep the file, and see docs/custody.md"
    try:
        count = verify_tail(path)
    except FileNotFoundError:
        return ok("nothing was signed yet")
    except PermissionError:
        return ok("only the signer's user can read it; as that user: bidkeeper audit verify")
    except OSError as error:
        return unreadable(path, error, remedy)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        return fail(f"broken: {error}" if type(error) is ValueError else "broken: no line of the signer", remedy)
    return ok(f"the hash chain of the last {count} lines is intact" if count else "nothing was signed yet")


def verify_tail(path: Path) -> int:
    """Checks that the lines in the last megabyte form a chain, and returns their number. Raises ValueError.

    Ignores an unfinished last line: it is being written, or a crash cut it off and the signer will remove it.
    """
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _AUDIT_TAIL_BYTES)
        file.seek(start)
        tail = file.read()
    whole = tail[: tail.rfind(b"\n") + 1].splitlines(keepends=True)[1 if start else 0 :]
    entries = [json.loads(line) for line in whole]
    for at in range(1, len(entries)):
        is_next = entries[at]["number"] == entries[at - 1]["number"] + 1
        if not is_next or entries[at]["previous"] != hashlib.sha256(whole[at - 1]).hexdigest():
            raise ValueError(f"line {entries[at]['number']} does not follow the one before it")
    return len(entries)


def _database(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    of_kind = _server if is_postgresql(settings.database_url) else _file
    for check in named("database", of_kind(settings, seen)):
        if seen.users is None:
            seen.fault = check
        yield check


def _server(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    try:
        with base.reading(settings.database_url):
            yield from _contents(settings, seen, "on PostgreSQL")
            yield from examine_postgresql(seen.tasks, servers.look_at_each(settings.database_url))
            yield from _leases(settings.run_dir)
    except (BidkeeperError, PeeweeException) as error:
        remedy = "check that the server runs and that its address is right (docs/operations.md)"
        if isinstance(error, Unfit):
            remedy = "see docs/operations.md#postgresql for the requirements"
        yield fail(f"{place(settings.database_url)} cannot be used: {error}", remedy)


def _file(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    try:
        fault = known.text if (known := damage.known(str(path))) is not None else None
        if fault is None and damage.is_missing(str(path)):
            fault = damage.fault_at_start(str(path))
            if not fault and (missing := missing_with_logs(settings)):
                yield fail(missing, damage.remedy(str(path)))
                return
        if fault:
            yield _damaged(fault, path)
            return
        if not os.path.lexists(path):
            yield warn(f"{path} does not exist yet", "bidkeeper up (or migrate) creates it")
            return
        is_open = path.with_name(path.name + "-wal").exists()
        with path.open("rb") as file:
            is_wal = tuple(file.read(20)[18:]) == _WAL_FORMAT
        with base.reading(settings.database_url, alone=not is_open):
            rows = [str(row[0]) for row in base.database.execute_sql("PRAGMA quick_check(3)")]
            # A newer SQLite returns several faults in one row, below a line that names the database.
            faults = [line for row in rows for line in row.splitlines() if not line.startswith("*** in database")]
            if faults != ["ok"]:
                yield _damaged("; ".join(faults), path)
            elif not is_wal:
                yield fail("not in WAL mode", "bidkeeper migrate turns it on; if it does not, the disk is not local")
            else:
                yield from _contents(settings, seen, "intact, in WAL mode")
    except (OSError, sqlite3.Error, BidkeeperError, PeeweeException) as error:
        if damage.words_of(error):
            yield _damaged(error, path)
        else:
            yield unreadable(path, error, "see docs/operations.md#a-damaged-database")


def _damaged(fault: object, path: Path) -> Check:
    return fail(f"damaged: {fault}", damage.remedy(str(path)))


def _contents(settings: Settings, seen: DatabaseState, state: str) -> Iterator[Check]:
    try:
        schema.refuse_foreign()
    except schema.OtherVersion as error:
        yield fail(error.text, error.remedy)
        return
    if pending := schema.pending():
        yield fail(f"migrations missing: {', '.join(pending)}", "bidkeeper migrate")
        return
    seen.tasks = Task.select().where(Task.desired == RUNNING, Task.deleted_ms.is_null()).count()
    seen.running = running_tasks()
    seen.listed = frozenset(str(row.address) for row in Whitelist.select())
    seen.users = [(str(user.address), str(user.ordinals_address)) for user in User.select().order_by(User.id)]
    seen.collection, seen.rune = _newest("ordinals"), _newest("rune")
    text = f"{state}, migrations up to date; {seen.tasks} tasks are set to run"
    yield ok(f"{text}; last migrated by {schema.written_by()[-1]}")
    yield from _unknown_bids()
    if not (settings.whitelist or settings.admins or seen.listed):
        demo = ", unless this is bidkeeper demo, which admits any" if settings.market == "simulator" else ""
        yield warn("empty: no address can sign in", f"bidkeeper whitelist add ADDRESS{demo}", "whitelist")


def _unknown_bids() -> Iterator[Check]:
    """Yields a warning if the last cycles of running tasks saw own bids without an order here."""
    newest = Cycle.select(fn.MAX(Cycle.id)).group_by(Cycle.task_id)
    rows: Any = Cycle.select(Cycle.detail, Task.venue).join(Task, on=(Task.id == Cycle.task_id))
    wanted = rows.where(Cycle.id.in_(newest), Task.desired == RUNNING, Task.deleted_ms.is_null()).tuples()
    seen = {(venue, bid["venue_id"]) for detail, venue in wanted for bid in json.loads(detail).get("foreign", ())}
    if seen:
        text = f"running tasks see {len(seen)} bids that no order here knows, as after a restored backup"
        yield warn(text, "bidkeeper reconcile shows them; --cancel cancels them", "bids without an order")


def _newest(kind: str) -> str | None:
    rows = Task.select(Task.slug).where(Task.type == kind, Task.deleted_ms.is_null())
    row = rows.order_by(Task.id.desc()).first()
    return None if row is None else str(row.slug)


def examine_postgresql(tasks: int | None, seen: list[Seen]) -> Iterator[Check]:
    """Examines the server of the open connection, one of `seen`, for `tasks` wanted tasks (None: unknown)."""
    version, name = _setting("server_version").split()[0], "postgresql"
    if unsafe := ", ".join(each for each in ("fsync", "full_page_writes") if _setting(each) != "on"):
        yield fail(f"{version}: {unsafe} is off", "turn it on: a power cut would lose recorded bids", name)
    else:
        yield ok(f"{version}; commits are written to disk", name)
    yield from named("servers", _servers(seen) if len(seen) > 1 else None)
    yield from named("standby", _standby(len(seen)))
    reserved, tasks = int(_setting("superuser_reserved_connections")), CUSTOMARY_TASKS if tasks is None else tasks
    room, needed = int(_setting("max_connections")) - reserved, tasks + _OTHERS
    text = f"max_connections leaves {room}, {tasks} tasks need {needed} (one each in a cycle, and {_OTHERS})"
    few = fail(text, f"set max_connections to at least {needed + reserved}", "connections")
    yield few if room < needed else ok(f"{room} available, {needed} needed", "connections")


def _setting(name: str) -> str:
    return str(database.execute_sql(f"SHOW {name}").fetchone()[0])


def _servers(seen: list[Seen]) -> Check:
    """Reports whether the servers of the address are one primary and its standbys."""
    primaries = [f"{each.place} (timeline {each.timeline})" for each in seen if each.timeline is not None]
    both = f"{' and '.join(primaries)} are both primaries: writes to one do not reach the other"
    end = "stop the one with the lower timeline immediately, and make it a standby (pg_rewind)"
    away = "; ".join(f"{each.place} ({each.away})" for each in seen if each.away)
    primary = primaries[0] if primaries else "none"
    return first(
        (len(primaries) > 1, fail(both, end)),
        (away, warn(f"does not answer: {away}", "start it as a standby, or remove it from the address")),
        (True, ok(f"{primary} is the primary, the other {len(seen) - 1} standby")),
    )


def _standby(servers: int) -> Check:
    """Reports whether a standby that takes over would have every commit."""
    wanted = _setting("synchronous_standby_names")
    rows = database.execute_sql(
        "SELECT application_name, sync_state, EXTRACT(EPOCH FROM replay_lag)::bigint FROM pg_stat_replication"
    ).fetchall()
    follows = [(who, lag or 0) for who, state, lag in rows if state in ("sync", "quorum")]
    late = ", ".join(f"{who} ({lag or 0} s behind)" for who, state, lag in rows if state not in ("sync", "quorum"))
    slow = ", ".join(who for who, lag in follows if lag > _MOST_LAG_S)
    is_hidden = any(state is None for _, state, _ in rows)
    may_see = "GRANT pg_monitor to the user of the database's address"
    hang = "no synchronous standby is connected, so commits hang"
    lose = f"{late} is asynchronous: after a failover, bids would be missing, and tokens given out twice"
    alone = "the address names several servers, but none is synchronous: after a failover, commits may be missing"
    well = ", ".join(f"{who} has every commit (replay is {lag} s behind)" for who, lag in follows)
    return first(
        (is_hidden, warn(f"{len(rows)}, but this user may not see their state", may_see)),
        (wanted and not follows, fail(hang, "start it (synchronous_standby_names)")),
        (late and not follows, fail(lose, "name it in synchronous_standby_names, or never promote it")),
        (not rows and servers > 1, fail(alone, "set synchronous_standby_names on each of them")),
        (not rows, ok("none; only backups protect the data")),
        (slow, warn(f"{slow} is more than {_MOST_LAG_S} s behind in replay", "check its load")),
        (True, ok(well + (f"; never promote {late}" if late else ""))),
    )


def _leases(run_dir: Path) -> Iterator[Check]:
    """Examines the leases in the open database; yields none for leases that were never taken."""
    slots = leases.slots()
    for number in range(slots):
        held = leases.held(name := leases.slot_name(number))
        if held is not None and held.left_ms >= 0:
            where = _where(held, run_dir)
            text = f"held by {where}, which servers on other machines cannot reach"
            is_hidden = not held.address and where == held.machine
            hidden = warn(text, f"set BIDKEEPER_MANAGER_LISTEN there ({_PAGE})", name)
            yield hidden if is_hidden else ok(f"held by {where}", name)
        elif slots > 1:
            yield _unheld(held, f"manager --slot {number}")._replace(name=name)
    for name in (leases.GATEWAY, leases.HOOKS):
        held = leases.held(name)
        if held is None or (slots == 1 and held.left_ms < 0):
            continue  # on a single machine, the programs themselves are asked whether they run
        found = ok(f"held by {_where(held, run_dir)}") if held.left_ms >= 0 else _unheld(held, name)
        yield found._replace(name=name)


def _where(held: Held, run_dir: Path) -> str:
    here = run_dir.is_dir() and held.home == leases.home_of(run_dir)
    return f"{held.machine}, in this data directory" if here else held.machine


def _unheld(held: Held | None, verb: str) -> Check:
    text = "no machine has ever held it"
    if held is not None:
        text = f"no holder for {-held.left_ms // 1000} s; last: {held.machine}"
    return fail(text, f"start bidkeeper {verb} on some machine ({_PAGE})")
