"""Background traders: a seeded crowd that lists, bids, outbids, sells and moves floors on the demo markets."""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from simulator.engine import Engine
from simulator.orders import Kind, Market, Order, Trait
from simulator.rules import TICK
from simulator.sales import sell

MAX_ASKS = 16
MIN_ASKS = 6
MAX_BIDS = 14
MIN_BIDS = 4
# Steps between two moves of one market's floor; a step is about a second.
DRIFT_EVERY = (5, 9)
DRIFT = (0.01, 0.06)
# How far a floor may go from where it began.
LOWEST, HIGHEST = 0.6, 1.6
HATS = ("Red", "Blue", "Gold", "None")


@dataclass(frozen=True, slots=True)
class Demo:
    """One demo market. `start` is the first floor: sats, for runes sats per whole token."""

    kind: Kind
    slug: str
    name: str
    start: float
    divisibility: int = 0


DEMOS = (
    Demo("ordinals", "bitcoin-puppets-demo", "Bitcoin Puppets (practice)", 2_400_000),
    Demo("ordinals", "quantum-cats-demo", "Quantum Cats (practice)", 9_500_000),
    Demo("ordinals", "nodemonkes-demo", "NodeMonkes (practice)", 5_200_000),
    Demo("runes", "PRACTICE•RUNE•TOKEN", "PRACTICE•RUNE•TOKEN", 2.75, 2),
)


@dataclass(slots=True)
class Course:
    """Where a demo market's floor stands and in how many steps it moves next."""

    level: float
    steps_left: int


