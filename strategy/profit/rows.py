"""Profit in rows: of everything, by slug, by task or by month. Sums are exact until here, and then rounded down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import floor

from strategy.profit.matching import BUY, HeldLot, MatchedSale, Trade, match

GROUPS = ("none", "slug", "task", "month")
Key = str | int | None


@dataclass(slots=True)
class ProfitRow:
    """The trades of one group in a time. `held` was bought in it and not sold since.

    A sale that was bought here only in part counts as matched, by that part, and as unmatched. `unknown_fees` counts
    the trades whose fee is not known, and so is in no sum.
    """

    key: Key
    bought: list[Trade] = field(default_factory=list)
    sold: list[MatchedSale] = field(default_factory=list)
    held: list[HeldLot] = field(default_factory=list)

    @property
    def bought_sats(self) -> int:
        return sum(trade.price_sats for trade in self.bought)

    @property
    def sold_sats(self) -> int:
        return sum(each.sale.price_sats for each in self.sold)

    @property
    def matched(self) -> int:
        return sum(each.share > 0 for each in self.sold)

    @property
    def unmatched_sales(self) -> int:
        return sum(each.share < 1 for each in self.sold)

    @property
    def realized_sats(self) -> int:
        """The gain by what was bought here and sold, fees taken off."""
        return floor(self._realized)

    @property
    def fees_sats(self) -> int:
        """The fees in that gain: the venue's of the sales, the network's of their purchases."""
        return floor(sum((each.fees_sats for each in self.sold), Fraction(0)))

    @property
    def realized_percent(self) -> Decimal | None:
        """The gain in percent of its cost, to a tenth; None when nothing was sold that cost anything."""
        cost = sum((each.cost.sats for each in self.sold), Fraction(0))
        return Decimal(floor(Fraction(self._realized * 1000, cost))).scaleb(-1) if cost else None

    @property
    def held_sats(self) -> int:
        """The cost of what is held."""
        return floor(sum((lot.cost.sats for lot in self.held), Fraction(0)))

    @property
    def unknown_fees(self) -> int:
        return sum(trade.fee_sats is None for trade in (*self.bought, *(each.sale for each in self.sold)))

    @property
    def _realized(self) -> Fraction:
        return sum((each.realized_sats for each in self.sold), Fraction(0))


def rows_of(
    trades: Iterable[Trade], group_by: str, method: str, month_of: Callable[[int], str], from_ms: int | None = None
) -> list[ProfitRow]:
    """Returns the rows of the trades, which must be in the order of their time and go back to the first of all.

    `month_of` names the month of a time (Unix ms).

    Trades before `from_ms` are in no row, but in the costs of those that are. Grouped by task or slug a sale belongs to
    what it sold (of several purchases: to the first), and a sale of something that was not bought here to its own.
    Without a group there is one row, in any case.
    """
    found = list(trades)
    matching = match(found, method)
    rows: dict[Key, ProfitRow] = {None: ProfitRow(None)} if group_by == "none" else {}

    def row(trade: Trade, origin: Trade | None = None) -> ProfitRow:
        key = month_of(trade.at_ms) if group_by == "month" else _key(group_by, origin or trade)
        return rows.setdefault(key, ProfitRow(key))

    def counts(trade: Trade) -> bool:
        return from_ms is None or trade.at_ms >= from_ms

    for trade in filter(counts, found):
        if trade.side == BUY:
            row(trade).bought.append(trade)
    for sale in matching.sales:
        if counts(sale.sale):
            row(sale.sale, sale.origin).sold.append(sale)
    for lot in matching.held:
        if counts(lot.purchase):
            row(lot.purchase).held.append(lot)
    return sorted(rows.values(), key=lambda each: _rank(each.key))


def _rank(key: Key) -> tuple[bool, int, str]:
    return key is None, key if isinstance(key, int) else 0, str(key)


def cost_and_profit(sale: MatchedSale) -> tuple[int, int] | None:
    """Returns what a whole sale cost and gained, in whole sats that add up; None unless all of it was bought here."""
    if sale.share < 1:
        return None
    profit = floor(sale.realized_sats)
    return sale.sale.price_sats - sale.sale.known_fee_sats - profit, profit


def _key(group_by: str, trade: Trade) -> Key:
    return {"slug": trade.slug, "task": trade.task_id}.get(group_by)
