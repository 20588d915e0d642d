"""The market's prices: the reference of a percent range, and the ask that no bid may reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter

from strategy.bid_config import BidConfig
from strategy.book import Ask, Bid, History, Snapshot
from strategy.plan import Rules
from strategy.pricing import Exact, average_cost, plus, rounded, times
from strategy.reasons import Reason

_unit_price = attrgetter("unit_price")


@dataclass(frozen=True, slots=True)
class MarketPrices:
    """Unit prices in sats per item or token, None if unknown. `bids` are foreign ones, None if unknown.

    `reference` is `raw` clamped to the history; `exact` is the same without the rounding of an average, and the basis
    of prices: at an average of 4/3, 9,000 tokens at 70 % are 8,400 sats, not 8,399. `cause` says in a word why there is
    no reference, unless simply no ask is known.
    """

    raw: Decimal | None = None
    reference: Decimal | None = None
    exact: Exact | None = None
    lowest_ask: Decimal | None = None
    bids: tuple[Bid, ...] | None = None
    marks: tuple[Reason, ...] = ()
    cause: str = ""


def read_prices(config: BidConfig, snapshot: Snapshot | None, rules: Rules, now_ms: int) -> MarketPrices:
    """Reads the prices that matter to a task of this config.

    A price is unknown if it could not be read, was cut short, is older than `stale_after_ms`, is not listed, or is 0.
    An ask that could not be read leaves no reference where it may be cheaper than all others, and no VWAP in any case:
    without it both would be too high. The ask cap stays.
    The reference is the lowest ask, never the second lowest or an average: after a sweep of the floor these are even
    higher. Runes may ask for the VWAP, which a book of less than half the depth does not give. Trait tasks use the
    lowest ask with the trait; if none is known the collection's floor, which cannot be above it, stands in: as
    reference, and in percent mode as the ask that is not reached. A fixed range is the owner's own value of the trait,
    and goes on without the ask cap.
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
        average = _vwap(snapshot.asks, config.depth_sats) if snapshot.is_depth_sure else None
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
    """Returns the reference, at most `spike_factor` medians of the last hour, and marks about it.

    Falls are followed at once: lower is safe for a buyer. Example: median 100,000 and raw 180,000 give 125,000.
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
    lowest: Decimal | None = min(map(_unit_price, asks), default=None)
    return lowest if lowest is not None and lowest.is_finite() and lowest > 0 else None


def _vwap(asks: Iterable[Ask], depth_sats: int) -> Fraction | None:
    average, spent = average_cost(asks, depth_sats)
    return average if plus(spent, spent) >= depth_sats else None
