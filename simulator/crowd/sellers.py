"""The sellers among the background traders: they list, move the floor, buy each other's listings and sweep them."""

from __future__ import annotations

import logging
import random
from decimal import Decimal

from simulator.crowd.courses import BUY_EVERY, DRIFT_EVERY, HIGHEST, LOWEST, SWEEP_EVERY, Course, Demo
from simulator.engine import Engine
from simulator.orders import Market, Order, Trait
from simulator.purchases import buy, buy_signed
from simulator.rules import Refusal

log = logging.getLogger(__name__)

MAX_ASKS = 16
MIN_ASKS = 6
# The step of a floor, as a share of itself; small moves are likelier.
DRIFT = (0.003, 0.015)
# The pull back to the start, for the part by which the floor is off: at 5 % off, 55 of 100 moves go back.
PULL = 1.0
# The lift of a sweep, and the number of the dearest listings that it leaves.
SWEEP = (1.08, 1.11)
LEFT_BY_SWEEP = 3
# The limit below which a client's listing is cheap enough to be bought, as a share of the floor's level.
WORTH_BUYING = 1.2
HATS = ("Red", "Blue", "Gold", "None")


class Sellers:
    """The ask side of the demo markets; all randomness is `rng`'s."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self._engine = engine
        self._rng = rng

    def wants_more(self, market: Market) -> bool:
        return len(_asks(market)) < MIN_ASKS

    def list(self, market: Market, course: Course) -> None:
        asks = _asks(market)
        if len(asks) >= MAX_ASKS:
            return
        # The first ask makes the floor, others stand above it.
        level = course.level * (1 + abs(self._rng.gauss(0, 0.12)) if asks else 1)
        seller = self._engine.new_address("p2tr")
        if market.kind == "runes":
            unit = Decimal(f"{level:.4f}")
            tokens = Decimal(self._rng.randrange(5_000, 150_000, 500))
            self._engine.add(market, "ask", seller, _total(unit, tokens), tokens, unit=unit, origin="trader")
            return
        traits: tuple[Trait, ...] = (("Hat", self._rng.choice(HATS)),)
        inscription = f"{self._rng.getrandbits(256):064x}i0"
        price = round(level)
        self._engine.add(market, "ask", seller, price, traits=traits, inscription=inscription, origin="trader")

    def buy(self, market: Market) -> None:
        """Buys one of the cheaper asks; never just the cheapest, since the floor moves in `drift`."""
        asks = _asks(market)
        if len(asks) > MIN_ASKS:
            buy(self._engine, self._rng.choice(asks[1:]), self._engine.new_address())

    def buy_from_client(self, market: Market, course: Course) -> None:
        """Buys the cheapest listing of a client, after one has been cheap for long enough."""
        asks = _of_clients(market)
        if not asks or float(asks[0].unit_price) > WORTH_BUYING * course.level:
            return
        course.to_buy -= 1
        if course.to_buy <= 0:
            self._buy_signed(asks[0])
            course.to_buy = self._rng.randint(*BUY_EVERY)

    def _buy_signed(self, ask: Order) -> None:
        try:
            buy_signed(self._engine, ask)
        except Refusal as refusal:
            log.warning("the listing %s could not be bought: %s", ask.order_id, refusal)

    def drift_when_due(self, demo: Demo, market: Market, course: Course) -> None:
        """Moves the floor by 0.3 to 1.5 % up or down; more likely back when it is far from its start."""
        course.to_drift -= 1
        if course.to_drift > 0:
            return
        course.to_drift = self._rng.randint(*DRIFT_EVERY)
        by = self._rng.triangular(*DRIFT, DRIFT[0])
        if course.settle_at:
            moved = course.level * (1 - by)
            if moved <= course.settle_at:
                course.settle_at = 0.0
        else:
            way = 1 if self._rng.random() < 0.5 - PULL * (course.level / demo.start - 1) else -1
            moved = course.level * (1 + way * by)
        factor = min(max(moved, LOWEST * demo.start), HIGHEST * demo.start) / course.level
        course.level *= factor
        for ask in _asks(market):
            self._price(market, ask, float(ask.unit_price) * factor)

    def sweep_when_due(self, demo: Demo, market: Market, course: Course) -> bool:
        """Sweeps when clients have had orders for long enough; returns whether it was due."""
        if not any(order.origin == "dialect" for order in market.orders()):
            return False
        course.to_sweep -= 1
        if course.to_sweep > 0:
            return False
        course.to_sweep = self._rng.randint(*SWEEP_EVERY)
        self.sweep(demo, market, course)
        return True

    def sweep(self, demo: Demo, market: Market, course: Course) -> None:
        """Buys all but the dearest listings, whose sellers then ask for more: the floor leaps.

        Clients' listings below the new floor are bought as well.
        """
        lifted = min(course.level * self._rng.uniform(*SWEEP), HIGHEST * demo.start)
        asks = _asks(market)
        if lifted < course.level * SWEEP[0] or len(asks) <= LEFT_BY_SWEEP:
            return
        buyer = self._engine.new_address()
        for ask in asks[:-LEFT_BY_SWEEP]:
            buy(self._engine, ask, buyer)
        for ask in _of_clients(market):
            # An inscription listed at two venues is sold once.
            if float(ask.unit_price) < lifted and self._engine.order(ask.order_id) is ask:
                self._buy_signed(ask)
        left = asks[-LEFT_BY_SWEEP:]
        factor = lifted / float(left[0].unit_price)
        for ask in left:
            self._price(market, ask, float(ask.unit_price) * factor)
        course.settle_at, course.level = course.settle_at or course.level, lifted
        course.to_drift = self._rng.randint(*DRIFT_EVERY)

    def _price(self, market: Market, ask: Order, unit: float) -> None:
        if market.kind == "runes":
            exact = Decimal(f"{unit:.4f}")
            self._engine.reprice(ask, _total(exact, ask.quantity), exact)
        else:
            self._engine.reprice(ask, round(unit))


def _asks(market: Market) -> list[Order]:
    """Returns the traders' own asks, cheapest first."""
    return sorted((ask for ask in market.asks.values() if ask.origin == "trader"), key=Order.rank)


def _of_clients(market: Market) -> list[Order]:
    """Returns the listings that clients signed, cheapest first."""
    return sorted((ask for ask in market.asks.values() if ask.outpoint), key=Order.rank)


def _total(unit: Decimal, tokens: Decimal) -> int:
    return max(1, int(unit * tokens))
