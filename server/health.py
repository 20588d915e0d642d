"""Health, readiness and metrics of the service."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import UNSET
from peewee import PeeweeException

from core import version
from core.call import call
from core.errors import BidkeeperError, PeerUnavailable
from core.fields import words
from core.files import FLOOR_BYTES, is_full
from core.program_calls import CountTasks, PingHooks
from core.settings import Settings
from markets.base import VenueError
from markets.client import MOST_SKEW_S, MarketClient, skew_words
from models import schema, summaries
from models.database import base
from models.leases import leases
from models.leases.manager_places import Place, address_at, places
from models.tasks.tasks import BIDDING, LISTING
from server.http.answers import Error, not_found
from server.http.base import Handler, route
from server.http.gate import is_local
from server.http.services import CONTENT_TYPE, Histogram, Metric, Services, metric, render
from server.http.shapes import Answer
from wallet.signer_client import SignerClient

METRICS_PATIENCE_S = 1.0

Said = TypeVar("Said")


def start_times() -> Histogram:
    """Makes the histogram of starts in this process."""
    return Histogram(
        "bidkeeper_start_seconds",
        "From a start's request to its answer that the worker runs, at this server process.",
        (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    )


class Metrics(Handler):
    """The metrics, for callers on this machine without a proxy; to all others this is a 404."""

    tag = "service"

    @route(
        "GET /metrics",
        says="Prometheus' text format.",
        media=CONTENT_TYPE,
        errors={404: "The caller is not on this machine, or comes through a proxy."},
        is_open=True,
    )
    async def get_metrics(self) -> None:
        """Metrics for Prometheus

        For programs on this machine that ask the server itself.
        """
        if not is_local(str(self.request.remote_ip), self.request.headers):
            raise not_found()
        text = render([*await collect(self.services.settings, self.now_ms), self.services.starts])
        self.set_header("Content-Type", CONTENT_TYPE)
        self.finish(text.encode())


async def collect(settings: Settings, now_ms: int) -> list[Metric]:
    """Collects all metrics. Those of a program that does not respond are left out."""
    known = places(settings)
    manager, gateway, signer = await asyncio.gather(
        _asked(lambda: _managers(settings, known)),
        _asked(lambda: _gateway(settings)),
        _asked(lambda: SignerClient(settings.signer_socket, METRICS_PATIENCE_S).status()),
    )
    up = {"manager": manager is not None, "gateway": gateway is not None}
    up["signer"] = signer is not None and signer.state == "ready"
    return [
        _build(version.running()),
        *_of_tables(now_ms),
        _up(up),
        *_of_manager(manager or {}),
        *_of_venues((gateway or {}).get("venues", {})),
    ]


def _managers(settings: Settings, known: Sequence[Place | PeerUnavailable]) -> dict[str, int]:
    """Adds up the managers' own counts. Raises PeerError if a manager does not respond."""
    addresses = [address_at(settings, place) for place in known]
    return {
        "workers": sum(call(each, "manager", CountTasks(), timeout=METRICS_PATIENCE_S).workers for each in addresses)
    }


async def _asked(question: Callable[[], Said]) -> Said | None:
    """Returns the answer, or None after a timeout. It uses a new thread, because the pools may all be busy."""
    try:
        return await asyncio.wait_for(asyncio.to_thread(question), 2 * METRICS_PATIENCE_S)
    except (BidkeeperError, TimeoutError):
        return None


def _gateway(settings: Settings) -> dict[str, Any]:
    with MarketClient(settings.gateway_socket, METRICS_PATIENCE_S) as market:
        return market.status()


def _of_tables(now_ms: int) -> Iterator[Metric]:
    for name, told, kind in (
        ("bidkeeper_tasks", "Bidding", BIDDING),
        ("bidkeeper_autolist_tasks", "Auto-list", LISTING),
    ):
        counts = summaries.tasks_by_state(kind)
        samples = tuple(({"desired": wanted, "observed": seen}, count) for (wanted, seen), count in counts.items())
        yield Metric(name, "gauge", f"{told} tasks by what is wanted and what runs.", samples)
    yield metric("bidkeeper_cycles_total", "counter", "Finished cycles of all tasks.", summaries.cycles_finished())
    yield Metric(
        "bidkeeper_orders",
        "gauge",
        "Orders in the ledger by state.",
        tuple(({"state": state}, count) for state, count in summaries.orders_by_state().items()),
    )
    yield Metric(
        "bidkeeper_listings",
        "gauge",
        "Listings in the ledger by state, one for each price.",
        tuple(({"state": state}, count) for state, count in summaries.listings_by_state().items()),
    )
    yield metric("bidkeeper_exposure_sats", "gauge", "Sats of all orders that are not closed.", summaries.exposure())
    yield metric("bidkeeper_sessions", "gauge", "Sessions that are signed in.", summaries.sessions(now_ms))


