"""Fill notes."""

from __future__ import annotations

from decimal import Decimal

from markets.base import Balance, VenueError
from models.ledger import fills, orders, withdrawals
from models.ledger.states import Order
from strategy.config.bid import is_on
from strategy.reasons import Step
from workers.bidding.moment import BiddingMoment

BALANCE_CLOCKS_MS = 2_000  # between a balance and a sale; a fee is not noted where clocks are further apart


KEPT_BALANCES = 10  # readings; a fill is learnt of within a few cycles


# No purchase costs more than the larger of these; a fall beyond it has another reason as well.
MOST_FEE_SATS, MOST_RESERVES = 2_000, 4


def note_fills(moment: BiddingMoment) -> None:
    """Writes the notes on the fills of this cycle, and remembers the balance for the next."""
    for order in moment.filled:
        orders.note_fill(order, _floor(moment, order), _network_fee(moment, order))
    seen = moment.last.seen
    if seen.balance_sats is not None and seen.balance_ms is not None:
        _remember(moment, seen.balance_ms, seen.balance_sats)


def _floor(moment: BiddingMoment, order: Order) -> Decimal | None:
    config = moment.config
    is_same = is_on(config, order.slug) and order.trait == config.trait
    return moment.last.plan.raw_reference if is_same else None


def _network_fee(moment: BiddingMoment, order: Order) -> int | None:
    if moment.profile.balance_model != "per_bid" or order.filled_ms is None:
        return None
    before = [(at_ms, sats) for at_ms, sats in moment.state.balances if at_ms + BALANCE_CLOCKS_MS <= order.filled_ms]
    if not before:
        return None
    before_ms, before_sats = max(before)
    since_ms = before_ms - BALANCE_CLOCKS_MS
    is_alone = fills.count_of_wallet(order.user_id, order.wallet, since_ms) == 1
    if not is_alone or withdrawals.any_since(order.user_id, since_ms):
        return None
    after = _balance(moment)
    if after is None:
        return None
    _remember(moment, after.taken_ms, after.sats)
    fee_sats = before_sats - after.sats - order.spent_sats
    most = max(MOST_FEE_SATS, MOST_RESERVES * (moment.last.seen.fee_reserve_sats or 0))
    return fee_sats if 0 <= fee_sats <= most else None


def _balance(moment: BiddingMoment) -> Balance | None:
    keys, receive = moment.keys, moment.user.ordinals_address
    try:
        return moment.context.market.balance(keys.payment, receive, keys.payment_pubkey, 0)
    except VenueError as error:
        moment.faults.add(Step.READ_FEES, "read what the fill cost in fees", error, backs_off=False)
        return None


def _remember(moment: BiddingMoment, at_ms: int, sats: int) -> None:
    readings = {*moment.state.balances, (at_ms, sats)}
    moment.state.balances = tuple(sorted(readings)[-KEPT_BALANCES:])
