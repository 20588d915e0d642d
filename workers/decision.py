"""What a cycle decided, and on what: one look at the market and the plan that was made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markets.look import Seen
from models.orders import CANCELLING, LIVE, Order
from strategy.bidding import Plan
from strategy.entry import Entry

# A bid is signed within this time of the reading of the book that it hangs on, or looked at again. What a book says is
# the market's word for that moment only: a floor that fell since makes of a bid below it one above it.
SIGN_WITHIN_MS = 12_000
CLOCK_SLACK_MS = 1_000  # a book from further in the future than this was read before the clock was set back


@dataclass(frozen=True, slots=True)
class Decision:
    """`entry` are the inputs, `own` the ledger's open orders behind them and others that the plan does not judge.

    `overruled` are orders that the strategy cannot judge, with the worker's own reason to cancel each. `is_blind`: our
    own bids could not be read.
    """

    entry: Entry
    plan: Plan
    seen: Seen
    own: tuple[Order, ...]
    overruled: Mapping[int, str]
    is_blind: bool = False

    def is_fresh(self, now_ms: int) -> bool:
        """Whether a bid that this decision asks for may be signed now."""
        snapshot = self.seen.snapshot
        # Without a book a fixed range hangs on nothing but the config; then the decision's own age counts.
        taken_ms = self.entry.now_ms if snapshot is None else snapshot.taken_ms
        return -CLOCK_SLACK_MS <= now_ms - taken_ms < SIGN_WITHIN_MS

    @property
    def doomed(self) -> list[Order]:
        """The orders to cancel: hard cancels first, highest price first. One that no read has shown has no id yet."""
        return [*self.hard, *self.soft]

    @property
    def hard(self) -> list[Order]:
        """The orders that must go, highest price first."""
        ids = {cancel.order_id for cancel in self.plan.to_cancel if cancel.hard} | self.overruled.keys()
        # While nobody can tell whether a cancel has worked, it is sent again.
        again = {order.id for order in self.own if order.state == CANCELLING} if self.is_blind else set()
        found = (o for o in self.own if o.id in again or (o.id in ids and o.state == LIVE))
        return _highest_first(order for order in found if order.venue_id)

    @property
    def soft(self) -> list[Order]:
        """The orders that make way, highest price first."""
        ids = {cancel.order_id for cancel in self.plan.to_cancel if not cancel.hard} - self.overruled.keys()
        return _highest_first(o for o in self.own if o.id in ids and o.state == LIVE and o.venue_id)

    @property
    def wants_anything(self) -> bool:
        """Whether there is something to carry out."""
        return bool(self.plan.to_place or self.doomed)

    @property
    def wants_cancels(self) -> bool:
        """Whether something has to go before anything may come."""
        return bool(self.plan.to_cancel) or any(
            order.id in self.overruled and order.state == LIVE for order in self.own
        )


def _highest_first(found: Iterable[Order]) -> list[Order]:
    return sorted(found, key=lambda order: (-order.price_sats, order.id))
