"""The ladder of a task: the spacing of its rungs, and their prices for orders of one quantity or of one amount."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct

from strategy.book import (
    Bid,
    Exact,
    VenueProfile,
    ceil_quotient,
    ceil_to_tick,
    floor_to_tick,
    plus,
    quotient_up,
    ratio_of,
    times,
)
from strategy.config.bid import MAX_SATS, BidConfig
from strategy.decision import OwnOrder, Rules, is_above, ratio
from strategy.guards import MarketPrices
from strategy.reasons import Reason

_FINE = 10**12  # a unit price between the ends is exact to this fraction of the lowest unit price


# The scale of rungs: sats of the whole order if all orders have one quantity, otherwise the price of a token.
Level: TypeAlias = int | Fraction


class Rung(Struct):
    """One rung while the plan is made, with its order, or the reason why it gets none.

    - `below` and `above`: the distances from `level` within which a live bid still holds the rung.
    - `barred`: the reason why no new bid may be placed here, though an old one may stay.
    - `accepts`: decides, if set, which orders may hold the rung, instead of the distance.
    - `lowered`: the end of the range that put the rung below its configured level.

    Without `order` and `refused` the rung's bid is missing.
    """

    index: int
    price_sats: int
    quantity: Decimal
    level: Level
    below: Level
    above: Level
    refused: Reason | None = None
    detail: str = ""
    barred: Reason | None = None
    accepts: Callable[[OwnOrder], bool] | None = None
    order: OwnOrder | None = None
    lowered: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether a bid is wanted here but not held."""
        return self.order is None and self.refused is None


def merge_equals(rungs: list[Rung]) -> None:
    """Refuses every rung that is equal to the one above it, for venues that accept no equal bids."""
    for upper, rung in pairwise(rungs):
        if rung.level == upper.level and rung.refused is None:
            rung.refused = Reason.RUNGS_MERGED


def level_ratios(config: BidConfig, reference: Exact | None, *factors: Exact) -> list[tuple[int, int]] | None:
    """Returns the price of each wanted bid, highest first, as a ratio of whole numbers; None without levels.

    In percent mode a price is `at` times the reference times `factors`; None without a reference.
    """
    if config.bid_levels is None or (reference is None and config.bid_mode == "percent"):
        return None
    times: tuple[Exact, ...] = () if config.bid_mode == "fixed" or reference is None else (reference, *factors)
    falling = sorted(config.bid_levels, key=lambda level: -level.at)
    return [ratio for level in falling for ratio in [ratio_of(level.at, *times)] * level.count]


