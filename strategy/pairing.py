"""Which own order stands for which rung."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from strategy.exposure import Budget
from strategy.intents import OwnOrder
from strategy.pricing import times
from strategy.reasons import Reason


@dataclass(slots=True)
class Rung:
    """One rung while the plan is being made: its price, and the order that holds it or why it gets none.

    Neither `order` nor `refused` means that a bid is missing here.
    """

    index: int
    price_sats: int
    order: OwnOrder | None = None
    refused: Reason | None = None

    @property
    def is_missing(self) -> bool:
        """Whether a bid is wanted here and none is held."""
        return self.order is None and self.refused is None


def highest_first(orders: Iterable[OwnOrder]) -> list[OwnOrder]:
    """The orders by price, the older first where prices are equal."""
    return sorted(orders, key=lambda order: (-order.price_sats, order.created_ms, order.id))


def build_rungs(prices: list[int], equal_bids_allowed: bool) -> list[Rung]:
    """Rungs for these prices (highest first); equal ones are merged where the venue takes no equal bids."""
    rungs = [Rung(index, price) for index, price in enumerate(prices)]
    if not equal_bids_allowed:
        for upper, rung in pairwise(rungs):
            if rung.price_sats == upper.price_sats:
                rung.refused = Reason.RUNGS_MERGED
    return rungs


class Pairing:
    """The walk of the rungs through the budget, with the own orders that stand for them.

    `fixed` are ids of orders that the budget already counts, `due` of those to be renewed: they will cost what their
    rung costs. After `walk`, `pool` holds what stands for no rung, highest first, and `refused` says by order id why
    a rung could not keep an order.
    """

    def __init__(
        self,
        pool: Iterable[OwnOrder],
        fixed: frozenset[int],
        due: frozenset[int],
        budget: Budget,
        reach: Callable[[int], int],
    ) -> None:
        # Of equal ones the older ranks first at the venue; one that must be renewed loses its rank anyway.
        self.pool = sorted(pool, key=lambda order: (-order.price_sats, order.id in due, order.created_ms, order.id))
        self.refused: dict[int, Reason] = {}
        self._fixed = fixed
        self._due = due
        self._budget = budget
        self._reach = reach

    def walk(self, rungs: list[Rung]) -> None:
        """From the top: give each rung that fits the highest order that is close enough; skip what does not fit."""
        for rung in rungs:
            if rung.refused:
                continue
            reason = self._budget.refusal(rung.price_sats)
            lower = next((r for r in rungs if r.price_sats < rung.price_sats), None) if reason else None
            order = self._highest_within(rung, lower)
            if order is not None:
                self._take(rung, order)
            elif reason:
                rung.refused = reason
            else:
                self._budget.take(rung.price_sats)

    def _take(self, rung: Rung, order: OwnOrder) -> None:
        rung.order = order
        self.pool.remove(order)
        self.refused.pop(order.id, None)
        if order.id not in self._fixed:
            self._budget.take(self._cost(rung, order))

    def _cost(self, rung: Rung, order: OwnOrder) -> int:
        return rung.price_sats if order.id in self._due else order.price_sats

    def _highest_within(self, rung: Rung, lower: Rung | None) -> OwnOrder | None:
        """The highest order within reach of the rung that fits the budget.

        `lower` is the next rung if this one has no room for a new bid: it then leaves to it what is closer to it, or
        the two would take turns. Renewing an order is pointless where another one is at the rung's very price.
        """
        price_sats, reach = rung.price_sats, self._reach(rung.price_sats)
        highest = None
        for order in self.pool:
            if order.price_sats > price_sats + reach:
                continue
            if order.price_sats < price_sats - reach or (lower and _is_closer(order, lower, rung)):
                break
            if order.id not in self._fixed and (reason := self._budget.refusal(self._cost(rung, order))):
                self.refused[order.id] = reason
                continue
            if order.id not in self._due and (highest is None or order.price_sats == price_sats):
                return order
            highest = highest or order
        return highest


def _is_closer(order: OwnOrder, lower: Rung, upper: Rung) -> bool:
    return abs(order.price_sats - lower.price_sats) < abs(order.price_sats - upper.price_sats)


def tolerance_of(fraction: Decimal, tick: int) -> Callable[[int], int]:
    """How far from a rung a bid may be and still stand for it: this fraction of its price, at least one tick."""
    return lambda price_sats: max(tick, int(times(fraction, price_sats)))
