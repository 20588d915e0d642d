"""The doctor on the programs here (asked at their sockets), on other hosts, and on the calls that each key allows."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from peewee import PeeweeException

from cli import api
from cli.doctor.check import Check, Found, fail, first, is_missing, named, ok, warn, way_to_keys
from cli.doctor.settings_check import is_held
from core import tls
from core.call import call
from core.errors import BidkeeperError
from core.local_server import peer_pid
from core.program_calls import Ping, PingHooks
from core.setting_values import HostPort
from core.settings import PLAY_MARKET, SECRETS, Settings, dialect_of
from gateway.app import quotas
from markets.base import Unavailable
from markets.client import MOST_SKEW_S, MarketClient, skew_words
from markets.venues import call_costs, capabilities
from models.database import base
from models.database.base import is_postgresql
from models.database.damage import DatabaseAway
from models.leases import leases
from strategy.config.bid import DEFAULT_EXPIRY_MINUTES
from strategy.monthly import (
    Bidding,
    KeyQuota,
    MonthlyCalls,
    Task,
    all_fit_from_minutes,
    bids_carried,
    monthly_calls,
    rune_calls,
    usable,
)
from wallet.signer_client import SignerClient

PATIENCE_S = 5.0
CLOCK_REMEDY = "set the clock by NTP: timedatectl set-ntp true"
RUNES_FROM = "unisat"  # the venue whose rune asks every rune task reads, on any marketplace
_LOW_SHARE = 0.1
_SOON_S = 30 * 86_400
_PAGE = "docs/several-machines.md"
ODD_ON_PURPOSE = "none needed: the practice marketplace sends odd rows on purpose (docs/simulator.md, Scenes)"


def examine(settings: Settings, own: dict[int, str]) -> Iterator[Check]:
    """Examines ports and programs; a stopped service gets one line. `own` are the installation's processes."""
    servers = [settings.server_at(index) for index in range(settings.server_processes)]
    is_practice = settings.market == PLAY_MARKET
    for at, variable in api.ports(settings).items():
        yield _port(at, variable, own)._replace(name=f"port {at.port}")
    if not _runs(settings, own):
        yield warn("Bidkeeper is not running, so none was checked", "bidkeeper up", "programs")
        yield from named("quota", _kept_quota(settings))
        return
    # They may be on another machine; the leases show where.
    may_be_elsewhere = is_postgresql(settings.database_url) or settings.tls_dir is not None
    here = _leases_here(settings) if may_be_elsewhere else []
    is_all_here = not may_be_elsewhere
    has_manager = is_all_here or any(settings.run_dir.glob("manager*.sock")) or set(here) - {leases.HOOKS}
    has_hooks = is_all_here or not is_missing(settings.hooks_socket) or leases.HOOKS in here
    rows: list[tuple[str, object, Path | None, Callable[[Settings], Found]]] = [
        ("signer", True, settings.signer_socket, _signer),
        ("gateway", True, settings.gateway_socket, _gateway),
        ("facts", True, settings.facts_socket, _facts),
        ("manager", has_manager, settings.manager_socket, _managers),
        ("hooks", has_hooks, settings.hooks_socket, _hooks),
        ("simulator", is_practice, None, _simulator),
        *(("server", True, None, partial(_server, at)) for at in servers),
    ]
    for name, is_here, path, look in rows:
        is_local = path is not None and settings.tls_dir is not None and path.parent != settings.relay_files
        if look is _gateway and settings.signer_listen and settings.gateway_hosts:
            text = "BIDKEEPER_GATEWAY_HOSTS is set, but the gateway does not answer the signer's host"
            yield warn(text, "remove BIDKEEPER_GATEWAY_HOSTS on this host", name)
        elif path and is_local and look in (_signer, _gateway, _facts) and is_missing(path):
            yield warn("does not run on this host", "start it, unless another host runs it", name)
        elif is_here:
            yield from named(name, _asked(name, settings, look, path))


def manager_of(own: dict[int, str]) -> int | None:
    """Returns the manager's pid, None if it is not seen."""
    return next((pid for pid, line in own.items() if line.rstrip().endswith("manager")), None)


