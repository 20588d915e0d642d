"""One HTTP server process: the application, its start and its stop."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from core import logs, version
from core.errors import SettingsError
from core.setting_values import HostPort
from core.settings import Settings
from markets.client import MarketClient
from models import accounts, outbox, schema, summaries, venue_memory
from models.database import base
from models.database.base import CommitCache
from models.users import Entitlements
from server.control import REMIND_S, STORE_S, remind_signer, store_again
from server.health import start_times
from server.http.answers import not_found
from server.http.base import Handler
from server.http.blocking import (
    ACTS_AT_ONCE,
    LONG_ANSWERS,
    LONG_ANSWERS_WAITING,
    LOOKS_AT_ONCE,
    CallLimit,
    LongReads,
    PictureWay,
    Pool,
    Seats,
    Turns,
)
from server.http.feed import Feed
from server.http.gate import Gate, Gzip, now_ms
from server.http.services import WAIT_S, ManagerClient, Services, TaskLocks
from server.inscriptions import KEPT_MS
from server.urls import DECLARED, ROUTES
from server.withdraw import RESUME_S, look_after_all
from server.worth import sample_worth
from wallet import bip322
from wallet.address import with_normal_addresses
from wallet.signer_client import SignerClient

log = logging.getLogger(__name__)
_access = logging.getLogger("server.access")

_THREADS = 16
_OWN_QUESTIONS = 4  # concurrent requests to the gateway not made by users: withdrawals under way, play money, readiness
_BRAKE_THREADS = 4
_SIGNER_S = 5.0
_LOOSENED_A_MINUTE = 30  # by one user, so that no user exhausts the limit of the signer for all users
_SENT_BY_HAND_A_MINUTE = 20  # deliveries that one user tests or repeats
_SWITCH_S = (
    0.0005  # a thread with long work has the interpreter no longer before the loop gets it: Python's own is 5 ms
)
_DRAIN_S, _DRAIN_LOOK_S = 1.5, 0.01
_IDLE_S = 75
_BODY_S = 15
_MAX_HEAD = 256 * 1024  # above this Tornado closes the connection without an answer; below it the gate answers
_NO_LIMIT = 1 << 60  # because the gate has its own limit and a better answer
_PURGE_S = 3600.0
_CALENDAR_S = 60.0
_KEPT_BYTES = 16 << 20


class UnknownRoute(Handler):
    """The answer to every path without a route."""

    def prepare(self) -> None:
        raise not_found()


def log_request(handler: RequestHandler) -> None:
    """Logs one line for each request, without its query."""
    request = handler.request
    level = logging.INFO if handler.get_status() < 500 else logging.WARNING
    _access.log(
        level, "%s %s %d %.1fms", request.method, request.path, handler.get_status(), 1000 * request.request_time()
    )


def make_app(
    settings: Settings, *, clock_ms: Callable[[], int] = now_ms, manager_wait_s: float = WAIT_S
) -> Application:
    """Makes the application, on the database connection of this process. Raises SettingsError for a bad address.

    `manager_wait_s` is the longest wait for a manager that does not respond.
    """
    settings = with_normal_addresses(settings)
    services = Services(
        settings=settings,
        entitlements=Entitlements(settings),
        clock_ms=clock_ms,
        manager=ManagerClient(settings, wait_s=manager_wait_s),
        market=Pool(
            lambda: MarketClient(settings.gateway_socket),
            LOOKS_AT_ONCE + ACTS_AT_ONCE + _OWN_QUESTIONS,
            "market",
            MarketClient.close,
        ),
        signer=Pool(lambda: SignerClient(settings.signer_socket, _SIGNER_S), _THREADS, "signer"),
        brakes=Pool(lambda: SignerClient(settings.signer_socket, _SIGNER_S), _BRAKE_THREADS, "brake"),
        budget=CallLimit(settings.sign_in_per_minute, time.monotonic),
        loosened=CallLimit(_LOOSENED_A_MINUTE, time.monotonic),
        locks=TaskLocks(),
        task_lists=CommitCache(_KEPT_BYTES),
        starts=start_times(),
        seats=Seats(),
        pictures=PictureWay(settings.gateway_socket),
        feed=Feed(),
        pieces=Turns(1, 1),
        long_answers=Turns(math.inf, LONG_ANSWERS, waiting=LONG_ANSWERS_WAITING),
        event_pages=Turns(math.inf, LONG_ANSWERS),  # unlimited, because waiting long polls are not refused
        long_reads=LongReads(),
        sent_by_hand=CallLimit(_SENT_BY_HAND_A_MINUTE, time.monotonic),
    )
    return Application(
        list(ROUTES),
        transforms=[Gzip],
        default_handler_class=UnknownRoute,
        log_function=log_request,
        services=services,
        declared=DECLARED,
    )


def make_server(app: Application) -> HTTPServer:
    """Makes the HTTP server for `app`; its gate refuses large bodies before Tornado's limits would."""
    return HTTPServer(
        Gate(app),
        max_body_size=_NO_LIMIT,
        max_header_size=_MAX_HEAD,
        idle_connection_timeout=_IDLE_S,
        body_timeout=_BODY_S,
    )