def targets(low: int, high: int, count: int, tick: int) -> list[int]:
    """Spreads `count` prices evenly from `high` down to `low`, each floored to the grid; a single price is `high`.

    Example: 70,000 down to 53,000 in 4, tick 1,000: 70,000 / 64,000 / 58,000 / 53,000.
    """
    if count < 2:
        return [high] * count
    gaps = count - 1
    return [(high * gaps - i * (high - low)) // (gaps * tick) * tick for i in range(count)]


def crowded(low: int, high: int, count: int, tick: int) -> list[int]:
    """Spreads prices from `high` down to `low`, most of them near the top: the distance from it grows by squares.

    Each is floored to the grid. Example: 75,000 down to 15,000 in 5: 75,000 / 71,000 / 60,000 / 41,000 / 15,000.
    """
    squares = max(count - 1, 1) ** 2
    return [(high * squares - i * i * (high - low)) // (squares * tick) * tick for i in range(count)]


def geometric(low: int, high: int, count: int, tick: int) -> list[int]:
    """Spreads prices from `high` down to `low` (above zero) at a constant ratio.

    Each is floored to the grid. Example: 80,000 down to 10,000 in 4: 80,000 / 40,000 / 20,000 / 10,000.
    """
    gaps = max(count - 1, 1)
    return [whole_root(high ** (gaps - i) * low**i, gaps) // tick * tick for i in range(count)]


def geometric_units(low: Fraction, high: Fraction, count: int) -> list[Fraction]:
    """Spreads unit prices like `geometric`; prices between the ends are rounded down to 1 / _FINE of the lowest."""
    gaps = max(count - 1, 1)
    grain = low * Fraction(1, _FINE)
    parts = high * Fraction(grain.denominator, grain.numerator)
    units = [high]
    for i in range(1, count - 1):
        product = parts ** (gaps - i) * _FINE**i
        units.append(grain * whole_root(product.numerator // product.denominator, gaps))
    return [*units, low][:count]


def crowded_units(low: Fraction, high: Fraction, count: int) -> list[Fraction]:
    """Spreads unit prices like `crowded`."""
    squares = max(count - 1, 1) ** 2
    return [high - Fraction(i * i, squares) * (high - low) for i in range(count)]


def whole_root(number: int, degree: int) -> int:
    """Returns the greatest whole number whose `degree`-th power is not above `number`.

    Uses Newton's method from above, which never falls below the root. The start is less than twice the root, because
    from far above it each step covers little (a hundredth for the degree 100).
    """
    if degree == 1 or number == 0:
        return number
    root = 2 ** -(-number.bit_length() // degree)
    while (power := root ** (degree - 1)) * root > number:
        root = ((degree - 1) * root + number // power) // degree
    return root


def nearest_gaps(levels: Sequence[int | Fraction]) -> list[int | Fraction]:
    """Returns each rung's distance to the nearest other level; 0 at the top, whose bids must match their price."""
    distinct = sorted(set(levels))
    gaps: dict[int | Fraction, int | Fraction] = {}
    for place, level in enumerate(distinct[:-1]):
        above = distinct[place + 1] - level
        gaps[level] = min(above, level - distinct[place - 1]) if place else above
    return [gaps.get(level, 0) for level in levels]


class Range(Struct, frozen=True):
    """Lowest and highest price of new bids, both on the grid. `high` is the total supply of bitcoin if no cap applies.

    - `most`: the highest price at which a live bid may stay. `above`: the reason why a higher one may not.
    - `cause`: "" unless low > high. Then the reason: `hardcap`, `ask`, `min_bid` or `tick` (no price of the grid lies
      between the ends).
    - `top`: what limits the high end: `hardcap`, `ask` or, if it is the range's own end, `high`.
    """

    low: int
    high: int
    most: int
    above: Reason
    cause: str
    top: str = "high"


def price_range(
    config: BidConfig, profile: VenueProfile, tolerance: Decimal, reference: Exact | None, lowest_ask: Decimal | None
) -> Range:
    """Returns the allowed prices of one order; `reference` and `lowest_ask` are unit prices, None if unknown.

    In percent mode without a reference only the caps apply. The range is never shifted to fit. Example: floor 87,300,
    0.60-0.85, hard cap 70,000, tick 1,000: 53,000 to 70,000.

    A high end that follows the market has a `tolerance` (a fraction, at least a tick) for live bids, which still stay
    below the ask and within the hard cap. A fixed high end, or one set by the ask, has none. Example: floor 99,500,
    0.75, tick 1,000, 1 %: new bids up to 74,000, and a live bid at 75,000 may stay.
    """
    tick, quantity = _grid(config, profile)
    caps: list[tuple[int, str, Reason]] = []
    ask = None if lowest_ask is None else times(lowest_ask, quantity)
    if ask is not None:
        # A bid never reaches an ask, because buying the listing would cost no more.
        caps.append((math.floor(ask) - tick, "ask", Reason.AT_ASK))
    if config.hardcap_sats > 0:
        caps.append((config.hardcap_sats, "hardcap", Reason.HARDCAP))
    over, under = 0, 1  # the unrounded low end, as a ratio
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


def _grid(config: BidConfig, profile: VenueProfile) -> tuple[int, Decimal]:
    """Returns the price step and the quantity of one order; rune orders are planned to the sat."""
    return (1, config.quantity) if config.is_rune else (profile.tick, Decimal(1))


def _note_bounds(
    rungs: list[Rung], at: Sequence[Level], levels: Sequence[Level], low: Level, high: Level, top: str
) -> None:
    """Notes levels that the range lowers; refuses levels below it, because bids never exceed their level."""
    for rung, bounded, level in zip(rungs, at, levels, strict=False):
        if bounded < low:
            rung.refused, rung.detail = Reason.RANGE_EMPTY, "low"
        elif level > high:
            rung.lowered = top


_SHAPES = {"even": targets, "geometric": geometric, "top": crowded}


class QuantityLadder:
    """The ladder of orders of one quantity: levels are order totals."""

    is_known = True

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
        self._tick, self._quantity = _grid(config, profile)
        self._range = price_range(config, profile, rules.tolerance, reference, lowest_ask)
        self.low: Level = self._range.low
        self.high: Level = self._range.high
        self.cause = self._range.cause  # why the range is empty, "" if it is not
        self._highest = self._range.high  # the highest price of a bid that outbids
        self._levels: list[int] | None = None
        if config.bid_levels is not None and (ratios := level_ratios(config, reference, self._quantity)) is not None:
            self._levels = [over // (under * self._tick) * self._tick for over, under in ratios]
            self._highest = min(self._highest, self._levels[0])

    @property
    def unit_ceiling(self) -> Decimal:
        """The unit price above which no bid can be outbid."""
        return quotient_up(max(self._highest, 1), self._quantity)

    def level(self, order: OwnOrder) -> Level:
        return order.price_sats

    def forbidden(self, order: OwnOrder) -> Reason | None:
        """Returns the reason why a live order must be cancelled, None if it may stay."""
        if order.quantity != self._quantity:
            return Reason.WRONG_QUANTITY
        return self._range.above if order.price_sats > self._range.most else None

    def is_low(self, order: OwnOrder) -> bool:
        return order.price_sats < self._range.low

    def rungs(self, top: Level, count: int, ceiling: Level | None = None) -> list[Rung]:
        """Returns `count` rungs from `top` down to the low end; `ceiling` limits all rungs except the first."""
        if self._levels is not None:
            prices = [min(level, int(top)) for level in self._levels[:count]]
        else:
            prices = _SHAPES[self._config.ladder_shape](self._range.low, int(top), count, self._tick)
        if ceiling is not None:
            most = max(floor_to_tick(int(ceiling), self._tick), self._range.low)
            prices = [*prices[:1], *(min(price, most) for price in prices[1:])]
        gap_parts = self._parts_of_gaps(prices, int(top))
        rungs = [self._rung(index, price, gap_parts[index]) for index, price in enumerate(prices)]
        if self._levels is not None:
            _note_bounds(rungs, prices, self._levels, self.low, self.high, self._range.top)
        if rungs and self._config.outbid_enabled:
            rungs[0].above = max(self._tick, self._two_steps(rungs[0].price_sats))
        return rungs

    def _rung(self, index: int, price: int, gap_part: int) -> Rung:
        """Returns a rung that keeps a bid within a fraction of its price or of a gap between rungs, at least a tick."""
        parts, of = self._reach
        reach = max(self._tick, price * parts // of, gap_part)
        return Rung(index, price, self._quantity, price, reach, reach)

    def _parts_of_gaps(self, prices: list[int], top: int) -> list[int]:
        """Returns each rung's tolerated distance as a part of the gap to the next rung; 0 for the top rung.

        0 for all rungs while outbidding. Example: a quarter of the gap between 72,000 and 15,000 in five is 3,562.
        """
        count = len(prices)
        if count < 2 or self._config.outbid_enabled:
            return [0] * count
        parts, of = self._config.keep_within_gap.as_integer_ratio()
        if self._levels is None and self._config.ladder_shape == "even":
            return [0] + [(top - self._range.low) * parts // ((count - 1) * of)] * (count - 1)
        return [int(gap) * parts // of for gap in nearest_gaps(prices)]

    def _two_steps(self, price: int) -> int:
        """Returns twice the outbid step at this price; the top bid does not step down for less."""
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


NOTHING = Fraction(0)


class SatsLadder:
    """The ladder of orders of up to `satsPerOrder` each: levels are unit prices.

    `divisibility` is the rune's number of decimals. Without it (`is_known` False) no quantity can be computed, and only
    methods that need none may be called.
    """

    def __init__(
        self,
        config: BidConfig,
        profile: VenueProfile,
        rules: Rules,
        reference: Exact | None,
        lowest_ask: Decimal | None,
        divisibility: int | None,
    ) -> None:
        self._config = config
        self._tolerance = Fraction(rules.tolerance)
        self._reach = Fraction(rules.reach)
        # While outbidding, a wide gap does not increase a rung's tolerance.
        self._share = NOTHING if config.outbid_enabled else Fraction(config.keep_within_gap)
        self._least = max(profile.min_bid, 1)
        self._ask = lowest_ask
        self._divisibility = divisibility
        ends = (config.bid_percent_low, config.bid_percent_high)
        low, high = (Fraction(end) * Fraction(reference) if reference is not None else None for end in ends)
        self.low: Level = low if low is not None else 0
        self.high: Level = high if high is not None else MAX_SATS
        self.cause = ""
        # If the ask is the high end, no live bid may be above it either.
        self._is_asked = lowest_ask is not None and self.high >= lowest_ask
        if lowest_ask is not None and self._is_asked:
            self.high = Fraction(lowest_ask)
        ratios = level_ratios(config, reference)
        self._levels = None if ratios is None else [Fraction(*ratio) for ratio in ratios]
        self._highest = min([self.high, *(self._levels or ())[:1]])  # the highest price of a bid that outbids
        if self.low > self.high:
            self.cause = "ask"
        elif config.sats_per_order < self._least:
            self.cause = "min_bid"

    @property
    def is_known(self) -> bool:
        """Whether orders can be computed."""
        return self._divisibility is not None

    @property
    def unit_ceiling(self) -> Decimal:
        """The unit price above which no bid can be outbid."""
        return quotient_up(self._highest.numerator, self._highest.denominator)

    def level(self, order: OwnOrder) -> Level:
        return Fraction(order.price_sats) * _inverse(order.quantity)

    def forbidden(self, order: OwnOrder) -> Reason | None:
        """Returns the reason why a live order must be cancelled, None if it may stay."""
        price, quantity = order.price_sats, Fraction(order.quantity)
        if price > self._config.sats_per_order or self._is_too_small(price, quantity):
            return Reason.WRONG_QUANTITY
        if 0 < self._config.hardcap_sats < price:
            return Reason.HARDCAP
        if self._is_asked and price > self._below_ask(quantity):
            return Reason.AT_ASK
        if self._ask is not None and price >= Fraction(self._ask) * quantity:
            return Reason.AT_ASK
        most = Fraction(self.high * quantity)
        spare = NOTHING if self._is_asked else max(Fraction(1), self._tolerance * most)
        return Reason.ABOVE_RANGE if price > most + spare else None

    def _is_too_small(self, price: int, quantity: Fraction) -> bool:
        """Tells whether the unused sats of the order would buy another smallest unit of the rune.

        Up to four unused sats do not count, because flooring the total and staying below an ask cost less than five.
        """
        if self._divisibility is None:
            return False
        unused = self._config.sats_per_order - price - 4
        return unused * quantity * 10**self._divisibility >= price

    def _below_ask(self, quantity: Fraction) -> int:
        assert self._ask is not None
        return math.floor(Fraction(self._ask) * quantity) - 1

    def is_low(self, order: OwnOrder) -> bool:
        """Tells whether an order is below the range by at least a sat; floored totals are less than a sat below."""
        return order.price_sats + 1 <= self.low * Fraction(order.quantity)

    def rungs(self, top: Level, count: int, ceiling: Level | None = None) -> list[Rung]:
        """Returns `count` rungs from the unit price `top` down to the low end, refused where no order is possible.

        `ceiling` limits all rungs except the first.
        """
        units = self._units(top, count)
        gap_parts = self._parts_of_gaps(units, top)
        if ceiling is not None:
            most = max(ceiling, self.low)
            units[1:] = [min(unit, most) for unit in units[1:]]
        rungs = [self._rung(index, unit, gap_parts[index]) for index, unit in enumerate(units)]
        if self._levels is not None:
            _note_bounds(rungs, units, self._levels, self.low, self.high, "ask" if self._is_asked else "high")
        if rungs and self._config.outbid_enabled and rungs[0].quantity:
            sat = _inverse(rungs[0].quantity)
            rungs[0].above = max(sat, self._two_steps(rungs[0]))
        return rungs

    def _units(self, top: Level, count: int) -> list[Level]:
        if self._levels is not None:
            return [min(level, top) for level in self._levels[:count]]
        if self._config.ladder_shape == "geometric":
            return [*geometric_units(Fraction(self.low), Fraction(top), count)]
        if self._config.ladder_shape == "top":
            return [*crowded_units(Fraction(self.low), Fraction(top), count)]
        gaps = max(count - 1, 1)
        return [top - Fraction(index, gaps) * (top - self.low) for index in range(count)]

    def _parts_of_gaps(self, units: list[Level], top: Level) -> list[Fraction]:
        """Returns each rung's tolerated distance as a part of the gap to the next rung; 0 for the top rung."""
        if self._levels is None and self._config.ladder_shape == "even":
            gap_part = self._share * Fraction(1, max(len(units) - 1, 1)) * (top - self.low)
            return [NOTHING, *[gap_part] * (len(units) - 1)]
        return [self._share * gap for gap in nearest_gaps(units)]

    def _two_steps(self, top: Rung) -> Fraction:
        """Returns twice the outbid step, per token; the top bid does not step down for less."""
        if self._config.outbid_mode == "percent":
            return 2 * Fraction(self._config.outbid_percent) * top.level
        return 2 * self._config.outbid_amount * _inverse(top.quantity)

    def _rung(self, index: int, unit: Level, gap_part: Fraction = NOTHING) -> Rung:
        """Returns a rung of all the smallest units that `satsPerOrder` buys at this price; their cost is rounded down.

        It keeps a bid within a fraction of its price or of the gap between two rungs, at least a sat per order.
        Example: 50,000 sats at 0.972972... buy 51,388 tokens for 49,999.
        """
        assert self._divisibility is not None
        unit = Fraction(unit)
        lots = self._lots(self._config.sats_per_order, unit)
        if lots == 0:
            return Rung(index, 0, Decimal(0), unit, 0, 0, Reason.BELOW_LOT)
        quantity = Decimal((0, tuple(map(int, str(lots))), -self._divisibility))
        tokens = Fraction(quantity)
        price = math.floor(unit * tokens)
        if self._ask is not None:
            price = min(price, self._below_ask(tokens))
        if self._config.hardcap_sats > 0:
            price = min(price, self._config.hardcap_sats)
        level, sat = Fraction(price) * _inverse(quantity), _inverse(quantity)
        reach = max(sat, self._reach * unit, gap_part)
        # The total was rounded down, so the distance above the rung is measured from the unrounded price.
        rung = Rung(index, price, quantity, level, reach, max(unit - level, NOTHING) + reach)
        if price < self._least:
            rung.refused, rung.detail = Reason.RANGE_EMPTY, "min_bid"
        return rung

    def _lots(self, sats: int, unit: Fraction) -> int:
        """Counts the rune's smallest units that this many sats buy."""
        assert self._divisibility is not None
        return sats * 10**self._divisibility * unit.denominator // unit.numerator

    def outbidding(self, bid: Bid) -> Level | None:
        """Returns the lowest unit price that outbids this bid by the config's step; None if that is not allowed."""
        sats, tokens = ratio(bid)
        theirs = Fraction(sats) * _inverse(tokens)
        unit = self._raised(theirs)
        if unit is None or unit > self._highest:
            return None
        top = self._rung(0, max(unit, self.low))
        return max(unit, self.low) if top.refused is None and is_above(top.price_sats, top.quantity, bid) else None

    def _raised(self, theirs: Fraction) -> Fraction | None:
        if self._config.outbid_mode == "percent":
            unit = theirs * (1 + Fraction(self._config.outbid_percent))
            more = (unit - theirs) * self._lots(self._config.sats_per_order, unit)
            if more >= 10 ** (self._divisibility or 0):  # a sat or more on the whole order
                return unit
            return self._spread(theirs, 1)
        return self._spread(theirs, max(self._config.outbid_amount, 1))

    def _spread(self, theirs: Fraction, amount: int) -> Fraction | None:
        """Returns the unit price `amount` sats per order above `theirs`, None if no order fits `satsPerOrder`."""
        lots = self._lots(max(self._config.sats_per_order - amount, 0), theirs)
        return theirs + Fraction(amount * 10 ** (self._divisibility or 0), lots) if lots else None


def _inverse(quantity: Decimal) -> Fraction:
    exact = Fraction(quantity)
    return Fraction(exact.denominator, exact.numerator)


Ladder: TypeAlias = QuantityLadder | SatsLadder


def ladder_for(
    config: BidConfig, profile: VenueProfile, rules: Rules, market: MarketPrices, divisibility: int | None
) -> Ladder:
    """Returns the ladder of this config in this market; `divisibility`: the rune's decimals, if known."""
    if config.is_rune and config.quantity_mode == "sats":
        return SatsLadder(config, profile, rules, market.exact, market.lowest_ask, divisibility)
    return QuantityLadder(config, profile, rules, market.exact, market.lowest_ask)
