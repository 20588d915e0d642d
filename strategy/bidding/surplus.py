"""The fate of live bids that hold no rung."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from strategy.bidding.draft import Draft
from strategy.bidding.exposure import Budget, held
from strategy.intents import OwnOrder
from strategy.reasons import Reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision to cancel this order or leave it, with the reason."""

    order: OwnOrder
    is_cancelled: bool
    hard: bool
    reason: Reason


def over_limits(orders: list[OwnOrder], holding: list[OwnOrder], budget: Budget) -> list[Verdict]:
    """Returns hard cancels from the front of `orders` until the rest (`holding`, `orders` included) fits the limits."""
    verdicts: list[Verdict] = []
    held_sats, count = held(holding), len(holding)
    for order in orders:
        reason = budget.over_limit(held_sats, count)
        if reason is None:
            break
        verdicts.append(Verdict(order, True, True, reason))
        held_sats -= order.price_sats
        count -= 1
    return verdicts


def over_count(orders: list[OwnOrder], others: list[OwnOrder], excess: int) -> list[Verdict]:
    """Returns hard cancels of `excess` of these orders: duplicates of another own bid first, then the highest.

    `orders` come highest and oldest first; of equal ones the youngest goes.
    """
    if excess <= 0:
        return []
    left = list(orders)
    twins = Counter((order.price_sats, order.quantity) for order in (*orders, *others))
    verdicts: list[Verdict] = []
    while excess > len(verdicts) and left:
        twin = next((order for order in reversed(left) if twins[order.price_sats, order.quantity] > 1), None)
        order = twin or left[0]
        verdicts.append(Verdict(order, True, True, Reason.DUPLICATE if twin else Reason.OVER_COUNT))
        left.remove(order)
        twins[order.price_sats, order.quantity] -= 1
    return verdicts


def settle(draft: Draft, order: OwnOrder, *, slot_is_wanted: bool, refused: Reason | None) -> Verdict:
    """Decides the fate of one surplus bid that breaks no hard rule.

    `slot_is_wanted`: a missing rung waits for its slot. `refused`: why the rung it stood for no longer gets a bid.
    """
    is_low = draft.ladder.is_low(order)
    if not draft.config.update_bid_enabled and not is_low:
        return Verdict(order, False, False, Reason.UPDATE_OFF)
    if draft.is_due(order):
        if not slot_is_wanted:
            return Verdict(order, False, False, Reason.EXPIRING)
    elif draft.now_ms - order.created_ms < draft.rules.min_age_ms:
        return Verdict(order, False, False, Reason.MIN_AGE)
    if refused is None and is_low:
        return Verdict(order, True, False, Reason.BELOW_RANGE)
    return Verdict(order, True, False, refused or Reason.SURPLUS)
