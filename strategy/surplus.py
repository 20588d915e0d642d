"""What becomes of live bids that stand for no rung."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from strategy.config import BidConfig
from strategy.exposure import Budget
from strategy.intents import OwnOrder, Rules
from strategy.ladder import Range
from strategy.reasons import Reason
from strategy.renewal import is_due


@dataclass(frozen=True, slots=True)
class Verdict:
    """Cancel this order or leave it, and why."""

    order: OwnOrder
    is_cancelled: bool
    hard: bool
    reason: Reason


def over_limits(orders: list[OwnOrder], held_sats: int, budget: Budget) -> list[Verdict]:
    """Hard cancels from the front of `orders` until what is held (`held_sats`, `orders` included) fits the limits."""
    verdicts: list[Verdict] = []
    for order in orders:
        reason = budget.over_limit(held_sats)
        if reason is None:
            break
        verdicts.append(Verdict(order, True, True, reason))
        held_sats -= order.price_sats
    return verdicts


def over_count(orders: list[OwnOrder], others: list[OwnOrder], excess: int) -> list[Verdict]:
    """Hard cancels of `excess` of these orders: duplicates of another own bid first, then the highest.

    `orders` come highest and oldest first; of equal ones the youngest goes.
    """
    left = list(orders)
    prices = Counter(order.price_sats for order in (*orders, *others))
    verdicts: list[Verdict] = []
    while excess > len(verdicts) and left:
        twin = next((order for order in reversed(left) if prices[order.price_sats] > 1), None)
        order = twin or left[0]
        verdicts.append(Verdict(order, True, True, Reason.DUPLICATE if twin else Reason.OVER_COUNT))
        left.remove(order)
        prices[order.price_sats] -= 1
    return verdicts


def settle(
    order: OwnOrder,
    config: BidConfig,
    allowed: Range,
    rules: Rules,
    now_ms: int,
    *,
    slot_is_wanted: bool,
    refused: Reason | None,
) -> Verdict:
    """What becomes of one surplus bid that breaks no hard rule.

    `slot_is_wanted`: a missing rung waits for its slot. `refused`: why the rung it stood for no longer gets a bid.
    """
    if not config.update_bid_enabled and allowed.low <= order.price_sats:
        return Verdict(order, False, False, Reason.UPDATE_OFF)
    if is_due(order, config, now_ms):
        if not slot_is_wanted:
            return Verdict(order, False, False, Reason.EXPIRING)
    elif now_ms - order.created_ms < rules.min_age_ms:
        return Verdict(order, False, False, Reason.MIN_AGE)
    if refused is None and order.price_sats < allowed.low:
        return Verdict(order, True, False, Reason.BELOW_RANGE)
    return Verdict(order, True, False, refused or Reason.SURPLUS)
