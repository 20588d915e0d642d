"""The bidders among the background traders: they bid, outbid the leader, give up, and are sold to."""

from __future__ import annotations

import random
from decimal import Decimal

from simulator.crowd.courses import OUTBID_EVERY, SALE_EVERY, Course
from simulator.crowd.sellers import HATS
from simulator.engine import Engine
from simulator.orders import Market, Order, Trait
from simulator.rules import TICK
from simulator.selling import sell

MAX_BIDS = 14
MIN_BIDS = 4
# First bids, and the limit of outbidding, as shares of the floor.
FIRST = (0.55, 0.85)
FIRST_FOR_TRAIT = (0.6, 0.88)
PATIENCE = (0.65, 0.9)
OUTBID_BY = (1.002, 1.01)
TRAIT_SHARE = 0.2
# A bid below this share of the floor is never sold into.
WORTH_SELLING = 0.55
NEAR_FLOOR = 0.8


class Bidders:
    """The bid side of the demo markets; all randomness is `rng`'s."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self._engine = engine
        self._rng = rng

    def wants_more(self, market: Market) -> bool:
        return len(_bids(market)) < MIN_BIDS

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
        """Passes the leader by a little, as long as that stays well below the floor.

        Where clients bid, the leader is the bid that competes with one of theirs: a bid on a trait must pass those on
        that trait and those on the whole collection.
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
            # The lowest of the crowd makes room for it.
            self._engine.cancel(own[-1])
        self._add(market, level, trait)

    def withdraw(self, market: Market) -> None:
        """Lets a bidder give up, every other time the leader: it has become too dear."""
        bids = _bids(market)
        if len(bids) > MIN_BIDS:
            self._engine.cancel(bids[0] if self._rng.random() < 0.5 else self._rng.choice(bids))

    def sell_into(self, market: Market, course: Course) -> None:
        """Sells into the best bid of the crowd, when it leads and is near the floor."""
        bids = market.best("bid", self._engine.now_ms())
        if bids and bids[0].origin != "dialect" and float(bids[0].unit_price) > NEAR_FLOOR * course.level:
            sell(self._engine, slug=market.slug, bid_id=bids[0].order_id)

    def sell_to_client(self, market: Market, course: Course) -> None:
        """Sells into a client's covered bid, after one has led for long enough."""
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
        # Rounded up, so that an outbid really passes the best bid.
        price = -(-round(level * float(tokens)) // tick) * tick
        traits = (trait,) if trait else ()
        self._engine.add(market, "bid", bidder, price, tokens, expires_ms=end_ms, traits=traits, origin="trader")


def _bids(market: Market) -> list[Order]:
    """Returns the traders' own bids, highest first."""
    return sorted((bid for bid in market.bids.values() if bid.origin == "trader"), key=Order.rank)
