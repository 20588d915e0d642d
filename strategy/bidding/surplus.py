"""The fate of live bids that hold no rung."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from strategy.bidding.plan_builder import PlanBuilder
from strategy.plan import OwnOrder
from strategy.reasons import Reason
from strategy.rungs import SatsBudget, held


@dataclass(frozen=True, slots=True)
class SurplusVerdict:
    """A decision to cancel this order or leave it, with the reason."""

    order: OwnOrder
    is_cancelled: bool
    hard: bool
    reason: Reason


def over_limits(orders: list[OwnOrder], holding: list[OwnOrder], budget: SatsBudget) -> list[SurplusVerdict]:
    """Returns hard cancels from the front of `orders` until the rest (`holding`, `orders` included) fits the limits."""
    verdicts: list[SurplusVerdict] = []
    held_sats, count = held(holding), len(holding)
    for order in orders:
        reason = budget.over_limit(held_sats, count)
        if reason is None:
            break
        verdicts.append(SurplusVerdict(order, True, True, reason))
        held_sats -= order.price_sats
        count -= 1
    return verdicts


def over_count(orders: list[OwnOrder], others: list[OwnOrder], excess: int) -> list[SurplusVerdict]:
    """Returns hard cancels of `excess` of these orders: duplicates of another own bid first, then the highest.

    `orders` come highest and oldest first; of equal ones the youngest goes.
    """
    if excess <= 0:
        return []
    left = list(orders)
    twins = Counter((order.price_sats, order.quantity) for order in (*orders, *others))
    verdicts: list[SurplusVerdict] = []
    while excess > len(verdicts) and left:
        twin = next((order for order in reversed(left) if twins[order.price_sats, order.quantity] > 1), None)
        order = twin or left[0]
        verdicts.append(SurplusVerdict(order, True, True, Reason.DUPLICATE if twin else Reason.OVER_COUNT))
        left.remove(order)
        twins[order.price_sats, order.quantity] -= 1
    return verdicts


def judge_surplus(
    builder: PlanBuilder, order: OwnOrder, *, slot_is_wanted: bool, refused: Reason | None
) -> SurplusVerdict:
    """Decides the fate of one surplus bid that breaks no hard rule.

    `slot_is_wanted`: a missing rung waits for its slot. `refused`: why the rung it stood for no longer gets a bid.
    """
    is_low = builder.ladder.is_low(order)
    if not builder.config.update_bid_enabled and not is_low:
        return SurplusVerdict(order, False, False, Reason.UPDATE_OFF)
    if builder.is_due(order):
        if not slot_is_wanted:
            return SurplusVerdict(order, False, False, Reason.EXPIRING)
    elif builder.now_ms - order.created_ms < builder.rules.min_age_ms:
        return SurplusVerdict(order, False, False, Reason.MIN_AGE)
    if refused is None and is_low:
        return SurplusVerdict(order, True, False, Reason.BELOW_RANGE)
    return SurplusVerdict(order, True, False, refused or Reason.SURPLUS)
