"""One decision on a book of 200 orders: other traders' asks and bids, with outbidding on."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from bench.measuring import Row, median_seconds
from strategy.book import Ask, Bid, History, Snapshot, VenueProfile
from strategy.config.bid import BidConfig
from strategy.decision import Entry, Limits, Memory, OwnOrder, Rules
from strategy.plan_bids import plan_bids

ORDERS = 100  # on each side


def rows() -> Iterator[Row]:
    snapshot = Snapshot(
        taken_ms=1_000,
        asks=tuple(_ask(number, 100_000 + 500 * number) for number in range(ORDERS)),
        bids=tuple(_bid(number, 79_000 - 500 * number) for number in range(ORDERS)),
        history=History(Decimal(100_000), 60),
    )
    config = BidConfig(slug="cats", hardcap_sats=100_000, outbid_enabled=True)
    profile = VenueProfile("simulator", 1_000, 10_000, 900, True, "per_bid")
    own = tuple(
        OwnOrder(number, "live", price, Decimal(1), 0, 10**9)
        for number, price in enumerate((75_000, 60_000, 45_000, 30_000))
    )
    limits = Limits(0, 50_000_000, 20, 100_000_000, 600)

    def decide() -> object:
        return plan_bids(Entry(1_000, config, profile, snapshot, own, limits, Rules(), Memory()))

    seconds = median_seconds(decide, calls=500)
    what = f"plan_bids, {ORDERS} asks, {ORDERS} rival bids, outbidding, 5 rungs, 4 live bids"
    yield Row(what, f"{seconds * 1e6:.0f} us", aim="<= 100 us")


def _ask(number: int, price: int) -> Ask:
    return Ask(f"{number:024x}", price, Decimal(1), Decimal(price), f"seller{number}")


def _bid(number: int, price: int) -> Bid:
    return Bid(f"{number:024x}", price, Decimal(1), Decimal(price), f"bidder{number}", number)
