"""The market prices that a plan depends on, their plausibility checks, and the guards that watch the floor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from strategy.book import Ask, Bid, Exact, History, Snapshot, average_cost, plus, rounded, times
from strategy.config.bid import BidConfig, FloorDrop
from strategy.decision import Rules
from strategy.reasons import Reason

WINDOW_MINUTES = 60  # of the history that a reference is compared with
KEPT_MINUTES = 1_440  # for tasks with a guard against a fall


def measure(config: BidConfig) -> str:
    """Returns the key of this config's reference: tasks of one slug with the same key share its history."""
    found = "floor"
    if config.bid_type == "trait":
        kind = config.trait_type.replace("\\", "\\\\").replace("=", "\\=")  # "A=B" of "c" is not "A" of "B=c"
        found = f"trait:{kind}={config.trait_value}"
    elif config.is_rune and config.use_vwap:
        found = f"vwap:{config.depth_sats}"
    return found + without_addresses(config.ignore_addresses)


def without_addresses(ignored: Collection[str]) -> str:
    """Returns the end of a measure that excludes the orders of these addresses."""
    return f" without {' '.join(sorted(ignored))}" if ignored else ""


class MarketPrices(Struct, frozen=True):
    """Unit prices in sats per item or token, None if unknown. `bids` are those of others, None if unknown.

    - `reference` is `raw` clamped to the history.
    - `exact` is the reference before an average is rounded, and the basis of prices: at an average of 4/3, 9,000 tokens
      at 70 % are 8,400 sats, not 8,399.
    - `cause` is the reason code for a missing reference; "" if there is one, or if simply no ask is known.
    """

    raw: Decimal | None = None
    reference: Decimal | None = None
    exact: Exact | None = None
    lowest_ask: Decimal | None = None
    bids: tuple[Bid, ...] | None = None
    marks: tuple[Reason, ...] = ()
    cause: str = ""


def read_prices(config: BidConfig, snapshot: Snapshot | None, rules: Rules, now_ms: int) -> MarketPrices:
    """Reads the prices that a task with this config needs.

    A price is unknown if it could not be read, was cut short, is older than `stale_after_ms`, is not listed, or is 0.
    An unreadable ask removes the VWAP, and the reference if it may be the cheapest ask: without that ask both would be
    too high. The ask cap stays.

    The reference is the lowest ask, never the second lowest or an average: after a sweep of the floor these are even
    higher. Runes may use the VWAP, which needs a book of at least half the depth. Trait tasks use the lowest ask with
    the trait. If none is known, the collection's floor, which cannot be above it, replaces it as reference, and in
    percent mode also as the ask that bids stay below. With a fixed range the owner has priced the trait, so the task
    bids without the ask cap.
    """
    if snapshot is None or now_ms - snapshot.as_of_ms > rules.stale_after_ms:
        return MarketPrices()
    if not snapshot.complete:
        return MarketPrices(bids=snapshot.bids)
    raw = lowest = _lowest(snapshot.asks)
    marks: list[Reason] = []
    if config.bid_type == "trait":
        with_trait = _lowest(snapshot.trait_asks or ())
        if with_trait is not None:
            raw = lowest = with_trait
        else:
            marks.append(Reason.TRAIT_FLOOR_MISSING)
            lowest = raw if config.bid_mode == "percent" else None
    if not snapshot.is_floor_sure:
        raw = None
    cause = ""
    average: Fraction | None = None
    if config.is_rune and config.use_vwap and lowest is not None:
        if snapshot.is_depth_sure:
            average, spent = average_cost(snapshot.asks, config.depth_sats)
            average = average if plus(spent, spent) >= config.depth_sats else None
        raw = None if average is None else rounded(average)
        if average is None:
            cause = Reason.THIN_BOOK.value
            marks.append(Reason.THIN_BOOK)
    clamped, found = clamp(raw, snapshot.history, rules)
    if config.bid_mode == "percent":
        marks = [*found, *marks]
    exact = clamped if average is None or clamped != raw else average
    return MarketPrices(raw, clamped, exact, lowest, snapshot.bids, tuple(marks), cause)


