"""A lease that this process holds, renewed by a thread of its own; without it, the process does not live on.

The kernel's timer kills the process a second before the lease runs out, and with a manager its workers, so that nobody
is ever two. It is set by the moment before each renewal is sent, so it never ends later than others think.

Whether the holder of another one has ended is seen by the clock of the one that stands by, not by the database's.
The rule: a lease that has stood unchanged for as long as it was asked for is nobody's. Why that is safe, and the
database's clock is not needed for it:

- A renewal changes the row's version. Its holder has set the kernel's timer to a second less than the lease, counted
  from the moment *before* it sent that renewal. Whoever sees the version does so after it was sent. So when the lease's
  time has passed since then, by a clock that counts a machine's sleep, the holder has been dead for a second; the two
  clocks need not agree, only run equally fast, to a second in the lease.
- The lease is taken only if it still has that version, under the row's lock. A renewal that comes first changes it, and
  the watch begins anew; one that comes later finds another token, and its sender ends.
- A renewal whose answer was lost may have changed the row, while its holder's timer stands as it was: that holder ends
  earlier than it is thought to.
- A database that was away, or whose clock jumps ahead, makes nobody's lease shorter; one whose clock jumps back makes
  no dead holder's longer.

What it cannot see is a virtual machine that is frozen together with its clocks. Tokens keep its workers from ledger,
signer and gateway then, and a gateway asks for its lease before each write.

A program that has just been started would have to watch another's lease for all of its time before it may take it. One
that has a lease itself looks at all of them at each renewal, and keeps their versions in a file of its directory; so in
its place the watch began when that one saw the version first. Moments are of the machine's clock: what was noted before
its restart, or by another clock, says nothing. Nor does what one has noted whose own lease is over: it looks no more,
and a database that has gone back since (a restored backup) shows an old version again, whose holder may live.
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
    """A version of a lease, and a moment after it was read."""

    version: str
    at_s: float


class Watch:
    """A memory of a lease that another home has. All moments are of one clock, `core.process.now_s`.

    `seen` is the newest version that others have seen by the same clock (`Sightings`).
    """

    def __init__(self, seen: Seen | None = None) -> None:
        self.version = ""
        self._ends_s = 0.0
        self._seen = [] if seen is None else [seen]

    def hear(self, seen: Iterable[Seen]) -> None:
        """Takes what other machines' managers have seen, in moments of our clock; only before the first `note`."""
        self._seen.extend(seen)

    def note(self, version: str, seconds: int, now_s: float) -> None:
        """Notes that the lease, asked for so long, has this version; `now_s` is a moment after that was read."""
        if version == self.version:
            return
        since_s = min((seen.at_s for seen in self._seen if seen.version == version), default=now_s)
        self.version, self._ends_s = version, since_s + seconds
        self._seen = []  # a version that is read again after another one is watched anew

    def over(self, now_s: float) -> str:
        """Returns the version whose holder has ended by now; "" when there is none."""
        return self.version if now_s >= self._ends_s else ""


log = logging.getLogger(__name__)


