"""The background traders: a seeded crowd that lists, bids, outbids, sells and moves floors on the demo markets."""

from __future__ import annotations

import logging
import random
from decimal import Decimal
from typing import Any

from msgspec import Struct, convert, to_builtins

from simulator.engine import TICK, Engine, Kind, Market, Order, Refusal
from simulator.trades import buy, buy_signed, sell
from simulator.wallets import Trait

# The range of a floor, as shares of its start.
LOWEST, HIGHEST = 0.6, 1.6
# The ranges below count steps of about a second. Between two moves of a market's floor.
DRIFT_EVERY = (20, 40)
# Between two rivals that outbid the leader.
OUTBID_EVERY = (300, 900)
# From a client's order until the cheap listings are bought up.
SWEEP_EVERY = (3_600, 9_000)
# From a client's bid becoming the best until it is sold into: soon at first, then rarely, so that play money lasts.
FIRST_SALE = (150, 400)
SALE_EVERY = (1_800, 5_400)
# From a client's cheap listing until it is bought.
BUY_EVERY = (900, 2_700)


class Demo(Struct, frozen=True):
    """One demo market: its first floor (sats; a rune's per token), and the steps to its first sweep and first sale."""

    kind: Kind
    slug: str
    name: str
    start: float
    divisibility: int = 0
    to_sweep: int = 0
    to_sale: int = 0


# Visitors see a floor jump and a bid filled within their first two minutes.
DEMOS = (
    Demo("ordinals", "bitcoin-puppets-demo", "Bitcoin Puppets (practice)", 2_400_000, to_sweep=30),
    Demo("ordinals", "quantum-cats-demo", "Quantum Cats (practice)", 9_500_000),
    Demo("ordinals", "nodemonkes-demo", "NodeMonkes (practice)", 5_200_000),
    Demo("runes", "PRACTICE•RUNE•TOKEN", "PRACTICE•RUNE•TOKEN", 2.75, 2, to_sale=20),
    Demo("ordinals", "pizza-ninjas-demo", "Pizza Ninjas (practice)", 640_000),
)


class Course(Struct, array_like=True):
    """The state of a demo market: its floor, and the steps until its next events.

    `settle_at` is the level to which the floor returns after a sweep, or 0. `to_sweep`, `to_sale` and `to_buy` count
    only steps with a client's order, leading bid or cheap listing, so that late clients see the same as the first.
    """

    level: float
    to_drift: int
    to_sweep: int = SWEEP_EVERY[0]
    to_sale: int = SALE_EVERY[0]
    settle_at: float = 0.0
    to_buy: int = BUY_EVERY[0]
    to_outbid: int = OUTBID_EVERY[0]


log = logging.getLogger(__name__)

MIN_ASKS, MAX_ASKS = 6, 16
# A step of the floor, as a share of it; small steps are more likely.
DRIFT = (0.003, 0.015)
# The pull back to the start, in proportion to the floor's distance: at 5 % off, 55 of 100 steps go back.
PULL = 1.0
# A sweep's rise of the floor, and the number of the most expensive listings that it leaves.
SWEEP = (1.08, 1.11)
LEFT_BY_SWEEP = 3
# A client's listing is bought if it is cheaper than this multiple of the floor's level.
WORTH_BUYING = 1.2
HATS = ("Red", "Blue", "Gold", "None")
MIN_BIDS, MAX_BIDS = 4, 14
# First bids, and the limits of outbidding, as shares of the floor.
FIRST = (0.55, 0.85)
FIRST_FOR_TRAIT = (0.6, 0.88)
PATIENCE = (0.65, 0.9)
OUTBID_BY = (1.002, 1.01)
TRAIT_SHARE = 0.2
# Shares of the floor: below the first, no client's bid is sold into; below the second, none of the crowd's bids.
WORTH_SELLING, NEAR_FLOOR = 0.55, 0.8


