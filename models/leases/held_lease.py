"""A lease that this process holds, renewed by its own thread; the process is killed when the lease expires.

The kernel's timer kills the process (with a manager also its workers) a second before the lease expires, so that there
are never two holders. The timer counts from the moment before each renewal is sent, so it never fires too late.

A standby judges by its own clock whether the holder has ended, not by the database's. The rule: a lease whose version
has not changed for the requested duration is free. This is safe without the database's clock:

- A renewal changes the row's version. Its holder has set its timer to the lease's duration less a second, counted from
  the moment *before* it sent the renewal. A standby sees the new version only after that. So once the duration has
  passed since then, by a clock that counts a machine's sleep, the holder has been dead for a second. The two clocks
  need not agree; they must only run equally fast, to within a second per lease.
- The lease is taken only if it still has that version, under the row's lock. An earlier renewal changes the version and
  restarts the watch; a later one finds another token, and its sender ends.
- A renewal whose answer was lost may have changed the row but not the holder's timer. That holder ends earlier than
  the standby assumes.
- A database that was away, or whose clock jumps ahead, shortens no lease; one whose clock jumps back prolongs no dead
  holder's lease.

A virtual machine that is frozen together with its clocks is not detected. Tokens then keep its workers from ledger,
signer and gateway, and a gateway checks its lease before each write.

A program that has just started would have to watch a lease for its whole duration before it may take it. To shorten
this, each holder reads all leases at each renewal and records their versions in a file in its directory. A new program
there counts the watch from the moment at which that holder first saw the version. Records are ignored if they are from
before the machine's restart or from another clock. They are also ignored if their writer's own lease has expired: it
reads no more, and a restored backup may show an old version again whose holder is alive.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from peewee import InterfaceError, OperationalError, ProgrammingError

from core.errors import BidkeeperError
from core.process import DeathTimer, check_mortal, now_s
from models.database.base import is_postgresql, opened, place
from models.database.damage import DatabaseAway
from models.database.postgresql import Postgresql
from models.database.servers import longest_s, look_at_each
from models.leases import leases
from models.leases.leases import Holder, Standing, Taken


class Seen(NamedTuple):
    """A version of a lease, and a time after it was read."""

    version: str
    at_s: float


class Watch:
    """Watches a lease of another home until it expires. All times are of the clock `core.process.now_s`.

    `seen` is the newest version that other programs have seen by the same clock (`Sightings`).
    """

    def __init__(self, seen: Seen | None = None) -> None:
        self.version = ""
        self._ends_s = 0.0
        self._seen = [] if seen is None else [seen]

    def hear(self, seen: Iterable[Seen]) -> None:
        """Adds versions that other machines' managers have seen, in times of our clock, before the first `note`."""
        self._seen.extend(seen)

    def note(self, version: str, seconds: int, now_s: float) -> None:
        """Notes the lease's version and its duration in seconds; `now_s` is a time after they were read."""
        if version == self.version:
            return
        since_s = min((seen.at_s for seen in self._seen if seen.version == version), default=now_s)
        self.version, self._ends_s = version, since_s + seconds
        self._seen = []  # so that a version that reappears after another one is watched for its whole duration

    def over(self, now_s: float) -> str:
        """Returns the version if its holder has ended by now, else ""."""
        return self.version if now_s >= self._ends_s else ""


log = logging.getLogger(__name__)


class Sightings:
    """A program's record of the leases that it sees, in its own file in `directory`; `own` is its lease's name."""

    def __init__(self, directory: Path, own: str) -> None:
        self._path = directory / f"seen-{own.replace(' ', '-')}.json"
        self.seen: dict[str, Seen] = {}

    def note(self, versions: Mapping[str, str], now_s: float, until_s: float) -> None:
        """Records the versions of all leases by name; `now_s` (`core.process.now_s`) is a time after they were read.

        `until_s` is the end of our own lease unless it is renewed.
        """
        former = self.seen
        self.seen = {
            name: former[name] if name in former and former[name].version == version else Seen(version, now_s)
            for name, version in versions.items()
        }
        made = self._path.with_suffix(f".{os.getpid()}")
        try:
            made.write_text(json.dumps({"clock": _clock(), "until_s": until_s, "seen": self.seen}))
            made.replace(self._path)
        except OSError as error:  # not fatal: a program that starts here only has to watch for longer
            log.warning("failed to note which leases were seen: %s", error)


def seen_in(directory: Path, name: str, now_s: float) -> Seen | None:
    """Returns the newest version of the lease that this user's programs have seen here, with its first sighting."""
    found = [seen for path in directory.glob("seen-*.json") if (seen := _seen_by(path, name, now_s)) is not None]
    if not found:
        return None
    newest = max(found, key=lambda seen: seen.at_s).version
    return min((seen for seen in found if seen.version == newest), key=lambda seen: seen.at_s)