class Sightings:
    """A program's record of what it sees, in a file of its own in `directory`; `own` is the lease that it has."""

    def __init__(self, directory: Path, own: str) -> None:
        self._path = directory / f"seen-{own.replace(' ', '-')}.json"
        self.seen: dict[str, Seen] = {}

    def note(self, versions: Mapping[str, str], now_s: float, until_s: float) -> None:
        """Notes the versions of all leases by their names; `now_s` (of `core.process.now_s`) is after they were read.

        `until_s`: the end of our own lease, unless it is renewed.
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
        except OSError as error:  # a program that is started here will have to watch for longer
            log.warning("failed to note which leases were seen: %s", error)


def seen_in(directory: Path, name: str, now_s: float) -> Seen | None:
    """Returns the newest version of the lease that this user's programs see here, with its first moment."""
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
    """Returns what tells this machine's clock since its start from all others, those of containers too."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/time').readlink()}"


SPARE_S = 1.0  # from our end to the lease's
_LOOK_S = 0.5
_ANSWER_S = 3.0
# With two leases, how long a server may leave a question about a lease without an answer. One that is frozen, or
# has lost its place to its standby and commits nothing, keeps the connection open for ever; a new process asks anew.
_NO_ANSWER_S = 10.0
_AWAY = (OperationalError, InterfaceError, DatabaseAway)
SILENT_S = 60.0  # a program that gives no sign of life for this has its lease run out


class NotTheOne(BidkeeperError):
    """Another program holds the lease, and lives."""


class HeldLease:
    """A lease until `release`. `taken` says how it was found; without that it is one that needs no keeping.

    `is_anothers`: another home had it before, and nobody has called `forget_former` since. In the `holder`'s directory
    it notes which leases it has seen, for the programs that are started there later.
    """

    def __init__(
        self, url: str = "", name: str = "", seconds: int = 0, taken: Taken | None = None, holder: Holder | None = None
    ) -> None:
        self.taken = taken
        # Of a holder that is not named after its directory, nothing shows whether that was made again.
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
        """Begins to renew it; `since_s` is the moment before it was taken. Returns itself.

        After `silent_s` without a sign of life it is not renewed any more.
        """
        self._silent_s = silent_s
        self._timer = DeathTimer()
        self._hold_until(since_s + self._seconds - SPARE_S)
        self._thread = threading.Thread(target=self._renew_always, name="lease", daemon=True)
        self._thread.start()
        return self

    def alive(self) -> None:
        """Says that the program works: the lease of one that hangs is not renewed, so that another one can have it.

        Ends the program in order where its directory was removed and made again: the lease names the former one, and
        servers would look for the program on another machine. Its supervisor starts it again.
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
            if now_s() > self._ends_s:  # the kernel should have ended us
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
        """Asks the database, in any thread: a machine frozen with its clocks does not know that its time is over.

        Raises OperationalError, InterfaceError, DatabaseAway or TimeoutError when it does not tell in time.
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
        """Returns a lease's version, and for how many seconds it has been that if it still is, for those who ask us.

        None where we do not know, or our own lease is over: then we look no more.
        """
        moment_s = now_s()
        seen = self._sightings.seen.get(name) if self._sightings is not None and moment_s < self._ends_s else None
        return None if seen is None else (seen.version, moment_s - seen.at_s)

    def act_by(self) -> None:
        """Has this process raise tasks' tokens only while the lease is its own."""
        leases.act_by(None if self.taken is None else (self._name, self._token))

    def forget_former(self) -> None:
        """Notes, with the next renewal, that nothing of the other home that had it before is to be awaited."""
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
    """Takes the lease `name` on the database at `url`, and keeps it; one that needs no keeping where that is SQLite.

    With `waits` it waits for as long as another home has it; else only to see whether that one lives, and raises
    NotTheOne (`kind` says what it is in words). `hear` asks the managers at these addresses what they have seen of it,
    in moments of our clock. Raises DatabaseAway, and BidkeeperError in process 1 of a container.
    Where a question stays without an answer this process does not live on: whoever keeps it running starts it again.
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
            since_s = now_s()  # not before: of several servers the first may be away, and cost its whole patience
            timer.arm(since_s + patience_s)
            found = leases.take(database, name, holder, seconds, watch.over(since_s))
            read_s = now_s()
            is_new = isinstance(found, Standing) and not watch.version
            others = leases.addresses_beside(database, name, holder.home) if is_new else []
        except _AWAY as error:
            has_answered = not database.is_closed() and not database.connection().closed
            database.close()
            if has_answered:  # it may be a former primary that has come back: such a one commits nothing
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
    """Makes the database for questions about a lease: whoever waits for longer than it lasts sees no answer.

    Nor may one who only stands by, and is frozen with the lease's row locked, keep its holder from renewing it.
    """
    return opened(url, within_s=seconds / 3)


def _connect(database: Postgresql) -> None:
    if database.is_closed():
        database.connect()


def _end(reason: str) -> NoReturn:
    """Ends this process as the timer would: no worker of it may act any more."""
    log.error("%s; ends at once", reason)
    logging.shutdown()
    while True:
        os.kill(os.getpid(), signal.SIGKILL)


def wait_out(lease: HeldLease, rest_s: float) -> None:
    """Waits `rest_s` if another home had the lease before: what that one has sent may be on its way so long."""
    if lease.is_anothers:
        log.info("waits %.0f s for what the former one has sent", rest_s)
        time.sleep(rest_s)
        lease.forget_former()
