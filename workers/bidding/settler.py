"""The reconciliation of ledger and venue, as often as one cycle asks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from markets.base import VenueError
from models.base import unless_full
from models.ledger import orders
from models.ledger.order_table import RESERVED
from strategy.bid_config import canonical_slug
from strategy.fault_codes import Step
from workers.bidding import dry_run
from workers.bidding.cancels import CancelAnswer, store_cancels
from workers.bidding.fills import Explainer
from workers.bidding.moment import BiddingMoment, Found
from workers.bidding.own_bids import needs_fresh_read, read_own_bids, settle, settle_reserved

GHOST_MS = 120_000  # and a loop: for how long a book may show a bid of ours that the read before did not show
# After a quiet cycle our own bids may be this old, in loops and at most in seconds: the ones of the cycle before, not
# of the one before that, and only where cycles are frequent.
QUIET_LOOPS, QUIET_S = 1.5, 90.0


def settle_at_first(moment: BiddingMoment) -> None:
    """Reconciles ledger and venue as a cycle begins; `found` stays None when our own bids could not be read."""
    context, state, config = moment.context, moment.state, moment.config
    task_id = context.task_id
    own = orders.open_orders(task_id)
    if any(order.dry_run for order in own):
        with unless_full("an order of a dry run"):
            dry_run.settle(task_id, context.clock_ms, is_dry=config.dry_run)
    store_cancels(own, state.unstored, context.clock_ms())
    if any(order.state == RESERVED for order in own):
        settle_reserved(context, moment.faults)
    own = [order for order in own if not order.dry_run]
    moment.settled_ms = context.clock_ms()
    if config.dry_run and not own:
        moment.found = Found()  # nothing of ours is at the venue for this task to look after
    elif not state.has_read or needs_fresh_read(own, context.clock_ms()):
        moment.found = settle_again(moment, 0.0)
    elif moment.is_braked or not state.is_quiet:
        moment.found = settle_again(moment, moment.max_age_s)
    else:
        # The read of the cycle before is enough. A fill is then seen a cycle later, which does no harm: a bid that was
        # filled unseen counts in full, against maxFills, spendCapSats and every limit, until a read closes it. Before
        # anything is placed or cancelled our bids are read anew, so the pause after a fill holds, too.
        moment.found = settle_again(moment, max(config.loop_s / 2, min(QUIET_LOOPS * config.loop_s, QUIET_S)))
        half_a_loop_ms = config.loop_s * 500
        moment.is_reused = moment.found is not None and context.clock_ms() - state.read_ms > half_a_loop_ms


def settle_again(
    moment: BiddingMoment, max_age_s: float, cancels: dict[int, CancelAnswer] | None = None
) -> Found | None:
    """Reconciles by one more read; `cancels` are the orders (by id) whose cancel was sent a moment ago."""
    context, state, faults, wallet = moment.context, moment.state, moment.faults, moment.keys.payment
    read = read_own_bids(context, wallet, moment.config.slug, max_age_s, faults)
    if read is None:
        return None
    state.has_read = True
    _note_seen(moment, [*(bid.venue_id for bid in read.bids), *filter(None, read.unread)])
    state.read_ms = read.taken_ms
    cover = partial(_cover, moment)
    explainer = Explainer(context.market, moment.addresses, context.task_id, faults, cover, state.partly)
    found = settle(context, wallet, read, cancels, explainer)
    for order, shown in found.repriced:
        text = f"the market shows a bid of {shown} where {order.price_sats} was asked for (order {order.id})"
        faults.add(Step.CHECK_PLACED, "read back what was placed", text, backs_off=False)
    state.partly = found.partly_after(state.partly)
    moment.unread_sales = max(moment.unread_sales, explainer.unread)
    moment.sales = explainer.told(canonical_slug(moment.config.type, moment.config.slug)) or moment.sales
    return found


def _note_seen(moment: BiddingMoment, venue_ids: Iterable[str]) -> None:
    now_ms, state = moment.context.clock_ms(), moment.state
    gone_ms = state.read_ms - moment.config.loop_s * 1000 - GHOST_MS
    state.bids_seen = {venue_id: seen_ms for venue_id, seen_ms in state.bids_seen.items() if seen_ms > gone_ms}
    state.bids_seen.update(dict.fromkeys(venue_ids, now_ms))


def _cover(moment: BiddingMoment) -> int | None:
    """Returns the dearest bid (sats) that the bidding wallet covers at this moment."""
    keys, faults = moment.keys, moment.faults
    try:
        balance = moment.context.market.balance(keys.payment, moment.user.ordinals_address, keys.payment_pubkey, 0)
    except VenueError as error:
        faults.add(Step.READ_BALANCE, "read the balance", error)
        return None
    return balance.sats - (moment.state.looker.fee_reserve(moment.config.fee_rate, faults) or 0)
