"""The gateway: the only process that talks to marketplaces. HTTP on a Unix socket, one route, `POST /`."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.web import Application, RequestHandler

from core.errors import BidkeeperError
from core.local_server import bind, peer_uid
from core.settings import Settings
from gateway.adapters import Adapters, Venues
from gateway.arguments import bad
from gateway.budget import Budget
from gateway.fence import Fences
from gateway.reads import Reads
from gateway.snapshots import Snapshots
from gateway.venue import Venue
from gateway.verbs import WRITES, Verbs
from gateway.writes import Asker, Writes
from markets.base import Unavailable, Unknown, VenueError, to_wire
from markets.client import MAX_REQUEST
from markets.mempool import Mempool
from markets.satflow import Market, Satflow
from markets.unisat import Unisat

log = logging.getLogger(__name__)
THREADS = 8
PLAY_KEY = "simulator"
_LAST_ANSWERS_S = 0.7  # how long the end waits for what is on the wire


class Gateway:
    """The parts of one gateway, wired together. `least_token` tells a task's token from before the start."""

    def __init__(self, settings: Settings, least_token: Callable[[int], int]) -> None:
        self.cut_off = False
        self.allowed_uids = settings.gateway_clients or frozenset({os.getuid()})
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="venue")
        # The venue's burst is 10: one is left, so that a request overtaking a slower one never meets an empty bucket.
        satflow = Budget(rate=5, burst=9, slots=5, clock=time.monotonic, spare=2)
        unisat = Budget(rate=5, burst=5, slots=1, clock=time.monotonic)
        mempool = Budget(rate=2, burst=5, slots=2, clock=time.monotonic)
        self.venues = Venues(
            Venue("satflow", satflow, self.threads),
            Venue("unisat", unisat, self.threads),
            Venue("mempool", mempool, self.threads),
        )
        self.fences = Fences(least_token)
        reads = Reads(adapters(settings), self.venues, Snapshots(time.monotonic, _now_ms))
        writes = Writes(reads, self.venues.satflow, self.fences, _now_ms)
        self.verbs = Verbs(_market(settings), reads, writes, self.fences, self.venues)

    async def stop(self) -> None:
        """Takes nothing new, and gives what is on the wire a moment to be answered."""
        self.verbs.stopping = True
        venues = (self.venues.satflow, self.venues.unisat, self.venues.mempool)
        if running := [task for venue in venues for task in venue.running]:
            _, pending = await asyncio.wait(running, timeout=_LAST_ANSWERS_S)
            self.cut_off = bool(pending)
        self.threads.shutdown(wait=False, cancel_futures=True)

    def listen(self, listener: socket.socket) -> HTTPServer:
        """Answers at `listener`, a listening Unix socket, on the running loop."""
        application = Application([("/", AskHandler, {"verbs": self.verbs})], log_function=lambda handler: None)
        server = _AllowedUsersServer(application, max_body_size=MAX_REQUEST, max_header_size=8192)
        server.allowed_uids = self.allowed_uids
        server.add_socket(listener)
        return server


def adapters(settings: Settings) -> Adapters:
    """The venues that `settings` name."""
    play = settings.market == "simulator"
    satflow, unisat, mempool = (settings.venue_url(venue) for venue in ("satflow", "unisat", "mempool"))
    return Adapters(
        satflow=Satflow(satflow, PLAY_KEY if play else settings.satflow_api_key or "", _market(settings))
        if satflow
        else None,
        unisat=Unisat(unisat, PLAY_KEY if play else settings.unisat_api_key) if unisat else None,
        mempool=Mempool(mempool) if mempool else None,
    )


def run(settings: Settings, least_token: Callable[[int], int], *, ready: Callable[[], object] = lambda: None) -> None:
    """Serves until SIGTERM or SIGINT, then ends within a second. Call it in the main thread.

    `ready` is called when the socket listens. What is still on the wire after the grace is cut off: its asker takes
    it for Unknown, as it must.
    """
    directory = settings.gateway_socket.parent
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "gateway.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BidkeeperError("another gateway of this installation is running") from error
        gateway = asyncio.run(_serve(settings, least_token, ready))
    if gateway.cut_off:
        logging.shutdown()
        os._exit(0)  # the interpreter would wait for the threads' answers


async def _serve(settings: Settings, least_token: Callable[[int], int], ready: Callable[[], object]) -> Gateway:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    gateway = Gateway(settings, least_token)
    server = gateway.listen(bind(settings.gateway_socket, gateway.allowed_uids))
    log.info("listening at %s, market %s", settings.gateway_socket, settings.market)
    ready()
    await stop.wait()
    server.stop()
    await gateway.stop()
    log.info("stopped")
    return gateway


class _AllowedUsersServer(HTTPServer):
    """Serves connections of the users it is told only."""

    allowed_uids: frozenset[int] = frozenset()

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        uid = peer_uid(stream.socket)
        if uid not in self.allowed_uids:
            log.warning("refused a connection of user %s", uid)
            stream.close()
            return
        super().handle_stream(stream, address)


class AskHandler(RequestHandler):
    """One request of a worker or the server."""

    def initialize(self, verbs: Verbs) -> None:
        self._verbs = verbs
        stream = getattr(self.request.connection, "stream", None)
        self._asker = Asker(getattr(stream, "socket", None))

    async def post(self) -> None:
        self.set_header("Content-Type", "application/json")
        try:
            request = _request(self.request.body)
            self._asker.work = asyncio.ensure_future(self._answer(request))
            self.finish('{"ok":' + await self._asker.work + "}")
        except VenueError as error:
            self.finish(json.dumps({"error": to_wire(error)}))
        except asyncio.CancelledError:
            if not self._asker.work or not self._asker.work.cancelled():
                raise
            # Nobody is there to be told.

    def on_connection_close(self) -> None:
        self._asker.leave()

    async def _answer(self, request: dict[str, Any]) -> str:
        try:
            return await self._verbs.answer(request, self._asker)
        except VenueError:
            raise
        except Exception as error:
            log.exception("failed to answer %s", request.get("verb"))
            # What went wrong in here may have gone wrong after a write was sent.
            leaf = Unknown if request.get("verb") in WRITES else Unavailable
            raise leaf("failed in the gateway; its log has the reason") from error


def _request(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise bad("the request is not JSON") from error
    if not isinstance(request, dict):
        raise bad("the request is not an object")
    return request


def _market(settings: Settings) -> Market:
    return "simulator" if settings.market == "simulator" else "satflow"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
