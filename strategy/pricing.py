"""Prices: the grid, the reference price, the volume-weighted average. Exact integers and Decimals, no floats."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext

from strategy.book import Ask, Snapshot

# Wide enough that a product of a fraction, a unit price and a rune quantity is never rounded: a product that were
# rounded up to the next whole sat would be a bid above its range. Independent of the caller's own context.
_EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow])
_AVERAGE = Context(prec=50, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow])


def times(*factors: Decimal | int) -> Decimal:
    """The exact product."""
    product = Decimal(1)
    for factor in factors:
        product = _EXACT.multiply(product, factor)
    return product


def floor_to_tick(value: Decimal | int, tick: int) -> int:
    """The highest multiple of `tick` that is not above `value` (sats)."""
    return math.floor(value) // tick * tick


def ceil_to_tick(value: Decimal | int, tick: int) -> int:
    """The lowest multiple of `tick` that is not below `value` (sats)."""
    return -(-math.ceil(value) // tick) * tick


def reference(snapshot: Snapshot | None, stale_after_ms: int, now_ms: int) -> Decimal | None:
    """The lowest unit ask, in sats per token; None when it is not known.

    Not known is: the read failed or was cut short, it is older than `stale_after_ms`, nothing is listed, or
    something is listed for nothing. Never the second lowest or an average: after a sweep of the floor these are
    even higher than the lowest.
    """
    if snapshot is None or not snapshot.complete or now_ms - snapshot.taken_ms > stale_after_ms:
        return None
    lowest = min((ask.unit_price for ask in snapshot.asks), default=None)
    return lowest if lowest is not None and lowest.is_finite() and lowest > 0 else None


def vwap(asks: Iterable[Ask], depth_sats: int) -> tuple[Decimal | None, int]:
    """What a token costs on average when `depth_sats` are spent on the cheapest asks, and how much was spent.

    Asks are walked upwards and the last one is taken in part; a book thinner than the depth gives the average of
    what there is. (None, 0) when nothing can be bought. Example: 400,000 @ 1.00, 300,000 @ 1.10 and 800,000 @ 1.20
    with depth 1,000,000: 400,000 + 330,000 + 270,000 sats buy 925,000 tokens, 1.081081... each.
    """
    spent = bought = Decimal(0)
    with localcontext(_AVERAGE):
        for ask in sorted((a for a in asks if a.unit_price > 0 and a.quantity > 0), key=lambda a: a.unit_price):
            affordable = min(ask.quantity, (depth_sats - spent) / ask.unit_price)
            if affordable <= 0:
                break
            if affordable < ask.quantity:
                bought += affordable
                spent = Decimal(depth_sats)
                break
            bought += ask.quantity
            spent += ask.unit_price * ask.quantity
        return (spent / bought, math.floor(spent)) if bought else (None, 0)
