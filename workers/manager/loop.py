"""Background work of the manager's loop, and the tasks' waits: for a turn, a place, their start, absent peers.

A task has one operation at a time. The numbers of running and of starting workers are limited. Among workers that wait
to start, those that a user waits for come first, then the oldest request. While signer or gateway is away, one task
retries often on behalf of all whose start failed.
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
    """Background tasks that no caller awaits. They are held here, because the loop keeps only weak references."""

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
    """Runs the call in its own daemon thread, so that it does not delay the process's end; returns its result."""
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
        with suppress(RuntimeError):  # the loop has been closed, so no caller waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, daemon=True).start()
    return await future


class OperationTurns:
    """The right to change a task's worker. `askers` counts client requests that wait for their turn."""

    def __init__(self) -> None:
        self.askers = 0
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()

    @property
    def is_taken(self) -> bool:
        return self._lock.locked()

    def news(self) -> None:
        """Wakes `until` after an event that it may be waiting for."""
        self._news.set()

    @asynccontextmanager
    async def own(self) -> AsyncIterator[None]:
        """Holds a turn for an operation of the manager itself."""
        async with self._lock:
            yield

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[None]:
        """Holds a turn for an operation that a client waits for; notifies the present holder."""
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
        """Waits for `done` as the holder of the turn; returns False after `timeout_s`, or if `gives_way` returns True.

        Both callbacks are called again after each `news`.
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
    """The places of running workers, by task, at most `most`. Drains need none: cancels are never refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[int] = set()

    def take(self, task_id: int) -> None:
        """Takes a place for the task if it has none. Raises PeerRefused if all are taken."""
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
    """A queue from which `count` workers may start at the same time."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: list[tuple[bool, int, Ticket]] = []
        self._order = itertools.count()

    @property
    def waiting(self) -> int:
        """The length of the queue."""
        return len(self._queue)

    def ask(self, *, urgent: bool, on_granted: Callable[[], None]) -> Ticket:
        """Requests the right to start; `on_granted` is called when it is granted, which may be immediately."""
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


# The maximum wait before the next try. Most absences are short, but each try costs a token and a grant. So of a
# thousand tasks only one tries each second, and after a minute (for example of a locked signer) it tries as seldom as
# the others.
OFTEN_S = 1.0
SELDOM_S = 5.0
OFTEN_TRIES = 60


class Absences:
    """The tasks that wait for absent peers, in the order in which their waits began."""

    def __init__(self) -> None:
        self._wakes: dict[Callable[[], None], None] = {}
        self._tries = 0  # of the task that tries often, since the last success of any task

    def longest_wait_s(self, wake: Callable[[], None]) -> float:
        """Registers a failed start; `wake` is called once both peers are back.

        Returns the maximum time that its task may wait before it tries again.
        """
        self._wakes[wake] = None
        if next(iter(self._wakes)) != wake or self._tries >= OFTEN_TRIES:
            return SELDOM_S
        self._tries += 1
        return OFTEN_S

    def remove(self, wake: Callable[[], None]) -> None:
        """Removes this task, because it no longer waits for the peers."""
        self._wakes.pop(wake, None)

    def wake_all(self) -> None:
        """Wakes all waiting tasks, because a task has got its grant."""
        wakes, self._wakes, self._tries = self._wakes, {}, 0
        for wake in wakes:
            wake()
