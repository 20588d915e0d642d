"""Writes to a venue. Task, token, deadline and client are checked again right before the first byte."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec import UnsetType

from gateway.limits.call_budget import Priority
from gateway.limits.fence import Fences, Ticket
from gateway.limits.windows import Toll
from gateway.reads.market_reads import MarketReads
from gateway.venue import Abandoned, Venue
from markets.adapter import Adapter
from markets.base import BidOrder, Refused, Unknown
from markets.http import Permit
from markets.listings import ListingOrder
from markets.verbs import Request

LONGEST_WAIT_MS = 10_000
Value = TypeVar("Value")


class Asker:
    """The client of a request: is it still there, and the work done for it."""

    def __init__(self, connection: socket.socket | None) -> None:
        self._connection = connection
        self._left = False
        self.work: asyncio.Future[str] | None = None
        self.droppable = True

    def leave(self) -> None:
        """Ends work that has not reached the wire, since the client has closed its connection."""
        self._left = True
        if self.droppable and self.work is not None:
            self.work.cancel()

    def is_gone(self) -> bool:
        """Tells whether the client has left. Safe in any thread; looks at the socket itself."""
        if self._left or self._connection is None:
            return self._left
        seen = select.poll()
        try:
            seen.register(self._connection, select.POLLRDHUP)
            return bool(seen.poll(0))
        except (OSError, ValueError):  # it is closed
            return True


@dataclass(frozen=True, slots=True)
class Fencing:
    """The right under which a write goes out: `deadline_ms` is epoch milliseconds.

    `rung` is a bid's place in its ladder: where the key's quota runs short, the lowest rungs (0 is the top) wait
    first.
    """

    task: int
    token: int
    deadline_ms: int
    rung: int = 0

    @classmethod
    def of(cls, request: Request) -> Fencing:
        """Reads the right of a request. Raises Refused('bad_request') where it has none."""
        task, token = given(request.task, "task"), given(request.token, "token")
        return cls(task, token, given(request.deadline_ms, "deadline_ms"), request.rung)


def given(value: int | UnsetType, name: str) -> int:
    """Returns a number that a request must have. Raises Refused('bad_request')."""
    if isinstance(value, UnsetType):
        raise Refused("bad_request", f"{name} is missing")
    return value


class Writes:
    """The writes of one marketplace. Each raises VenueError leaves; Unavailable means that nothing was sent."""

    def __init__(
        self, adapter: Adapter, reads: MarketReads, venue: Venue, fences: Fences, now_ms: Callable[[], int]
    ) -> None:
        self._adapter = adapter
        self._reads = reads
        self._venue = venue
        self._fences = fences
        self._now_ms = now_ms

    async def place(self, order: BidOrder, fencing: Fencing, asker: Asker) -> str | None:
        """Submits a signed bid; returns its id where the venue gives one.

        Raises Refused('quota') where the key's quota is too short for its rung, Refused('clock_skew') while our clock
        is too far off.
        """
        self._venue.permit_place(fencing.rung)

        def call(permit: Permit) -> str | None:
            def permit_by_clock() -> None:
                self._fences.confirm()
                permit()
                self._venue.skew.permit_place()

            return self._adapter.place(order, permit_by_clock)

        wallet = order.payment
        return await self._write("place", Priority.PLACE, call, wallet, self._bids_of(wallet), fencing, asker)

    async def cancel(
        self, wallet: str, venue_ids: Sequence[str], signature: str, fencing: Fencing, asker: Asker
    ) -> bool:
        """Cancels bids, as many at once as the venue takes; False when it reports a failure of any.

        An error stops it early.
        """

        all_gone = True
        most = self._adapter.capabilities().cancels_at_once
        for start in range(0, len(venue_ids), most):

            def call(permit: Permit, some: Sequence[str] = venue_ids[start : start + most]) -> bool:
                return self._adapter.cancel(wallet, some, signature, permit)

            forget = self._bids_of(wallet)
            gone = await self._write("cancel", Priority.CANCEL, call, wallet, forget, fencing, asker)
            all_gone = all_gone and gone
        return all_gone

    async def list_item(self, order: ListingOrder, fencing: Fencing, asker: Asker) -> None:
        """Submits a signed listing. Raises Refused('quota') where the key's quota is too short for one."""
        self._venue.permit_listing()

        def call(permit: Permit) -> None:
            def permit_to_the_one() -> None:
                self._fences.confirm()
                permit()

            self._adapter.list_item(order, permit_to_the_one)

        wallet = order.ask.owner
        await self._write("list_item", Priority.PLACE, call, wallet, self._listings_of(wallet), fencing, asker)

    async def delist(
        self, wallet: str, inscriptions: Sequence[str], signature: str, fencing: Fencing, asker: Asker
    ) -> bool:
        """Cancels listings one by one; False when the venue reports a failure of any. An error ends it early."""
        all_gone = True
        for inscription in inscriptions:

            def call(permit: Permit, inscription: str = inscription) -> bool:
                return self._adapter.delist(wallet, inscription, signature, permit)

            forget = self._listings_of(wallet)
            gone = await self._write("delist", Priority.CANCEL, call, wallet, forget, fencing, asker)
            all_gone = all_gone and gone
        return all_gone

    def _bids_of(self, wallet: str) -> Callable[[], None]:
        return lambda: self._reads.forget_own_bids(wallet)

    def _listings_of(self, wallet: str) -> Callable[[], None]:
        return lambda: self._reads.forget_own_listings(wallet)

    async def _write(
        self,
        verb: str,
        priority: Priority,
        call: Callable[[Permit], Value],
        wallet: str,
        forget: Callable[[], None],
        fencing: Fencing,
        asker: Asker,
    ) -> Value:
        deadline_ms = min(fencing.deadline_ms, self._now_ms() + LONGEST_WAIT_MS)

        is_place = priority is Priority.PLACE

        def permit() -> None:
            self._fences.permit(fencing.task, fencing.token, is_place=is_place)
            if self._now_ms() >= deadline_ms:
                raise Abandoned("its deadline passed; nothing was sent")
            if asker.is_gone():
                raise Abandoned("its asker is gone; nothing was sent")

        work = asyncio.current_task()
        assert work is not None
        with self._fences.enter(fencing.task, fencing.token, work.cancel, is_place=is_place) as ticket:
            permit()
            toll = Toll("write", wallet)
            await self._turn(priority, toll, ticket, asker, (deadline_ms - self._now_ms()) / 1000)
            try:
                return await self._venue.run(verb, verb, lambda: call(permit), Unknown)
            finally:
                forget()

    async def _turn(self, priority: Priority, toll: Toll, ticket: Ticket, asker: Asker, wait_s: float) -> None:
        try:
            await self._venue.turn(priority, wait_s, toll)
        except asyncio.CancelledError:
            if ticket.refusal is not None:
                raise ticket.refusal from None
            raise
        # No await between the turn and these two: a fence or a leaving client finds it either queued or sending.
        ticket.sending = True
        asker.droppable = False
