"""Exact arithmetic on prices: the grid, products, quotients, the volume-weighted average. No floats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import (
    ROUND_CEILING,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from operator import attrgetter
from typing import TypeAlias

from strategy.book import Ask

Exact: TypeAlias = Decimal | Fraction  # a price of a token that was not rounded

# Wide enough that a product of a fraction, a unit price and a rune quantity is never rounded: rounded up to the next
# whole sat it would be a bid above its range. Independent of the caller's own context.
_EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow])
_AVERAGE = Context(prec=50, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow])
_HALVES = Context(prec=1_000)  # more digits than any price has: sums and halves are not rounded
_UP = Context(prec=50, rounding=ROUND_CEILING, traps=[InvalidOperation, DivisionByZero, Overflow])


def times(first: Decimal | int, *others: Decimal | int) -> Decimal:
    """Returns the exact product."""
    product = Decimal(first)
    for factor in others:
        product = _EXACT.multiply(product, factor)
    return product


def plus(*terms: Decimal | int) -> Decimal:
    """Returns the exact sum."""
    total = Decimal(0)
    for term in terms:
        total = _EXACT.add(total, term)
    return total


def ceil_quotient(value: Decimal | int, divisor: Decimal | int) -> int:
    """Returns the lowest whole number that is not below value / divisor; both above zero."""
    whole, rest = _EXACT.divmod(value, divisor)
    return int(whole) + (1 if rest else 0)


def ratio_of(*factors: Decimal | Fraction | int) -> tuple[int, int]:
    """Returns two whole numbers whose quotient is the exact product, the second above zero; faster than fractions."""
    above = below = 1
    for factor in factors:
        over, under = factor.as_integer_ratio()
        above, below = above * over, below * under
    return above, below


def quotient_up(value: Decimal | int, divisor: Decimal | int) -> Decimal:
    """Returns value / divisor, rounded up in the fiftieth digit if at all."""
    return _UP.divide(value, divisor)


def floor_to_tick(value: Decimal | int, tick: int) -> int:
    """Returns the highest multiple of `tick` that is not above `value` (sats)."""
    return math.floor(value) // tick * tick


def ceil_to_tick(value: Decimal | int, tick: int) -> int:
    """Returns the lowest multiple of `tick` that is not below `value` (sats)."""
    return -(-math.ceil(value) // tick) * tick


def vwap(asks: Iterable[Ask], depth_sats: int) -> tuple[Decimal | None, int]:
    """Returns a token's average cost when `depth_sats` are spent on the cheapest asks, and the sats spent.

    Asks are walked upwards and the last one is taken in part; a book thinner than the depth gives the average of the
    whole book. (None, 0) when nothing can be bought. Example: 400,000 @ 1.00, 300,000 @ 1.10 and 800,000 @ 1.20 with
    depth 1,000,000: 400,000 + 330,000 + 270,000 sats buy 925,000 tokens, 1.081081... each.
    """
    average, spent = average_cost(asks, depth_sats)
    return None if average is None else rounded(average), math.floor(spent)


def median(ascending: Sequence[Decimal]) -> Decimal:
    """Returns the median of at least one price in ascending order, exactly."""
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return _HALVES.divide(_HALVES.add(ascending[middle - 1], ascending[middle]), Decimal(2))


def rounded(exact: Fraction) -> Decimal:
    """Returns the fraction with fifty digits, as it is shown and kept."""
    return _AVERAGE.divide(exact.numerator, exact.denominator)


def average_cost(asks: Iterable[Ask], depth_sats: int) -> tuple[Fraction | None, Decimal]:
    """Returns `vwap` and the amount spent, both exact."""
    spent = bought = Decimal(0)
    for ask in sorted((a for a in asks if a.unit_price > 0 and a.quantity > 0), key=attrgetter("unit_price")):
        cost = times(ask.unit_price, ask.quantity)
        rest = _EXACT.subtract(depth_sats, spent)
        if cost >= rest:
            # depth / (bought + rest / unit), without the inner quotient
            tokens = plus(times(bought, ask.unit_price), rest)
            return (_quotient(times(depth_sats, ask.unit_price), tokens) if tokens else None), Decimal(depth_sats)
        spent, bought = plus(spent, cost), plus(bought, ask.quantity)
    return (_quotient(spent, bought) if bought else None), spent


def _quotient(value: Decimal, divisor: Decimal) -> Fraction:
    return Fraction(value) / Fraction(divisor)


def plain(number: Decimal) -> str:
    """Writes a finite `number` in its only form, digits without an exponent or needless zeros: 1E+3 is "1000", 0.150 is
    "0.15".

    Signed texts, orders and answers have numbers in it.
    """
    digits = format(number, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits in ("-0", "") else digits
