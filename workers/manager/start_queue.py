"""The number of workers that may start at once: those that a user waits for first, then in the order of requests."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from types import TracebackType


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