class Traders:
    """The crowd. All chance is `rng`'s, all time the engine's, so equal seeds and steps give equal markets."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self._engine = engine
        self._rng = rng
        self._courses: dict[str, Course] = {}

    def open_markets(self) -> None:
        """Makes the demo markets that are not there yet, with asks and bids."""
        for demo in DEMOS:
            if self._engine.market(demo.kind, demo.slug) is None:
                market = self._engine.open_market(demo.kind, demo.slug, demo.name, demo.divisibility)
                course = self._course(demo)
                for _ in range(10):
                    self._list(market, course)
                for _ in range(8):
                    self._bid(market, course)

    def step(self) -> None:
        """One move on each demo market that no script has taken over."""
        for demo in DEMOS:
            market = self._engine.market(demo.kind, demo.slug)
            if market is not None and not market.scripted:
                self._move(demo, market)

    def _move(self, demo: Demo, market: Market) -> None:
        course = self._course(demo)
        course.steps_left -= 1
        if course.steps_left <= 0:
            self._drift(demo, market, course)
        chance = self._rng.random()
        if chance < 0.20 or len(_of_traders(market, "ask")) < MIN_ASKS:
            self._list(market, course)
        elif chance < 0.40:
            self._buy(market)
        elif chance < 0.65 or len(_of_traders(market, "bid")) < MIN_BIDS:
            self._bid(market, course)
        elif chance < 0.80:
            self._outbid(market, course)
        elif chance < 0.95:
            self._withdraw(market)
        else:
            self._sell_into(market, course)

    def _course(self, demo: Demo) -> Course:
        return self._courses.setdefault(demo.slug, Course(demo.start, self._rng.randint(*DRIFT_EVERY)))

    def _drift(self, demo: Demo, market: Market, course: Course) -> None:
        """Moves the floor by 1 to 6 % up or down; more likely back when it is far from its start."""
        way = 1 if self._rng.random() < 0.5 - 0.4 * (course.level / demo.start - 1) else -1
        moved = course.level * (1 + way * self._rng.uniform(*DRIFT))
        factor = min(max(moved, LOWEST * demo.start), HIGHEST * demo.start) / course.level
        course.level *= factor
        course.steps_left = self._rng.randint(*DRIFT_EVERY)
        for ask in _of_traders(market, "ask"):
            self._price(market, ask, float(ask.unit_price) * factor)

    def _list(self, market: Market, course: Course) -> None:
        asks = _of_traders(market, "ask")
        if len(asks) >= MAX_ASKS:
            return
        # The first ask makes the floor, others stand above it.
        level = course.level * (1 + abs(self._rng.gauss(0, 0.12)) if asks else 1)
        seller = self._address("p2tr")
        if market.kind == "runes":
            unit = Decimal(f"{level:.4f}")
            tokens = Decimal(self._rng.randrange(5_000, 150_000, 500))
            self._engine.add(market, "ask", seller, _total(unit, tokens), tokens, unit=unit, origin="trader")
            return
        traits: tuple[Trait, ...] = (("Hat", self._rng.choice(HATS)),)
        inscription = f"{self._rng.getrandbits(256):064x}i0"
        price = round(level)
        self._engine.add(market, "ask", seller, price, traits=traits, inscription=inscription, origin="trader")

    def _price(self, market: Market, ask: Order, unit: float) -> None:
        if market.kind == "runes":
            exact = Decimal(f"{unit:.4f}")
            self._engine.reprice(ask, _total(exact, ask.quantity), exact)
        else:
            self._engine.reprice(ask, round(unit))

    def _bid(self, market: Market, course: Course) -> None:
        if len(_of_traders(market, "bid")) < MAX_BIDS:
            self._add_bid(market, course.level * self._rng.uniform(0.55, 0.88))

    def _outbid(self, market: Market, course: Course) -> None:
        """Passes the best bid by a little, as long as that stays well below the floor."""
        bids = market.best("bid", self._engine.now_ms())
        if not bids or len(_of_traders(market, "bid")) >= MAX_BIDS:
            return
        level = float(bids[0].unit_price) * 1.005
        if level < 0.9 * course.level:
            self._add_bid(market, level)

    def _add_bid(self, market: Market, level: float) -> None:
        end_ms = self._engine.now_ms() + self._rng.randrange(3 * 60, 20 * 60) * 1000
        bidder = self._address("p2wpkh")
        tokens = Decimal(self._rng.randrange(5_000, 50_000, 500)) if market.kind == "runes" else Decimal(1)
        tick = TICK[market.kind]
        # Upwards, so that an outbid really passes the best bid.
        price = -(-round(level * float(tokens)) // tick) * tick
        self._engine.add(market, "bid", bidder, price, tokens, expires_ms=end_ms, origin="trader")

    def _withdraw(self, market: Market) -> None:
        bids = _of_traders(market, "bid")
        if len(bids) > MIN_BIDS:
            self._engine.cancel(self._rng.choice(bids))

    def _buy(self, market: Market) -> None:
        """Somebody buys one of the cheaper asks; never the cheapest alone, since the floor moves in `_drift`."""
        asks = sorted(_of_traders(market, "ask"), key=Order.rank)
        if len(asks) > MIN_ASKS:
            self._engine.cancel(self._rng.choice(asks[1:]), "bought")

    def _sell_into(self, market: Market, course: Course) -> None:
        """Sells into the best plain bid when it is near the floor, whoever made it."""
        bids = [bid for bid in market.best("bid", self._engine.now_ms()) if bid.trait is None]
        if bids and float(bids[0].unit_price) > 0.8 * course.level:
            bid = bids[0]
            covered = bid.origin != "dialect" or self._engine.wallets.balance(bid.maker) >= bid.price
            if covered:
                sell(self._engine, slug=market.slug, bid_id=bid.order_id)

    def _address(self, kind: str) -> str:
        return self._engine.new_address(kind)

    def dump(self) -> dict[str, Any]:
        """The courses as plain JSON values; chance begins anew after a restart."""
        return {slug: [course.level, course.steps_left] for slug, course in self._courses.items()}

    def load(self, row: dict[str, Any]) -> None:
        self._courses = {slug: Course(float(level), int(steps)) for slug, (level, steps) in row.items()}


def _of_traders(market: Market, side: str) -> list[Order]:
    orders = market.asks if side == "ask" else market.bids
    return [order for order in orders.values() if order.origin == "trader"]


def _total(unit: Decimal, tokens: Decimal) -> int:
    return max(1, int(unit * tokens))
