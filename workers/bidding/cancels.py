"""Cancels of bids: write down, send, and believe only what a later read shows.

Orders of dry runs are in the ledger like real ones, and unknown to any venue. They expire by the clock, and their
cancels cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from msgspec import Struct

from markets.base import AuthFailed, NotFound, Refused, VenueError
from models.database.base import unless_full
from models.ledger import orders
from models.ledger.states import CANCELLING, CLOSED, LIVE, SIGNED, SUBMITTED, UNKNOWN, Order
from strategy.reasons import FaultCode, Step
from wallet.signer_client import SignerError
from workers.context import WRITE_MS, Context, Faults, signals_held


class CancelAnswer(Enum):
    """The venue's answer to a cancel."""

    DONE = "done"
    NOT_FOUND = "not_found"  # it knows no such bid: cancelled before, expired, or sold
    FAILED = "failed"  # it refused, or its answer was lost


class _Doomed(Struct, frozen=True):
    """One bid to cancel, with its order unless it is a stray."""

    venue_id: str
    order: Order | None = None

    def __str__(self) -> str:
        if self.order is None:
            return f"a stray bid ({self.venue_id})"
        return f"{self.order.price_sats} (order {self.order.id})"

    @property
    def price_sats(self) -> int | None:
        return None if self.order is None else self.order.price_sats


def store_cancels(own: Iterable[Order], unstored: set[int], now_ms: int) -> None:
    """Moves the orders of `unstored`, whose cancel was sent, to `cancelling`, if the disk has room by now.

    Then reads and sales show how they ended, as for any other.
    """
    for order in own:
        if order.id in unstored:
            with unless_full(f"the cancel of order {order.id}"):
                if order.state in (LIVE, UNKNOWN):
                    orders.move(order, CANCELLING, now_ms)
                unstored.discard(order.id)


