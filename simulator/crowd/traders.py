"""Background traders: a seeded crowd that lists, bids, outbids, sells and moves floors on the demo markets."""

from __future__ import annotations

import random
from typing import Any

from simulator.crowd.bidders import Bidders
from simulator.crowd.courses import DEMOS, Course, Demo, load_course, new_course
from simulator.crowd.sellers import Sellers
from simulator.engine import Engine
from simulator.orders import Market


class Traders:
    """The crowd. All randomness is `rng`'s, all time the engine's, so equal seeds and steps give equal markets."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self._engine = engine
        self._rng = rng
        self._sellers = Sellers(engine, rng)
        self._bidders = Bidders(engine, rng)
        self._courses: dict[str, Course] = {}

    def open_markets(self) -> None:
        """Makes the demo markets that are not there yet, with asks and bids."""
        for demo in DEMOS:
            if self._engine.market(demo.kind, demo.slug) is None:
                market = self._engine.open_market(demo.kind, demo.slug, demo.name, demo.divisibility)
                course = self._course(demo)
                for _ in range(10):
                    self._sellers.list(market, course)
                for _ in range(8):
                    self._bidders.bid(market, course)

    def step(self) -> None:
        """Makes one move on each demo market that no script has taken over."""
        for demo in DEMOS:
            market = self._engine.market(demo.kind, demo.slug)
            if market is not None and not market.scripted:
                self._move(demo, market)

    def _move(self, demo: Demo, market: Market) -> None:
        course = self._course(demo)
        if not self._sellers.sweep_when_due(demo, market, course):
            self._sellers.drift_when_due(demo, market, course)
        self._bidders.sell_to_client(market, course)
        self._sellers.buy_from_client(market, course)
        self._bidders.outbid_when_due(market, course)
        self._pass_by(market, course)

    def _pass_by(self, market: Market, course: Course) -> None:
        """Lets a trader list, buy, bid, give up or sell to the crowd now and then; most steps do nothing."""
        chance = self._rng.random()
        if chance < 0.03 or self._sellers.wants_more(market):
            self._sellers.list(market, course)
        elif chance < 0.055:
            self._sellers.buy(market)
        elif chance < 0.08 or self._bidders.wants_more(market):
            self._bidders.bid(market, course)
        elif chance < 0.095:
            self._bidders.withdraw(market)
        elif chance < 0.1:
            self._bidders.sell_into(market, course)

    def _course(self, demo: Demo) -> Course:
        if demo.slug not in self._courses:
            self._courses[demo.slug] = new_course(demo, self._rng)
        return self._courses[demo.slug]

    def dump(self) -> dict[str, Any]:
        """Returns the courses as plain JSON values; randomness begins anew after a restart."""
        return {slug: course.dump() for slug, course in self._courses.items()}

    def load(self, row: dict[str, Any]) -> None:
        self._courses = {slug: load_course(course) for slug, course in row.items()}
