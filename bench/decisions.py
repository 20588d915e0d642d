"""One decision on a book of 200 asks."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from bench.timing import Row, median_seconds
from strategy.bidding import Limits, Memory, OwnOrder, Rules, plan_bids
from strategy.book import Ask, Profile, Snapshot
from strategy.config import BidConfig


def rows() -> Iterator[Row]:
    asks = tuple(
        Ask(f"{number:024x}", 100_000 + 500 * number, Decimal(1), Decimal(100_000 + 500 * number), f"seller{number}")
        for number in range(200)
    )
    config = BidConfig(slug="cats", hardcap_sats=100_000)
    profile = Profile("simulator", 1_000, 10_000, 900, True, "per_bid")
    own = [
        OwnOrder(number, "live", price, Decimal(1), 0, 10**9)
        for number, price in enumerate((75_000, 60_000, 45_000, 30_000))
    ]
    limits = Limits(0, 50_000_000, 20, 100_000_000, 600)
    rules = Rules(Decimal("0.01"), 60_000, 120_000, 300_000)

    def decide() -> object:
        return plan_bids(config, profile, Snapshot(1_000, asks), own, limits, rules, Memory(), 1_000)

    seconds = median_seconds(decide, calls=500)
    yield Row("plan_bids, 200 asks, 5 rungs, 4 live bids", f"{seconds * 1e6:.0f} us", aim="<= 100 us")
