"""Fences: only writes under a task's newest token may go out.

A write is `queued` until it has its turn and `sending` from then until its answer is there or lost. Raising a fence
drops the writes queued under lower tokens and waits for those being sent: a write that has its turn asks `permit` in
the instant before its first byte, so after `raise_to` has returned, no write under a lower token is or will be on the
wire.

That holds for one gateway. Whether it is still the one, where there are several, is what `confirm` asks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from markets.base import Refused, Unavailable

log = logging.getLogger(__name__)


class Ticket:
    """One write under way. `drop` is called when the fence passes it while it is queued."""

    def __init__(self, token: int, drop: Callable[[], object]) -> None:
        self.token = token
        self.sending = False
        self.stale = False
        self._drop = drop

    def make_stale(self) -> None:
        if not self.sending:
            self.stale = True
            self._drop()


class Fences:
    """The least token of each task. For a task not seen since the start, `least_token(task)` gives it.

    `is_the_one` asks outside of this process, whose machine may have been frozen, whether this is still the gateway.
    """

    def __init__(self, least_token: Callable[[int], int], is_the_one: Callable[[], bool] = lambda: True) -> None:
        self._least_token = least_token
        self._is_the_one = is_the_one
        self._least: dict[int, int] = {}
        self._tickets: dict[int, set[Ticket]] = {}
        self._left = asyncio.Event()

    @contextmanager
    def enter(self, task: int, token: int, drop: Callable[[], object]) -> Iterator[Ticket]:
        """Registers a write of `task` while it is under way.

        Raises Refused('stale_token'), or Unavailable when the least token cannot be found out.
        """
        if task not in self._least:
            self._least[task] = self._look_up(task)
        self.permit(task, token)
        ticket = Ticket(token, drop)
        self._tickets.setdefault(task, set()).add(ticket)
        try:
            yield ticket
        finally:
            self._tickets[task].discard(ticket)
            if not self._tickets[task]:
                del self._tickets[task]
            self._left.set()

    def permit(self, task: int, token: int) -> None:
        """Raises Refused('stale_token') when the fence has passed `token`. Safe in any thread."""
        if token < self._least[task]:
            raise Refused("stale_token", f"task {task} is fenced at {self._least[task]}, not {token}")

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
            ticket.make_stale()
        while self._lower(task, token):
            self._left.clear()
            await self._left.wait()
        return self._least[task]

    def __len__(self) -> int:
        return sum(map(len, self._tickets.values()))

    def _lower(self, task: int, token: int) -> list[Ticket]:
        return [ticket for ticket in self._tickets.get(task, ()) if ticket.token < token]

    def _look_up(self, task: int) -> int:
        try:
            return self._least_token(task)
        except Exception as error:
            log.exception("failed to look up the token of task %s", task)
            raise Unavailable(f"failed to look up the token of task {task}; nothing was sent") from error