def _seen_by(path: Path, name: str, now_s: float) -> Seen | None:
    try:
        if path.stat().st_uid != os.geteuid():
            return None
        noted = json.loads(path.read_text())
        seen = noted["seen"] if noted["clock"] == _clock() and now_s < noted["until_s"] else {}
        return Seen(*seen[name]) if name in seen else None
    except (OSError, ValueError, LookupError, TypeError) as error:
        log.warning("failed to read which leases were seen: %s: %s", path, error)
        return None


def _clock() -> str:
    """Returns an id of this clock, different after a restart and in containers with their own time."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/time').readlink()}"


SPARE_S = 1.0  # from our process's end to the lease's end
_LOOK_S = 0.5
_ANSWER_S = 3.0
# Added to two lease durations, the maximum wait for a server's answer about a lease. A server that is frozen, or that
# was replaced by its standby and commits nothing, keeps the connection open forever; a new process reconnects.
_NO_ANSWER_S = 10.0
_AWAY = (OperationalError, InterfaceError, DatabaseAway)
SILENT_S = 60.0  # the lease of a program without a sign of life for this time is no longer renewed


class NotTheOne(BidkeeperError):
    """Another program holds the lease and is alive."""


class HeldLease:
    """A lease until `release`. Without `taken` it is a no-op, for databases that need no lease.

    `is_anothers`: another home had the lease before, and `forget_former` was not called since. It records the leases
    that it sees in the `holder`'s directory, for programs that start there later.
    """

    def __init__(
        self, url: str = "", name: str = "", seconds: int = 0, taken: Taken | None = None, holder: Holder | None = None
    ) -> None:
        self.taken = taken
        # Only a holder named after its directory can detect that the directory was created again.
        is_named = holder is not None and holder.directory and leases.home_of(holder.directory) == holder.home
        self._holder = holder if is_named else None
        directory = None if holder is None else holder.directory
        self._sightings = None if directory is None else Sightings(directory, name)
        self.is_anothers = taken is not None and bool(taken.former_home)
        self._forgets_former = False
        self._url, self._name, self._seconds = url, name, seconds
        self._released = threading.Event()
        self._alive_at = now_s()
        self._silent_s = SILENT_S
        self._ends_s = 0.0
        self._timer: DeathTimer | None = None
        self._thread: threading.Thread | None = None
        self._asking = ThreadPoolExecutor(1, "lease-asked")  # whose thread has a connection of its own
        self._asked: Any = None

    def keep(self, since_s: float, silent_s: float = SILENT_S) -> HeldLease:
        """Starts the renewals; `since_s` is a time before the lease was taken. Returns itself.

        After `silent_s` without a sign of life the lease is no longer renewed.
        """
        self._silent_s = silent_s
        self._timer = DeathTimer()
        self._hold_until(since_s + self._seconds - SPARE_S)
        self._thread = threading.Thread(target=self._renew_always, name="lease", daemon=True)
        self._thread.start()
        return self

    def alive(self) -> None:
        """Reports a sign of life. The lease of a program that hangs is not renewed, so that another can take over.

        Stops the program if its directory was removed and created again, because the lease names the old directory and
        servers would look for the program on another machine. Its supervisor restarts it.
        """
        self._alive_at = now_s()
        holder = self._holder
        if holder is not None and holder.directory and leases.home_of(holder.directory) not in ("", holder.home):
            log.error("%s was removed and made again: ends, so as to be started again", holder.directory)
            self._holder = None
            os.kill(os.getpid(), signal.SIGTERM)

    def release(self) -> None:
        """Gives the lease back, if there is one."""
        if self._thread is None or self._timer is None:
            return
        self._released.set()
        self._asking.shutdown(wait=False)
        self._thread.join(self._seconds)
        self._timer.disarm()
        self._thread = None

    def _renew_always(self) -> None:
        database: Any = _for_lease(self._url, self._seconds)
        rest_s = self._seconds / 4
        while not self._released.wait(rest_s):
            if now_s() > self._ends_s:  # the kernel's timer should have killed us
                _end(f"the lease {self._name} has run out")
            if now_s() - self._alive_at > self._silent_s:
                log.error("the lease %s is not renewed: this program gives no sign of life", self._name)
                continue
            try:
                _connect(database)
                since_s = now_s()
                if not leases.renew(
                    database, self._name, self._token, self._seconds, forgets_former=self._forgets_former
                ):
                    _end(f"the lease {self._name} is another program's")
                self._hold_until(since_s + self._seconds - SPARE_S)
                rest_s = self._seconds / 4
                if self._sightings is not None:
                    self._sightings.note(leases.versions(database), now_s(), since_s + self._seconds)
            except _AWAY as error:
                log.warning("failed to renew the lease %s, or to look at the others: %s", self._name, error)
                database.close()
                rest_s = _LOOK_S
        try:
            _connect(database)
            leases.give_back(database, self._name, self._token, forgets_former=self._forgets_former)
        except _AWAY as error:
            log.warning("the lease %s runs out by itself: %s", self._name, error)
        database.close()

    def is_ours(self) -> bool:
        """Asks the database whether the lease is still ours, because our clock may have been frozen. Thread-safe.

        Raises OperationalError, InterfaceError, DatabaseAway or TimeoutError without an answer in time.
        """
        return self.taken is None or self._asking.submit(self._ask).result(_ANSWER_S)

    def _ask(self) -> bool:
        if self._asked is None:
            self._asked = _for_lease(self._url, self._seconds)
        _connect(self._asked)
        try:
            return leases.is_of(self._asked, self._name, self._token)
        except _AWAY:
            self._asked.close()
            raise

    def stood(self, name: str) -> tuple[str, float] | None:
        """Returns a lease's version and the seconds since we first saw it, for standbys on other machines.

        Returns None if we have not seen the lease, or if our own lease is over, because we then read no more.
        """
        moment_s = now_s()
        seen = self._sightings.seen.get(name) if self._sightings is not None and moment_s < self._ends_s else None
        return None if seen is None else (seen.version, moment_s - seen.at_s)

    def act_by(self) -> None:
        """Allows this process to raise tasks' tokens only while it has the lease."""
        leases.act_by(None if self.taken is None else (self._name, self._token))

    def forget_former(self) -> None:
        """Clears the former home with the next renewal, because none of its writes can arrive any more."""
        self._forgets_former = True

    def _hold_until(self, ends_s: float) -> None:
        assert self._timer is not None
        self._timer.arm(ends_s)
        self._ends_s = ends_s

    @property
    def _token(self) -> int:
        return 0 if self.taken is None else self.taken.token


