"""The asks and sales of others as a seller reads them. A fall is the danger here, so low ones are doubted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal

from strategy.book import Ask
from strategy.config.bid import MAX_SATS
from strategy.pricing import times

MOST_OUTLIERS = 2
SALES = 5
LEAST_SALES = 3
_OUTLIER = Decimal("0.7")
_FALL = Decimal("0.75")
_HALF = Decimal("0.5")


def foreign_prices(asks: Iterable[Ask], own_wallets: Collection[str]) -> list[int]:
    """Returns the prices that others ask, lowest first, without impossible ones and outliers."""
    prices = [ask.price for ask in asks if ask.maker not in own_wallets and 0 < ask.price <= MAX_SATS]
    return without_outliers(sorted(prices))


def without_outliers(ascending: list[int]) -> list[int]:
    """Drops up to two lowest prices, each of which is under 70 % of the next: bait, or a slip.

    Example: of 20,000, 98,000 and 99,000 the first is dropped.
    """
    dropped = 0
    while dropped < min(MOST_OUTLIERS, len(ascending) - 1):
        if ascending[dropped] >= times(_OUTLIER, ascending[dropped + 1]):
            break
        dropped += 1
    return ascending[dropped:]


def least_believed(median_60m: Decimal | None) -> Decimal | None:
    """Returns three quarters of the last hour's median: the market is not followed further down than that at once."""
    if median_60m is None or not median_60m.is_finite() or median_60m <= 0:
        return None
    return times(_FALL, median_60m)


def median_of_sales(newest_first: Sequence[int]) -> tuple[Decimal, int] | None:
    """Returns the median of the newest five sales, and their number; None for fewer than three.

    So two odd sales (bait, a gift, a slip) cannot set the price. Example: of 20,000, 98,000 and 99,000 it is 98,000.
    """
    prices = sorted([price for price in newest_first if 0 < price <= MAX_SATS][:SALES])
    count = len(prices)
    if count < LEAST_SALES:
        return None
    return times(_HALF, prices[(count - 1) // 2] + prices[count // 2]), count
