"""The range of allowed prices, and the rungs spread over it, where all orders have one quantity.

Everything here is sats of the whole order: ordinals, and runes in quantity mode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from strategy.book import Bid, Profile
from strategy.config import MAX_SATS, BidConfig
from strategy.intents import OwnOrder, Rules
from strategy.pairing import Level, Rung
from strategy.pricing import ceil_quotient, ceil_to_tick, floor_to_tick, plus, quotient_up, times
from strategy.ranking import ratio
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


def order_quantity(config: BidConfig) -> Decimal:
    """Items or tokens of one order."""
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


class QuantityLadder:
    """Orders of one quantity: levels are order totals."""

    def __init__(
        self,
        config: BidConfig,
        profile: Profile,
        rules: Rules,
        reference: Decimal | None,
        lowest_ask: Decimal | None,
    ) -> None:
        self._config = config
        self._tolerance = rules.tolerance.as_integer_ratio()
        self._tick = order_tick(config, profile)
        self._quantity = order_quantity(config)
        self._range = price_range(config, profile, reference, lowest_ask)
        self.low: Level = self._range.low
        self.high: Level = self._range.high
        self.cause = self._range.cause

    @property
    def is_known(self) -> bool:
        """Whether orders can be computed at all."""
        return True

    @property
    def unit_ceiling(self) -> Decimal:
        """No bid above this unit price can be outbid."""
        return quotient_up(self._range.high, self._quantity)

    def level(self, order: OwnOrder) -> Level:
        """Where an order of ours stands."""
        return order.price_sats

    def reach(self, rung: Rung) -> Level:
        """How far from a rung a bid may be and still stand for it: a part of its price, at least one tick."""
        parts, of = self._tolerance
        return max(self._tick, rung.price_sats * parts // of)

    def forbidden(self, order: OwnOrder) -> Reason | None:
        """Why an order may not be there at all, None when it may."""
        if order.quantity != self._quantity:
            return Reason.WRONG_QUANTITY
        return self._range.above if order.price_sats > self._range.high else None

    def is_low(self, order: OwnOrder) -> bool:
        """Whether an order is below the range."""
        return order.price_sats < self._range.low

    def rungs(self, top: Level, count: int, ceiling: Level | None = None) -> list[Rung]:
        """`count` rungs from `top` down to the low end; the lower ones are not above `ceiling`."""
        prices = targets(self._range.low, int(top), count, self._tick)
        if ceiling is not None:
            most = max(floor_to_tick(int(ceiling), self._tick), self._range.low)
            prices = [*prices[:1], *(min(price, most) for price in prices[1:])]
        return [Rung(index, price, self._quantity, price) for index, price in enumerate(prices)]

    def outbidding(self, bid: Bid) -> Level | None:
        """The lowest price that outbids this bid by as much as the config says and at least a tick, if allowed.

        Example: 70,000 by 2 % is 71,400, on a grid of 1,000 it is 72,000.
        """
        sats, tokens = ratio(bid)
        theirs, tick = times(sats, self._quantity), times(tokens, self._tick)
        if self._config.outbid_mode == "percent":
            more = times(theirs, self._config.outbid_percent)
        else:
            more = times(tokens, self._config.outbid_amount)
        price = ceil_quotient(plus(theirs, max(more, tick)), tick) * self._tick
        return price if price <= self._range.high else None
