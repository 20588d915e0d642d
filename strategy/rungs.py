"""The rungs of a ladder while a plan is made: the budget that they share, and the own orders that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct

from strategy.decision import BidPlan, Entry, Limits, OwnOrder
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


class SatsBudget:
    """A count of orders against the limits, which are inclusive. An unknown balance or fee limits nothing here.

    Fees are no part of exposure: the fee reserve counts against the balance only.
    """

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
        self.used += price_sats
        self.orders += 1

    def give_back(self, price_sats: int) -> None:
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
        needed = used + (self.orders + 1) * self._fee if self._cumulative else price_sats + self._fee
        return Reason.INSUFFICIENT_BALANCE if self._balance is not None and needed > self._balance else None

    def has_room(self, sats: int, orders: int) -> bool:
        """Tells whether these sats in these orders, which are there already, fit as well."""
        used, count = self.used + sats, self.orders + orders
        if self.over_limit(used, count) or used > self._limits.installation_room or self._is_over_budget(used, count):
            return False
        return self._balance is None or not self._cumulative or used + count * self._fee <= self._balance

    def _is_over_budget(self, used: int, orders: int) -> bool:
        room = self._limits.budget
        return room is not None and (_is_over(used, room.sats) or _is_over(orders, room.orders))

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


def _is_over(number: int, most: int | None) -> bool:
    return most is not None and number > most


# The scale of rungs: sats of the whole order if all orders have one quantity, else the price of a token.
Level: TypeAlias = int | Fraction


class Rung(Struct):
    """One rung while the plan is made, with its order, or the reason why it gets none.

    `below` and `above` are the distances from `level` within which a live bid still holds the rung. `barred` says why
    no new bid may be placed here, though an old one may stay. `accepts` decides which orders may hold the rung where
    nearness does not. Neither `order` nor `refused` means that a bid is missing. `lowered` names the end that put the
    rung below its owner's level.
    """

    index: int
    price_sats: int
    quantity: Decimal
    level: Level
    below: Level
    above: Level
    refused: Reason | None = None
    detail: str = ""
    barred: Reason | None = None
    accepts: Callable[[OwnOrder], bool] | None = None
    order: OwnOrder | None = None
    lowered: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether a bid is wanted here and none is held."""
        return self.order is None and self.refused is None


def merge_equals(rungs: list[Rung]) -> None:
    """Refuses every rung that is equal to the one above it, for venues that take no equal bids."""
    for upper, rung in pairwise(rungs):
        if rung.level == upper.level and rung.refused is None:
            rung.refused = Reason.RUNGS_MERGED


class Pairing:
    """The walk of the rungs through the budget, with the own orders that hold them.

    `fixed` are ids of orders that the budget already counts, `due` of those to be renewed at their rung's price. After
    `walk`, `surplus` has those of the others without a rung, highest first, and `refused` says by order id why a rung
    could not keep an order.
    """

    def __init__(
        self,
        pool: Iterable[OwnOrder],
        fixed: frozenset[int],
        due: frozenset[int],
        budget: SatsBudget,
        level: Callable[[OwnOrder], Level],
    ) -> None:
        # Of equal ones the older ranks first at the venue; one due for renewal loses its rank anyway.
        self._pool = sorted(pool, key=lambda order: (-level(order), order.id in due, order.created_ms, order.id))
        self.refused: dict[int, Reason] = {}
        self._fixed = fixed
        self._due = due
        self._budget = budget
        self._level = level

    def walk(self, rungs: list[Rung]) -> None:
        """Gives each rung that fits, from the top, the highest order close enough; skips other rungs."""
        for rung in rungs:
            if rung.refused:
                continue
            reason = rung.barred or self._budget.refusal(rung.price_sats)
            lower = next((r for r in rungs if r.level < rung.level), None) if reason else None
            order = self._highest_within(rung, lower)
            if order is not None:
                rung.order = order
                self._pool.remove(order)
                self.refused.pop(order.id, None)
                if order.id not in self._fixed:
                    self._budget.take(self._cost(rung, order))
            elif reason:
                rung.refused = reason
            else:
                self._budget.take(rung.price_sats)

    @property
    def surplus(self) -> list[OwnOrder]:
        return [order for order in self._pool if order.id not in self._fixed]

    def _cost(self, rung: Rung, order: OwnOrder) -> int:
        return rung.price_sats if order.id in self._due and rung.barred is None else order.price_sats

    def _highest_within(self, rung: Rung, lower: Rung | None) -> OwnOrder | None:
        """Returns the highest order that may hold the rung and fits the budget.

        `lower` is the next rung if this one has no room for a new bid: orders closer to that one are left to it, or the
        two would take turns. Renewing an order is pointless if another one is at the rung's own price or above: that
        one ranks ahead of the renewed one, and would take its rung.
        """
        most: Level = rung.level + rung.above
        least: Level = rung.level - rung.below
        highest = None
        for order in self._pool:
            level = self._level(order)
            if rung.accepts is not None:
                if not rung.accepts(order):
                    continue
            elif level > most:
                continue
            elif level < least or (lower and _distance(level, lower.level) < _distance(level, rung.level)):
                break
            if order.id not in self._fixed and (reason := self._budget.refusal(self._cost(rung, order), is_there=True)):
                self.refused[order.id] = reason
                continue
            if order.id not in self._due and (highest is None or level >= rung.level):
                return order
            highest = highest or order
        return highest


def _distance(one: Level, other: Level) -> Level:
    return one - other if one > other else other - one
