"""A cycle's decision and its basis: one look at the market and the plan made of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from markets.look import MarketLook
from models.ledger.states import CANCELLING, LIVE, Order
from strategy.entry import Entry
from strategy.plan import BidPlan
from strategy.ranking import highest_first
from strategy.reasons import Reason

# A bid is signed within this time of reading the book that it depends on, or the market is looked at again. A book
# holds for its moment only: when the floor falls, a bid below the old one may be above the new one.
SIGN_WITHIN_MS = 12_000
CLOCK_SLACK_MS = 1_000  # a book from further in the future than this was read before the clock was set back
_FORCED = (Reason.ABOVE_RANGE, Reason.AT_ASK)


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. `entry` are its inputs, `own` the ledger's open orders behind them and those the plan does not
    judge.

    `overruled` are orders that the strategy cannot judge, with the worker's own reason to cancel each. `is_blind`: our
    own bids could not be read, or not all of them.
    """

    entry: Entry
    plan: BidPlan
    seen: MarketLook
    own: tuple[Order, ...]
    overruled: Mapping[int, str]
    is_blind: bool = False
    _live: frozenset[int] = field(init=False)  # those of `own` that could be cancelled at the time of the decision

    def __post_init__(self) -> None:
        object.__setattr__(self, "_live", frozenset(o.id for o in self.own if o.state == LIVE and o.venue_id))

    def is_fresh(self, now_ms: int) -> bool:
        """Tells whether a bid of this decision may be signed now."""
        snapshot = self.seen.snapshot
        # Without a book a fixed range depends on the config only; then the decision's own age counts.
        taken_ms = self.entry.now_ms if snapshot is None else snapshot.taken_ms
        return -CLOCK_SLACK_MS <= now_ms - taken_ms < SIGN_WITHIN_MS

    @property
    def doomed(self) -> list[Order]:
        """The orders to cancel: hard cancels first, highest price first.

        Orders without a venue id cannot be cancelled and are left out.
        """
        return [*self.hard, *self.soft, *self.waiting.values()]

    @property
    def hard(self) -> list[Order]:
        """The orders that must go, highest price first."""
        ids = {cancel.order_id for cancel in self.plan.to_cancel if cancel.hard} | self.overruled.keys()
        # While a cancel's success is unknown, it is sent again.
        again = [o for o in self.own if o.state == CANCELLING and o.id not in self._live and o.venue_id]
        return highest_first([*self._of(ids), *(again if self.is_blind else ())])

    @property
    def forced(self) -> list[Order]:
        """The orders that must go since the range, or the lowest ask of others, has fallen below them."""
        return self._of({cancel.order_id for cancel in self.plan.to_cancel if cancel.hard and cancel.reason in _FORCED})

    @property
    def soft(self) -> list[Order]:
        """The orders that go before any bid comes, highest price first."""
        ids = {cancel.order_id for cancel in self.plan.to_cancel if not cancel.hard and cancel.after_rung is None}
        return highest_first(self._of(ids - self.overruled.keys()))

    @property
    def waiting(self) -> dict[int, Order]:
        """The orders that go once their successor was accepted, by its rung."""
        rungs = {cancel.order_id: cancel.after_rung for cancel in self.plan.to_cancel if cancel.after_rung is not None}
        return {rungs[order.id]: order for order in self._of(rungs.keys() - self.overruled.keys())}

    @property
    def wants_anything(self) -> bool:
        """Whether there is something to carry out."""
        return bool(self.plan.to_place or self.doomed)

    @property
    def wants_cancels(self) -> bool:
        """Whether an order must go before a bid may come."""
        at_once = any(cancel.after_rung is None for cancel in self.plan.to_cancel)
        return at_once or any(order.id in self.overruled and order.state == LIVE for order in self.own)

    def _of(self, ids: Collection[int]) -> list[Order]:
        return [order for order in self.own if order.id in ids and order.id in self._live]