def run(settings: Settings, index: int = 0) -> None:
    """Serves until SIGTERM or SIGINT, as the server process number `index` (from 0) on its own port.

    Raises SettingsError, OtherVersion, or RuntimeError if the check of signatures does not work.
    """
    logs.set_up("server", settings.log_level, settings.log_format)
    sys.setswitchinterval(_SWITCH_S)
    bip322.self_test()
    base.connect_in_time(settings.database_url)
    try:
        schema.check()
        _trim_heap()
        app = make_app(settings)
        asyncio.run(_serve(app, _listen(settings.server_at(index))))
    finally:
        base.close()
    logging.shutdown()
    # A normal exit would wait for threads that wait for the manager. Their requests take effect anyway.
    os._exit(0)


def _trim_heap() -> None:
    """Returns half a MiB, used only by the check of the schema, to the system. A no-op without the GNU C library."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _listen(at: HostPort) -> list[socket.socket]:
    try:
        return bind_sockets(at.port, at.host, backlog=512)
    except OSError as error:
        raise SettingsError([f"cannot listen on {at}: {error.strerror}"]) from error


async def _serve(app: Application, sockets: list[socket.socket]) -> None:
    server = make_server(app)
    server.add_sockets(sockets)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log.info("listening on %s", ", ".join(str(HostPort(*s.getsockname()[:2])) for s in sockets))
    services: Services = app.settings["services"]
    jobs = (
        asyncio.create_task(asyncio.to_thread(version.running)),  # read now, because the checkout may change later
        asyncio.create_task(_every(_PURGE_S, _purge)),
        asyncio.create_task(_every(_CALENDAR_S, _look_at_the_calendar)),
        asyncio.create_task(_every(_CALENDAR_S, lambda: sample_worth(services))),
        asyncio.create_task(_every(REMIND_S, lambda: remind_signer(services))),
        asyncio.create_task(_every(STORE_S, lambda: store_again(services))),
        asyncio.create_task(_every(RESUME_S, lambda: look_after_all(services))),
    )
    await stop.wait()
    log.info("stopping")
    server.stop()
    for job in jobs:
        job.cancel()
    services.feed.close()
    await _drained(server, services)


async def _every(seconds: float, job: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await job()
        except Exception:
            log.exception("failed at a job that runs every %d s", seconds)
        await asyncio.sleep(seconds)


async def _purge() -> None:
    accounts.purge_sessions(now_ms())
    outbox.forget_old(now_ms())
    venue_memory.forget_details(now_ms() - KEPT_MS)


async def _look_at_the_calendar() -> None:
    summaries.tell_dates(now_ms())


async def _drained(server: HTTPServer, services: Services) -> None:
    """Waits a limited time for requests in progress, then closes all connections."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            while services.in_flight:  # noqa: ASYNC110 - an event would be set and cleared for each request
                await asyncio.sleep(_DRAIN_LOOK_S)
    services.close()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(server.close_all_connections(), 0.5)
