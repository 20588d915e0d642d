"""A process that answers verbs at one HTTP route, `POST /`, on a Unix socket and, for other hosts, over TLS.

Processes on this host are admitted by their user id, other hosts by the role in their certificate. A method marked
`@answers` answers a verb: it returns JSON text and raises subclasses of VenueError.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import select
import signal
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from ssl import SSLContext
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, UnsetType
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream, SSLIOStream
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from core import tls
from core.errors import BidkeeperError
from core.local_server import Door, peer_uid
from core.setting_values import HostPort, is_loopback
from core.settings import Settings, dialect_of
from gateway.quota import ORIGIN, LookupBudget, Quota, origin_of
from gateway.venue import CallBudget, Venue
from markets import verbs
from markets.adapter import Adapter
from markets.base import (
    NotSupported,
    Refused,
    Unavailable,
    Unknown,
    VenueError,
    to_wire,
)
from markets.client import MAX_REQUEST
from markets.mempool import Mempool
from markets.ord import Ord
from markets.unisat.index import Unisat, UnisatIndex
from markets.verbs import Args, Request, text

Needed = TypeVar("Needed")


class Adapters(Struct, frozen=True):
    """Marketplaces by name, the default one first, and data sources; None = not configured."""

    markets: Mapping[str, Adapter] = {}
    unisat: Unisat | None = None
    unisat_index: UnisatIndex | None = None
    mempool: Mempool | None = None
    ord: Ord | None = None

    def speaking(self, dialect: str) -> Adapter | None:
        """Returns the marketplace that speaks `dialect`, or None."""
        return next((each for name, each in self.markets.items() if dialect_of(name) == dialect), None)


class Venues(Struct, frozen=True):
    """The adapters' budgets and counts, one for each API key; UniSat's market and data share one key."""

    markets: Mapping[str, Venue]
    unisat: Venue
    mempool: Venue
    ord: Venue

    def all(self) -> tuple[Venue, ...]:
        return tuple(dict.fromkeys((*self.markets.values(), self.unisat, self.mempool, self.ord)))


def needed(adapter: Needed | None, setting: str) -> Needed:
    """Returns `adapter`. Raises NotSupported, naming the missing setting, if it is None."""
    if adapter is None:
        raise NotSupported(f"not set up here: BIDKEEPER_{setting} is not set")
    return adapter


Given = TypeVar("Given", bound=Args[Any])


class Asker:
    """The client of a request, its connection, and the work in progress for it."""

    def __init__(self, connection: socket.socket | None) -> None:
        self._connection = connection
        self._left = False
        self.work: asyncio.Future[str] | None = None
        self.droppable = True

    def leave(self) -> None:
        """Cancels work that has not been sent to a venue, because the client has closed its connection."""
        self._left = True
        if self.droppable and self.work is not None:
            self.work.cancel()

    def is_gone(self) -> bool:
        """Returns whether the client has disconnected; polls the socket. Thread-safe."""
        if self._left or self._connection is None:
            return self._left
        seen = select.poll()
        try:
            seen.register(self._connection, select.POLLRDHUP)
            return bool(seen.poll(0))
        except (OSError, ValueError):  # it is closed
            return True


class Call(Struct, Generic[Given], frozen=True):
    """One request, its arguments and its client; `max_age_s` is the answer's maximum age after the quota's stretch."""

    args: Given
    request: Request
    asker: Asker
    max_age_s: float

    def given(self, name: str) -> int:
        """Returns a required number, such as the task. Raises Refused('bad_request') if the request lacks it."""
        value = getattr(self.request, name)
        if isinstance(value, UnsetType):
            raise Refused("bad_request", f"{name} is missing")
        return int(value)


Answer = Callable[[Call[Any]], Awaitable[str]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[str]])


def answers(*kinds: type[Args[Any]]) -> Callable[[Method], Method]:
    """Marks the method that answers these verbs."""

    def mark(method: Method) -> Method:
        method.answers = kinds  # type: ignore[attr-defined]
        return method

    return mark


def marked(holder: type) -> dict[type[Args[Any]], str]:
    """Returns the names of a class's marked methods, by verb."""
    return {kind: name for name in dir(holder) for kind in getattr(getattr(holder, name), "answers", ())}


def methods(*holders: object) -> dict[type[Args[Any]], Answer]:
    """Returns the holders' marked methods, by verb."""
    return {kind: getattr(holder, name) for holder in holders for kind, name in marked(type(holder)).items()}


