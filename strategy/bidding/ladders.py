"""The choice of a ladder for a config."""

from __future__ import annotations

from decimal import Decimal
from typing import Protocol

from strategy.bid_config import BidConfig
from strategy.bidding.pairing import Level, Rung
from strategy.bidding.quantity_ladder import QuantityLadder
from strategy.bidding.reference import MarketPrices
from strategy.bidding.sats_ladder import SatsLadder
from strategy.book import Bid, VenueProfile
from strategy.plan import OwnOrder, Rules
from strategy.reasons import Reason


class Ladder(Protocol):
    """The allowed range and its rungs: by totals of one quantity, or by unit prices of orders of fixed sats."""

    low: Level
    high: Level
    cause: str  # why the range is empty, "" when it is not

    @property
    def is_known(self) -> bool: ...
    @property
    def unit_ceiling(self) -> Decimal: ...
    def level(self, order: OwnOrder) -> Level: ...
    def forbidden(self, order: OwnOrder) -> Reason | None: ...
    def is_low(self, order: OwnOrder) -> bool: ...
    def rungs(self, top: Level, count: int, ceiling: Level | None = None) -> list[Rung]: ...
    def outbidding(self, bid: Bid) -> Level | None: ...


def ladder_for(
    config: BidConfig, profile: VenueProfile, rules: Rules, market: MarketPrices, divisibility: int | None
) -> Ladder:
    """Makes the ladder of this config in this market; `divisibility` is the rune's number of decimals, if known."""
    if config.is_rune and config.quantity_mode == "sats":
        return SatsLadder(config, profile, rules, market.exact, market.lowest_ask, divisibility)
    return QuantityLadder(config, profile, rules, market.exact, market.lowest_ask)
