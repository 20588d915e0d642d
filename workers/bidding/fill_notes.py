"""Notes on a task's fills at the cycle that learns of them: the reference price of the moment, and the network's fee.

The fee is the fall of the balance beyond the price. It is noted only if nothing else can have moved the balance between
two readings as far as anybody knows here: one bid was filled, no coins were on their way out, and the rest of the fall
has a fee's size. Otherwise it stays unknown.
"""

from __future__ import annotations

from decimal import Decimal

from markets.base import Balance, VenueError
from models.ledger import fills, orders, withdrawals
from models.ledger.states import Order
from strategy.bid_config import is_on
from strategy.fault_codes import Step
from workers.bidding.inputs import CycleInputs
from workers.bidding.report import BiddingOutcome

CLOCKS_MS = 2_000  # between a balance and a sale; a fee is not noted where clocks are further apart
KEPT_BALANCES = 10  # readings; a fill is learnt of within a few cycles
# No purchase costs more than the larger of these; a fall beyond it has another reason as well.
MOST_FEE_SATS, MOST_RESERVES = 2_000, 4


def note_fills(inputs: CycleInputs, outcome: BiddingOutcome) -> None:
    """Writes the notes on the fills of this cycle, and remembers the balance for the next."""
    for order in outcome.filled:
        orders.note_fill(order, _floor(inputs, outcome, order), _network_fee(inputs, outcome, order))
    seen = outcome.done.last.seen
    if seen.balance_sats is not None and seen.balance_ms is not None:
        _remember(inputs, seen.balance_ms, seen.balance_sats)


def _floor(inputs: CycleInputs, outcome: BiddingOutcome, order: Order) -> Decimal | None:
    config = inputs.config
    is_same = is_on(config, order.slug) and order.trait == config.trait
    return outcome.done.last.plan.raw_reference if is_same else None


def _network_fee(inputs: CycleInputs, outcome: BiddingOutcome, order: Order) -> int | None:
    if inputs.profile.balance_model != "per_bid" or order.filled_ms is None:
        return None
    before = [(at_ms, sats) for at_ms, sats in inputs.state.balances if at_ms + CLOCKS_MS <= order.filled_ms]
    if not before:
        return None
    before_ms, before_sats = max(before)
    since_ms = before_ms - CLOCKS_MS
    is_alone = fills.count_of_wallet(order.user_id, order.wallet, since_ms) == 1
    if not is_alone or withdrawals.any_since(order.user_id, since_ms):
        return None
    after = _balance(inputs)
    if after is None:
        return None
    _remember(inputs, after.taken_ms, after.sats)
    fee_sats = before_sats - after.sats - order.spent_sats
    most = max(MOST_FEE_SATS, MOST_RESERVES * (outcome.done.last.seen.fee_reserve_sats or 0))
    return fee_sats if 0 <= fee_sats <= most else None


def _balance(inputs: CycleInputs) -> Balance | None:
    keys, receive = inputs.keys, inputs.assignment.user.ordinals_address
    try:
        return inputs.context.market.balance(keys.payment, receive, keys.payment_pubkey, 0)
    except VenueError as error:
        inputs.faults.add(Step.READ_FEES, "read what the fill cost in fees", error, backs_off=False)
        return None


def _remember(inputs: CycleInputs, at_ms: int, sats: int) -> None:
    readings = {*inputs.state.balances, (at_ms, sats)}
    inputs.state.balances = tuple(sorted(readings)[-KEPT_BALANCES:])
