"""The pairing of own orders with rungs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from strategy.bidding.exposure import SatsBudget
from strategy.plan import OwnOrder
from strategy.reasons import Reason

# The scale of rungs: sats of the whole order if all orders have one quantity, else the price of a token.
Level: TypeAlias = int | Fraction


@dataclass(slots=True)
class Rung:
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
                self._take(rung, order)
            elif reason:
                rung.refused = reason
            else:
                self._budget.take(rung.price_sats)

    @property
    def surplus(self) -> list[OwnOrder]:
        return [order for order in self._pool if order.id not in self._fixed]

    def _take(self, rung: Rung, order: OwnOrder) -> None:
        rung.order = order
        self._pool.remove(order)
        self.refused.pop(order.id, None)
        if order.id not in self._fixed:
            self._budget.take(self._cost(rung, order))

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
            elif level < least or (lower and _is_closer(level, lower.level, rung.level)):
                break
            if order.id not in self._fixed and (reason := self._budget.refusal(self._cost(rung, order), is_there=True)):
                self.refused[order.id] = reason
                continue
            if order.id not in self._due and (highest is None or level >= rung.level):
                return order
            highest = highest or order
        return highest


def _is_closer(level: Level, one: Level, other: Level) -> bool:
    return _distance(level, one) < _distance(level, other)


def _distance(one: Level, other: Level) -> Level:
    return one - other if one > other else other - one
