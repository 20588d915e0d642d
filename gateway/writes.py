"""Writes, the fences and brakes of their tasks, and withdrawals, which belong to no task.

Only writes under a task's newest token are sent. A write is `queued` until its turn, then `sending` until its answer
arrives or is lost. Raising a fence drops the writes queued under lower tokens and waits for those being sent. Because a
write calls `permit` right before its first byte, no write under a lower token is sent after `raise_to` has returned.
A brake holds a task: its bids and listings are refused for a time, whatever their token; its cancels are sent. All this
holds within one gateway; `confirm` checks that this is still the only one.

Sending a withdrawal twice is harmless, and its txid shows its outcome, so Unknown can be resolved there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import Struct

from gateway.program import Call, answers, needed
from gateway.quota import Priority
from gateway.reads.snapshots import Own
from gateway.venue import Abandoned, Toll, Venue
from markets import verbs
from markets.adapter import Adapter
from markets.base import Refused, Unavailable, Unknown
from markets.http import Permit
from markets.mempool import Mempool
from markets.verbs import text

log = logging.getLogger(__name__)


class Ticket:
    """One write in progress. `drop` cancels it while it is queued."""

    def __init__(self, token: int, drop: Callable[[], object], *, is_place: bool = False) -> None:
        self.token = token
        self.is_place = is_place
        self.sending = False
        self.refusal: Refused | None = None
        self._drop = drop

    def refuse(self, refusal: Refused) -> None:
        """Drops the write with this refusal, unless it is already being sent."""
        if not self.sending:
            self.refusal = refusal
            self._drop()


class Fences:
    """The minimum token of each task. `least_token(task)` returns it for a task not seen since the start.

    `is_the_one` returns whether this is still the only gateway. It checks outside of this process, because the machine
    may have been frozen meanwhile.
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
        self._held: dict[int, float] = {}  # task: end of its hold (monotonic)
        self._left = asyncio.Event()

    @contextmanager
    def enter(self, task: int, token: int, drop: Callable[[], object], *, is_place: bool = False) -> Iterator[Ticket]:
        """Registers a write of `task` for the block; `is_place` is True for a bid or a listing.

        Raises as `permit` does, or Unavailable if the task's minimum token cannot be read.
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
        """Raises Refused('stale_token') if `token` is below the task's minimum, Refused('held') for a bid or a listing
        of a held task. Thread-safe.
        """
        if token < self._least[task]:
            raise Refused("stale_token", f"task {task} is fenced at {self._least[task]}, not {token}")
        if is_place and self._held.get(task, 0.0) > self._clock():
            raise _held(task)

    def confirm(self) -> None:
        """Raises Unavailable unless this is certainly the only gateway. Thread-safe."""
        try:
            is_the_one = self._is_the_one()
        except Exception as error:
            log.warning("cannot find out whether another gateway has taken over: %s", error)
            raise Unavailable("failed to ask whether another gateway has taken over; nothing was sent") from error
        if not is_the_one:
            raise Unavailable("another gateway has taken over; nothing was sent")

    async def raise_to(self, task: int, token: int) -> int:
        """Refuses writes of `task` under tokens below `token`, and waits until none of them is being sent.

        Returns the task's minimum token, which is higher than `token` if a higher one was seen before.
        """
        self._least[task] = max(self._least.get(task, 0), token)

        def lower() -> list[Ticket]:
            return [each for each in self._tickets.get(task, ()) if each.token < token]

        for ticket in lower():
            ticket.refuse(Refused("stale_token", "a newer worker has taken over; nothing was sent"))
        while lower():
            self._left.clear()
            await self._left.wait()
        return self._least[task]

    async def hold(self, tasks: Collection[int], seconds: float) -> None:
        """Refuses bids and listings of `tasks` for `seconds` (0 ends the hold) and waits until none is being sent."""
        now = self._clock()
        self._held = {task: until for task, until in self._held.items() if until > now and task not in tasks}
        if not seconds:
            return
        self._held |= dict.fromkeys(tasks, now + seconds)

        def places() -> list[tuple[int, Ticket]]:
            return [(task, each) for task in tasks for each in self._tickets.get(task, ()) if each.is_place]

        for task, ticket in places():
            ticket.refuse(_held(task))
        while places():
            self._left.clear()
            await self._left.wait()

    def __len__(self) -> int:
        return sum(map(len, self._tickets.values()))

    def _look_up(self, task: int) -> int:
        try:
            return self._least_token(task)
        except Exception as error:
            log.exception("failed to look up the token of task %s", task)
            raise Unavailable(f"failed to look up the token of task {task}; nothing was sent") from error


def _held(task: int) -> Refused:
    return Refused("held", f"a brake holds task {task}; nothing was sent")


LONGEST_WAIT_MS = 10_000
Value = TypeVar("Value")


class Sender(Struct, frozen=True):
    """Sends writes to one venue. `now_ms` returns epoch milliseconds."""

    venue: Venue
    now_ms: Callable[[], int]

    async def send(
        self,
        call: Call[Any],
        priority: Priority,
        write: Callable[[Permit], Value],
        toll: Toll,
        *,
        confirm: Permit = lambda: None,
        forget: Callable[[], None] = lambda: None,
        ticket: Ticket | None = None,
    ) -> Value:
        """Waits for the write's turn and sends it, unless its deadline passes or its client disconnects first.

        `confirm` raises if the write may not be sent for another reason. `forget` drops the cached answers that it
        makes outdated. `ticket` is its ticket in `Fences`, if it has one.
        """
        deadline_ms = min(call.given("deadline_ms"), self.now_ms() + LONGEST_WAIT_MS)

        def permit() -> None:
            confirm()
            if self.now_ms() >= deadline_ms:
                raise Abandoned("its deadline passed; nothing was sent")
            if call.asker.is_gone():
                raise Abandoned("its asker is gone; nothing was sent")

        permit()
        try:
            await self.venue.turn(priority, (deadline_ms - self.now_ms()) / 1000, toll)
        except asyncio.CancelledError:
            if ticket is not None and ticket.refusal is not None:
                raise ticket.refusal from None
            raise
        # No await between the turn and these two lines, so that a fence or a disconnect sees it as queued or sending.
        if ticket is not None:
            ticket.sending = True
        call.asker.droppable = False
        verb = call.request.verb
        try:
            return await self.venue.run(verb, verb, lambda: write(permit), Unknown)
        finally:
            forget()


class Writes:
    """The writes of one marketplace. Each raises subclasses of VenueError; Unavailable means that nothing was sent."""

    def __init__(self, adapter: Adapter, own: Own, venue: Venue, fences: Fences, now_ms: Callable[[], int]) -> None:
        self._adapter = adapter
        self._own = own
        self._venue = venue
        self._fences = fences
        self._sender = Sender(venue, now_ms)

    @answers(verbs.Place)
    async def _place(self, call: Call[verbs.Place]) -> str:
        """Submits a signed bid; returns its id if the venue gives one, else null.

        Raises Refused('quota') if the key's quota is too short for its rung, Refused('clock_skew') while our clock is
        too far off.
        """
        _check_right(call)
        self._venue.permit_place(call.request.rung)
        order = call.args.order

        def place(permit: Permit) -> str | None:
            def permit_by_clock() -> None:
                self._fences.confirm()
                permit()
                self._venue.skew.permit_place()

            return self._adapter.place(order, permit_by_clock)

        return text(await self._write(call, Priority.PLACE, place, order.payment, self._own.forget_bids))

    @answers(verbs.Cancel)
    async def _cancel(self, call: Call[verbs.Cancel]) -> str:
        args, most = call.args, self._adapter.capabilities().cancels_at_once
        parts = [args.venue_ids[start : start + most] for start in range(0, len(args.venue_ids), most)]

        def cancel(some: Sequence[str], permit: Permit) -> bool:
            return self._adapter.cancel(args.wallet, some, args.signature, permit)

        return await self._cancel_each(call, parts, cancel, self._own.forget_bids)

    @answers(verbs.ListItem)
    async def _list_item(self, call: Call[verbs.ListItem]) -> str:
        """Submits a signed listing. Raises Refused('quota') if the key's quota is too short for one."""
        _check_right(call)
        self._venue.permit_listing()
        order = call.args.order

        def list_item(permit: Permit) -> None:
            def permit_confirmed() -> None:
                self._fences.confirm()
                permit()

            self._adapter.list_item(order, permit_confirmed)

        return text(await self._write(call, Priority.PLACE, list_item, order.ask.owner, self._own.forget_listings))

    @answers(verbs.Delist)
    async def _delist(self, call: Call[verbs.Delist]) -> str:
        args = call.args

        def delist(inscription: str, permit: Permit) -> bool:
            return self._adapter.delist(args.wallet, inscription, args.signature, permit)

        return await self._cancel_each(call, args.inscription_ids, delist, self._own.forget_listings)

    @answers(verbs.SubmitWithdrawal)
    async def _submit_withdrawal(self, call: Call[verbs.SubmitWithdrawal]) -> str:
        """Submits a signed draft to the venue, which completes and broadcasts it; returns the txid."""
        payment, psbt = call.args.payment, call.args.psbt

        def submit(permit: Permit) -> str:
            return self._adapter.submit_withdrawal(payment, psbt, permit)

        return text(await self._sender.send(call, Priority.CANCEL, submit, Toll("write", payment)))

    async def _cancel_each(
        self,
        call: Call[verbs.Cancel] | Call[verbs.Delist],
        parts: Sequence[Value],
        cancel: Callable[[Value, Permit], bool],
        forget: Callable[[str], None],
    ) -> str:
        """Cancels part by part; returns false if the venue reports any failure. An error stops the remaining parts."""
        _check_right(call)
        all_gone = True
        for part in parts:

            def write(permit: Permit, part: Value = part) -> bool:
                return cancel(part, permit)

            gone = await self._write(call, Priority.CANCEL, write, call.args.wallet, forget)
            all_gone = all_gone and gone
        return text(all_gone)

    async def _write(
        self,
        call: Call[Any],
        priority: Priority,
        write: Callable[[Permit], Value],
        wallet: str,
        forget: Callable[[str], None],
    ) -> Value:
        task, token, is_place = call.given("task"), call.given("token"), priority is Priority.PLACE
        work = asyncio.current_task()
        assert work is not None
        with self._fences.enter(task, token, work.cancel, is_place=is_place) as ticket:
            return await self._sender.send(
                call,
                priority,
                write,
                Toll("write", wallet),
                confirm=lambda: self._fences.permit(task, token, is_place=is_place),
                forget=lambda: forget(wallet),
                ticket=ticket,
            )


class Broadcasts:
    """Broadcasts signed transactions through `mempool`, within the call limits of `venue`."""

    def __init__(self, mempool: Mempool | None, venue: Venue, now_ms: Callable[[], int]) -> None:
        self._mempool = mempool
        self._sender = Sender(venue, now_ms)

    @answers(verbs.Broadcast)
    async def _broadcast(self, call: Call[verbs.Broadcast]) -> str:
        mempool = needed(self._mempool, "MEMPOOL_URL")

        def broadcast(permit: Permit) -> str:
            return mempool.broadcast(call.args.transaction, permit)

        return text(await self._sender.send(call, Priority.CANCEL, broadcast, Toll("write")))


def _check_right(call: Call[Any]) -> None:
    """Raises Refused('bad_request') if the request lacks its task, token or deadline."""
    for name in ("task", "token", "deadline_ms"):
        call.given(name)
