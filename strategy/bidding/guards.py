"""Guards by the floor's own course: a task that bids only between two floors, or not after a sudden fall.

Everything comes from the samples of the reference, one a minute, which all tasks on a slug share and which survive a
restart, and from the reference of this cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from strategy.bidding.reference import MarketPrices
from strategy.book import History
from strategy.config.bid import BidConfig
from strategy.config.parts import FloorDrop
from strategy.pricing import times
from strategy.reasons import Reason

MINUTE_MS = 60_000
DAY_MINUTES = 1_440
_INSIDE_LOW, _INSIDE_HIGH = Decimal("1.01"), Decimal("0.99")  # back by 1 % before bids come back


@dataclass(frozen=True, slots=True)
class MinuteSample:
    """The reference in one minute since 1970: the first one seen, and the lowest, which was seen at `low_ms`.

    `high` is the highest before it was clamped: a floor beyond its bounds is outside, however far bids follow it.
    """

    minute: int
    reference: Decimal
    low: Decimal
    low_ms: int
    high: Decimal


def minutes_wanted(config: BidConfig) -> int:
    """Returns how many minutes of samples the task's guards look back; 0 without guards."""
    drop = config.pause_on_floor_drop
    of_drop = drop.window_minutes + drop.for_minutes if drop else 0
    return max(of_drop, DAY_MINUTES if config.only_while_floor_between is not None else 0)


def guarded(history: History, config: BidConfig, samples: Sequence[MinuteSample], now_ms: int) -> History:
    """Returns the history with what the task's guards need of these samples, oldest first."""
    minute = now_ms // MINUTE_MS
    drop, bounds = config.pause_on_floor_drop, config.only_while_floor_between
    if drop is not None:
        within = [sample for sample in samples if sample.minute >= minute - drop.window_minutes]
        history = replace(
            history,
            highest=max((sample.reference for sample in within), default=None),
            lowest=min((sample.low for sample in within), default=None),
            dropped_ms=_last_drop(drop, samples),
        )
    if bounds is not None:
        history = replace(history, was_outside=_was_outside(bounds, samples))
    return history


def guard_reason(config: BidConfig, market: MarketPrices, history: History, now_ms: int) -> Reason | None:
    """Returns `floor_drop` or `floor_guard` if a guard keeps the task from bidding now, None if none does.

    A fall is told by the reference at which bids would be made: while that is not known, one may be under way.
    Not while a collection's floor stands in for a trait's own, which is another price.
    """
    drop, bounds = config.pause_on_floor_drop, config.only_while_floor_between
    if drop is not None:
        if history.dropped_ms is not None and now_ms - history.dropped_ms < drop.for_minutes * MINUTE_MS:
            return Reason.FLOOR_DROP
        if market.reference is None:
            return Reason.FLOOR_GUARD
        stands_in = Reason.TRAIT_FLOOR_MISSING in market.marks
        if not stands_in and _is_fall(drop, market.reference, history.highest, history.lowest):
            return Reason.FLOOR_DROP
    if bounds is not None and _is_outside(bounds, market.raw, history.was_outside):
        return Reason.FLOOR_GUARD
    return None


def _is_fall(drop: FloorDrop, price: Decimal, highest: Decimal | None, lowest: Decimal | None) -> bool:
    """Tells whether this is a new low of the window, and far enough below its highest price.

    Only a new low begins the pause anew: 89,000 after 100,000 is a fall by a tenth for the rest of the hour.
    """
    is_new = lowest is None or price < lowest
    return highest is not None and is_new and price < times(highest, 1 - drop.percent)


def _last_drop(drop: FloorDrop, samples: Sequence[MinuteSample]) -> int | None:
    """Returns when the last sample was seen that was a fall when it came."""
    highest = _Extreme(drop.window_minutes, lambda one, other: one > other)
    lowest = _Extreme(drop.window_minutes, lambda one, other: one < other)
    found = None
    for sample in samples:
        highest.add(sample.minute, sample.reference)
        if _is_fall(drop, sample.low, highest.at(sample.minute), lowest.at(sample.minute)):
            found = sample.low_ms
        lowest.add(sample.minute, sample.low)
    return found


class _Extreme:
    """The greatest, or least, price of the last minutes."""

    def __init__(self, minutes: int, is_beyond: Callable[[Decimal, Decimal], bool]) -> None:
        self._minutes = minutes
        self._is_beyond = is_beyond
        self._prices: deque[tuple[int, Decimal]] = deque()

    def add(self, minute: int, price: Decimal) -> None:
        while self._prices and not self._is_beyond(self._prices[-1][1], price):
            self._prices.pop()
        self._prices.append((minute, price))

    def at(self, minute: int) -> Decimal | None:
        while self._prices and self._prices[0][0] < minute - self._minutes:
            self._prices.popleft()
        return self._prices[0][1] if self._prices else None


def _is_outside(bounds: tuple[Decimal, ...], floor: Decimal | None, was_outside: bool) -> bool:
    """Tells whether the floor is outside, or was and has not come back by 1 %. An unknown floor is not inside."""
    low, high = bounds
    if floor is None or not low <= floor <= high:
        return True
    return was_outside and not _is_well_inside(bounds, floor)


def _is_well_inside(bounds: tuple[Decimal, ...], floor: Decimal) -> bool:
    low, high = bounds
    return times(low, _INSIDE_LOW) <= floor <= times(high, _INSIDE_HIGH)


def _was_outside(bounds: tuple[Decimal, ...], samples: Sequence[MinuteSample]) -> bool:
    """Tells by the last sample that is outside, or well inside, on which side the task stood."""
    for sample in reversed(samples):
        if sample.low < bounds[0] or sample.high > bounds[1]:
            return True
        if _is_well_inside(bounds, sample.low) or _is_well_inside(bounds, sample.high):
            return False
    return False
