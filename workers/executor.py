"""Carries a decision out: cancels first, one look whether they worked, then places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from models import orders
from models.orders import Order
from strategy.bidding import PlaceIntent
from workers.cancels import Canceller
from workers.context import Context
from workers.crashpoints import crashpoint
from workers.faults import Faults
from workers.own_bids import Found, read_own_bids, settle
from workers.places import Fate, Placer, Terms, Try


@dataclass(frozen=True, slots=True)
class Done:
    """What was carried out: orders whose cancel is confirmed, and every bid that was to be placed."""

    cancelled: tuple[Order, ...]
    tries: tuple[Try, ...]


class Executor:
    """Carries out decisions of one task. `new_intent` gives 32 hex digits, never the same again."""

    def __init__(
        self, context: Context, new_intent: Callable[[], str], crash: Callable[[str], None] = crashpoint
    ) -> None:
        self._context = context
        self._new_intent = new_intent
        self._crash = crash

    def carry_out(
        self,
        wallet: str,
        doomed: Sequence[Order],
        to_place: Sequence[PlaceIntent],
        found: Found,
        terms_for: Callable[[Found], Terms],
        faults: Faults,
    ) -> Done:
        """Cancels `doomed` and the strays of `found`, then places, each in the order given.

        `terms_for` says on what terms to place, given what else is at the venue. Nothing is placed when the cancels
        could not be sent, when no read says what became of them, or while a stray is still there. A cancel that
        merely failed stops nothing: its order counts, and each new bid is reserved against the limits.
        """
        canceller = Canceller(self._context, wallet, faults, self._crash)
        canceller.cancel(doomed, [bid.venue_id for bid in found.strays])
        left: Found | None = found
        if doomed or found.strays:
            left = None if canceller.is_stuck else self._look_again(wallet, canceller, faults)
        if left is None or left.strays:
            tries = [Try(intent, Fate.PUT_OFF) for intent in to_place]
        else:
            tries = Placer(self._context, terms_for(left), faults, self._new_intent, self._crash).place(to_place)
        return Done(_closed(doomed, canceller), tuple(tries))

    def _look_again(self, wallet: str, canceller: Canceller, faults: Faults) -> Found | None:
        read = read_own_bids(self._context, wallet, 0, faults)
        if read is None:
            return None
        return settle(self._context.task_id, wallet, read, self._context.clock_ms(), canceller.asked)


def _closed(doomed: Sequence[Order], canceller: Canceller) -> tuple[Order, ...]:
    open_ids = {order.id for order in orders.open_orders(doomed[0].task_id)} if doomed else set()
    return tuple(order for order in doomed if order.id in canceller.asked and order.id not in open_ids)
