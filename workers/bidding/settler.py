"""The reconciliation of ledger and venue, as often as one cycle asks."""

from __future__ import annotations

from collections.abc import Iterable

from markets.base import VenueError
from models.database.base import unless_full
from models.ledger import orders
from models.ledger.states import RESERVED
from strategy.bid_config import canonical_slug
from strategy.entry import SaleIntoBid
from strategy.fault_codes import Step
from workers.bidding import dry_run
from workers.bidding.cancels import CancelAnswer, store_cancels
from workers.bidding.fills import Explainer
from workers.bidding.inputs import CycleInputs
from workers.bidding.own_bids import Found, needs_fresh_read, read_own_bids, settle, settle_reserved

GHOST_MS = 120_000  # and a loop: for how long a book may show a bid of ours that the read before did not show
# After a quiet cycle our own bids may be this old, in loops and at most in seconds: the ones of the cycle before, not
# of the one before that, and only where cycles are frequent.
QUIET_LOOPS, QUIET_S = 1.5, 90.0


class Settler:
    """The reader of our own bids, which settles the ledger by them, for one cycle.

    `settled_ms` is when `settle` began. `is_reused`: its read of our own bids is that of the cycle before. `sales` were
    read to explain vanished bids, None when none were asked for; `unread_sales` were left out of them.
    """

    def __init__(self, inputs: CycleInputs) -> None:
        self._inputs = inputs
        self._context = inputs.context
        self._config = inputs.config
        self._state = inputs.state
        self.settled_ms = 0
        self.is_reused = False
        self.sales: tuple[SaleIntoBid, ...] | None = None
        self.unread_sales = 0

    def settle(self) -> Found | None:
        """Reconciles ledger and venue as a cycle begins; returns None when our own bids could not be read."""
        context, task_id = self._context, self._context.task_id
        own = orders.open_orders(task_id)
        if any(order.dry_run for order in own):
            with unless_full("an order of a dry run"):
                dry_run.settle(task_id, context.clock_ms, is_dry=self._config.dry_run)
        store_cancels(own, self._state.unstored, context.clock_ms())
        if any(order.state == RESERVED for order in own):
            settle_reserved(context, self._inputs.faults)
        own = [order for order in own if not order.dry_run]
        self.settled_ms = context.clock_ms()
        if self._config.dry_run and not own:
            return Found()  # nothing of ours is at the venue for this task to look after
        if not self._state.has_read or needs_fresh_read(own, context.clock_ms()):
            return self.read(0.0)
        loop_s = self._config.loop_s
        if self._inputs.is_braked or not self._state.is_quiet:
            return self.read(self._inputs.max_age_s)
        # The read of the cycle before is enough. A fill is then seen a cycle later, which does no harm: a bid that was
        # filled unseen counts in full, against maxFills, spendCapSats and every limit, until a read closes it. Before
        # anything is placed or cancelled our bids are read anew, so the pause after a fill holds, too.
        found = self.read(max(loop_s / 2, min(QUIET_LOOPS * loop_s, QUIET_S)))
        half_a_loop_ms = loop_s * 500
        self.is_reused = found is not None and context.clock_ms() - self._state.read_ms > half_a_loop_ms
        return found

    def read(self, max_age_s: float, cancels: dict[int, CancelAnswer] | None = None) -> Found | None:
        """Reconciles after one more read; `cancels` are the orders (by id) whose cancel was sent a moment ago."""
        context, state, faults, wallet = self._context, self._state, self._inputs.faults, self._inputs.keys.payment
        read = read_own_bids(context, wallet, self._config.slug, max_age_s, faults)
        if read is None:
            return None
        state.has_read = True
        self._note_seen([*(bid.venue_id for bid in read.bids), *filter(None, read.unread)])
        state.read_ms = read.taken_ms
        explainer = Explainer(
            context.market, self._inputs.addresses, context.task_id, faults, self._cover, state.partly
        )
        found = settle(context, wallet, read, cancels, explainer)
        for order, shown in found.repriced:
            text = f"the market shows a bid of {shown} where {order.price_sats} was asked for (order {order.id})"
            faults.add(Step.CHECK_PLACED, "read back what was placed", text, backs_off=False)
        state.partly = found.partly_after(state.partly)
        self.unread_sales = max(self.unread_sales, explainer.unread)
        self.sales = explainer.told(canonical_slug(self._config.type, self._config.slug)) or self.sales
        return found

    def _note_seen(self, venue_ids: Iterable[str]) -> None:
        now_ms, state = self._context.clock_ms(), self._state
        gone_ms = state.read_ms - self._config.loop_s * 1000 - GHOST_MS
        state.bids_seen = {venue_id: seen_ms for venue_id, seen_ms in state.bids_seen.items() if seen_ms > gone_ms}
        state.bids_seen.update(dict.fromkeys(venue_ids, now_ms))

    def _cover(self) -> int | None:
        """Returns the dearest bid (sats) that the bidding wallet covers at this moment."""
        keys, faults, receive = self._inputs.keys, self._inputs.faults, self._inputs.assignment.user.ordinals_address
        try:
            balance = self._context.market.balance(keys.payment, receive, keys.payment_pubkey, 0)
        except VenueError as error:
            faults.add(Step.READ_BALANCE, "read the balance", error)
            return None
        return balance.sats - (self._state.looker.fee_reserve(self._config.fee_rate, faults) or 0)