def quota(venue: str, status: dict[str, Any]) -> Iterator[Check]:
    """Reports the calls used and left of the month and the day, from the status of a venue's quota."""
    for period, used in (("month", status), ("day", status.get("day", {}))):
        if "limit" in used:
            yield _used(venue, period, used, status.get("rungs"))._replace(name="quota")


def _used(venue: str, period: str, use: dict[str, Any], rungs: int | None) -> Check:
    left, limit = int(use["left"]), int(use["limit"])
    since = "this month" if period == "month" else "today (UTC)"
    used = f"{int(use['used']):,} of {limit:,} calls at {venue} used {since}, {left:,} left"
    text = f"{used}; {int(use['projected']):,} by its end at the rate of the last hour"
    slower = "" if rungs is None else f"; only the top {rungs} of a ladder get new bids"
    is_little = rungs is not None or left < limit * _LOW_SHARE
    larger = f"wait for the next {period}, or get a larger quota ({quota_variable(venue, period)})"
    fewer = "run fewer tasks, raise loopSeconds, or get a larger quota (docs/venues.md)"
    return first((left == 0, fail(text, larger)), (is_little, warn(text + slower, fewer)), (True, ok(text)))


def _kept_quota(settings: Settings) -> Iterator[Check]:
    """Yields the use of each quota as the gateway has saved it."""
    if any(is_held(settings, name) for name in SECRETS) or not os.access(settings.quota_file.parent, os.X_OK):
        return
    if settings.quota_file.exists() and not os.access(settings.quota_file, os.R_OK):
        return
    try:
        kept = quotas(settings)
    except (DatabaseAway, PeeweeException):
        return  # the check of the database reports the fault
    except BidkeeperError as error:
        yield fail(str(error), "remove the file if the count may start again at 0")
        return
    for venue, each in kept.items():
        yield from quota(venue, each.status())


def _runs(settings: Settings, own: dict[int, str]) -> bool:
    sockets = [settings.manager_socket, settings.signer_socket, settings.gateway_socket, settings.facts_socket]
    sockets.append(settings.hooks_socket)
    return any(map(_listens, sockets)) or any("cli.main up" in line or "bidkeeper up" in line for line in own.values())


def _leases_here(settings: Settings) -> list[str]:
    """Returns the manager and hooks leases held by programs of this directory; none if that is unknown."""
    try:
        names = leases.names_at(settings.database_url)
        with base.reading(settings.database_url):
            found = {name: leases.held(name) for name in names}
        home = leases.home_of(settings.run_dir)
    except (BidkeeperError, PeeweeException, OSError):
        return []  # the check of the database reports the fault
    return [name for name, each in found.items() if each is not None and each.left_ms >= 0 and each.home == home]


