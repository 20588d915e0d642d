"""The law of an output's value: a share of the price, the postage or not, and fixed sats; worked out from drafts.

Exact: a law gives each draft's value to the sat, or it is none. Standard library only, since the command line shows
laws, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Rounding = Literal["down", "up", "nearest"]

PPM = 1_000_000
_MOST_PPM = 2 * PPM  # an output may hold a buyer's fee beside the price
ROUNDINGS: tuple[Rounding, ...] = ("down", "up", "nearest")
# Added to the product before it is cut to whole sats.
_BEFORE_THE_CUT: dict[Rounding, int] = {"down": 0, "up": PPM - 1, "nearest": PPM // 2}
# Fees are quarters of a basis point at least. Any share would let a line be drawn through values that follow no law.
_FINEST = 25
# Of the shares that fit, the one that divides by the first of these: fees are round numbers.
_ROUND_SHARES = tuple(unit // part for unit in (PPM, 100_000, 10_000, 1_000, 100) for part in (1, 2, 4))


@dataclass(frozen=True, slots=True)
class Law:
    """value = price × `price_ppm` / 1,000,000, rounded, + postage, if `has_postage`, + `sats` (may be below 0).

    975,000 of 1,000,000 and a postage of 546 is 975,546: (975_000, "down", True, 0).
    """

    price_ppm: int
    rounding: Rounding
    has_postage: bool
    sats: int

    def value(self, price: int, postage: int) -> int:
        """Returns the output's sats at this price, for an item on so many sats."""
        return share(price, self.price_ppm, self.rounding) + (postage if self.has_postage else 0) + self.sats


@dataclass(frozen=True, slots=True)
class Sample:
    """An output's `value` in a draft, and the price and the postage of that draft, in sats."""

    price: int
    postage: int
    value: int


def share(price: int, ppm: int, rounding: Rounding) -> int:
    """Returns so many millionths of the price, in whole sats."""
    return (price * ppm + _BEFORE_THE_CUT[rounding]) // PPM


def laws_of(samples: Sequence[Sample]) -> tuple[Law, ...]:
    """Returns every law by which all samples come out to the sat, none if there is no such law.

    Three prices tell the share. Drafts of items with one postage cannot tell it from fixed sats: then both laws are
    returned. Of shares that differ by less than these prices can show, the roundest is taken.
    """
    found = []
    for has_postage in (False, True):
        rests = [Sample(each.price, 0, each.value - (each.postage if has_postage else 0)) for each in samples]
        fitting = [
            Law(ppm, rounding, has_postage, sats)
            for ppm in _shares(rests)
            for rounding in ROUNDINGS
            if (sats := _fixed(rests, ppm, rounding)) is not None
        ]
        if fitting:
            roundest = min(fitting, key=_roundness).price_ppm
            found += _simplest([law for law in fitting if law.price_ppm == roundest])
    return tuple(found)


def _shares(samples: Sequence[Sample]) -> range:
    """Returns the shares that may fit: rounding moves the difference of two values by less than 1 sat."""
    low, high = (pick(samples, key=lambda each: each.price) for pick in (min, max))
    between, rise = high.price - low.price, high.value - low.value
    if not between:
        return range(0)
    least, most = max(0, (rise - 1) * PPM // between), min(_MOST_PPM, (rise + 1) * PPM // between + 1)
    return range(-(-least // _FINEST) * _FINEST, most + 1, _FINEST)


def _fixed(samples: Sequence[Sample], ppm: int, rounding: Rounding) -> int | None:
    """Returns the rest that all samples have beside their share of the price; None when it differs."""
    rests = {each.value - share(each.price, ppm, rounding) for each in samples}
    return rests.pop() if len(rests) == 1 else None


def _roundness(law: Law) -> tuple[int, int]:
    return next(at for at, unit in enumerate(_ROUND_SHARES) if law.price_ppm % unit == 0), law.price_ppm


def _simplest(laws: list[Law]) -> list[Law]:
    """Returns the laws with the fewest fixed sats, and one of those that never give different values."""
    fewest = min(abs(law.sats) for law in laws)
    simple = [law for law in laws if abs(law.sats) == fewest]
    return simple[:1] if simple[0].price_ppm % PPM == 0 else simple  # whole prices are never rounded
