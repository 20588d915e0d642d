"""The distances between a ladder's rungs: by the owner's own levels, or by the shape of its ladder."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from strategy.config.bid import BidConfig
from strategy.pricing import Exact, ratio_of

_FINE = 10**12  # the parts of a rune's lowest unit price to which a root is exact


def level_ratios(config: BidConfig, reference: Exact | None, *factors: Exact) -> list[tuple[int, int]] | None:
    """Returns the price of each wanted bid, highest first, as a quotient of whole numbers; None without levels.

    In percent mode a price is `at` of the reference, times `factors`; without a reference none is known.
    """
    if config.bid_levels is None or (reference is None and config.bid_mode == "percent"):
        return None
    times: tuple[Exact, ...] = () if config.bid_mode == "fixed" or reference is None else (reference, *factors)
    falling = sorted(config.bid_levels, key=lambda level: -level.at)
    return [ratio for level in falling for ratio in [ratio_of(level.at, *times)] * level.count]


def crowded(low: int, high: int, count: int, tick: int) -> list[int]:
    """Spreads prices from `high` down to `low`, most of them near the top: the distance from it grows by squares.

    Each is floored to the grid. Example: 75,000 down to 15,000 in 5: 75,000 / 71,000 / 60,000 / 41,000 / 15,000.
    """
    squares = max(count - 1, 1) ** 2
    return [(high * squares - i * i * (high - low)) // (squares * tick) * tick for i in range(count)]


def geometric(low: int, high: int, count: int, tick: int) -> list[int]:
    """Spreads prices from `high` down to `low` (above zero), each the same part of the one above it.

    Each is floored to the grid. Example: 80,000 down to 10,000 in 4: 80,000 / 40,000 / 20,000 / 10,000.
    """
    gaps = max(count - 1, 1)
    return [whole_root(high ** (gaps - i) * low**i, gaps) // tick * tick for i in range(count)]


def geometric_units(low: Fraction, high: Fraction, count: int) -> list[Fraction]:
    """Spreads unit prices from `high` down to `low` (above zero), each the same part of the one above it.

    Between the ends they are rounded down to a millionth of a millionth of the lowest.
    """
    gaps = max(count - 1, 1)
    grain = low * Fraction(1, _FINE)
    parts = high * Fraction(grain.denominator, grain.numerator)
    units = [high]
    for i in range(1, count - 1):
        product = parts ** (gaps - i) * _FINE**i
        units.append(grain * whole_root(product.numerator // product.denominator, gaps))
    return [*units, low][:count]


def crowded_units(low: Fraction, high: Fraction, count: int) -> list[Fraction]:
    """Spreads unit prices from `high` down to `low`, most of them near the top, as `crowded`."""
    squares = max(count - 1, 1) ** 2
    return [high - Fraction(i * i, squares) * (high - low) for i in range(count)]


def whole_root(number: int, degree: int) -> int:
    """Returns the greatest whole number whose `degree`-th power is not above `number`.

    By Newton's method from above, which never passes the root. It begins less than twice too high: from far above it
    takes a step for each hundredth part of the way where the degree is a hundred.
    """
    if degree == 1 or number == 0:
        return number
    root = 2 ** -(-number.bit_length() // degree)
    while (power := root ** (degree - 1)) * root > number:
        root = ((degree - 1) * root + number // power) // degree
    return root


def nearest_gaps(levels: Sequence[int | Fraction]) -> list[int | Fraction]:
    """Returns each rung's distance to the nearest other level; 0 at the top level, whose bids keep to their price."""
    distinct = sorted(set(levels))
    gaps: dict[int | Fraction, int | Fraction] = {}
    for place, level in enumerate(distinct[:-1]):
        above = distinct[place + 1] - level
        gaps[level] = min(above, level - distinct[place - 1]) if place else above
    return [gaps.get(level, 0) for level in levels]