def _listens(path: Path) -> bool:
    try:
        _connected(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _connected(path: Path) -> int:
    """Returns the pid of the process that listens at a socket. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PATIENCE_S)
        probe.connect(str(path))
        return peer_pid(probe)


def _port(at: HostPort, variable: str, own: dict[int, str]) -> Check:
    why = api.problem(at, variable)
    if why is None:
        return ok("free")
    if any(_holds_port(pid, at.port) for pid in own):
        return ok("used by this Bidkeeper")
    try:
        status, body = _get(at, "/healthz")
        if status == 200 and json.loads(body).get("status") == "ok":
            return ok("a Bidkeeper answers; this user cannot see whether it is this one")
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        pass  # it belongs to another user
    is_host = why.startswith("BIDKEEPER_HOST")
    return fail(why, "set BIDKEEPER_HOST" if is_host else f"stop that program, or set {variable}")


def _holds_port(pid: int, port: int) -> bool:
    """Returns True if this process listens at TCP port `port`."""
    inodes = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        with contextlib.suppress(OSError):
            for fields in map(str.split, table.read_text().splitlines()[1:]):
                if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:  # 0A: listening
                    inodes.add(f"socket:[{fields[9]}]")
    try:
        return any(str(entry.readlink()) in inodes for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _asked(name: str, settings: Settings, look: Callable[[Settings], Found], path: Path | None) -> Iterator[Check]:
    """Yields the checks of `look`, or one that reports a missing answer. `path` is the program's socket, if any."""
    try:
        yield from named(name, look(settings))
    except (BidkeeperError, OSError, http.client.HTTPException) as error:
        words = error.strerror if isinstance(error, OSError) else None
        reason = (words or str(error)).removeprefix(f"{name}: ") or type(error).__name__
        yield _silent(settings, error, reason, path)
    except (ValueError, LookupError, TypeError) as error:
        text = f"its answer is not understood: {type(error).__name__}: {error}"
        yield fail(text, "restart the service, so that every program is of this version")


def _silent(settings: Settings, error: Exception, reason: str, path: Path | None) -> Check:
    """Makes the check of a program that gave no answer; the remedy depends on its socket."""
    text, log = f"does not answer: {reason}", "" if settings.signer_dir else f" in {settings.log_dir}"
    whose = "the relay's" if path is not None and path.parent == settings.relay_files else "its"
    cause = error.__cause__.__cause__ or error.__cause__ if error.__cause__ else error
    if isinstance(cause, TimeoutError):
        end = f"kill {pid}" if path is not None and (pid := _listener(path)) else "its process"
        remedy = f"supervisord does not restart a program that hangs: if it stays silent, end it ({end})"
        return fail(f"does not answer: no answer within {PATIENCE_S:g} s", remedy)
    if isinstance(cause, PermissionError):
        return fail(text, "run the doctor as the user of the installation, or as root")
    if path is None or (path.is_socket() and _listens(path)):
        return fail(text, f"see {whose} log{log}; supervisord restarts it once it ends")
    what = "is missing" if is_missing(path) else "is a dead process's"
    remedy = (
        "run the doctor again in a moment: a running program makes its socket again, and supervisord restarts one that"
        f" has ended; if it stays so, see {whose} log{log}"
    )
    return fail(f"does not answer: its socket {path} {what}", remedy)


def _listener(path: Path) -> int:
    """Returns the pid of the process that listens at a socket; 0 if it is unknown."""
    try:
        return _connected(path)
    except OSError:
        return 0


def _signer(settings: Settings) -> Iterator[Check]:
    client = SignerClient(settings.signer_socket, PATIENCE_S)
    status = client.status()
    asks = f"{status.state}: {status.reason}"
    yield first(
        (status.state == "ready", ok(f"ready with {'play' if status.play else 'real'} keys")),
        (status.state == "reconciling", warn(asks, "wait a moment and run the doctor again")),
        (True, fail(f"locked: {status.reason}", way_to_keys(status.reason))),
    )
    controls = client.controls()
    if controls.has_halt_file:
        remedy = "remove it to bid again (docs/operations.md)"
        yield warn("the operator's halt file exists: no bid is signed", remedy, "control")
    for control in controls.states:
        if control.scope == "global" and control.state != "run":
            remedy = "choose Run (PUT /api/control) to bid again"
            yield warn(f"the control for all users is {control.state}", remedy, "control")


def _gateway(settings: Settings) -> Iterator[Check]:
    with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
        status = market.status()
    venues: dict[str, dict[str, Any]] = status["venues"]
    yield ok(f"answers; the default marketplace is {status['market']}")
    for name, venue in venues.items():
        if venue["is_cut_off"]:
            yield warn(f"{name} has given no usable answer several times in a row", "see its lines below")
        if venue["paused_s"] > 0:
            text = f"{name} limits our calls; the next one goes out in {venue['paused_s']:.0f} s"
            yield warn(text, "wait; if this repeats, another program uses the same key")
        if unread := venue.get("unread_rows"):
            counts = ", ".join(f"{count} of {operation}" for operation, count in sorted(unread.items()))
            text = f"{name}: rows left out of its answers since the gateway's start: {counts}"
            is_practice = settings.market == PLAY_MARKET
            remedy = ODD_ON_PURPOSE if is_practice else "its log says why, of each kind once in ten minutes"
            yield warn(text, remedy, "gateway rows")
        skew_s = venue.get("skew_s")
        if skew_s is not None and abs(skew_s) > MOST_SKEW_S:
            text = f"{skew_words(skew_s)} ({name}), measured by the gateway: no bid is placed there"
            yield fail(text, CLOCK_REMEDY, "clock")
    for name, venue in venues.items():
        if "quota" in venue:
            yield from quota(name, venue["quota"])


def _facts(settings: Settings) -> Check:
    with MarketClient(settings.facts_socket, PATIENCE_S) as facts:
        try:
            facts.status()
        except Unavailable:
            if settings.facts_hosts:
                raise
            _connected(settings.facts_socket)
            remedy = "name the manager's user in BIDKEEPER_FACTS_CLIENTS: it proves by facts what bids bought"
            return warn("listens, and does not answer this user", remedy)
    return ok("answers")


def _hooks(settings: Settings) -> Check:
    counts = call(settings.hooks_socket, "hooks", PingHooks(), timeout=PATIENCE_S).deliveries
    return ok(f"{counts.waiting:,} deliveries are waiting, {counts.dead:,} failed for good")


def _managers(settings: Settings) -> Iterator[Check]:
    of_slots = sorted(settings.run_dir.glob("manager-*.sock"))
    for path in of_slots or [settings.manager_socket]:
        state = call(path, "manager", Ping(), timeout=PATIENCE_S).state
        wrong = fail(f"not ready: {state}", "see its log; run the doctor again in a moment", path.stem)
        yield ok("ready, with its zygote", path.stem) if state == "ready" else wrong


def _simulator(settings: Settings) -> Check:
    status, _ = _get(settings.simulator_at, "/healthz")
    return ok("answers") if status == 200 else fail(f"status {status}", "see its log")


def _server(at: HostPort, settings: Settings) -> Check:
    try:
        status, body = _get(at, "/readyz")
    except ConnectionRefusedError as error:
        remedy = "if Bidkeeper was started with another BIDKEEPER_PORT, set it here too; otherwise see the server's log"
        where = "" if settings.signer_dir else f" in {settings.log_dir}"
        return fail(f"does not answer at {at}: {error.strerror}", remedy + where)
    if status == 200:
        return ok(f"ready at {at}")
    missing = json.loads(body).get("details") or [f"status {status}"]
    return fail(f"{at} is not ready: {'; '.join(missing)}", "see the lines above")


def _get(at: HostPort, path: str) -> tuple[int, bytes]:
    return api.exchanged(at, "GET", path, None, "", PATIENCE_S)


def examine_hosts(settings: Settings, clock_ms: Callable[[], int]) -> Iterator[Check]:
    """Examines certificates and other hosts; yields none if everything is on this host. `clock_ms` is the epoch."""
    if settings.tls_dir is None:
        return
    try:
        client, server = tls.client_context(settings.tls_dir), tls.server_context(settings.tls_dir)
    except BidkeeperError as error:
        yield fail(str(error), f"create new ones, or correct them ({_PAGE})", "certificates")
        return
    own = tls.client_context(settings.tls_dir)
    yield from named("certificates", _certificates(own, server, clock_ms() / 1000))
    away = [("gateway", host, tls.TRADER) for host in settings.gateway_hosts]
    away += [("facts", host, tls.TRADER) for host in settings.facts_hosts]
    away += [("signer", host, tls.SIGNER) for host in (settings.signer_host,) if host]
    may_stand_by = {"gateway"} if len(settings.gateway_hosts) > 1 else set()
    for program, host, role in away:
        found = _host(tls.FarAddress(host, client, role), program in may_stand_by)
        yield found._replace(name=f"{program} at {host}")


def _certificates(client: ssl.SSLContext, server: ssl.SSLContext, now_s: float) -> Iterator[Check]:
    try:
        own = _shown(client, server)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason
        yield fail(f"other hosts refuse this host's: {why}", f"create a new one ({_PAGE})")
        return
    role = tls.role_of(own)
    if not role or ("DNS", role) not in own.get("subjectAltName", ()):
        text = "this host's has no role: its subject and its DNS name must be trader or signer"
        yield fail(text, f"create a new one ({_PAGE})")
        return
    authorities = [("the authority's", authority) for authority in client.get_ca_certs()]
    for whose, certificate in [(f"this host's ({role})", own), *authorities]:
        left_s = ssl.cert_time_to_seconds(str(certificate["notAfter"])) - now_s
        text = f"{whose} is valid for {left_s / 86_400:,.0f} more days"
        yield ok(text) if left_s > _SOON_S else warn(text, f"renew it before it expires ({_PAGE})")


def _shown(client: ssl.SSLContext, server: ssl.SSLContext) -> dict[str, Any]:
    """Returns this host's certificate after a handshake with itself that verifies it. Raises SSLError."""
    client.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, answering = client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
    for side in (asking, answering, asking, answering):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return asking.getpeercert() or {}


def _host(address: tls.FarAddress, may_stand_by: bool) -> Check:
    try:
        with address.connect(PATIENCE_S):
            return ok(f"answers, with a certificate for {address.role}")
    except ConnectionRefusedError:
        if may_stand_by:
            return ok("refuses connections: it is on standby or down")
        why = "refuses connections"
    except OSError as error:
        why = error.strerror or str(error)
    return fail(f"does not answer: {why}", f"check that its host and the program run ({_PAGE})")


def examine_months(settings: Settings, running: Mapping[str, Sequence[Task]] | None) -> Iterator[Check]:
    """Yields a line for each key with a quota: the calls that all `running` tasks (by venue) take of it.

    It compares with the key's tightest quota, of a month or a day. `running` None (unknown) yields none.
    """
    if running is None:
        return
    for venue in settings.venues:
        dialect, tightest = dialect_of(venue) or "", KeyQuota.tightest(*settings.key_calls(venue))
        if tightest.calls and settings.venue_url(dialect):
            found = _period(venue, tightest, running, has_runes=dialect == RUNES_FROM)
            yield found._replace(name=f"{tightest.period} at {venue}")


def _period(venue: str, quota: KeyQuota, running: Mapping[str, Sequence[Task]], *, has_runes: bool) -> Check:
    tasks, costs, of_runes, carries = running.get(venue, ()), call_costs(venue), MonthlyCalls(0, 0, 0), ""
    if has_runes:
        of_runes = rune_calls((task, call_costs(venue)) for venue, tasks in running.items() for task in tasks)
    if capabilities(venue).kinds:
        bids = bids_carried(quota.monthly, costs)
        carries = f"; the quota is enough for {bids} bids of {DEFAULT_EXPIRY_MINUTES} minutes"
    cost = monthly_calls(tasks, costs) + of_runes
    if not cost.least:
        return ok(f"no task makes calls there{carries}")
    bids = sum(task.bids for task in tasks if isinstance(task, Bidding))
    who = f"{_counted(len(tasks), 'task')} with {_counted(bids, 'bid')}"
    if of_runes.least:
        who += ", and the asks of runes,"
    calls, least = quota.share(cost.reads + cost.writes), quota.share(cost.least)
    span = "a day" if quota.days == 1 else f"in {quota.days} days"
    takes = f"{who} take {calls:,} calls {span}, {least:,} with reads ten minutes old"
    within = f"{quota.usable:,} (90 % of the quota){carries}"
    if cost.least <= usable(quota.monthly):
        return ok(f"{takes}: within {within}")
    minutes = all_fit_from_minutes(tasks, quota.monthly, costs, of_runes.least)
    larger = f"get a larger quota ({quota_variable(venue, quota.period)})"
    if minutes is None:
        remedy = f"run fewer tasks, raise loopSeconds, or {larger}; no bidExpiryMinutes is long enough"
    else:
        remedy = f"set bidExpiryMinutes to at least {minutes} in every task, place fewer bids, or {larger}"
    return warn(f"{takes}: more than {within}", remedy)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def quota_variable(venue: str, period: str) -> str:
    """Returns the name of the setting for a monthly or daily quota."""
    often = "DAILY" if period == "day" else "MONTHLY"
    return f"BIDKEEPER_{(dialect_of(venue) or venue).upper()}_{often}_CALLS"