class Traders:
    """The crowd. It takes all randomness from `rng` and all time from the engine, so equal seeds and steps repeat."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self._engine = engine
        self._rng = rng
        self._courses: dict[str, Course] = {}

    def open_markets(self) -> None:
        for demo in DEMOS:
            if self._engine.market(demo.kind, demo.slug) is None:
                market = self._engine.open_market(demo.kind, demo.slug, demo.name, demo.divisibility)
                course = self._course(demo)
                for _ in range(10):
                    self.list(market, course)
                for _ in range(8):
                    self.bid(market, course)

    def step(self) -> None:
        """Makes one move on each demo market that no script has taken over."""
        for demo in DEMOS:
            market = self._engine.market(demo.kind, demo.slug)
            if market is not None and not market.scripted:
                self._move(demo, market)

    def _move(self, demo: Demo, market: Market) -> None:
        course = self._course(demo)
        if not self._sweep_when_due(demo, market, course):
            self._drift_when_due(demo, market, course)
        self.sell_to_client(market, course)
        self.buy_from_client(market, course)
        self.outbid_when_due(market, course)
        self._pass_by(market, course)

    def _pass_by(self, market: Market, course: Course) -> None:
        """Now and then has a trader list, buy, bid, withdraw or sell to the crowd; most steps do nothing."""
        chance = self._rng.random()
        if chance < 0.03 or len(_asks(market)) < MIN_ASKS:
            self.list(market, course)
        elif chance < 0.055:
            self.buy(market)
        elif chance < 0.08 or len(_bids(market)) < MIN_BIDS:
            self.bid(market, course)
        elif chance < 0.095:
            self.withdraw(market)
        elif chance < 0.1:
            self.sell_into(market, course)

    def _course(self, demo: Demo) -> Course:
        if demo.slug not in self._courses:
            spans = DRIFT_EVERY, SWEEP_EVERY, FIRST_SALE, OUTBID_EVERY
            drift, sweep, sale, outbid = (self._rng.randint(*span) for span in spans)
            first = drift, demo.to_sweep or sweep, demo.to_sale or sale
            self._courses[demo.slug] = Course(demo.start, *first, to_outbid=outbid)
        return self._courses[demo.slug]

    def dump(self) -> dict[str, Any]:
        """Returns the courses as plain JSON values; the random numbers start afresh after a restart."""
        return dict(to_builtins(self._courses))

    def load(self, row: dict[str, Any]) -> None:
        self._courses = convert(row, dict[str, Course])

    def list(self, market: Market, course: Course) -> None:
        asks = _asks(market)
        if len(asks) >= MAX_ASKS:
            return
        # The first ask is the floor, and the others are above it.
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
        """Buys any ask except the cheapest, because only `drift` moves the floor."""
        asks = _asks(market)
        if len(asks) > MIN_ASKS:
            buy(self._engine, self._rng.choice(asks[1:]), self._engine.new_address())

    def buy_from_client(self, market: Market, course: Course) -> None:
        """Buys a client's cheapest listing once one has been cheap for long enough."""
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

    def _drift_when_due(self, demo: Demo, market: Market, course: Course) -> None:
        """Moves the floor by 0.3 to 1.5 % up or down; far from its start it is likelier to return."""
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

    def _sweep_when_due(self, demo: Demo, market: Market, course: Course) -> bool:
        """Sweeps once clients have had orders for long enough; returns True if it was due."""
        if not any(order.origin == "dialect" for order in market.orders()):
            return False
        course.to_sweep -= 1
        if course.to_sweep > 0:
            return False
        course.to_sweep = self._rng.randint(*SWEEP_EVERY)
        self.sweep(demo, market, course)
        return True

    def sweep(self, demo: Demo, market: Market, course: Course) -> None:
        """Buys all but the most expensive listings, whose sellers then ask for more, so the floor jumps.

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
            # because an inscription listed at two venues is sold once
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

    def bid(self, market: Market, course: Course) -> None:
        if len(_bids(market)) >= MAX_BIDS:
            return
        if market.kind == "ordinals" and self._rng.random() < TRAIT_SHARE:
            hat = ("Hat", self._rng.choice(HATS))
            self._add(market, course.level * self._rng.uniform(*FIRST_FOR_TRAIT), hat)
        else:
            self._add(market, course.level * self._rng.uniform(*FIRST))

    def outbid_when_due(self, market: Market, course: Course) -> None:
        course.to_outbid -= 1
        if course.to_outbid <= 0:
            course.to_outbid = self._rng.randint(*OUTBID_EVERY)
            self.outbid(market, course)

    def outbid(self, market: Market, course: Course) -> None:
        """Outbids the leader slightly, while the price stays well below the floor.

        If clients bid, the leader is a client's best competitor: a bid on a trait competes with bids on that trait and
        on the whole collection.
        """
        bids = market.best("bid", self._engine.now_ms())
        clients = [bid for bid in bids if bid.origin == "dialect"]
        trait = self._rng.choice(clients).trait if clients else None
        rivals = [bid for bid in bids if bid.trait in (None, trait)]
        if not rivals:
            return
        level = float(rivals[0].unit_price) * self._rng.uniform(*OUTBID_BY)
        if level > course.level * self._rng.uniform(*PATIENCE):
            return
        own = _bids(market)
        if len(own) >= MAX_BIDS:
            # The crowd's lowest bid makes way for the new one.
            self._engine.cancel(own[-1])
        self._add(market, level, trait)

    def withdraw(self, market: Market) -> None:
        """Cancels a bid of the crowd, half the time its best one."""
        bids = _bids(market)
        if len(bids) > MIN_BIDS:
            self._engine.cancel(bids[0] if self._rng.random() < 0.5 else self._rng.choice(bids))

    def sell_into(self, market: Market, course: Course) -> None:
        """Sells into the crowd's best bid if it leads and is near the floor."""
        bids = market.best("bid", self._engine.now_ms())
        if bids and bids[0].origin != "dialect" and float(bids[0].unit_price) > NEAR_FLOOR * course.level:
            sell(self._engine, slug=market.slug, bid_id=bids[0].order_id)

    def sell_to_client(self, market: Market, course: Course) -> None:
        """Sells into a client's covered bid once one has led for long enough."""
        bids = market.best("bid", self._engine.now_ms())
        if not bids or bids[0].origin != "dialect" or float(bids[0].unit_price) < WORTH_SELLING * course.level:
            return
        course.to_sale -= 1
        if course.to_sale <= 0 and (bids[0].funding or self._engine.wallets.backing(bids[0].maker) >= bids[0].price):
            sell(self._engine, slug=market.slug, bid_id=bids[0].order_id)
            course.to_sale = self._rng.randint(*SALE_EVERY)

    def _add(self, market: Market, level: float, trait: Trait | None = None) -> None:
        end_ms = self._engine.now_ms() + self._rng.randrange(3 * 60, 20 * 60) * 1000
        bidder = self._engine.new_address()
        tokens = Decimal(self._rng.randrange(5_000, 50_000, 500)) if market.kind == "runes" else Decimal(1)
        tick = TICK[market.kind]
        # Rounded up, so that an outbid exceeds the best bid.
        price = -(-round(level * float(tokens)) // tick) * tick
        traits = (trait,) if trait else ()
        self._engine.add(market, "bid", bidder, price, tokens, expires_ms=end_ms, traits=traits, origin="trader")


def _asks(market: Market) -> list[Order]:
    return sorted((ask for ask in market.asks.values() if ask.origin == "trader"), key=Order.rank)


def _of_clients(market: Market) -> list[Order]:
    return sorted((ask for ask in market.asks.values() if ask.outpoint), key=Order.rank)


def _total(unit: Decimal, tokens: Decimal) -> int:
    return max(1, int(unit * tokens))


def _bids(market: Market) -> list[Order]:
    return sorted((bid for bid in market.bids.values() if bid.origin == "trader"), key=Order.rank)
