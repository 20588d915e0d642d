"""The services that the handlers of one server process share."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct, field

from core.call import Request, call
from core.errors import BidkeeperError, PeerError, PeerRefused, PeerUnavailable
from core.layout import end_of_log, log_path
from core.process import PYTHON
from core.program_calls import CountTasks, Enforce, Heed, Ping, ReadLog, Scope, Settle, Settled, State, TaskCounts
from core.settings import Settings
from markets.client import MarketClient
from markets.verbs import Purpose
from models.database.base import CommitCache
from models.leases.manager_places import Place, address_at, place_for, places
from models.users import GLOBAL, Entitlements
from server.http.answers import ApiError, too_many
from server.http.blocking import CallLimit, LongReads, PictureWay, Pool, Seats, TooManyWaiting, Turns, UserMarket
from server.http.feed import Feed
from wallet.signer_client import SignerClient

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(Struct, frozen=True):
    """One metric; each sample is its labels and its value. A counter's name ends in `_total`."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: tuple[tuple[Mapping[str, str], float], ...]


class Histogram:
    """A histogram of durations in seconds; `bounds` are the upper ends, ascending."""

    def __init__(self, name: str, help: str, bounds: Sequence[float]) -> None:
        self.name = name
        self.help = help
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Counts a duration; a duration equal to a bound counts in the bucket below it."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum_s += seconds

    def lines(self) -> Iterator[str]:
        """Yields the lines of the text format; each bucket includes the counts of the lower ones."""
        yield f"# HELP {self.name} {_escaped(self.help)}"
        yield f"# TYPE {self.name} histogram"
        for bound, count in zip((*map(str, self._bounds), "+Inf"), accumulate(self._counts), strict=True):
            yield f'{self.name}_bucket{{le="{bound}"}} {count}'
        yield f"{self.name}_sum {self._sum_s}"
        yield f"{self.name}_count {sum(self._counts)}"


def metric(name: str, kind: Literal["gauge", "counter"], help: str, value: float) -> Metric:
    """Makes a metric with one sample and no labels."""
    return Metric(name, kind, help, (({}, value),))