class VerbTable:
    """Answers requests with the marked methods of `holders` and of its own class."""

    def __init__(self, *holders: object) -> None:
        self.stopping = False
        self._table = methods(self, *holders)

    async def answer(self, request: Request, asker: Asker) -> str:
        """Returns the answer as JSON text. Raises subclasses of VenueError, such as Refused('bad_request')."""
        if self.stopping:
            raise Unavailable("the gateway is stopping; nothing was sent")
        kind = verbs.BY_NAME.get(request.verb)
        if kind is None:
            raise verbs.no_such_verb(request.verb)
        args = verbs.read_args(request, kind)
        method, max_age_s = self.found(request, kind)
        return await method(Call(args, request, asker, max_age_s))

    def found(self, request: Request, kind: type[Args[Any]]) -> tuple[Answer, float]:
        """Returns the method that answers a request, and the answer's maximum age in seconds.

        Raises Refused('bad_request') for a verb that this process does not answer.
        """
        method = self._table.get(kind)
        if method is None:
            raise verbs.no_such_verb(request.verb)
        return method, request.max_age_s

    def remark(self, request: Request) -> str:
        """Returns extra members for the answer's JSON object, such as ',"quota":{...}', or ""."""
        return ""


log = logging.getLogger(__name__)
# At least the sum of all venues' slots, so that a call whose turn has come never waits for a thread. Started as needed.
THREADS = 32
_ALIVE_S = 1.0
_LAST_ANSWERS_S = 0.7  # how long `stop` waits for calls already sent


class Right(Protocol):
    """The right to serve, such as a lease."""

    def alive(self) -> None:
        """Reports a sign of life; called every second."""

    def is_ours(self) -> bool:
        """Returns whether this process still holds the right.

        Checks outside of the process, because its machine may have been frozen meanwhile.
        """


class _Unlimited(Right):
    """The right of a program that may run in several instances."""

    def alive(self) -> None:
        pass

    def is_ours(self) -> bool:
        return True


@contextlib.contextmanager
def needs_none() -> Iterator[Right]:
    yield _Unlimited()


class Program:
    """A process that answers verbs to the clients in `admission`; subclasses set `verbs`."""

    verbs: VerbTable

    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        unisat: Quota | None = None,
        lookups: LookupBudget | None = None,
    ) -> None:
        """Wires the process. `unisat` is UniSat's quota, `lookups` the users' look-up budget; None = no limit."""
        self.cut_off = False
        self.admission = admission
        self._tls_dir = settings.tls_dir
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="venue")
        self.venues = Venues(
            {},
            # mempool and ord have no quota and their answers are cached, so look-ups are not limited there.
            Venue(
                "unisat",
                CallBudget(rate=5, burst=5, slots=1, clock=time.monotonic),
                self.threads,
                unisat,
                lookups=lookups,
            ),
            Venue("mempool", _source_budget(settings.venue_url("mempool")), self.threads),
            Venue("ord", _source_budget(settings.venue_url("ord")), self.threads),
        )

    async def stop(self) -> None:
        """Refuses new requests, and waits up to 0.7 s for answers to calls already sent."""
        self.verbs.stopping = True
        if running := [task for venue in self.venues.all() for task in venue.running]:
            _, pending = await asyncio.wait(running, timeout=_LAST_ANSWERS_S)
            self.cut_off = bool(pending)
        self.threads.shutdown(wait=False, cancel_futures=True)
        for venue in self.venues.all():
            venue.close()

    def listen(self, listener: socket.socket, context: SSLContext | None = None) -> HTTPServer:
        """Serves `listener` on the running loop: a Unix socket, or TLS if `context` is given."""
        application = Application(
            [("/", AskHandler, {"verbs": self.verbs})],
            log_function=lambda handler: None,
        )
        server = AdmittingServer(application, max_body_size=MAX_REQUEST, max_header_size=8192, ssl_options=context)
        server.admission = self.admission
        server.add_socket(listener)
        return server

    def listen_far(self, at: HostPort) -> list[HTTPServer]:
        """Serves other hosts at `at`. Raises BidkeeperError if the certificates or the address cannot be used."""
        context = tls.server_context(self._tls_dir)
        try:
            listeners = bind_sockets(at.port, at.host)
        except OSError as error:
            raise BidkeeperError(f"failed to listen at {at}: {error.strerror}") from error
        for listener in listeners:
            tls.keep_alive(listener)
        return [self.listen(listener, context) for listener in listeners]


class Status:
    """Answers the verb `status`: the calls of `venues` by outcome, their budgets and pauses, and `more` counts."""

    def __init__(self, market: str, venues: Sequence[Venue], more: Callable[[], Mapping[str, int]] = dict) -> None:
        self._market = market
        self._venues = venues
        self._more = more

    @answers(verbs.Status)
    async def _status(self, call: Call[verbs.Status]) -> str:
        shown = {venue.name: venue.status() for venue in self._venues}
        return text({"market": self._market, "venues": shown, **self._more()})


