"""Limits of writes: fences and brakes of tasks, and the clock skew between us and a venue.

Only writes under a task's newest token may go out. A write is `queued` until it has its turn and `sending` from then
until its answer is there or lost. Raising a fence drops the writes queued under lower tokens and waits for those being
sent: a write that has its turn asks `permit` in the instant before its first byte, so after `raise_to` has returned, no
write under a lower token is or will be on the wire.

A brake holds a task: its bids and listings are refused for a time, whatever their token, while its cancels go out.

That holds for one gateway. Whether it is still the one, where there are several, is what `confirm` asks.

A bid signed by a wrong clock ends at the wrong time, so none is placed while our clock is too far off.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from markets.base import Refused, Unavailable

log = logging.getLogger(__name__)


class Ticket:
    """One write under way. `drop` is called when the fence passes it while it is queued."""

    def __init__(self, token: int, drop: Callable[[], object], *, is_place: bool = False) -> None:
        self.token = token
        self.is_place = is_place
        self.sending = False
        self.refusal: Refused | None = None
        self._drop = drop

    def refuse(self, refusal: Refused) -> None:
        """Drops the write with this refusal, unless it is being sent."""
        if not self.sending:
            self.refusal = refusal
            self._drop()


class Fences:
    """The least token of each task. For a task not seen since the start, `least_token(task)` gives it.

    `is_the_one` asks outside of this process, whose machine may have been frozen, whether this is still the gateway.
    """

    def __init__(
        self,
        least_token: Callable[[int], int],
        is_the_one: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._least_token = least_token
        self._is_the_one = is_the_one
        self._clock = clock
        self._least: dict[int, int] = {}
        self._tickets: dict[int, set[Ticket]] = {}
        self._held: dict[int, float] = {}  # until when, on the monotonic clock
        self._left = asyncio.Event()

    @contextmanager
    def enter(self, task: int, token: int, drop: Callable[[], object], *, is_place: bool = False) -> Iterator[Ticket]:
        """Registers a write of `task` while it is under way; `is_place` of a bid or a listing.

        Raises as `permit`, or Unavailable when the least token cannot be found out.
        """
        if task not in self._least:
            self._least[task] = self._look_up(task)
        self.permit(task, token, is_place=is_place)
        ticket = Ticket(token, drop, is_place=is_place)
        self._tickets.setdefault(task, set()).add(ticket)
        try:
            yield ticket
        finally:
            self._tickets[task].discard(ticket)
            if not self._tickets[task]:
                del self._tickets[task]
            self._left.set()

    def permit(self, task: int, token: int, *, is_place: bool = False) -> None:
        """Raises Refused('stale_token') when the fence has passed `token`, Refused('held') for a bid or a listing of a
        task that is held. Safe in any thread.
        """
        if token < self._least[task]:
            raise Refused("stale_token", f"task {task} is fenced at {self._least[task]}, not {token}")
        if is_place and self._held.get(task, 0.0) > self._clock():
            raise _held(task)

    def confirm(self) -> None:
        """Raises Unavailable unless this is surely the only gateway. Safe in any thread."""
        try:
            is_the_one = self._is_the_one()
        except Exception as error:
            log.warning("cannot find out whether another gateway has taken over: %s", error)
            raise Unavailable("failed to ask whether another gateway has taken over; nothing was sent") from error
        if not is_the_one:
            raise Unavailable("another gateway has taken over; nothing was sent")

    async def raise_to(self, task: int, token: int) -> int:
        """Refuses writes of `task` under lower tokens than `token`; returns when none of them is on the wire.

        Returns the least token that is not refused: a higher one than `token` where that was seen before.
        """
        self._least[task] = max(self._least.get(task, 0), token)
        for ticket in self._lower(task, token):
            ticket.refuse(Refused("stale_token", "a newer worker has taken over; nothing was sent"))
        while self._lower(task, token):
            self._left.clear()
            await self._left.wait()
        return self._least[task]

    async def hold(self, tasks: Collection[int], seconds: float) -> None:
        """Refuses bids and listings of `tasks` for `seconds` (0 ends that); returns when none of them is being sent."""
        now = self._clock()
        self._held = {task: until for task, until in self._held.items() if until > now and task not in tasks}
        if not seconds:
            return
        self._held |= dict.fromkeys(tasks, now + seconds)
        for task in tasks:
            for ticket in self._places(task):
                ticket.refuse(_held(task))
        while any(self._places(task) for task in tasks):
            self._left.clear()
            await self._left.wait()

    def __len__(self) -> int:
        return sum(map(len, self._tickets.values()))

    def _lower(self, task: int, token: int) -> list[Ticket]:
        return [ticket for ticket in self._tickets.get(task, ()) if ticket.token < token]

    def _places(self, task: int) -> list[Ticket]:
        return [ticket for ticket in self._tickets.get(task, ()) if ticket.is_place]

    def _look_up(self, task: int) -> int:
        try:
            return self._least_token(task)
        except Exception as error:
            log.exception("failed to look up the token of task %s", task)
            raise Unavailable(f"failed to look up the token of task {task}; nothing was sent") from error


def _held(task: int) -> Refused:
    return Refused("held", f"a brake holds task {task}; nothing was sent")
