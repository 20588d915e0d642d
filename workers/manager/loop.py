"""Work next to the manager's loop, and the waits of all tasks: for a turn, for a place, in the queue, for absent peers.

A task has one operation at a time. The numbers of workers that run, and that start, have an upper bound; of those that
wait to start, a worker that a user waits for comes first, then the order of requests counts. While signer or gateway is
away, one task asks often, for all whose start failed.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, TypeVar

from core.errors import PeerRefused

log = logging.getLogger(__name__)

T = TypeVar("T")


class Background:
    """Background tasks, which nothing awaits. They are held here, since the loop itself would forget them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("failed in the background", exc_info=error)

    async def cancel(self) -> None:
        """Cancels all of them and waits until they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_thread(call: Callable[[], T]) -> T:
    """Makes the call in a thread of its own, which the end of the process does not wait for; returns its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        try:
            outcome: tuple[T | None, BaseException | None] = (call(), None)
        except Exception as error:
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop was closed meanwhile: nothing waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, daemon=True).start()
    return await future


class OperationTurns:
    """The right to change a task's worker. `askers` counts operations with a waiting client and without a turn."""

    def __init__(self) -> None:
        self.askers = 0
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()

    @property
    def is_taken(self) -> bool:
        return self._lock.locked()

    def news(self) -> None:
        """Wakes `until` up after an event that it may be waiting for."""
        self._news.set()

    @asynccontextmanager
    async def own(self) -> AsyncIterator[None]:
        """Holds a turn of the manager's own accord."""
        async with self._lock:
            yield

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[None]:
        """Holds a turn that a client waits for; the present holder learns of that."""
        self.askers += 1
        self.news()
        try:
            await self._lock.acquire()
        finally:
            self.askers -= 1
        try:
            yield
        finally:
            self._lock.release()

    async def until(
        self, done: Callable[[], bool], gives_way: Callable[[], bool], timeout_s: float | None = None
    ) -> bool:
        """Waits for `done` as the holder of the turn; returns False after `timeout_s` or when it must give way.

        Both are looked at again at each `news`.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        while not done():
            if gives_way():
                return False
            self._news.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                return done()
        return True


TOO_MANY = "too_many_workers"


class WorkerPlaces:
    """`most` places, by task. A drain worker needs none: cancelling is never refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[int] = set()

    def take(self, task_id: int) -> None:
        """Takes the task's place, if it has none yet. Raises PeerRefused when all are taken."""
        if task_id not in self._taken and len(self._taken) >= self._most:
            text = f"{self._most} tasks run, as many as this installation lets run at once"
            raise PeerRefused("manager", TOO_MANY, text)
        self._taken.add(task_id)

    def leave(self, task_id: int) -> None:
        self._taken.discard(task_id)


class Ticket:
    """A place in the queue, then the right to start (`granted`), until the end of its `with` block."""

    def __init__(self, queue: StartQueue, on_granted: Callable[[], None]) -> None:
        self._of = queue
        self.on_granted = on_granted
        self.granted = False
        self.left = False

    def __enter__(self) -> Ticket:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._of._leave(self)


class StartQueue:
    """A queue from which `count` may start at once."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: list[tuple[bool, int, Ticket]] = []
        self._order = itertools.count()

    @property
    def waiting(self) -> int:
        """The length of the queue."""
        return len(self._queue)

    def ask(self, *, urgent: bool, on_granted: Callable[[], None]) -> Ticket:
        """Requests the right to start, granted now or later; `on_granted` is called then."""
        ticket = Ticket(self, on_granted)
        heapq.heappush(self._queue, (not urgent, next(self._order), ticket))
        self._hand_out()
        return ticket

    def _leave(self, ticket: Ticket) -> None:
        if not ticket.left:
            ticket.left = True
            self._free += ticket.granted
            self._hand_out()

    def _hand_out(self) -> None:
        while self._free and self._queue:
            _, _, ticket = heapq.heappop(self._queue)
            if not ticket.left:
                self._free -= 1
                ticket.granted = True
                ticket.on_granted()


# The longest wait before the next try. Most absences are short, but asking costs a token and a right each time: so of
# a thousand tasks one asks each second, and after a minute (a locked signer, say) none more often than the others.
OFTEN_S = 1.0
SELDOM_S = 5.0
OFTEN_TRIES = 60


class Absences:
    """Knows who waits for absent peers, in the order in which they began to."""

    def __init__(self) -> None:
        self._wakes: dict[Callable[[], None], None] = {}
        self._tries = 0  # of those that ask often, since somebody was answered

    def longest_rest_s(self, wake: Callable[[], None]) -> float:
        """Notes that a start has failed; `wake` is called once both are there again.

        Returns how long its task may rest before it tries again by itself.
        """
        self._wakes[wake] = None
        if next(iter(self._wakes)) != wake or self._tries >= OFTEN_TRIES:
            return SELDOM_S
        self._tries += 1
        return OFTEN_S

    def forget(self, wake: Callable[[], None]) -> None:
        """Leaves this one out: its task does not wait for them any more."""
        self._wakes.pop(wake, None)

    def are_over(self) -> None:
        """Wakes all that wait: a task has got its rights."""
        wakes, self._wakes, self._tries = self._wakes, {}, 0
        for wake in wakes:
            wake()