def _build(running: version.Version) -> Metric:
    labels = {"version": running.number, "commit": running.commit or "unknown"}
    return Metric("bidkeeper_build_info", "gauge", "The version of this server, and its commit.", ((labels, 1),))


def _up(peers: Mapping[str, bool]) -> Metric:
    samples = tuple(({"peer": name}, int(is_up)) for name, is_up in peers.items())
    return Metric("bidkeeper_up", "gauge", "Whether a peer answers and can do its work.", samples)


def _of_manager(status: Mapping[str, Any]) -> Iterator[Metric]:
    if "workers" in status:
        yield metric("bidkeeper_workers", "gauge", "Worker processes, drain workers too.", status["workers"])


def _of_venues(venues: Mapping[str, Any]) -> Iterator[Metric]:
    yield Metric(
        "bidkeeper_venue_calls_total",
        "counter",
        "Requests to a venue since the gateway's start.",
        tuple(
            ({"venue": venue, "operation": operation, "outcome": outcome}, count)
            for venue, status in venues.items()
            for operation, counts in status.get("calls", {}).items()
            for outcome, count in counts.items()
        ),
    )
    yield Metric(
        "bidkeeper_venue_unread_rows_total",
        "counter",
        "Rows of a venue's answers that were left out, since they could not be read or were about something else.",
        tuple(
            ({"venue": venue, "operation": operation}, count)
            for venue, status in venues.items()
            for operation, count in status.get("unread_rows", {}).items()
        ),
    )
    for name, key, help in (
        ("bidkeeper_venue_budget_left", "budget_left", "Requests that could be sent to a venue at once."),
        ("bidkeeper_venue_paused_seconds", "paused_s", "Until a venue that asked for a pause is asked again."),
        ("bidkeeper_venue_waiting", "waiting", "Requests that wait for their turn at a venue."),
        ("bidkeeper_venue_running", "running", "Requests that a venue has not answered yet."),
    ):
        samples = tuple(({"venue": venue}, status[key]) for venue, status in venues.items() if key in status)
        yield Metric(name, "gauge", help, samples)
    cut_off = tuple(({"venue": venue}, int(bool(status.get("is_cut_off")))) for venue, status in venues.items())
    yield Metric("bidkeeper_venue_cut_off", "gauge", "Whether a venue that does not answer is only probed.", cut_off)
    yield from _of_quotas({venue: status["quota"] for venue, status in venues.items() if "quota" in status})


def _of_quotas(quotas: Mapping[str, Any]) -> Iterator[Metric]:
    for name, key, help in (
        ("bidkeeper_venue_read_stretch_seconds", "stretch_s", "How old reads may be so that the quota lasts."),
        ("bidkeeper_venue_quota_rungs", "rungs", "Rungs of a ladder that may have new bids; absent: all."),
    ):
        yield Metric(name, "gauge", help, _of_each(quotas, key))
    yield from _of_period("bidkeeper_venue_quota", "month", quotas)
    days = {venue: quota["day"] for venue, quota in quotas.items() if "day" in quota}
    yield from _of_period("bidkeeper_venue_day_quota", "day", days)


def _of_period(begin: str, period: str, quotas: Mapping[str, Any]) -> Iterator[Metric]:
    for key, help in (
        ("used", f"Calls of this {period} (UTC) that the key's quota has had."),
        ("left", f"Calls of this {period} that the key's quota still has."),
        ("projected", f"Calls of the whole {period}, if it went on like the last hour."),
    ):
        yield Metric(f"{begin}_{key}", "gauge", help, _of_each(quotas, key))
    yield Metric(
        f"{begin}_used_by_user",
        "gauge",
        f"Calls of this {period} by user, of those with the most; user others: all the rest.",
        tuple(
            ({"venue": venue, "user": user}, used)
            for venue, quota in quotas.items()
            if "used" in quota
            for user, used in _by_user(quota)
        ),
    )


def _of_each(quotas: Mapping[str, Any], key: str) -> tuple[tuple[dict[str, str], Any], ...]:
    return tuple(({"venue": venue}, quota[key]) for venue, quota in quotas.items() if quota.get(key) is not None)


