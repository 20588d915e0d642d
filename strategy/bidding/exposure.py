"""The budget of a task: its total, the user's exposure, the balance, and the fills still allowed."""

from __future__ import annotations

from collections.abc import Iterable

from strategy.plan import BidPlan, Entry, Limits, OwnOrder
from strategy.reasons import Reason

_RENEWED = (Reason.RENEW, Reason.RENEW_WAITS, Reason.NO_OVERLAP)


def missing_sats(entry: Entry, plan: BidPlan) -> int:
    """Returns the sats to add to the balance for all bids that it does not cover; 0 where it covers all."""
    limits = entry.limits
    refused = [note.price_sats for note in plan.rungs if note.reason is Reason.INSUFFICIENT_BALANCE and note.price_sats]
    if not refused or limits.balance_sats is None:
        return 0
    fee, needed = limits.fee_reserve_sats or 0, max(refused)
    if entry.profile.balance_model == "reserved":
        # A bid that is renewed and its successor may both be open for a moment.
        new = [note for note in plan.rungs if note.order_id is None or note.reason in _RENEWED]
        wanted = [note.price_sats for note in new if note.price_sats] + [order.price_sats for order in entry.own]
        fee, needed = fee * len(wanted), sum(wanted)
    return max(0, needed + fee - limits.balance_sats)


def held(orders: Iterable[OwnOrder]) -> int:
    """Returns the sats that these orders hold."""
    return sum(order.price_sats for order in orders)


class SatsBudget:
    """A count of orders against the limits, which are inclusive. An unknown balance or fee limits nothing here.

    Fees are no part of exposure: the fee reserve counts against the balance only.
    """

    __slots__ = ("_balance", "_cumulative", "_fee", "_limits", "orders", "used")

    def __init__(self, limits: Limits, balance_model: str, holding: Iterable[OwnOrder] = ()) -> None:
        self._limits = limits
        self._balance = None if limits.fee_reserve_sats is None else limits.balance_sats
        self._fee = limits.fee_reserve_sats or 0
        self._cumulative = balance_model == "reserved"
        self.used = 0
        self.orders = 0
        for order in holding:
            self.take(order.price_sats)

    def take(self, price_sats: int) -> None:
        """Counts one more order."""
        self.used += price_sats
        self.orders += 1

    def give_back(self, price_sats: int) -> None:
        """Counts one order less."""
        self.used -= price_sats
        self.orders -= 1

    def refusal(self, price_sats: int, *, is_there: bool = False) -> Reason | None:
        """Says why one more order of this price does not fit, None when it does.

        One that `is_there` is not given up for the budget that tasks share: each of them would give up something.
        """
        used = self.used + price_sats
        if over := self.over_limit(used, self.orders + 1):
            return over
        if not is_there and self._is_over_budget(used, self.orders + 1):
            return Reason.BUDGET
        if self._balance is None:
            return None
        if self._cumulative:
            needed = used + (self.orders + 1) * self._fee
        else:
            needed = price_sats + self._fee
        return Reason.INSUFFICIENT_BALANCE if needed > self._balance else None

    def has_room(self, sats: int, orders: int) -> bool:
        """Tells whether these sats in these orders, which are there already, fit as well."""
        used, count = self.used + sats, self.orders + orders
        if self.over_limit(used, count) or used > self._limits.installation_room or self._is_over_budget(used, count):
            return False
        return self._balance is None or not self._cumulative or used + count * self._fee <= self._balance

    def _is_over_budget(self, used: int, orders: int) -> bool:
        room = self._limits.budget
        if room is None:
            return False
        return (room.sats is not None and used > room.sats) or (room.orders is not None and orders > room.orders)

    def over_limit(self, used: int, orders: int) -> Reason | None:
        """Returns the limit that these sats in these orders would pass, or None."""
        limits = self._limits
        if 0 < limits.task_total < used:
            return Reason.TASK_TOTAL
        if used > limits.user_headroom:
            return Reason.EXPOSURE_LIMIT
        if limits.spend_left_sats is not None and used > max(limits.spend_left_sats, 0):
            return Reason.SPEND_CAP
        if limits.fills_left is not None and orders > max(limits.fills_left, 0):
            return Reason.MAX_FILLS
        if limits.spend_left_today_sats is not None and used > max(limits.spend_left_today_sats, 0):
            return Reason.SPEND_CAP_PER_DAY
        if limits.fills_left_today is not None and orders > max(limits.fills_left_today, 0):
            return Reason.MAX_FILLS_PER_DAY
        return None
