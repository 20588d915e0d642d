"""The law of an output's value: a share of the price, the postage or not, and fixed sats; worked out from drafts.

Exact: a law gives each draft's value to the sat, or it is none. Standard library only, since the command line shows
laws, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Rounding = Literal["down", "up", "nearest"]

# The whole of a price, in quarters of a basis point. Fees are no finer: any finer share could be drawn through values
# that follow no law.
WHOLE = 40_000
# Prices this far apart, in sats, tell a quarter of a basis point from the next, whatever was rounded.
LEAST_SPAN = 100_000
ROUNDINGS: tuple[Rounding, ...] = ("down", "up", "nearest")
# Added to the product before it is cut to whole sats.
_BEFORE_THE_CUT: dict[Rounding, int] = {"down": 0, "up": WHOLE - 1, "nearest": WHOLE // 2}


@dataclass(frozen=True, slots=True)
class Law:
    """value = price × `quarters` / 40,000, rounded, + postage, if `has_postage`, + `sats` (may be below 0).

    97.5 % of the price and the postage: (39_000, "down", True, 0) is 975,546 at 1,000,000 and 546.
    """

    quarters: int
    rounding: Rounding
    has_postage: bool
    sats: int

    def value(self, price: int, postage: int) -> int:
        """Returns the output's sats at this price, for an item on so many sats."""
        return share(price, self.quarters, self.rounding) + (postage if self.has_postage else 0) + self.sats


@dataclass(frozen=True, slots=True)
class Sample:
    """An output's `value` in a draft, and the price and the postage of that draft, in sats."""

    price: int
    postage: int
    value: int


def share(price: int, quarters: int, rounding: Rounding) -> int:
    """Returns so many quarters of a basis point of the price, in whole sats."""
    return (price * quarters + _BEFORE_THE_CUT[rounding]) // WHOLE


def laws_of(samples: Sequence[Sample]) -> tuple[Law, ...]:
    """Returns every law by which all samples come out to the sat, none if there is no such law.

    Prices at least LEAST_SPAN apart tell the share. Drafts of items with one postage cannot tell it from fixed sats:
    then both laws are returned.
    """
    found = []
    for has_postage in (False, True):
        rests = [(each.price, each.value - (each.postage if has_postage else 0)) for each in samples]
        quarters = _share_of(rests)
        if quarters is None:
            continue
        fixed = {rounding: _fixed(rests, quarters, rounding) for rounding in ROUNDINGS}
        fitting = {rounding: sats for rounding, sats in fixed.items() if sats is not None}
        if not fitting:
            continue
        # The simplest: with the fewest fixed sats; and whole prices are never rounded.
        fewest = min(map(abs, fitting.values()))
        laws = [Law(quarters, each, has_postage, sats) for each, sats in fitting.items() if abs(sats) == fewest]
        found += laws if quarters % WHOLE else laws[:1]
    return tuple(found)


def _share_of(rests: Sequence[tuple[int, int]]) -> int | None:
    """Returns the share that the values rise by between the lowest price and the highest, to the nearest quarter."""
    (low, at_low), (high, at_high) = min(rests), max(rests)
    between, rise = high - low, at_high - at_low
    if between < LEAST_SPAN or rise < 0:
        return None
    return (rise * WHOLE + between // 2) // between


def _fixed(rests: Sequence[tuple[int, int]], quarters: int, rounding: Rounding) -> int | None:
    """Returns the rest that all samples have beside their share of the price; None when it differs."""
    found = {value - share(price, quarters, rounding) for price, value in rests}
    return found.pop() if len(found) == 1 else None
