"""The doctor on the programs: each is asked through its own socket."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from peewee import PeeweeException

from cli import listeners
from cli.doctor import port_holders
from cli.doctor.answer_check import CLOCK_REMEDY
from cli.doctor.check import Check, fail, ok, warn, way_to_keys
from cli.doctor.month_check import quota_variable
from cli.doctor.settings_check import is_held
from core.call import call
from core.errors import BidkeeperError
from core.local_server import peer_pid
from core.program_calls import Ping, PingHooks
from core.setting_values import HostPort
from core.settings import SECRETS, Settings
from gateway.app import quotas
from markets.base import Unavailable
from markets.client import MOST_SKEW_S, MarketClient, skew_words
from models.database import base
from models.database.base import is_postgresql
from models.database.damage import DatabaseAway
from models.leases import leases
from wallet.signer_client import SignerClient

PATIENCE_S = 5.0
_LEFT_IS_LITTLE = 0.1


def examine(settings: Settings, own: dict[int, str]) -> Iterator[Check]:
    """Examines ports and programs; a service that is down is one line. `own` are the installation's processes."""
    servers = [settings.server_at(index) for index in range(settings.server_processes)]
    ports = dict.fromkeys(servers, "BIDKEEPER_PORT")
    if settings.market == "simulator":
        ports[settings.simulator_at] = "BIDKEEPER_SIMULATOR_PORT"
    for at, variable in ports.items():
        yield _port(at, variable, own)
    if not _runs(settings, own):
        yield warn("programs", "Bidkeeper is not running, so none was checked", "bidkeeper up")
        yield from _kept_quota(settings)
        return
    for name, (path, look) in {
        "signer": (settings.signer_socket, _signer),
        "gateway": (settings.gateway_socket, _gateway),
        "facts": (settings.facts_socket, _facts),
    }.items():
        if name == "gateway" and settings.signer_listen and settings.gateway_hosts:
            text = "BIDKEEPER_GATEWAY_HOSTS is set, but the gateway does not answer the signer's host"
            yield warn(name, text, "remove BIDKEEPER_GATEWAY_HOSTS on this host")
        elif settings.tls_dir and path.parent != settings.relay_files and _is_missing(path):
            yield warn(name, "does not run on this host", "start it, unless another host runs it")
        else:
            yield from _asked(name, settings, lambda look=look: look(settings), path)  # type: ignore[misc]
    # They may be on another machine: their leases tell.
    may_be_elsewhere = is_postgresql(settings.database_url) or settings.tls_dir is not None
    here = _leases_here(settings) if may_be_elsewhere else []
    if not may_be_elsewhere or list(settings.run_dir.glob("manager*.sock")) or set(here) - {leases.HOOKS}:
        yield from _asked("manager", settings, lambda: _managers(settings), settings.manager_socket)
    if not may_be_elsewhere or not _is_missing(settings.hooks_socket) or leases.HOOKS in here:
        yield from _asked("hooks", settings, lambda: _hooks(settings), settings.hooks_socket)
    if settings.market == "simulator":
        yield from _asked("simulator", settings, lambda: _simulator(settings))
    for at in servers:
        yield from _asked("server", settings, lambda at=at: _server(at))  # type: ignore[misc]


def manager_of(own: dict[int, str]) -> int | None:
    """Returns the pid of the manager, None when it is not seen."""
    return next((pid for pid, line in own.items() if line.rstrip().endswith("manager")), None)


def quota(venue: str, status: dict[str, Any]) -> Iterator[Check]:
    """Reports the use and rest of the month and the day, from the status of a venue's quota."""
    for period, used in (("month", status), ("day", status.get("day", {}))):
        if "limit" in used:
            yield _used(venue, period, used, status.get("rungs"))


def _used(venue: str, period: str, use: dict[str, Any], rungs: int | None) -> Check:
    left, limit = int(use["left"]), int(use["limit"])
    since = "this month" if period == "month" else "today (UTC)"
    used = f"{int(use['used']):,} of {limit:,} calls at {venue} used {since}, {left:,} left"
    text = f"{used}; {int(use['projected']):,} by its end at the rate of the last hour"
    if left == 0:
        return fail(
            "quota", text, f"wait for the next {period}, or get a larger quota ({quota_variable(venue, period)})"
        )
    if rungs is not None or left < limit * _LEFT_IS_LITTLE:
        slower = "" if rungs is None else f"; only the top {rungs} of a ladder get new bids"
        return warn(
            "quota", text + slower, "run fewer tasks, raise loopSeconds, or get a larger quota (docs/venues.md)"
        )
    return ok("quota", text)


