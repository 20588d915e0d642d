"""Programs in one process on a clock that is set: time, sockets, and the manager that starts workers.

The program's use of sockets (waits, hang-ups, silence) becomes time on the clock.

The next step, and what follows a death, are decided by `workers.manager.child`, as in the manager itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import selectors
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import requests
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.web import Application, RequestHandler

from core.settings import Settings
from core.subscription_plans import FIRST_PLAN
from markets.base import VenueError
from markets.client import MarketClient
from markets.http import READ_S, Reply
from models import summaries
from models.leases.leases import EVERYBODY
from models.ledger import orders
from models.ledger.limits import fills_of
from models.tasks import tasks
from models.tasks.tasks import MOVES, RUNNING, STOPPED, Task
from models.users import Entitlements
from simulator.app import make_app
from simulator.world import World
from strategy.config.bid import BidConfig, load_bid_config
from wallet.protocol import Grant
from wallet.signer_client import SignerClient, SignerError
from workers import kernel
from workers.context import BadConfig, BadCredentials, Job, Kind
from workers.manager.child import Child, NextStep, Restarts, TaskFacts, next_step, record_death
from workers.manager.rights import bidder_grant, drain_grant

START_MS = 1_800_000_000_000


class Clock:
    """Epoch milliseconds. A worker's look at it (`work_ms`) takes one."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def ms(self) -> int:
        return self.now_ms

    def work_ms(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def monotonic(self) -> float:
        return (self.now_ms - START_MS) / 1000

    def advance(self, seconds: float) -> None:
        """Advances the clock, rounded up, so that a waiter for a moment finds it passed."""
        self.now_ms += -int(-seconds * 1000 // 1)

    def reach(self, moment: float) -> None:
        """Goes on to a moment of the monotonic clock, unless it has passed."""
        self.advance(max(moment - self.monotonic(), 0.0))


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and for nothing"
        if timeout > 0:
            self._clock.advance(max(timeout, 0.001))
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """Waits by moving the clock on."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(_Selector(clock))
        self._sim_clock = clock

    def time(self) -> float:
        return self._sim_clock.monotonic()


class AtOnce(Executor):
    """Runs what it is given in the caller's thread, before it answers."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


TRAVEL_S = 0.02  # of a request and its answer together


@dataclass
class _Nap(Awaitable[None]):
    """A handler's await: so many seconds, or until it is woken because its client has gone."""

    seconds: float
    ends_when_gone: bool = False

    def __await__(self) -> Generator[_Nap, None, None]:
        yield self


class _Asyncio:
    """The three things that handlers take from asyncio."""

    Event = asyncio.Event

    @staticmethod
    async def sleep(seconds: float) -> None:
        await _Nap(seconds)

    @staticmethod
    async def wait_for(what: Coroutine[Any, Any, Any], seconds: float) -> None:
        """Of `what`, the asker's going away: that ends the nap; else it is over when the time is."""
        what.close()
        await _Nap(seconds, ends_when_gone=True)
        raise TimeoutError


HANDLERS_ASYNCIO = _Asyncio()


class _Connection:
    """The server's end of one connection."""

    def __init__(self) -> None:
        self.status = 0
        self.headers = HTTPHeaders()
        self.body = b""
        self.is_hung_up = False
        self.context = self

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        pass

    def write_headers(self, start_line: Any, headers: HTTPHeaders, chunk: bytes = b"") -> None:
        self.status, self.headers, self.body = start_line.code, headers, self.body + (chunk or b"")

    def write(self, chunk: bytes) -> None:
        self.body += chunk

    def finish(self) -> None:
        pass

    def detach(self) -> _Connection:
        self.is_hung_up = True
        return self

    def close(self) -> None:
        pass


class Wire:
    """Carries requests to `world`'s handlers. `lost_requests`: so many of the next never get a connection."""

    def __init__(self, clock: Clock, world: World) -> None:
        self._clock = clock
        self._app: Application = make_app(world)
        self.lost_requests = 0
        self.requests = 0

    def exchange(self, exchange: Any, method: str, url: str, **request: Any) -> Reply:
        """In the place of `markets.http.Http._exchange`."""
        exchange.connecting = True
        if self.lost_requests:
            self.lost_requests -= 1
            self._clock.advance(1)
            raise requests.ConnectTimeout("lost")
        if exchange.permit is not None:
            exchange.permit()
        exchange.written = True
        self.requests += 1
        data = request.get("data")
        if request.get("json") is not None:
            data = json.dumps(request["json"]).encode()
        if request.get("params"):
            url += "?" + urlencode(request["params"])
        self._clock.advance(TRAVEL_S / 2)
        connection, course = self._begin(method, url, request["headers"], data or b"")
        self._wait_for(course)
        self._clock.advance(TRAVEL_S / 2)
        if not connection.status:
            raise requests.ConnectionError("hung up")
        return Reply(connection.status, connection.headers, connection.body)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Makes one call of `/sim/...`; takes no time. Raises ValueError for a refusal."""
        data = b"" if body is None else json.dumps(body).encode()
        connection, course = self._begin(method, path, {}, data)
        self._wait_for(course)
        if connection.status >= 300:
            raise ValueError(connection.body.decode())
        return json.loads(connection.body)

    def _begin(self, method: str, url: str, headers: Any, body: bytes) -> tuple[_Connection, Coroutine[Any, Any, None]]:
        parts = urlsplit(url)
        path = parts.path + ("?" + parts.query if parts.query else "")
        connection = _Connection()
        line = RequestStartLine(method, path, "HTTP/1.1")
        headers = HTTPHeaders({"Host": "localhost"} | headers)
        request = HTTPServerRequest(start_line=line, headers=headers, body=body, connection=connection)  # type: ignore[arg-type]
        found: Any = self._app.find_handler(request)
        handler = found.handler_class(self._app, request, **found.handler_kwargs)
        handler._transforms = []
        handler.path_args = [part.decode() for part in found.path_args]
        return connection, _course(handler, method)

    def _wait_for(self, course: Coroutine[Any, Any, None]) -> None:
        patience = READ_S
        while (nap := _step(course)) is not None:
            if nap.seconds >= patience:
                assert nap.ends_when_gone, "what goes on after its asker has gone is not simulated"
                course.close()
                self._clock.advance(patience)
                raise requests.ReadTimeout("no answer")
            patience -= nap.seconds
            self._clock.advance(nap.seconds)


async def _course(handler: RequestHandler, method: str) -> None:
    try:
        handler.prepare()
        if not handler._finished:
            await_me = getattr(handler, method.lower())(*handler.path_args)
            if await_me is not None:
                await await_me
    except Exception as error:
        handler._handle_request_exception(error)


def _step(course: Coroutine[Any, Any, None]) -> _Nap | None:
    """Lets a handler run; what it waits for, None when it is through."""
    try:
        nap: _Nap = course.send(None)
        return nap
    except StopIteration:
        return None


VENUE = "simulator"
GRANT_MS = 30 * 86_400_000


class Crash(BaseException):
    """A stand-in for SIGKILL: nothing catches it but the code that runs workers."""


class NotStarted(Exception):
    """Signer or gateway could not be asked."""


@dataclass
class Worker:
    """A worker process, as far as its end is concerned what `record_death` looks at.

    `due` is on the monotonic clock.
    """

    kind: Kind
    token: int
    revision: int
    cycles_before: int
    job: Job
    due: float
    exit_status: int | None = None
    was_hung: bool = False
    failures: int = 0


@dataclass
class _Desk:
    """The manager's memory of one task."""

    restarts: Restarts
    worker: Worker | None = None
    granted: int | None = None
    is_stopping: bool = field(default=False)


class Manager:
    """`hire(kind, task, token, secret)` makes a worker's job."""

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        market: MarketClient,
        signer: SignerClient,
        hire: Callable[[Kind, int, int, str], Job],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._market = market
        self._signer = signer
        self._hire = hire
        self._desks: dict[int, _Desk] = {}
        self.configs: dict[tuple[int, int], BidConfig] = {}  # of each bidder that was started, by task and token
        self.tokens: dict[int, list[int]] = defaultdict(list)  # of the workers of each task, in their order

    def workers(self) -> list[tuple[int, Worker]]:
        """Returns all that live, by task."""
        return [(task, desk.worker) for task, desk in sorted(self._desks.items()) if desk.worker]

    def settle(self, task_id: int) -> None:
        """Makes worker and row agree for a waiting client. Raises NotStarted."""
        desk = self._desk(task_id)
        desk.restarts.forgive()
        self._agree(task_id, desk, asked=True)
        self._agree(task_id, desk, asked=False)

    def sweep(self) -> None:
        """Makes every worker and row agree, and runs no worker."""
        self._agree_with(summaries.rows_of_interest(orders.tasks_with_open_orders(), EVERYBODY))

    def full_sweep(self) -> None:
        """`sweep`, after the end of what an owner's plan does not allow any more."""
        rows = summaries.rows_of_interest(orders.tasks_with_open_orders(), EVERYBODY)
        for row in rows:
            if row.desired == RUNNING and (refusal := self._refusal(row)):
                tasks.stop_wanting(row.id, refusal)
        self._agree_with(rows)

    def _agree_with(self, rows: list[Any]) -> None:
        for task_id in sorted({row.id for row in rows} | set(self._desks)):
            self._agree(task_id, self._desk(task_id), asked=False)

    def next_turn(self) -> float | None:
        """Returns when a worker is due, or one may be started, on the monotonic clock."""
        turns = [worker.due for _, worker in self.workers()]
        now = self._clock.monotonic()
        turns += [desk.restarts.not_before for desk in self._desks.values() if desk.restarts.not_before > now]
        return min(turns, default=None)

    def run_due(self) -> bool:
        """Runs one cycle of the worker that has been due for longest; returns False when none is due."""
        due = [(worker.due, task, worker) for task, worker in self.workers() if worker.due <= self._clock.monotonic()]
        if not due:
            return False
        _, task_id, worker = min(due, key=lambda each: each[:2])
        self._cycle(worker)
        if worker.exit_status is not None:
            self._bury(task_id, worker)
        self._agree(task_id, self._desk(task_id), asked=False)
        return True

    def kill(self, task_id: int) -> None:
        """SIGKILL to the task's worker, between two of its cycles."""
        worker = self._desk(task_id).worker
        if worker is not None:
            worker.exit_status = -9
            self._bury(task_id, worker)

    def die(self) -> None:
        """SIGKILL to the manager: its workers end with it, and its successor knows nothing of it."""
        self._desks.clear()
        tasks.forget_workers(EVERYBODY)

    def begin_stop(self, task_id: int) -> None:
        """The first half of a stop: the right to place is gone at signer, ledger and gateway. The worker still runs."""
        desk = self._desk(task_id)
        if desk.worker is not None and desk.worker.kind == "bidder" and not desk.is_stopping:
            self._take_back(task_id, desk.worker.token)
            desk.is_stopping = True

    def _cycle(self, worker: Worker) -> None:
        """As the worker's own loop; what it would write to its log and survive is an error here."""
        try:
            delay = worker.job.cycle()
            worker.due = self._clock.monotonic() + (delay or 0.0)
            worker.exit_status = kernel.EXIT_STOPPED if delay is None else None
        except BadConfig:
            worker.exit_status = kernel.EXIT_BAD_CONFIG
        except BadCredentials:
            worker.exit_status = kernel.EXIT_BAD_CREDENTIALS
        except Crash:
            worker.exit_status = -9

    def _bury(self, task_id: int, worker: Worker) -> None:
        desk = self._desk(task_id)
        desk.worker, desk.is_stopping = None, False
        record_death(cast(Child, worker), desk.restarts, task_id, self._clock.monotonic(), self._clock.now_ms)

    def _desk(self, task_id: int) -> _Desk:
        if task_id not in self._desks:
            self._desks[task_id] = _Desk(Restarts(random.Random(task_id), 1.0))
        return self._desks[task_id]

    def _agree(self, task_id: int, desk: _Desk, *, asked: bool) -> None:
        for _ in range(20):
            row = tasks.with_owner(task_id)
            if row is None:
                self._desks.pop(task_id, None)
                return
            step = next_step(self._facts(row, desk, asked))
            if step is NextStep.REST:
                return
            if step is NextStep.NOTHING or (asked and step is NextStep.START_DRAIN):
                if not asked and desk.worker is None:
                    self._withdraw(task_id, desk)
                return
            if step is NextStep.START_WORKER:
                self._start("bidder", row, desk, asked)
            elif step is NextStep.START_DRAIN:
                self._start("drain", row, desk, asked)
            elif step is NextStep.STOP:
                self._stop(row, desk)
            elif step is NextStep.SETTLE:
                if desk.granted is not None:
                    self._take_back(task_id, row.token)
                tasks.observe(task_id, STOPPED, self._clock.now_ms, pid=None)
            elif step is NextStep.REMOVE:
                self._withdraw(task_id, desk)
                tasks.remove_tombstone(task_id)
        raise AssertionError(f"task {task_id}: the manager comes to no end")

    def _facts(self, row: Task, desk: _Desk, asked: bool) -> TaskFacts:
        return TaskFacts(
            is_wanted=row.desired == RUNNING,
            is_deleted=row.deleted_ms is not None,
            observed=row.observed,
            revision=row.revision,
            open_orders=orders.count_open(row.id),
            worker=desk.worker.kind if desk.worker else None,
            worker_revision=desk.worker.revision if desk.worker else 0,
            resting=not asked and self._clock.monotonic() < desk.restarts.not_before,
            given_up=not asked and row.observed == "crashed",
        )

    def _start(self, kind: Kind, row: Task, desk: _Desk, asked: bool) -> None:
        """The order of a start: token, signer, gateway, process."""
        if kind == "bidder" and (refusal := self._refusal(row)):
            if asked:
                tasks.observe(row.id, STOPPED, self._clock.now_ms, pid=None)
                raise NotStarted(refusal)
            tasks.stop_wanting(row.id, refusal)
            return
        token = tasks.begin_start(row.id, self._clock.now_ms) if kind == "bidder" else tasks.raise_token(row.id)
        try:
            secret = self._signer.grant(self._grant(kind, row, token))
            desk.granted = token
            self._market.fence(row.id, token)
        except (SignerError, VenueError) as error:
            if asked:
                tasks.observe(row.id, STOPPED, self._clock.now_ms, pid=None)
                raise NotStarted(str(error)) from error
            desk.restarts.rest_for_peers(self._clock.monotonic())
            if kind == "bidder":
                tasks.observe(row.id, "backoff", self._clock.now_ms, pid=None, last_error=str(error))
            return
        job = self._hire(kind, row.id, token, secret)
        desk.worker = Worker(kind, token, row.revision, row.cycles, job, self._clock.monotonic())
        self.tokens[row.id].append(token)
        if kind == "bidder":
            self.configs[row.id, token] = load_bid_config(row.config)
        if kind == "bidder":
            tasks.observe(row.id, RUNNING, self._clock.now_ms, exit_status=None)

    def _grant(self, kind: Kind, row: Task, token: int) -> Grant:
        if kind == "drain":
            return drain_grant(row, token, self._clock.now_ms)
        config = load_bid_config(row.config)
        ends_ms, spent_sats = self._clock.now_ms + GRANT_MS, fills_of(row.id, config).sats
        plan = self._settings.plans[FIRST_PLAN]
        return bidder_grant(row, config, plan, token, ends_ms, spent_sats=spent_sats)

    def _refusal(self, row: Task) -> str | None:
        return Entitlements(self._settings).refusal(row.user, self._clock.now_ms)

    def _withdraw(self, task_id: int, desk: _Desk) -> None:
        if desk.granted is not None:
            token, desk.granted = desk.granted, None
            with contextlib.suppress(SignerError):
                self._signer.end_rights(task_id, token)

    def _stop(self, row: Task, desk: _Desk) -> None:
        worker = desk.worker
        assert worker is not None
        if worker.kind == "bidder":
            if "stopping" in MOVES[row.observed]:
                tasks.observe(row.id, "stopping", self._clock.now_ms)
            if not desk.is_stopping:
                self._take_back(row.id, worker.token)
            tasks.observe(row.id, STOPPED, self._clock.now_ms, pid=None, exit_status=None)
        desk.worker, desk.is_stopping = None, False

    def _take_back(self, task_id: int, token: int) -> None:
        with contextlib.suppress(SignerError):
            self._signer.revoke_place(task_id, token)
        next_token = tasks.raise_token(task_id)
        with contextlib.suppress(VenueError):
            self._market.fence(task_id, next_token)
