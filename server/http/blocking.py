"""Fair turns between users at shared resources, and threads for blocking calls.

Also a limit of calls per minute for each client that signs in, or user, counted in this process's memory.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any, Generic, TypeVar

from core.errors import PeerError
from core.files import is_full
from markets.base import (
    GatewayAway,
    NoPicture,
    NotFound,
    Picture,
    SignInNeeded,
    TooManyLookups,
    Unavailable,
    VenueError,
)
from markets.client import MarketClient
from markets.verbs import Purpose
from models.database import base
from models.database.damage import CommitUnknown, Damaged
from server.http.answers import ApiError, away, disk_full, not_found, too_many
from wallet.protocol import DISK_FULL
from wallet.signer_client import SignerError, SignerLocked, SignerRefused

_HALVED_S = 60.0  # half-life of the time for which a user has held places
_MOST_REMEMBERED = 1_000  # users


class TooManyWaiting(Exception):
    """A refusal: the user's maximum of requests wait already, or the request has waited too long."""


class Turns:
    """Places that users share: `at_once` in all, `each` for one user, and at most `waiting` requests of one user wait.

    A free place goes to the waiting user with the fewest places; if equal, to the user who held places for the shortest
    time recently; if still equal, in turn. Use it in one loop; `clock` is monotonic.
    """

    def __init__(
        self,
        at_once: float,
        each: int,
        *,
        waiting: float = inf,
        patience_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free = at_once
        self._each = each
        self._waiting = waiting
        self._patience_s = patience_s
        self._clock = clock
        self._held: dict[Hashable, tuple[float, float]] = {}  # by user: seconds held, and when they were last updated
        self._taken: Counter[Hashable] = Counter()
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}  # the next user is first

    def __len__(self) -> int:
        """Returns the number of users who have a place or wait for one."""
        return len(self._queues.keys() | self._taken.keys())

    @asynccontextmanager
    async def of(self, user: Hashable) -> AsyncIterator[None]:
        """Holds one of the user's places during the block. Raises TooManyWaiting."""
        try:
            async with asyncio.timeout(self._patience_s):
                await self._enter(user)
        except TimeoutError:
            raise TooManyWaiting from None
        began_s = self._clock()
        try:
            yield
        finally:
            self._leave(user, self._clock() - began_s)

    def close(self) -> None:
        """Cancels all requests that wait for a turn."""
        for turn in [turn for queue in self._queues.values() for turn in queue]:
            turn.cancel()

    async def _enter(self, user: Hashable) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(user, deque()).append(turn)
        self._hand_out()
        if turn.done():
            return
        if len(self._queues[user]) > self._waiting:
            self._withdraw(user, turn)
            raise TooManyWaiting
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(user, 0.0)  # the place was granted just before the cancel
            else:
                self._withdraw(user, turn)
            raise

    def _withdraw(self, user: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(user, deque())
        if turn in queue:
            queue.remove(turn)
        if not queue:
            self._queues.pop(user, None)

    def _held_s(self, user: Hashable, now_s: float) -> float:
        seconds, at_s = self._held.get(user, (0.0, now_s))
        return float(seconds * 0.5 ** ((now_s - at_s) / _HALVED_S))

    def _leave(self, user: Hashable, seconds: float) -> None:
        now_s = self._clock()
        self._held[user] = self._held_s(user, now_s) + seconds, now_s
        if len(self._held) > _MOST_REMEMBERED:
            del self._held[min(self._held, key=lambda each: self._held_s(each, now_s))]
        self._free += 1
        self._taken[user] -= 1
        if not self._taken[user]:
            del self._taken[user]
        self._hand_out()

    def _hand_out(self) -> None:
        now_s = self._clock()
        while self._free:
            ready = [user for user in self._queues if self._taken.get(user, 0) < self._each]
            if not ready:
                return
            user = min(ready, key=lambda user: (self._taken.get(user, 0), self._held_s(user, now_s)))
            queue = self._queues.pop(user)
            turn = queue.popleft()
            if queue:
                self._queues[user] = queue  # behind the others
            if not turn.cancelled():  # its caller gave up but has not run since
                self._free -= 1
                self._taken[user] += 1
                turn.set_result(None)


WINDOW_S = 60.0
_MOST_KEYS = 50_000


class CallLimit:
    """A limit of `limit` calls for each key in a window of a minute that starts with the first call."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}

    def take(self, key: str) -> int:
        """Counts one call of `key`; returns 0 if it is allowed, else the whole seconds until the window ends."""
        now = self._clock()
        start, used = self._windows.get(key, (now, 0))
        if now - start >= WINDOW_S:
            start, used = now, 0
        if used >= self._limit:
            return max(1, math.ceil(start + WINDOW_S - now))
        if key not in self._windows and len(self._windows) >= _MOST_KEYS:
            self._forget(now)
        self._windows[key] = (start, used + 1)
        return 0

    def _forget(self, now: float) -> None:
        """Drops ended windows. If a flood of addresses leaves none ended, drops all, so that memory stays bounded."""
        self._windows = {key: window for key, window in self._windows.items() if now - window[0] < WINDOW_S}
        if len(self._windows) >= _MOST_KEYS:
            self._windows.clear()


LONG_READS_WAITING = 4  # of one user
_LONG_READS, _LONG_READ_S = 2, 2
_LONG_READ_PATIENCE_S = 20.0  # a read waits twice, and proxies and the page give up after 60 s
# Long answers of one user. A page with a hundred tasks requests a hundred charts when it opens, over one connection.
# Waiting answers take little memory, because they have read no rows yet.
LONG_ANSWERS, LONG_ANSWERS_WAITING = 2, 200
Client = TypeVar("Client")
Value = TypeVar("Value")


class TooSlow(Unavailable):
    """The request's time limit passed before the marketplace answered."""


class Pool(Generic[Client]):
    """A thread pool; each thread has its own client."""

    def __init__(
        self,
        make_client: Callable[[], Client],
        threads: int,
        name: str,
        close_client: Callable[[Client], None] = lambda client: None,
    ) -> None:
        self._make_client = make_client
        self._close_client = close_client
        self._made: list[Client] = []
        self._is_closed = False
        self._kept = threading.local()
        self._executor = ThreadPoolExecutor(threads, name)

    async def __call__(self, question: Callable[[Client], Value]) -> Value:
        """Calls `question` with a client in one of the threads; raises its errors."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._ask, question)

    def _ask(self, question: Callable[[Client], Value]) -> Value:
        client = getattr(self._kept, "client", None)
        if client is None:
            client = self._kept.client = self._make_client()
            self._made.append(client)
        try:
            return question(client)
        finally:
            if self._is_closed:  # closed during the call, which may have opened a connection
                self._close_client(client)

    def close(self) -> None:
        """Accepts no more calls and does not wait for those in progress."""
        self._is_closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
        for client in self._made:
            self._close_client(client)


class LongReads:
    """Long reads of a user's records, in two threads; one read of a user at a time.

    More threads would only take memory (a journal's two files are 10 MB) and slow the loop, because all share one
    interpreter. With a single thread a short read would wait for another user's long one.
    """

    def __init__(self) -> None:
        self._answers = Turns(math.inf, 1, waiting=LONG_READS_WAITING, patience_s=_LONG_READ_PATIENCE_S)
        self._turns = Turns(_LONG_READS, 1, patience_s=_LONG_READ_PATIENCE_S)
        self._executor = ThreadPoolExecutor(_LONG_READS, "long-read")

    def answer(self, user: int) -> AbstractAsyncContextManager[None]:
        """Holds the user's only place while an answer is made and sent. Raises ApiError (429)."""
        message = f"{LONG_READS_WAITING} of yours wait already, or yours take long. Wait for their answers."
        return _place(self._answers, user, message)

    def turn(self, user: int) -> AbstractAsyncContextManager[None]:
        """Waits for the user's turn and holds it during the block. Raises ApiError (429)."""
        message = f"The long reads of other users took all places for {_LONG_READ_PATIENCE_S:.0f} s. Try again soon."
        return _place(self._turns, user, message)

    async def __call__(self, work: Callable[[], Value]) -> Value:
        """Does a part of the turn's work in a thread."""
        done = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # If the client gives up, the thread is still busy, so the turn is held until the work is done.
            await asyncio.wait([done])
            raise

    def close(self) -> None:
        """Accepts no more work and does not wait for work in progress."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def long_answer_place(turns: Turns, user: int) -> AbstractAsyncContextManager[None]:
    """Holds one of the user's places for a long answer. Raises ApiError (429)."""
    return _place(turns, user, f"{LONG_ANSWERS_WAITING} of yours wait already. Wait for their answers.")


@asynccontextmanager
async def _place(turns: Turns, user: Hashable, message: str) -> AsyncIterator[None]:
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(turns.of(user))
        except TooManyWaiting:
            raise too_many("Too many long reads", _LONG_READ_S, message) from None
        yield


def answer_to_any(error: BaseException | None) -> ApiError | None:
    """Makes the client's error for a part that does not respond, in any handler; None for a fault of the server."""
    if is_full(error):
        return disk_full()
    if error is not None and (base.note_damage(error) or isinstance(error, Damaged)):
        return ApiError(503, "The database is damaged", message="The operator must look; docs/operations.md says how.")
    if isinstance(error, CommitUnknown):
        return away("database", "It went away while this was stored: look whether it was before you try again.")
    if base.is_away(error):
        return away("database", "It is away or busy: try again in a moment.")
    if isinstance(error, VenueError | SignerError):
        return answer_to(error)
    return away(error.peer, error.message) if isinstance(error, PeerError) else None


def answer_to(error: VenueError | SignerError) -> ApiError:
    """Makes the client's error for a failed request to the venue (through the gateway) or to the signer."""
    if isinstance(error, NotFound):
        return not_found("Not found at the marketplace")
    if isinstance(error, TooManyLookups):
        return too_many("Too many look-ups", math.ceil(error.retry_after_s or 1), error.message)
    if isinstance(error, SignInNeeded):
        return ApiError(
            409, "The marketplace wants a sign-in, which only a running task there makes", message=error.message
        )
    if isinstance(error, TooSlow):
        return ApiError(504, "The marketplace takes too long", message=error.message)
    if isinstance(error, GatewayAway):
        return away("gateway", error.message)
    if isinstance(error, VenueError):
        return ApiError(502, "The marketplace cannot be read", message=error.message)
    if isinstance(error, SignerRefused) and error.tag == DISK_FULL:
        return disk_full(str(error))
    if isinstance(error, SignerLocked):
        return ApiError(503, "The signer is locked", message=str(error))
    return ApiError(503, "The signer cannot be asked", message=str(error))


AT_ONCE = 4
# The pool has a thread for each place, and some for withdrawals under way.
LOOKS_AT_ONCE, ACTS_AT_ONCE = 10, 10
# A page makes more than four requests when it opens, so the fifth waits instead of being refused. The number is
# limited because each waiting request holds a connection.
WAITING = 16
PATIENCE_S = 10.0


class Seats:
    """Places for each user's requests to the marketplaces: AT_ONCE run at a time, and at most `waiting` wait.

    A user's actions and reads have separate places. Of all users together, at most `looks` reads and `acts` actions run
    at a time, users in turn. A request that waits longer than `patience_s` is refused.
    """

    def __init__(
        self,
        *,
        waiting: int = WAITING,
        looks: int = LOOKS_AT_ONCE,
        acts: int = ACTS_AT_ONCE,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._looks = Turns(looks, AT_ONCE, waiting=waiting, patience_s=patience_s)
        self._acts = Turns(acts, AT_ONCE, waiting=waiting, patience_s=patience_s)

    async def ask(self, user: int, purpose: Purpose, question: Callable[[], Awaitable[Value]]) -> Value:
        """Calls `question` in its turn. Raises TooManyLookups if too many wait already, or if it waits too long."""
        asked = asyncio.ensure_future(self._seated(user, purpose, question))
        asked.add_done_callback(_look_at)
        # If the client gives up, the thread is still busy, so the place is held until the answer has arrived.
        return await asyncio.shield(asked)

    def __len__(self) -> int:
        return len(self._looks) + len(self._acts)

    async def _seated(self, user: int, purpose: Purpose, question: Callable[[], Awaitable[Value]]) -> Value:
        turns = self._looks if purpose == "look" else self._acts
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(turns.of((user, purpose)))
            except TooManyWaiting:
                raise _too_many() from None
            return await question()


class UserMarket:
    """Calls the gateway for one user's reads or actions until the monotonic clock shows `until`."""

    def __init__(self, pool: Pool[MarketClient], seats: Seats, user: int, purpose: Purpose, until: float) -> None:
        self._pool = pool
        self._seats = seats
        self._user = user
        self._purpose = purpose
        self._until = until

    async def __call__(self, question: Callable[[MarketClient], Value]) -> Value:
        """Calls `question` in a thread in its turn. Raises VenueError; TooSlow after `until`."""
        user, purpose, until = self._user, self._purpose, self._until

        def ask() -> Awaitable[Value]:
            return self._pool(lambda market: question(market.by(user, purpose, until)))

        return await in_time(self._seats.ask(user, purpose, ask), until)


async def in_time(answer: Awaitable[Value], until: float) -> Value:
    """Returns the marketplace's answer. Raises TooSlow once the monotonic clock shows `until`."""
    try:
        async with asyncio.timeout(max(until - time.monotonic(), 0)):
            return await answer
    except TimeoutError:
        raise TooSlow("it has not answered in time, since many calls wait or it is slow; ask again soon") from None


def _look_at(asked: asyncio.Future[Any]) -> None:
    """Retrieves the error of an abandoned call, otherwise asyncio would log it."""
    if not asked.cancelled():
        asked.exception()


def _too_many() -> TooManyLookups:
    return TooManyLookups(2.0, f"{AT_ONCE} of your questions to marketplaces are being asked, and more wait")


A_MINUTE = 600  # of one user; a page shows sixty and may be scrolled
PICTURES_WAITING = 200
_THREADS = 8
_PATIENCE_S = 30.0


class PictureWay:
    """Fetches pictures through the gateway; `clock` is monotonic."""

    def __init__(self, gateway_socket: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = Pool(lambda: MarketClient(gateway_socket), _THREADS, "picture", MarketClient.close)
        self._seats = Seats(waiting=PICTURES_WAITING, looks=_THREADS, patience_s=_PATIENCE_S)
        self._limit = CallLimit(A_MINUTE, clock)

    def count(self, user: int) -> None:
        """Counts one picture for a user. Raises ApiError (429) if there are too many in a minute."""
        if wait_s := self._limit.take(str(user)):
            raise too_many("Too many pictures", wait_s, f"A user may ask for {A_MINUTE} pictures a minute.")

    async def picture(
        self, user: int, inscription_id: str | None, url: str | None, until: float
    ) -> Picture | NoPicture:
        """Returns the picture that a venue says is at `url`. Raises ApiError (429)."""
        ask = UserMarket(self._pool, self._seats, user, "look", until)
        try:
            return await ask(lambda market: market.picture(inscription_id, url))
        except TooManyLookups as error:
            raise answer_to(error) from error
        except VenueError:  # the gateway has too much to fetch, or is away: there may be one in a minute
            return NoPicture("unreachable")

    def close(self) -> None:
        """Ends the threads."""
        self._pool.close()