def render(metrics: Iterable[Metric | Histogram]) -> str:
    """Writes the text format. A metric without samples is left out."""
    lines: list[str] = []
    for each in metrics:
        if isinstance(each, Histogram):
            lines += each.lines()
            continue
        if each.samples:
            lines.append(f"# HELP {each.name} {_escaped(each.help)}")
            lines.append(f"# TYPE {each.name} {each.kind}")
        lines += [f"{each.name}{_labels(labels)} {value}" for labels, value in each.samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


WAIT_S = 10.0
DRAIN_S = 10.0
# A stop revokes rights at signer and gateway, waits 5 s for the worker and DRAIN_S for its bids to end.
_SETTLE_S = 60.0
_PING_S = 2.0
_RETRY_S = 0.1
_THREADS, _OF_USER = 32, 10
_OWN_QUESTIONS = 4  # requests not made by users: readiness, changes of rights by the operator
_BRAKE_THREADS = 4
_PLACE_S = 60  # until another task may have stopped


A = TypeVar("A")
Value = TypeVar("Value")


class ManagerClient:
    """A client of all managers. `wait_s` is the longest wait for a manager that does not respond.

    Each call looks up the manager's address again, because another manager may have taken over.
    """

    def __init__(self, settings: Settings, *, wait_s: float = WAIT_S, drain_s: float = DRAIN_S) -> None:
        self._settings = settings
        self._wait_s = wait_s
        self._drain_s = drain_s
        self._executor = ThreadPoolExecutor(_THREADS + _OWN_QUESTIONS, "manager")
        self._turns = Turns(_THREADS, _OF_USER)  # a stop holds its thread until the task's bids have ended
        self._brakes = ThreadPoolExecutor(_BRAKE_THREADS, "brake")  # not shared with stops, which may block
        self._brake_turns = Turns(_BRAKE_THREADS, 2)
        self._is_closed = False

    async def state(self, timeout_s: float = _PING_S) -> str:
        """Returns `ready` if all managers are, else the state of a manager that is not. Raises PeerError."""
        states = [answer.state for answer in await self._ask_all(Ping(), timeout_s)]
        return next((state for state in states if state != "ready"), "ready")

    async def status(self, timeout_s: float) -> list[TaskCounts]:
        """Returns the counts of each manager. Raises PeerError."""
        return await self._ask_all(CountTasks(), timeout_s)

    async def ready(self, user_id: int, kept: str = "nothing was changed") -> None:
        """Waits until the user's manager is ready. Raises ApiError (503) if it is not within `wait_s`.

        `kept` is the part of the error that says what was stored.
        """
        deadline = asyncio.get_running_loop().time() + self._wait_s
        while True:
            try:
                state = (await self._ask(user_id, Ping(), _PING_S)).state
                if state == "ready":
                    return
                reason = f"it is {state}"
            except PeerError as error:
                reason = error.message
            if self._is_closed or asyncio.get_running_loop().time() >= deadline:
                raise ApiError(503, "The manager is away", message=f"{reason}; {kept}")
            await asyncio.sleep(_RETRY_S)

    async def settle(self, user_id: int, task_id: int, *, drain_s: float | None = None) -> Settled:
        """Has the manager start or stop the worker of the user's task by its row. Raises PeerError.

        `drain_s` is the longest wait for the end of a stopped task's bids (default: that of `__init__`).
        """
        return await self._ask(user_id, Settle(task_id, self._drain_s if drain_s is None else drain_s), _SETTLE_S)

    async def heed(self, scope: Scope, subject: int, user_id: int, state: State | None, at_ms: int) -> None:
        """Sends a control state to the manager; None as `state` means that another limit became stricter.

        A global state is sent to all managers, other states to the user's manager. Raises PeerError.
        """
        request = Heed(scope, subject, state, at_ms)
        found = places(self._settings) if scope == GLOBAL else [place_for(self._settings, user_id)]
        try:
            async with self._brake_turns.of(GLOBAL if scope == GLOBAL else user_id):
                await asyncio.gather(*(self._ask_at(each, request, _PING_S, self._brakes) for each in found))
        except asyncio.CancelledError:
            if self._is_closed:  # closed while the state waited for its turn
                raise _stopping() from None
            raise

    async def log(self, user_id: int, task_id: int, most: int) -> list[str]:
        """Returns the last `most` lines of the log of the user's task. Raises OSError and PeerError."""
        if isinstance(place_for(self._settings, user_id), Path):
            return end_of_log(log_path(self._settings.data_dir, task_id), most)
        return list((await self._ask(user_id, ReadLog(task_id, most), _PING_S)).lines)

    async def enforce(self) -> int:
        """Has all managers stop the tasks that are no longer allowed; returns the number of them. Raises PeerError."""
        return sum(answer.stopped for answer in await self._ask_all(Enforce(), _SETTLE_S))

    async def _ask(self, user_id: int, request: Request[A], timeout_s: float) -> A:
        try:
            async with self._turns.of(user_id):
                return await self._ask_at(place_for(self._settings, user_id), request, timeout_s)
        except asyncio.CancelledError:
            if self._is_closed:  # closed while the request waited for its turn
                raise _stopping() from None
            raise

    async def _ask_all(self, request: Request[A], timeout_s: float) -> list[A]:
        found = places(self._settings)
        return await asyncio.gather(*(self._ask_at(each, request, timeout_s) for each in found))

    async def _ask_at(
        self,
        place: Place | PeerUnavailable,
        request: Request[A],
        timeout_s: float,
        threads: ThreadPoolExecutor | None = None,
    ) -> A:
        def ask() -> A:
            return call(address_at(self._settings, place), "manager", request, timeout=timeout_s)

        if self._is_closed:
            raise _stopping()
        try:
            return await asyncio.get_running_loop().run_in_executor(threads or self._executor, ask)
        except asyncio.CancelledError:
            if self._is_closed:  # closed while the request waited for a thread
                raise _stopping() from None
            raise

    def close(self) -> None:
        """Accepts no more requests and does not wait for those in progress."""
        self._is_closed = True
        self._turns.close()
        self._brake_turns.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._brakes.shutdown(wait=False, cancel_futures=True)


def answer_to(error: PeerError) -> ApiError:
    """Makes the client's error for a manager that refused or did not answer."""
    if not isinstance(error, PeerRefused):
        return ApiError(503, "The manager is away", message=error.message)
    if error.code == "not_entitled":
        return ApiError(403, "Not allowed to run tasks", message=error.message)
    if error.code == "too_many_workers":
        return too_many("Too many tasks run", _PLACE_S, error.message)
    named = {
        "signer_unavailable": "The signer cannot be asked",
        "signer_locked": "The signer is locked",
        "gateway_unavailable": "The gateway cannot be asked",
        "start_failed": "The worker did not start",
        "database_damaged": "The database is damaged",
    }
    return ApiError(503, named.get(error.code, "The manager failed"), message=error.message or error.code)


def _stopping() -> PeerUnavailable:
    return PeerUnavailable("manager", "is not asked any more, since this server stops")


AT_ONCE = 2  # replays in one server process
WALL_S = 50.0  # proxies give up after 60
PATIENCE_S = 8.0  # the wait for a turn, within the same time

log = logging.getLogger(__name__)


class TooManyReplays(BidkeeperError):
    """The maximum of replays are running already."""


class ReplayFailed(BidkeeperError):
    """A replay that did not finish; the message says why."""


class Replays:
    """Runs the replays of one server process."""

    def __init__(self) -> None:
        self._turns = Turns(AT_ONCE, 1, waiting=1, patience_s=PATIENCE_S)

    async def run(self, user: int, request: bytes) -> bytes:
        """Runs a replay in the user's turn and returns the program's answer. Raises TooManyReplays, ReplayFailed."""
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(self._turns.of(user))
            except TooManyWaiting:
                raise TooManyReplays(f"{AT_ONCE} replays run already, and more wait.") from None
            return await _run(request)


async def _run(request: bytes) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *PYTHON,
        "-m",
        "server.replay.program",
        str(os.getpid()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.startswith("BIDKEEPER_")},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(WALL_S):
            answer, _ = await process.communicate(request)
    except TimeoutError:
        raise ReplayFailed("It took too long. Try a shorter time, by `from` and `to`.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return answer
    log.warning("a replay ended with %s", process.returncode)
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise ReplayFailed("It took too long. Try a shorter time, by `from` and `to`.")
    raise ReplayFailed("The process that replays ended before its time.")


class Services(Struct, frozen=True):
    """Settings, the users' rights by them, and clients of the other programs.

    `long_answers` and `event_pages` are places for whole answers on this process's loop, `pieces` are turns for parts
    of them; `long_reads` run in threads. `brakes` are threads that only send control states to the signer. `unstored`
    has the control states (server/control.py) that are in force without a row. `ways_out` has the users (id, ordinals
    address) and venues whose bidding wallets were found to allow withdrawals. `gains` are by user: the sats realised
    with each task's purchases, and the state of the fills that they follow from.
    """

    settings: Settings
    entitlements: Entitlements
    clock_ms: Callable[[], int]
    manager: ManagerClient
    market: Pool[MarketClient]
    signer: Pool[SignerClient]
    brakes: Pool[SignerClient]
    budget: CallLimit
    loosened: CallLimit
    locks: TaskLocks
    task_lists: CommitCache
    starts: Histogram
    seats: Seats
    pictures: PictureWay
    feed: Feed
    pieces: Turns
    long_answers: Turns
    event_pages: Turns
    long_reads: LongReads
    sent_by_hand: CallLimit
    replays: Replays = field(default_factory=Replays)
    unstored: dict[object, Any] = field(default_factory=dict)
    in_flight: set[object] = field(default_factory=set)  # handlers that have not answered yet
    ways_out: set[tuple[int, str, str]] = field(default_factory=set)
    gains: dict[int, tuple[Any, dict[int, int]]] = field(default_factory=dict)

    async def in_turn(self, user: int, work: Callable[[], Value]) -> Value:
        """Does a piece of long work when it is the user's turn, and then leaves the loop to others for as long."""
        async with self.pieces.of(user):
            began = time.perf_counter()
            try:
                return work()
            finally:
                await asyncio.sleep(time.perf_counter() - began)

    def market_for(self, user: int, purpose: Purpose, until: float) -> UserMarket:
        """Returns a client of the marketplaces for a user's request, until the monotonic clock shows `until`."""
        return UserMarket(self.market, self.seats, user, purpose, until)

    def close(self) -> None:
        """Ends the threads that call other programs."""
        self.feed.close()
        self.long_reads.close()
        self.market.close()
        self.pictures.close()
        self.signer.close()
        self.brakes.close()
        self.manager.close()


class TaskLocks:
    """One lock for each task, so that operations on it in this process run one after the other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def of(self, task_id: int) -> asyncio.Lock:
        """Returns the lock of this task, for `async with`."""
        return self._locks.setdefault(task_id, asyncio.Lock())
