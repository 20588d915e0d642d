"""The range of allowed prices, and the rungs spread over it. Prices are sats of the whole order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from strategy.book import Profile
from strategy.config import MAX_SATS, BidConfig
from strategy.pricing import ceil_to_tick, floor_to_tick, times
from strategy.reasons import Reason

ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Range:
    """Lowest and highest allowed price, both on the grid; `high` is every bitcoin there is where nothing caps it.

    `above` says why a bid over `high` is not allowed. `cause` is empty unless low > high, and then names what made
    the range empty: `hardcap`, `ask`, `min_bid` or `tick` (no price of the grid lies between the ends).
    """

    low: int
    high: int
    above: Reason
    cause: str

    @property
    def is_empty(self) -> bool:
        """Whether no price is allowed."""
        return self.low > self.high


def order_quantity(config: BidConfig) -> Decimal:
    """Tokens of one order."""
    return config.quantity if config.is_rune else ONE


def order_tick(config: BidConfig, profile: Profile) -> int:
    """The grid of order prices; rune orders are planned to the sat, since their total is unit price x quantity."""
    return 1 if config.is_rune else profile.tick


def price_range(config: BidConfig, profile: Profile, reference: Decimal | None, lowest_ask: Decimal | None) -> Range:
    """The allowed prices of one order; `reference` and `lowest_ask` are unit prices, None when not known.

    Without a reference percent mode knows no more than the caps. The range is never shifted to fit.
    Example: floor 87,300, 0.60-0.85, hard cap 70,000, tick 1,000: 53,000 to 70,000.
    """
    tick, quantity = order_tick(config, profile), order_quantity(config)
    caps: list[tuple[int, str, Reason]] = []
    if lowest_ask is not None:
        # A bid never reaches an ask: the listing could be bought instead.
        caps.append((math.floor(times(lowest_ask, quantity)) - tick, "ask", Reason.AT_ASK))
    if config.hardcap_sats > 0:
        caps.append((config.hardcap_sats, "hardcap", Reason.HARDCAP))
    wanted_low: Decimal | int = 0
    if config.bid_mode == "fixed":
        wanted_low = config.bid_fixed_low
        caps.append((config.bid_fixed_high, "", Reason.ABOVE_RANGE))
    elif reference is not None:
        wanted_low = times(config.bid_percent_low, reference, quantity)
        caps.append((math.floor(times(config.bid_percent_high, reference, quantity)), "", Reason.ABOVE_RANGE))

    low = max(ceil_to_tick(wanted_low, tick), ceil_to_tick(max(profile.min_bid, 1), tick))
    cap, cause, above = min(caps, key=lambda entry: entry[0], default=(MAX_SATS, "", Reason.ABOVE_RANGE))
    high = floor_to_tick(cap, tick)
    if low > high and not cause:
        cause = "min_bid" if profile.min_bid > wanted_low else "tick"
    return Range(low, high, above, cause if low > high else "")


def targets(low: int, high: int, count: int, tick: int) -> list[int]:
    """`count` prices spread evenly from `high` down to `low`, each floored to the grid; one alone is at the high end.

    Example: 70,000 down to 53,000 in 4, tick 1,000: 70,000 / 64,000 / 58,000 / 53,000.
    """
    if count < 2:
        return [high] * count
    gaps = count - 1
    return [(high * gaps - i * (high - low)) // (gaps * tick) * tick for i in range(count)]