class Canceller:
    """Cancels bids of one wallet during one cycle; a challenge is signed once, when needed.

    `asked` are the orders (by id) whose cancel was sent, with the venue's answer. `unstored` gets those whose row has
    no room for it: see `store_cancels`.
    """

    def __init__(self, context: Context, wallet: str, faults: Faults, unstored: set[int]) -> None:
        self._context = context
        self._wallet = wallet
        self._faults = faults
        self._unstored = unstored
        self._signature = None if context.venue.cancel_needs_signature else ""
        self.asked: dict[int, CancelAnswer] = {}
        self.is_stuck = False
        self._denied: list[_Doomed] = []

    def cancel(self, doomed: Sequence[Order], strays: Sequence[str] = ()) -> None:
        """Sends cancels for these orders and for the bids of `strays` (venue ids), in this order, but those last that
        may expire before they are cancelled: in a call with others they would have the venue report a failure of all.

        As many go in one call as the venue takes. If it refuses several, or reports a failure for some without naming
        them, each is cancelled by itself. An order that is `cancelling` already is sent again: a bid that is gone
        cannot be cancelled twice. A cancel that fails or whose answer is lost leaves its order `cancelling`; the others
        go on. When the venue asks for a pause or gives no challenge, the rest is left alone: `is_stuck`.
        """
        for together in self._calls(doomed, strays):
            if not self._is_ready():
                return
            if self._ask(together) is not None:
                continue
            for ask in together:
                if not self._is_ready():
                    return
                self._ask([ask])

    def _calls(self, doomed: Sequence[Order], strays: Sequence[str]) -> list[list[_Doomed]]:
        """Returns the bids of each call."""
        soon_ms, most = self._context.clock_ms() + WRITE_MS, self._context.venue.cancels_at_once
        lasting = [_Doomed(str(order.venue_id), order) for order in doomed if order.expires_ms > soon_ms]
        lasting += [_Doomed(venue_id) for venue_id in strays]
        ending = [_Doomed(str(order.venue_id), order) for order in doomed if order.expires_ms <= soon_ms]
        return [asks[start : start + most] for asks in (lasting, ending) for start in range(0, len(asks), most)]

    def note_denied(self) -> None:
        """Notes the cancels that the venue reported as failed, after a read: bids gone by then needed none."""
        now_ms = self._context.clock_ms()
        for ask in self._denied:
            order = ask.order and Order.get_by_id(ask.order.id)
            if order is None or (order.state != CLOSED and order.expires_ms > now_ms):
                text, code = "the venue reports a failure", FaultCode.VENUE_REFUSED
                self._faults.add(
                    Step.CANCEL, f"cancel {ask}", text, backs_off=False, code=code, price_sats=ask.price_sats
                )
        self._denied.clear()

    def _is_ready(self) -> bool:
        if not self.is_stuck and self._signature is None:
            self._signature = self._signed_challenge()
        self.is_stuck = self._signature is None or self._faults.is_rate_limited
        return not self.is_stuck

    def _signed_challenge(self) -> str | None:
        context = self._context
        try:
            challenge = context.market.challenge(self._wallet)
            return context.signer.sign_challenge(context.task_id, context.token, context.secret, challenge)
        except VenueError as error:
            self._faults.add(Step.CANCEL, "get the challenge that a cancel needs", error)
        except SignerError as error:
            self._faults.add(Step.CANCEL, "sign the challenge that a cancel needs", error)
        return None

    def _ask(self, asks: list[_Doomed]) -> CancelAnswer | None:
        """Sends one call, with its orders `cancelling` before it; returns the answer of `_sent`."""
        doomed = [ask.order for ask in asks if ask.order is not None]
        with signals_held():
            for order in doomed:
                if order.state != CANCELLING:
                    # A full disk keeps no cancel from being sent.
                    self._unstored.add(order.id)
                    store_cancels([order], self._unstored, self._context.clock_ms())
                self._context.crash("after_cancelling")
            answer = self._sent(asks)
            self.asked.update((order.id, answer or CancelAnswer.FAILED) for order in doomed)
        self._context.crash("after_cancel")
        return answer

    def _sent(self, asks: list[_Doomed]) -> CancelAnswer | None:
        """Sends one cancel; returns the venue's answer, None when it refused several without naming one."""
        context, failed_to = self._context, f"cancel {', '.join(map(str, asks))}"
        try:
            is_done = context.market.cancel(
                self._wallet,
                [ask.venue_id for ask in asks],
                self._signature or "",
                task=context.task_id,
                token=context.token,
                deadline_ms=context.clock_ms() + WRITE_MS,
            )
        except VenueError as error:
            is_refused = isinstance(error, Refused)
            if is_refused and len(asks) > 1 and not isinstance(error, AuthFailed):
                return None
            if isinstance(error, NotFound):
                return CancelAnswer.NOT_FOUND
            price = asks[0].price_sats if len(asks) == 1 else None
            self._faults.add_write(Step.CANCEL, failed_to, error, backs_off=not is_refused, price_sats=price)
            return CancelAnswer.FAILED
        if is_done:
            self._faults.has_accepted_write = True
            return CancelAnswer.DONE
        if len(asks) > 1:
            return None
        self._denied += asks
        return CancelAnswer.FAILED


def place_on_paper(order: Order, clock_ms: Callable[[], int]) -> None:
    """Takes a reserved order to `live`, as a venue that accepts it would."""
    orders.move(order, SIGNED, clock_ms())
    orders.move(order, SUBMITTED, clock_ms())
    orders.move(order, LIVE, clock_ms(), venue_id=f"dry-{order.id}")


def cancel_on_paper(doomed: Iterable[Order], clock_ms: Callable[[], int]) -> None:
    """Cancels live orders, which cannot fail."""
    for order in doomed:
        orders.move(order, CANCELLING, clock_ms())
        orders.move(order, CLOSED, clock_ms(), reason="cancelled")


def settle_on_paper(task_id: int, clock_ms: Callable[[], int], *, is_dry: bool) -> None:
    """Ends orders that expired by the clock, or that a dead worker left half-way.

    With `is_dry` False the task has become a real one: all of them end.
    """
    for order in orders.open_orders(task_id):
        if not order.dry_run:
            continue
        if order.state == CANCELLING:
            orders.move(order, CLOSED, clock_ms(), reason="cancelled")
        elif order.state != LIVE:
            orders.move(order, CLOSED, clock_ms(), reason="refused")
        elif order.expires_ms <= clock_ms():
            orders.move(order, CLOSED, clock_ms(), reason="expired")
        elif not is_dry:
            cancel_on_paper([order], clock_ms)
