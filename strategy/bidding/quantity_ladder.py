"""The range of allowed prices, and the rungs spread over it, where all orders have one quantity.

Everything here is sats of the whole order: ordinals, and runes in quantity mode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from strategy.bid_config import MAX_SATS, BidConfig
from strategy.bidding.pairing import Level, Rung
from strategy.bidding.spacing import crowded, geometric, level_ratios, nearest_gaps
from strategy.book import Bid, VenueProfile
from strategy.plan import OwnOrder, Rules
from strategy.pricing import Exact, ceil_quotient, ceil_to_tick, floor_to_tick, plus, quotient_up, ratio_of, times
from strategy.ranking import ratio
from strategy.reasons import Reason

ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Range:
    """Lowest and highest price of new bids, both on the grid; `high` is every bitcoin there is if nothing caps it.

    `most` is the highest price at which a live bid may stay, `above` says why one over it may not. `cause` is empty
    unless low > high, and then names the reason: `hardcap`, `ask`, `min_bid` or `tick` (no price of the grid lies
    between the ends). `top` names what the high end is: `hardcap`, `ask` or, if it is the range's own, `high`.
    """

    low: int
    high: int
    most: int
    above: Reason
    cause: str
    top: str = "high"


def order_quantity(config: BidConfig) -> Decimal:
    """Returns the items or tokens of one order."""
    return config.quantity if config.is_rune else ONE


def order_tick(config: BidConfig, profile: VenueProfile) -> int:
    """Returns the grid of order prices; rune orders are planned to the sat, as unit price x quantity."""
    return 1 if config.is_rune else profile.tick


def price_range(
    config: BidConfig, profile: VenueProfile, tolerance: Decimal, reference: Exact | None, lowest_ask: Decimal | None
) -> Range:
    """Returns the allowed prices of one order; `reference` and `lowest_ask` are unit prices, None when unknown.

    Without a reference percent mode knows no more than the caps. The range is never shifted to fit. Example: floor
    87,300, 0.60-0.85, hard cap 70,000, tick 1,000: 53,000 to 70,000.

    A high end that the market moves has a `tolerance` (a fraction, a tick at least) for live bids, which still stay
    below the ask and within the hard cap. One set by the owner, or by the ask, has none. Example: floor 99,500, 0.75,
    tick 1,000, 1 %: new bids up to 74,000, and one at 75,000 may stay.
    """
    tick, quantity = order_tick(config, profile), order_quantity(config)
    caps: list[tuple[int, str, Reason]] = []
    ask = None if lowest_ask is None else times(lowest_ask, quantity)
    if ask is not None:
        # A bid never reaches an ask: the listing could be bought instead.
        caps.append((math.floor(ask) - tick, "ask", Reason.AT_ASK))
    if config.hardcap_sats > 0:
        caps.append((config.hardcap_sats, "hardcap", Reason.HARDCAP))
    over, under = 0, 1  # the low end as it is wanted
    if config.bid_mode == "fixed":
        over = config.bid_fixed_low
        caps.append((config.bid_fixed_high, "", Reason.ABOVE_RANGE))
    elif reference is not None:
        over, under = ratio_of(config.bid_percent_low, reference, quantity)
        most_over, most_under = ratio_of(config.bid_percent_high, reference, quantity)
        caps.append((most_over // most_under, "", Reason.ABOVE_RANGE))

    low = max(-(-over // (under * tick)) * tick, ceil_to_tick(max(profile.min_bid, 1), tick))
    cap, cause, above = min(caps, key=lambda entry: entry[0], default=(MAX_SATS, "", Reason.ABOVE_RANGE))
    high = floor_to_tick(cap, tick)
    top = cause or "high"
    if low > high and not cause:
        cause = "min_bid" if profile.min_bid * under > over else "tick"
    most = high
    if above is Reason.ABOVE_RANGE and config.bid_mode == "percent":
        bounds: list[tuple[int, Reason]] = [(high + max(tick, math.floor(times(tolerance, high))), above)]
        if ask is not None:
            bounds.append((math.ceil(ask) - 1, Reason.AT_ASK))
        if config.hardcap_sats > 0:
            bounds.append((config.hardcap_sats, Reason.HARDCAP))
        most, above = min(bounds, key=lambda entry: entry[0])
    return Range(low, high, most, above, cause if low > high else "", top)


def targets(low: int, high: int, count: int, tick: int) -> list[int]:
    """Spreads `count` prices evenly from `high` down to `low`, each floored to the grid; a single one is at `high`.

    Example: 70,000 down to 53,000 in 4, tick 1,000: 70,000 / 64,000 / 58,000 / 53,000.
    """
    if count < 2:
        return [high] * count
    gaps = count - 1
    return [(high * gaps - i * (high - low)) // (gaps * tick) * tick for i in range(count)]


_SHAPES = {"even": targets, "geometric": geometric, "top": crowded}


class QuantityLadder:
    """The ladder of orders of one quantity: levels are order totals."""

    def __init__(
        self,
        config: BidConfig,
        profile: VenueProfile,
        rules: Rules,
        reference: Exact | None,
        lowest_ask: Decimal | None,
    ) -> None:
        self._config = config
        self._reach = rules.reach.as_integer_ratio()
        self._tick = order_tick(config, profile)
        self._quantity = order_quantity(config)
        self._range = price_range(config, profile, rules.tolerance, reference, lowest_ask)
        self.low: Level = self._range.low
        self.high: Level = self._range.high
        self.cause = self._range.cause
        self._highest = self._range.high  # of a bid that outbids
        self._levels: list[int] | None = None
        if config.bid_levels is not None and (ratios := level_ratios(config, reference, self._quantity)) is not None:
            self._levels = [over // (under * self._tick) * self._tick for over, under in ratios]
            self._highest = min(self._highest, self._levels[0])

    @property
    def is_known(self) -> bool:
        """Whether orders can be computed at all."""
        return True

    @property
    def unit_ceiling(self) -> Decimal:
        """The unit price above which no bid can be outbid."""
        return quotient_up(max(self._highest, 1), self._quantity)

    def level(self, order: OwnOrder) -> Level:
        """Returns the level of an order of ours."""
        return order.price_sats

    def forbidden(self, order: OwnOrder) -> Reason | None:
        """Says why an order may not be there at all, None when it may."""
        if order.quantity != self._quantity:
            return Reason.WRONG_QUANTITY
        return self._range.above if order.price_sats > self._range.most else None

    def is_low(self, order: OwnOrder) -> bool:
        """Tells whether an order is below the range."""
        return order.price_sats < self._range.low

    def rungs(self, top: Level, count: int, ceiling: Level | None = None) -> list[Rung]:
        """Returns `count` rungs from `top` down to the low end; the lower ones are not above `ceiling`."""
        if self._levels is not None:
            prices = [min(level, int(top)) for level in self._levels[:count]]
        else:
            prices = _SHAPES[self._config.ladder_shape](self._range.low, int(top), count, self._tick)
        if ceiling is not None:
            most = max(floor_to_tick(int(ceiling), self._tick), self._range.low)
            prices = [*prices[:1], *(min(price, most) for price in prices[1:])]
        gap_parts = self._parts_of_gaps(prices, int(top))
        rungs = [
            self._rung(index, price, gap_part)
            for index, (price, gap_part) in enumerate(zip(prices, gap_parts, strict=True))
        ]
        if self._levels is not None:
            self._bound(rungs)
        if rungs and self._config.outbid_enabled:
            rungs[0].above = max(self._tick, self._two_steps(rungs[0].price_sats))
        return rungs

    def _rung(self, index: int, price: int, gap_part: int) -> Rung:
        """Makes a rung that keeps a bid within a part of its price or of the gap between two rungs, a tick at least."""
        parts, of = self._reach
        reach = max(self._tick, price * parts // of, gap_part)
        return Rung(index, price, self._quantity, price, reach, reach)

    def _bound(self, rungs: list[Rung]) -> None:
        """Notes which levels the range lowers, and refuses those below it: a bid is never above its owner's level."""
        assert self._levels is not None
        for rung, level in zip(rungs, self._levels, strict=False):
            if rung.price_sats < self._range.low:
                rung.refused, rung.detail = Reason.RANGE_EMPTY, "low"
            elif level > self._range.high:
                rung.lowered = self._range.top

    def _parts_of_gaps(self, prices: list[int], top: int) -> list[int]:
        """Returns for each rung the part of the gap to the next one that a bid may be away from it; 0 at the top.

        None while outbidding. Example: a quarter of the gap between 72,000 and 15,000 in five is 3,562.
        """
        count = len(prices)
        if count < 2 or self._config.outbid_enabled:
            return [0] * count
        parts, of = self._config.keep_within_gap.as_integer_ratio()
        if self._levels is None and self._config.ladder_shape == "even":
            return [0] + [(top - self._range.low) * parts // ((count - 1) * of)] * (count - 1)
        return [int(gap) * parts // of for gap in nearest_gaps(prices)]

    def _two_steps(self, price: int) -> int:
        """Returns twice the step of outbidding at this price: the top bid does not step down for less."""
        if self._config.outbid_mode == "percent":
            return math.floor(times(2, price, self._config.outbid_percent))
        return 2 * self._config.outbid_amount

    def outbidding(self, bid: Bid) -> Level | None:
        """Returns the lowest allowed price that outbids this bid by the config's step and at least a tick, or None.

        Example: 70,000 by 2 % is 71,400, on a grid of 1,000 it is 72,000.
        """
        sats, tokens = ratio(bid)
        theirs, tick = times(sats, self._quantity), times(tokens, self._tick)
        if self._config.outbid_mode == "percent":
            more = times(theirs, self._config.outbid_percent)
        else:
            more = times(tokens, self._config.outbid_amount)
        price = ceil_quotient(plus(theirs, max(more, tick)), tick) * self._tick
        return price if price <= self._highest else None