def serve(
    make: Callable[[Right], Program],
    path: Path,
    far: HostPort | None,
    *,
    ready: Callable[[], object],
    right: Callable[[], contextlib.AbstractContextManager[Right]] = needs_none,
) -> None:
    """Serves the program that `make` returns at the socket `path` until SIGTERM or SIGINT, then ends within a second.

    Call it in the main thread. `far` is the address for other hosts, or None. `ready` is called once the socket
    listens. `right` is entered only after the lock at `path` is taken, because a second process at the same path would
    be granted the first one's right. A call without an answer 0.7 s after the stop is cut off; its client sees Unknown.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BidkeeperError(f"another {path.stem} of this installation is running") from error
        with right() as held:
            program = asyncio.run(_serve(make, path, far, ready, held))
    if program.cut_off:
        logging.shutdown()
        os._exit(0)  # otherwise the interpreter would wait for the threads


async def _serve(
    make: Callable[[Right], Program],
    path: Path,
    far: HostPort | None,
    ready: Callable[[], object],
    right: Right,
) -> Program:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    program = make(right)

    async def accept(listener: socket.socket) -> Callable[[], object]:
        return program.listen(listener).stop

    door = Door(path, program.admission.uids, accept)
    await door.open()
    far_servers = program.listen_far(far) if far else []
    log.info("listening at %s%s", path, f" and, for other hosts, at {far}" if far else "")
    ready()
    while not stop.is_set():
        right.alive()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _ALIVE_S)
    door.close()
    for server in far_servers:
        server.stop()
    await program.stop()
    log.info("stopped")
    return program


def _source_budget(url: str | None) -> CallBudget:
    """Returns a source's budget: 50 calls a second for a local server, else 2, because public ones ban heavy users."""
    if url is not None and is_loopback(urlsplit(url).hostname or ""):
        return CallBudget(rate=50, burst=50, slots=4, clock=time.monotonic)
    return CallBudget(rate=2, burst=5, slots=2, clock=time.monotonic)


class AskHandler(RequestHandler):
    """One request of a worker or the server."""

    def initialize(self, verbs: VerbTable) -> None:
        self._verbs = verbs
        stream = getattr(self.request.connection, "stream", None)
        self._connection = getattr(stream, "socket", None)
        self._asker = Asker(self._connection)

    async def post(self) -> None:
        self.set_header("Content-Type", "application/json")
        try:
            request = verbs.read(self.request.body)
            if self._connection is None:
                raise Refused("not_allowed", "the client has closed its connection")
            ORIGIN.set(origin_of(request))  # here, so that `remark` sees the user too
            self._asker.work = asyncio.ensure_future(self._answer(request))
            self.finish('{"ok":' + await self._asker.work + self._verbs.remark(request) + "}")
        except VenueError as error:
            self.finish(text({"error": to_wire(error)}))
        except asyncio.CancelledError:
            if not self._asker.work or not self._asker.work.cancelled():
                raise
            # The client has disconnected, so no answer is sent.

    def on_connection_close(self) -> None:
        self._asker.leave()

    async def _answer(self, request: Request) -> str:
        is_write = request.verb in verbs.WRITES
        patience_s = None if is_write else request.patience_s
        try:
            async with asyncio.timeout(patience_s):
                return await self._verbs.answer(request, self._asker)
        except VenueError:
            raise
        except TimeoutError:
            raise Unavailable("the marketplace has not answered in time; ask again in a moment") from None
        except Exception as error:
            log.exception("failed to answer %s", request.verb)
            # The error may have occurred after a write was sent, so a write's outcome is unknown.
            leaf = Unknown if is_write else Unavailable
            raise leaf("failed in the gateway; its log has the reason") from error


def now_ms() -> int:
    """Returns epoch milliseconds."""
    return time.time_ns() // 1_000_000


OWN_USER = frozenset({os.getuid()})


class Admission(Struct, frozen=True):
    """The user ids and certificate roles that may connect."""

    uids: frozenset[int]
    roles: frozenset[str]

    def admits(self, connection: socket.socket) -> bool:
        """Returns whether the peer may connect; over TLS call it after the handshake."""
        if isinstance(connection, ssl.SSLSocket):
            return tls.role_of(connection.getpeercert()) in self.roles
        return peer_uid(connection) in self.uids


class AdmittingServer(HTTPServer):
    """An HTTP server that closes connections which `admission` does not admit."""

    admission: Admission
    refused: frozenset[str] = frozenset()

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        if isinstance(stream, SSLIOStream):
            IOLoop.current().add_callback(self._handshake, stream, address)
        else:
            self._admit(stream, address, f"user {peer_uid(stream.socket)}")

    async def _handshake(self, stream: SSLIOStream, address: Any) -> None:
        try:
            await asyncio.wait_for(stream.wait_for_handshake(), tls.HANDSHAKE_S)
        except OSError:  # includes a timeout
            stream.close()
        else:
            self._admit(stream, address, f"a certificate whose role may not ask, from {address[0]}")

    def _admit(self, stream: IOStream, address: Any, whose: str) -> None:
        if self.admission.admits(stream.socket):
            super().handle_stream(stream, address)
            return
        if whose not in self.refused:  # logged once, because health checks connect again and again
            log.warning("refused a connection of %s", whose)
            self.refused |= {whose}
        stream.close()