def _kept_quota(settings: Settings) -> Iterator[Check]:
    """Yields the use of each quota as the gateway has written it down."""
    if any(is_held(settings, name) for name in SECRETS) or not os.access(settings.quota_file.parent, os.X_OK):
        return
    if settings.quota_file.exists() and not os.access(settings.quota_file, os.R_OK):
        return
    try:
        kept = quotas(settings)
    except (DatabaseAway, PeeweeException):
        return  # what is wrong with the database is said there
    except BidkeeperError as error:
        yield fail("quota", str(error), "remove the file if the count may start again at 0")
        return
    for venue, each in kept.items():
        yield from quota(venue, each.status())


def _runs(settings: Settings, own: dict[int, str]) -> bool:
    sockets = [settings.manager_socket, settings.signer_socket, settings.gateway_socket, settings.facts_socket]
    sockets.append(settings.hooks_socket)
    return any(map(_listens, sockets)) or any("cli.main up" in line or "bidkeeper up" in line for line in own.values())


def _leases_here(settings: Settings) -> list[str]:
    """Returns the leases of managers and hooks that programs of this directory have; none where that is not known."""
    try:
        names = leases.names_at(settings.database_url)
        with base.reading(settings.database_url):
            found = {name: leases.held(name) for name in names}
        home = leases.home_of(settings.run_dir)
    except (BidkeeperError, PeeweeException, OSError):
        return []  # what is wrong with the database is said there
    return [name for name, each in found.items() if each is not None and each.left_ms >= 0 and each.home == home]


def _is_missing(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except OSError:  # this user may not see it
        pass
    return False


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PATIENCE_S)
        try:
            probe.connect(str(path))
        except PermissionError:
            return True
        except OSError:
            return False
        return True


def _port(at: HostPort, variable: str, own: dict[int, str]) -> Check:
    name, why = f"port {at.port}", listeners.problem(at, variable)
    if why is None:
        return ok(name, "free")
    if any(port_holders.holds(pid, at.port) for pid in own):
        return ok(name, "used by this Bidkeeper")
    try:
        status, body = _get(at, "/healthz")
        if status == 200 and json.loads(body).get("status") == "ok":
            return ok(name, "a Bidkeeper answers; this user cannot see whether it is this one")
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        pass  # it is another user's
    remedy = "set BIDKEEPER_HOST" if why.startswith("BIDKEEPER_HOST") else f"stop that program, or set {variable}"
    return fail(name, why, remedy)


def _asked(
    name: str, settings: Settings, look: Callable[[], Iterator[Check]], path: Path | None = None
) -> Iterator[Check]:
    """Yields the checks of `look`, or one that there was no answer. `path` is the program's socket, if it has one."""
    try:
        yield from look()
    except (BidkeeperError, OSError, http.client.HTTPException) as error:
        words = error.strerror if isinstance(error, OSError) else None
        reason = (words or str(error)).removeprefix(f"{name}: ") or type(error).__name__
        yield _silent(name, settings, error, reason, path)
    except (ValueError, LookupError, TypeError) as error:
        text = f"its answer is not understood: {type(error).__name__}: {error}"
        yield fail(name, text, "restart the service, so that every program is of this version")


def _silent(name: str, settings: Settings, error: Exception, reason: str, path: Path | None) -> Check:
    """Makes the check of a program that gave no answer; the remedy depends on its socket."""
    log = "" if settings.signer_dir else f" in {settings.log_dir}"
    whose = "the relay's" if path is not None and path.parent == settings.relay_files else "its"
    cause = error.__cause__.__cause__ or error.__cause__ if error.__cause__ else error
    if isinstance(cause, TimeoutError):
        end = f"kill {pid}" if path is not None and (pid := _listener(path)) else "its process"
        remedy = f"supervisord does not restart a program that hangs: if it stays silent, end it ({end})"
        return fail(name, f"does not answer: no answer within {PATIENCE_S:g} s", remedy)
    if isinstance(cause, PermissionError):
        return fail(name, f"does not answer: {reason}", "run the doctor as the user of the installation, or as root")
    if path is None or (path.is_socket() and _listens(path)):
        return fail(name, f"does not answer: {reason}", f"see {whose} log{log}; supervisord restarts it once it ends")
    what = "is missing" if _is_missing(path) else "is a dead process's"
    remedy = (
        "run the doctor again in a moment: a running program makes its socket again, and supervisord restarts one that"
        f" has ended; if it stays so, see {whose} log{log}"
    )
    return fail(name, f"does not answer: its socket {path} {what}", remedy)