def _by_user(quota: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yields the calls of each user that the gateway lists, which are few, and of all other users together."""
    named: Mapping[str, int] = quota.get("users", {})
    yield from named.items()
    yield "others", max(quota["used"] - sum(named.values()), 0)


PATIENCE_S = 2.0
WRITE_EVERY_S = 10.0
DISK_FULL = "disk full"
DAMAGED = "damaged"
_WRITTEN = "readyz"  # the file in the data directory


Version = Annotated[str, words("Of the server that answers.")]
Commit = Annotated[str | None, words("That it was made of; with `+changes` if its checkout differed. null: unknown.")]


class Alive(Answer, frozen=True, kw_only=True):
    """This process lives."""

    status: Literal["ok"] = "ok"
    version: Version
    commit: Commit


class Ready(Answer, frozen=True, kw_only=True):
    """Everything answers."""

    status: Literal["ready"] = "ready"
    version: Version
    commit: Commit


class NotReady(Error, frozen=True, kw_only=True):
    """The parts that do not answer, and why."""

    missing: list[str]
    version: Version
    commit: Commit


class Health(Handler):
    """The operations for monitors."""

    tag = "service"

    @route("GET /healthz", says="It lives.", is_open=True)
    def is_alive(self) -> Alive:
        """Does the server live

        Asks nobody else, so it says nothing of the other programs. Names the version of this server.
        """
        running = version.running()  # already cached since the server's start
        return Alive(version=running.number, commit=running.commit or None)

    @route(
        "GET /readyz", says="Everything answers.", answer=Ready, also={503: ("It does not.", NotReady)}, is_open=True
    )
    async def is_ready(self) -> Ready | None:
        """Does everything answer that is needed

        Asks the database, the manager, the gateway, the facts, the hooks and the signer, each over a new connection and
        for two seconds at most. Reads the free space, and writes at most every ten seconds. The error is `Disk full`
        when less than 64 MiB are free. Names the version of this server.
        """
        missing = {name: reason for name, reason in (await missing_peers(self)).items() if reason}
        running = version.running()
        if not missing:
            return Ready(version=running.number, commit=running.commit or None)
        may_see = is_local(str(self.request.remote_ip), self.request.headers)  # because reasons name hosts and users
        answer = NotReady(
            error=_headline(missing),
            missing=sorted(missing),
            version=running.number,
            commit=running.commit or None,
            details=[f"{name}: {reason}" for name, reason in missing.items()] if may_see else UNSET,
        )
        self.answer(answer, 503)
        return None


def _headline(missing: dict[str, str]) -> str:
    if any(reason.startswith(DISK_FULL) for reason in missing.values()):
        return DISK_FULL.capitalize()
    return "Database damaged" if missing.get("database", "").startswith(DAMAGED) else "Not ready"


async def missing_peers(handler: Handler) -> dict[str, str]:
    """Returns for each peer why it is not ready, "" if it is. Concurrent callers share one check."""
    shared = handler.application.settings
    if "writes" not in shared:
        shared["writes"] = Writes(handler.services.settings)
    if "look" not in shared or shared["look"].done():
        shared["look"] = asyncio.ensure_future(_looked(handler.services, shared["writes"]))
    found: dict[str, str] = await asyncio.shield(shared["look"])
    return found


async def _looked(services: Services, writes: Writes) -> dict[str, str]:
    """Checks each program over a new connection, because an old one still works if the socket's file was removed."""
    looks: dict[str, Awaitable[str]] = {
        "database": _database(writes),
        "disk": asyncio.to_thread(writes.to_disk),
        "manager": _manager(services),
        "gateway": _status(services.settings.gateway_socket),
        "clock": _clock(services.settings.gateway_socket),
        "facts": _facts(services),
        "hooks": _hooks(services),
        "signer": _signer(services.settings.signer_socket),
    }
    if services.settings.market == "simulator":
        looks["simulator"] = _simulator(services.settings.simulator_url)
    reasons = await asyncio.gather(*map(_in_time, looks.values()))
    return dict(zip(looks, reasons, strict=True))


async def _in_time(look: Awaitable[str]) -> str:
    """Returns the fault as text; "" without one."""
    try:
        return await asyncio.wait_for(look, PATIENCE_S)
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s"
    except (BidkeeperError, OSError, PeeweeException) as error:
        base.note_damage(error)
        return str(error) or type(error).__name__


async def _database(writes: Writes) -> str:
    if (damage := base.damage()) is not None:
        return f"{DAMAGED}: {damage.text}"
    return "not migrated" if schema.pending() else writes.to_database()


async def _manager(services: Services) -> str:
    state = await services.manager.state(PATIENCE_S)
    return "" if state == "ready" else state


async def _facts(services: Services) -> str:
    if services.settings.facts_hosts:
        # The relay accepts connections even if the facts are down, but a host of the servers' role gets an answer.
        return await _status(services.settings.facts_socket)
    # The facts answer the signer only, so this only checks that they listen.
    _, writer = await asyncio.open_unix_connection(services.settings.facts_socket)
    writer.close()
    return ""


async def _status(socket: Path) -> str:
    """Requests the status of the gateway or the facts."""

    def ask() -> None:
        with MarketClient(socket, PATIENCE_S) as program:
            program.status()

    await asyncio.to_thread(ask)
    return ""


async def _clock(gateway: Path) -> str:
    """Compares our clock with the marketplaces' clocks, as the gateway measured them. A wrong clock stops all bids.

    A marketplace whose own clock is wrong only stops the bids there.
    """

    def ask() -> str:
        try:
            with MarketClient(gateway, PATIENCE_S) as program:
                venues = program.status().get("venues", {}).values()
        except VenueError:
            return ""  # because the gateway's own line reports it
        skews = [venue["skew_s"] for venue in venues if venue.get("skew_s") is not None]
        least = min(skews, key=abs, default=0.0)
        return f"{skew_words(least)}: no bid is placed" if abs(least) > MOST_SKEW_S else ""

    return await asyncio.to_thread(ask)


async def _hooks(services: Services) -> str:
    path = services.settings.hooks_socket
    if leases.kept_elsewhere(leases.HOOKS, path.parent):
        return ""
    await asyncio.to_thread(call, path, "hooks", PingHooks(), timeout=PATIENCE_S)
    return ""


async def _signer(socket: Path) -> str:
    status = await asyncio.to_thread(SignerClient(socket, PATIENCE_S).status)
    return "" if status.state == "ready" else f"{status.state}: {status.reason}"


async def _simulator(url: str) -> str:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(b"GET /sim/requests HTTP/1.0\r\nHost: localhost\r\n\r\n")
        await writer.drain()
        line = await reader.readline()
    finally:
        writer.close()
    return "" if line.startswith(b"HTTP/1.") else "does not speak HTTP"


class Writes:
    """Checks that the installation's directories and the database take a write.

    Free space is read each time. A write is made at most every WRITE_EVERY_S, because some monitors ask each second.
    After a fault a write is made each time, so that the recovery is noticed.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._file = settings.data_dir / _WRITTEN
        self._directories = [settings.data_dir]
        self._directories += [] if settings.signer_host else [settings.signer_files]
        self._directories += [] if settings.gateway_hosts else [settings.quota_file.parent]
        self._to_disk_due = self._to_database_due = clock()
        self._in_progress = threading.Lock()

    def to_disk(self) -> str:
        """Returns the fault as text; "" without one. Raises OSError."""
        if not self._in_progress.acquire(blocking=False):
            return "a write has not ended yet"
        try:
            for directory in dict.fromkeys(self._directories):
                free, found = _free_bytes(directory)
                if free < FLOOR_BYTES:
                    return f"{DISK_FULL}: {free >> 20} MiB are free at {found}, {FLOOR_BYTES >> 20} are needed"
            if self._clock() >= self._to_disk_due:
                _overwrite(self._file)
                self._to_disk_due = self._clock() + WRITE_EVERY_S
            return ""
        except OSError as error:
            if is_full(error):
                return f"{DISK_FULL}: {error.filename or self._file}"
            raise
        finally:
            self._in_progress.release()

    def to_database(self) -> str:
        """Returns the fault as text; "" without one, or while another process is writing. Raises peewee's errors.

        It never waits, because it runs on the server's only loop.
        """
        if self._clock() < self._to_database_due:
            return ""
        if fault := base.write_fault():
            return f"{DISK_FULL}: {fault}" if is_full(OSError(fault)) else fault
        self._to_database_due = self._clock() + WRITE_EVERY_S
        return ""


def _free_bytes(directory: Path) -> tuple[int, Path]:
    """Returns the free bytes at a directory, or at its nearest parent that exists and can be read."""
    try:
        found = os.statvfs(directory)
    except (FileNotFoundError, PermissionError):
        if directory == directory.parent:
            raise
        return _free_bytes(directory.parent)
    return found.f_bavail * found.f_frsize, directory


def _overwrite(path: Path) -> None:
    """Overwrites a few bytes of a file and syncs them to disk. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.pwrite(descriptor, f"{time.time_ns():020d}\n".encode(), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