def clamp(raw: Decimal | None, history: History, rules: Rules) -> tuple[Decimal | None, tuple[Reason, ...]]:
    """Returns the reference, clamped to `spike_factor` medians of the last hour, and marks about it.

    A fall is followed immediately, because a lower price is safe for a buyer. Example: median 100,000 and raw 180,000
    give 125,000.
    """
    if raw is None:
        return None, ()
    if history.median is None or history.median <= 0 or history.samples < rules.min_samples:
        return raw, (Reason.COLD_START,)
    most = times(rules.spike_factor, history.median)
    if raw <= most:
        return raw, ()
    if raw > times(rules.alarm_factor, history.median):
        return most, (Reason.FLOOR_SPIKE, Reason.FLOOR_ALARM)
    return most, (Reason.FLOOR_SPIKE,)


def _lowest(asks: Iterable[Ask]) -> Decimal | None:
    lowest: Decimal | None = min(map(attrgetter("unit_price"), asks), default=None)
    return lowest if lowest is not None and lowest.is_finite() and lowest > 0 else None


MINUTE_MS = 60_000
DAY_MINUTES = 1_440
_INSIDE_LOW, _INSIDE_HIGH = Decimal("1.01"), Decimal("0.99")  # the floor must be inside by 1 % before bids resume


class MinuteSample(Struct, frozen=True):
    """The reference in one minute since 1970: the first value, and the lowest, which was seen at `low_ms`.

    `high` is the highest value before clamping: a floor above its bounds is outside even if the clamped reference is
    not.
    """

    minute: int
    reference: Decimal
    low: Decimal
    low_ms: int
    high: Decimal


def minutes_wanted(config: BidConfig) -> int:
    """Returns how many minutes of samples the task's guards need; 0 without guards."""
    drop = config.pause_on_floor_drop
    of_drop = drop.window_minutes + drop.for_minutes if drop else 0
    return max(of_drop, DAY_MINUTES if config.only_while_floor_between is not None else 0)


def guarded(history: History, config: BidConfig, samples: Sequence[MinuteSample], now_ms: int) -> History:
    """Adds the values that the task's guards need from these samples (oldest first) to the history."""
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
    """Returns `floor_drop` or `floor_guard` if a guard keeps the task from bidding now, otherwise None.

    A fall is detected from the reference for new bids. So without a reference the result is `floor_guard`, because a
    fall may be under way. The check is skipped while a collection's floor replaces a trait's own floor, because their
    prices differ.
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
    """Tells whether the price is a new low of the window, and far enough below the window's highest price.

    Only a new low restarts the pause; otherwise 89,000 after 100,000 would count as a fall of a tenth for the rest of
    the hour.
    """
    is_new = lowest is None or price < lowest
    return highest is not None and is_new and price < times(highest, 1 - drop.percent)


def _last_drop(drop: FloorDrop, samples: Sequence[MinuteSample]) -> int | None:
    """Returns the time of the last sample that was a fall when it was seen, or None."""
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
    """The highest, or lowest, price of the last minutes."""

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
    """Tells whether the floor is outside, or was and is not yet inside by 1 %. Unknown counts as outside."""
    low, high = bounds
    if floor is None or not low <= floor <= high:
        return True
    return was_outside and not _is_well_inside(bounds, floor)


def _is_well_inside(bounds: tuple[Decimal, ...], floor: Decimal) -> bool:
    low, high = bounds
    return times(low, _INSIDE_LOW) <= floor <= times(high, _INSIDE_HIGH)


def _was_outside(bounds: tuple[Decimal, ...], samples: Sequence[MinuteSample]) -> bool:
    """Tells whether the last sample outside the bounds is newer than the last one at least 1 % inside."""
    for sample in reversed(samples):
        if sample.low < bounds[0] or sample.high > bounds[1]:
            return True
        if _is_well_inside(bounds, sample.low) or _is_well_inside(bounds, sample.high):
            return False
    return False