def claim(
    url: str,
    name: str,
    holder: Holder,
    seconds: int,
    *,
    waits: bool,
    kind: str,
    silent_s: float = SILENT_S,
    hear: Callable[[Sequence[str]], Iterable[Seen]] = lambda addresses: (),
) -> HeldLease:
    """Takes and renews the lease `name` on the database at `url`; no-op for SQLite.

    With `waits` it blocks until the lease is free; otherwise it raises NotTheOne once it has seen that the other holder
    is alive (`kind` names it in the message). `hear` asks the managers at these addresses which versions they have
    seen, in times of our clock. Raises DatabaseAway, and BidkeeperError in process 1 of a container. If the database
    leaves a query without an answer, the kernel's timer kills this process, and its supervisor restarts it.
    """
    if not is_postgresql(url):
        return HeldLease()
    check_mortal()
    database: Any = _for_lease(url, seconds)
    watch = Watch(seen_in(holder.directory, name, now_s()) if holder.directory else None)
    timer, patience_s = DeathTimer(), 2 * seconds + _NO_ANSWER_S
    while True:
        timer.arm(now_s() + patience_s + (longest_s(url) if database.is_closed() else 0))
        try:
            _connect(database)
            since_s = now_s()  # after connecting, because a server that is away may cost its whole connect time-out
            timer.arm(since_s + patience_s)
            found = leases.take(database, name, holder, seconds, watch.over(since_s))
            read_s = now_s()
            is_new = isinstance(found, Standing) and not watch.version
            others = leases.addresses_beside(database, name, holder.home) if is_new else []
        except _AWAY as error:
            has_answered = not database.is_closed() and not database.connection().closed
            database.close()
            if has_answered:  # it may be a former primary that came back and commits nothing
                look_at_each(url)
            if not waits:
                raise DatabaseAway(f"the database {place(url)} cannot be opened: {error}") from None
            log.error("the database %s cannot be asked for a lease; tries again: %s", place(url), error)
            time.sleep(seconds / 4)
            continue
        except ProgrammingError as error:
            database.close()
            raise BidkeeperError(f"the leases of the database {place(url)} cannot be used: {error}") from None
        finally:
            timer.disarm()
        if isinstance(found, Taken):
            database.close()
            return HeldLease(url, name, seconds, found, holder).keep(since_s, silent_s)
        if not watch.version:
            log.info("%s: on %s; this one stands by", name, found.machine)
            watch.hear(hear(others))
        elif found.version != watch.version and not waits:
            database.close()
            raise NotTheOne(f"another {kind} runs on the database {place(url)}, on {found.machine}")
        watch.note(found.version, found.seconds, read_s)
        time.sleep(_LOOK_S)


def _for_lease(url: str, seconds: int) -> Any:
    """Returns the database object for queries about a lease, with time-outs of a third of its duration.

    So an answer never comes after the lease's end, and a standby that is frozen with the lease's row locked cannot keep
    the holder from renewing it.
    """
    return opened(url, within_s=seconds / 3)


def _connect(database: Postgresql) -> None:
    if database.is_closed():
        database.connect()


def _end(reason: str) -> NoReturn:
    """Kills this process as the timer would, so that its workers cannot act any more."""
    log.error("%s; ends at once", reason)
    logging.shutdown()
    while True:
        os.kill(os.getpid(), signal.SIGKILL)


def wait_out(lease: HeldLease, rest_s: float) -> None:
    """Waits `rest_s` if another home had the lease before, because its last writes may arrive that long."""
    if lease.is_anothers:
        log.info("waits %.0f s for what the former one has sent", rest_s)
        time.sleep(rest_s)
        lease.forget_former()