def _listener(path: Path) -> int:
    """Returns the pid of the process that listens at a socket; 0 where that is not known."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PATIENCE_S)
        try:
            probe.connect(str(path))
            return peer_pid(probe)
        except OSError:
            return 0


def _signer(settings: Settings) -> Iterator[Check]:
    client = SignerClient(settings.signer_socket, PATIENCE_S)
    status = client.status()
    if status.state == "ready":
        yield ok("signer", f"ready with {'play' if status.play else 'real'} keys")
    elif status.state == "reconciling":
        yield warn("signer", f"{status.state}: {status.reason}", "wait a moment and run the doctor again")
    else:
        yield fail("signer", f"locked: {status.reason}", way_to_keys(status.reason))
    controls = client.controls()
    if controls.has_halt_file:
        yield warn(
            "control",
            "the operator's halt file exists: no bid is signed",
            "remove it to bid again (docs/operations.md)",
        )
    for control in controls.states:
        if control.scope == "global" and control.state != "run":
            yield warn(
                "control", f"the control for all users is {control.state}", "choose Run (PUT /api/control) to bid again"
            )


def _gateway(settings: Settings) -> Iterator[Check]:
    with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
        status = market.status()
    venues: dict[str, dict[str, Any]] = status["venues"]
    yield ok("gateway", f"answers; the default marketplace is {status['market']}")
    for name, venue in venues.items():
        if venue["is_cut_off"]:
            yield warn("gateway", f"{name} has given no usable answer several times in a row", "see its lines below")
        if venue["paused_s"] > 0:
            text = f"{name} limits our calls; the next one goes out in {venue['paused_s']:.0f} s"
            yield warn("gateway", text, "wait; if this repeats, another program uses the same key")
        if unread := venue.get("unread_rows"):
            counts = ", ".join(f"{count} of {operation}" for operation, count in sorted(unread.items()))
            text = f"{name}: rows left out of its answers since the gateway's start: {counts}"
            yield warn("gateway rows", text, "its log says why, of each kind once in ten minutes")
        yield from _skew(name, venue.get("skew_s"))
    for name, venue in venues.items():
        if "quota" in venue:
            yield from quota(name, venue["quota"])


def _skew(name: str, skew_s: float | None) -> Iterator[Check]:
    if skew_s is not None and abs(skew_s) > MOST_SKEW_S:
        text = f"{skew_words(skew_s)} ({name}), measured by the gateway: no bid is placed there"
        yield fail("clock", text, CLOCK_REMEDY)


def _facts(settings: Settings) -> Iterator[Check]:
    with MarketClient(settings.facts_socket, PATIENCE_S) as facts:
        try:
            facts.status()
        except Unavailable:
            if settings.facts_hosts:
                raise
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE_S)
                connection.connect(str(settings.facts_socket))
            remedy = "name the manager's user in BIDKEEPER_FACTS_CLIENTS: it proves by facts what bids bought"
            yield warn("facts", "listens, and does not answer this user", remedy)
            return
    yield ok("facts", "answers")


def _hooks(settings: Settings) -> Iterator[Check]:
    counts = call(settings.hooks_socket, "hooks", PingHooks(), timeout=PATIENCE_S).deliveries
    yield ok("hooks", f"{counts.waiting:,} deliveries are waiting, {counts.dead:,} failed for good")


def _managers(settings: Settings) -> Iterator[Check]:
    of_slots = sorted(settings.run_dir.glob("manager-*.sock"))
    for path in of_slots or [settings.manager_socket]:
        state = call(path, "manager", Ping(), timeout=PATIENCE_S).state
        if state == "ready":
            yield ok(path.stem, "ready, with its zygote")
        else:
            yield fail(path.stem, f"not ready: {state}", "see its log; run the doctor again in a moment")


def _simulator(settings: Settings) -> Iterator[Check]:
    status, _ = _get(settings.simulator_at, "/healthz")
    yield ok("simulator", "answers") if status == 200 else fail("simulator", f"status {status}", "see its log")


def _server(at: HostPort) -> Iterator[Check]:
    status, body = _get(at, "/readyz")
    if status == 200:
        yield ok("server", f"ready at {at}")
        return
    missing = json.loads(body).get("details") or [f"status {status}"]
    yield fail("server", f"{at} is not ready: {'; '.join(missing)}", "see the lines above")


def _get(at: HostPort, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*at.nearby, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(1 << 16)
    finally:
        connection.close()
