"""The one place that runs blocking calls off the loop, and the answers to their failures."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Generic, TypeVar

from core.errors import PeerError
from core.files import is_full
from markets.base import GatewayAway, NotFound, SignInNeeded, TooManyLookups, Unavailable, VenueError
from models.database import base
from models.database.damage import CommitUnknown, Damaged
from server.http.api_errors import ApiError, away, disk_full, not_found, too_many
from server.http.turns import TooManyWaiting, Turns
from wallet.protocol import DISK_FULL
from wallet.signer_client import SignerError, SignerLocked, SignerRefused

LONG_READS_WAITING = 4  # of one user
_LONG_READS, _LONG_READ_S = 2, 2
_LONG_READ_PATIENCE_S = 20.0  # proxies and the page give up after 60, and a read waits twice
# Long answers of one user. A page with a hundred tasks asks for as many charts when it opens, over one connection.
# Answers that wait have read no rows yet.
LONG_ANSWERS, LONG_ANSWERS_WAITING = 2, 200
Client = TypeVar("Client")
Value = TypeVar("Value")


class TooSlow(Unavailable):
    """The end of a request's patience, before the marketplace answered."""


class Pool(Generic[Client]):
    """A few threads, each with a client of its own."""

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
        """Asks `question` of a client in one of the threads; raises its errors."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._ask, question)

    def _ask(self, question: Callable[[Client], Value]) -> Value:
        client = getattr(self._kept, "client", None)
        if client is None:
            client = self._kept.client = self._make_client()
            self._made.append(client)
        try:
            return question(client)
        finally:
            if self._is_closed:  # while it was asked: it may have opened a connection since
                self._close_client(client)

    def close(self) -> None:
        """Takes no more questions and does not wait for those in progress."""
        self._is_closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
        for client in self._made:
            self._close_client(client)


class LongReads:
    """Long work on what a user has recorded, in threads of its own: one piece of work of a user at a time.

    Two threads share one interpreter, so more would only take memory (a journal's two files are 10 MB) and slow the
    loop; a single one would make a short read wait for another user's long one.
    """

    def __init__(self) -> None:
        self._answers = Turns(math.inf, 1, waiting=LONG_READS_WAITING, patience_s=_LONG_READ_PATIENCE_S)
        self._turns = Turns(_LONG_READS, 1, patience_s=_LONG_READ_PATIENCE_S)
        self._executor = ThreadPoolExecutor(_LONG_READS, "long-read")

    def answer(self, user: int) -> AbstractAsyncContextManager[None]:
        """Holds the user's one place while an answer is made and sent. Raises ApiError (429)."""
        message = f"{LONG_READS_WAITING} of yours wait already, or yours take long. Wait for their answers."
        return _place(self._answers, user, message)

    def turn(self, user: int) -> AbstractAsyncContextManager[None]:
        """Waits for the user's turn among all users, and holds it for the block. Raises ApiError (429)."""
        message = f"The long reads of other users took all places for {_LONG_READ_PATIENCE_S:.0f} s. Try again soon."
        return _place(self._turns, user, message)

    async def __call__(self, work: Callable[[], Value]) -> Value:
        """Does a part of what the turn is for in a thread."""
        done = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # A client that gives up leaves the thread busy, so the turn stays taken until that is done.
            await asyncio.wait([done])
            raise

    def close(self) -> None:
        """Takes no more work and does not wait for what is being done."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def long_answer_place(turns: Turns, user: int) -> AbstractAsyncContextManager[None]:
    """Holds a place of the user's for one long answer. Raises ApiError (429)."""
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
    """Makes the client's error of a part that is away, whichever handler met it; None for a fault of the server."""
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
    """Makes the client's error of a failed question to the venue (through the gateway) or to the signer."""
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
