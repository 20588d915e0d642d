"""Rune orders of a fixed number of sats (`quantityMode` sats): rungs are prices of a token, quantities follow.

Fractions are exact: neither a price nor a quantity is rounded before it must be a whole number of sats or of the
rune's smallest unit.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from strategy.bid_config import MAX_SATS, BidConfig
from strategy.bidding.pairing import Level, Rung
from strategy.bidding.spacing import crowded_units, geometric_units, level_ratios, nearest_gaps
from strategy.book import Bid, VenueProfile
from strategy.plan import OwnOrder, Rules
from strategy.pricing import Exact, quotient_up
from strategy.ranking import is_above, ratio
from strategy.reasons import Reason

NOTHING = Fraction(0)


class SatsLadder:
    """Orders of `satsPerOrder` at most: levels are unit prices.

    `divisibility` is the rune's number of decimals; without it no quantity can be computed, and only questions that
    need none are answered (`is_known`).
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
        # While outbidding a wide gap does not widen a rung's tolerance.
        self._share = NOTHING if config.outbid_enabled else Fraction(config.keep_within_gap)
        self._least = max(profile.min_bid, 1)
        self._ask = lowest_ask
        self._divisibility = divisibility
        ends = (config.bid_percent_low, config.bid_percent_high)
        low, high = (Fraction(end) * Fraction(reference) if reference is not None else None for end in ends)
        self.low: Level = low if low is not None else 0
        self.high: Level = high if high is not None else MAX_SATS
        self.cause = ""
        # If the ask is the high end, a live bid may not be above it either.
        self._is_asked = lowest_ask is not None and self.high >= lowest_ask
        if lowest_ask is not None and self._is_asked:
            self.high = Fraction(lowest_ask)
        ratios = level_ratios(config, reference)
        self._levels = None if ratios is None else [Fraction(*ratio) for ratio in ratios]
        self._highest = min([self.high, *(self._levels or ())[:1]])  # of a bid that outbids
        if self.low > self.high:
            self.cause = "ask"
        elif config.sats_per_order < self._least:
            self.cause = "min_bid"

    @property
    def is_known(self) -> bool:
        """Whether orders can be computed at all."""
        return self._divisibility is not None

    @property
    def unit_ceiling(self) -> Decimal:
        """The unit price above which no bid can be outbid."""
        return quotient_up(self._highest.numerator, self._highest.denominator)

    def level(self, order: OwnOrder) -> Level:
        """Returns the level of an order of ours."""
        return Fraction(order.price_sats) * _inverse(order.quantity)

    def forbidden(self, order: OwnOrder) -> Reason | None:
        """Says why an order may not be there at all, None when it may."""
        price, quantity = order.price_sats, Fraction(order.quantity)
        if price > self._config.sats_per_order or self._is_too_small(price, quantity):
            return Reason.WRONG_QUANTITY
        if 0 < self._config.hardcap_sats < price:
            return Reason.HARDCAP
        if self._ask is not None:
            reaches = price > self._below_ask(quantity) if self._is_asked else price >= Fraction(self._ask) * quantity
            if reaches:
                return Reason.AT_ASK
        most = Fraction(self.high * quantity)
        spare = NOTHING if self._is_asked else max(Fraction(1), self._tolerance * most)
        return Reason.ABOVE_RANGE if price > most + spare else None

    def _is_too_small(self, price: int, quantity: Fraction) -> bool:
        """Tells whether the order is too small: one more of the smallest unit would fit with sats to spare.

        Flooring the total and staying below an ask leave less than five sats unused.
        """
        if self._divisibility is None:
            return False
        unused = self._config.sats_per_order - price - 4
        return unused * quantity * 10**self._divisibility >= price

    def _below_ask(self, quantity: Fraction) -> int:
        assert self._ask is not None
        return math.floor(Fraction(self._ask) * quantity) - 1

    def is_low(self, order: OwnOrder) -> bool:
        """Tells whether an order is below the range. Totals are floored: the lowest rung's is less than a sat below."""
        return order.price_sats + 1 <= self.low * Fraction(order.quantity)

    def rungs(self, top: Level, count: int, ceiling: Level | None = None) -> list[Rung]:
        """Returns `count` rungs from the unit price `top` down to the low end, refused where no order is possible.

        The lower ones are not above `ceiling`.
        """
        units = self._units(top, count)
        gap_parts = self._parts_of_gaps(units, top)
        if ceiling is not None:
            most = max(ceiling, self.low)
            units[1:] = [min(unit, most) for unit in units[1:]]
        rungs = [self._rung(index, unit, gap_parts[index]) for index, unit in enumerate(units)]
        if self._levels is not None:
            self._bound(rungs, units)
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
        """Returns for each rung the part of the gap to the next one that a bid may be away from it; 0 at the top."""
        if self._levels is None and self._config.ladder_shape == "even":
            gap_part = self._share * Fraction(1, max(len(units) - 1, 1)) * (top - self.low)
            return [NOTHING, *[gap_part] * (len(units) - 1)]
        return [self._share * gap for gap in nearest_gaps(units)]

    def _bound(self, rungs: list[Rung], units: list[Level]) -> None:
        """Notes which levels the range lowers, and refuses those below it: a bid is never above its owner's level."""
        assert self._levels is not None
        for rung, unit, level in zip(rungs, units, self._levels, strict=False):
            if unit < self.low:
                rung.refused, rung.detail = Reason.RANGE_EMPTY, "low"
            elif level > self.high:
                rung.lowered = "ask" if self._is_asked else "high"

    def _two_steps(self, top: Rung) -> Fraction:
        """Returns twice the step of outbidding in the price of a token: the top bid does not step down for less."""
        if self._config.outbid_mode == "percent":
            return 2 * Fraction(self._config.outbid_percent) * top.level
        return 2 * self._config.outbid_amount * _inverse(top.quantity)

    def _rung(self, index: int, unit: Level, gap_part: Fraction = NOTHING) -> Rung:
        """Makes a rung of as many smallest units as `satsPerOrder` buys at this price, at their cost rounded down.

        It keeps a bid within a part of its price or of the gap between two rungs, a sat an order at least. Example:
        50,000 sats at 0.972972... buy 51,388 tokens for 49,999.
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
        # The total was rounded down: above the rung the unrounded price counts.
        rung = Rung(index, price, quantity, level, reach, max(unit - level, NOTHING) + reach)
        if price < self._least:
            rung.refused, rung.detail = Reason.RANGE_EMPTY, "min_bid"
        return rung

    def _lots(self, sats: int, unit: Fraction) -> int:
        """Counts the rune's smallest units that this many sats buy."""
        assert self._divisibility is not None
        return sats * 10**self._divisibility * unit.denominator // unit.numerator

    def outbidding(self, bid: Bid) -> Level | None:
        """Returns the lowest unit price that outbids this bid by the config's step, if an order of it is allowed."""
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
        """Returns `theirs` and `amount` sats spread over an order of quantity q; (theirs + amount / q) x q must fit."""
        lots = self._lots(max(self._config.sats_per_order - amount, 0), theirs)
        return theirs + Fraction(amount * 10 ** (self._divisibility or 0), lots) if lots else None


def _inverse(quantity: Decimal) -> Fraction:
    exact = Fraction(quantity)
    return Fraction(exact.denominator, exact.numerator)
