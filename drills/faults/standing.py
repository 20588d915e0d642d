"""A bid's right to its place, by the inputs of its task's cycle: the rules a second time, as fractions."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

from strategy.config.bid import BidConfig

TOLERANCE = Decimal("0.01")  # the service's, where the task has none of its own
TICK = 1_000  # of the practice marketplace, for all but runes
# Bids with these go at any age, or are not the cycle's to judge.
GOING = frozenset(
    {"hardcap", "at_ask", "above_range", "wrong_trait", "wrong_quantity", "wrong_slug", "overdue", "dry_run", "halt"}
    | {"expired", "no_reference"}
)


def may_stand(config: BidConfig, price: int, quantity: Decimal, seen: Mapping[str, Any]) -> bool:
    """Tells whether a bid of this total may be left alone; `seen` is the market of the cycle, empty if unknown.

    Never above the hard cap nor at an ask. Above the high end by the tolerance, a tick at least, where the market moves
    the high end; by nothing where the hard cap or the ask is the high end, or the owner's own number.
    """
    if 0 < config.hardcap_sats < price:
        return False
    if config.bid_mode == "fixed" and price > config.bid_fixed_high:
        return False
    tokens = Fraction(quantity)
    reference = seen.get("reference")
    # A trait's own asks are not told, and of a book that was cut short nobody knows the lowest.
    is_known = reference is not None and config.bid_type == "collection"
    ask = seen.get("lowest_ask") if is_known else None
    if ask is not None and price >= Fraction(ask) * tokens:
        return False
    if config.bid_mode == "fixed" or reference is None:
        return True
    tick = 1 if config.is_rune else TICK
    tolerance = Fraction(TOLERANCE if config.update_tolerance is None else config.update_tolerance)
    high, is_moved = Fraction(config.bid_percent_high) * Fraction(reference) * tokens, True
    caps = [] if ask is None else [Fraction(ask) * tokens - tick]
    if config.hardcap_sats and config.quantity_mode == "quantity":
        caps.append(Fraction(config.hardcap_sats))
    if caps and floor(min(caps)) <= floor(high):
        high, is_moved = min(caps), False
    if config.quantity_mode == "quantity":
        high = Fraction(floor(high / tick) * tick)
    # What was seen is told with fifty digits.
    most = high + max(Fraction(tick), tolerance * high) if is_moved else high
    return price <= most + Fraction(1, 10**30)
