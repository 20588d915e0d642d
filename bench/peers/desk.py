"""A marketplace for a bot: every question and every order is a call that takes time, on a simulated clock.

It stands on the practice market's engine, so bids rank, expire and are bought as ours.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Protocol

from simulator.engine import Engine
from simulator.orders import BidTerms, Market, Order
from tests.machine.clockwork import Clock


class Bot(Protocol):
    """One round of a peer's loop; `loop_s` are the seconds between two rounds."""

    loop_s: float

    def cycle(self) -> None: ...


class Desk:
    """The calls of the bot with address `maker` for one collection; `calls` counts them by kind."""

    def __init__(self, engine: Engine, market: Market, clock: Clock, maker: str, travel_s: float) -> None:
        self._engine, self._market, self._clock = engine, market, clock
        self._travel_s = travel_s
        self.maker = maker
        self.calls: Counter[str] = Counter()

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms

    def ask(self, what: str) -> None:
        """Makes a call whose answer is not needed here, such as a challenge or a draft."""
        self.calls[what] += 1
        self._clock.advance(self._travel_s)
        self._engine.expire()

    def listings(self) -> list[int]:
        """Returns prices, cheapest first."""
        self.ask("listings")
        return sorted(order.price for order in self._market.asks.values())

    def floor(self) -> int:
        self.ask("collection")
        return min(order.price for order in self._market.asks.values())

    def bids(self) -> list[Order]:
        """Returns all bids, best first."""
        self.ask("bids")
        return self._market.best("bid", self.now_ms)

    def own_bids(self) -> list[Order]:
        self.ask("own bids")
        return self._engine.bids_of(self.maker)

    def place(self, price: int, life_s: float) -> None:
        self.ask("place")
        terms = BidTerms(
            self._market.slug, self.maker, self.maker, price, Decimal(1), self.now_ms + round(life_s * 1000)
        )
        self._engine.place_bid(self._market, terms)

    def cancel(self, bids: list[Order]) -> None:
        """Cancels the bids in one call."""
        self.ask("cancel")
        for bid in bids:
            if self._engine.order(bid.order_id) is not None:
                self._engine.cancel(bid)
