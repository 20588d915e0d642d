"""Matches sales with purchases: the cost of each sale, and the cost of all holdings.

An item is matched by its id with its newest purchase before the sale. Runes of one ticker are interchangeable: the
oldest are sold first (`fifo`), or all at the average cost of the holding (`average`). A purchase costs its price and
its network fee. Nothing is rounded here.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import NamedTuple

from msgspec import Struct, field

from strategy.config.bid import normal_slug

BUY, SELL = "buy", "sell"
FIFO, AVERAGE = METHODS = ("fifo", "average")
_NOTHING = Fraction(0)


class Trade(Struct, frozen=True):
    """One purchase or sale of `quantity` for `price_sats`.

    `fee_sats` is a purchase's network fee, added to the price, or a sale's venue fee, subtracted from it. None is
    unknown, and counts as 0. A purchased item without an id (None) is never matched with a sale.
    """

    id: str
    side: str
    at_ms: int
    venue: str
    slug: str | None
    task_id: int
    price_sats: int
    quantity: Decimal
    fee_sats: int | None
    is_rune: bool = False
    inscription_id: str | None = None

    @property
    def known_fee_sats(self) -> int:
        return self.fee_sats or 0


class Cost(NamedTuple):
    """An amount paid in sats; `fees` are part of `sats`."""

    sats: Fraction = _NOTHING
    fees: Fraction = _NOTHING

    def plus(self, other: Cost) -> Cost:
        return Cost(self.sats + other.sats, self.fees + other.fees)

    def times(self, share: Fraction) -> Cost:
        return Cost(self.sats * share, self.fees * share)


class MatchedSale(Struct, frozen=True):
    """A sale, its share (0 to 1) that was bought here, and the cost of that share; `origin` is the first purchase."""

    sale: Trade
    share: Fraction
    cost: Cost
    origin: Trade | None

    @property
    def proceeds_sats(self) -> Fraction:
        """The price of the share that was bought here."""
        return self.sale.price_sats * self.share

    @property
    def fees_sats(self) -> Fraction:
        """The fees of the share that was bought here: the venue's for the sale, the network's for the purchase."""
        return self.sale.known_fee_sats * self.share + self.cost.fees

    @property
    def realized_sats(self) -> Fraction:
        """The gain on the share that was bought here."""
        return (self.sale.price_sats - self.sale.known_fee_sats) * self.share - self.cost.sats


class HeldLot(Struct, frozen=True):
    """The part of a purchase that is still held, and its cost."""

    purchase: Trade
    quantity: Fraction
    cost: Cost


class Matching(Struct, frozen=True):
    """All sales, in order of time, and all holdings."""

    sales: tuple[MatchedSale, ...]
    held: tuple[HeldLot, ...]


class _Taken(NamedTuple):
    quantity: Fraction
    cost: Cost
    origin: Trade | None


class _InOrder(Struct):
    """Purchases that are sold one after another: the oldest first, or (`is_newest_first`) the newest."""

    is_newest_first: bool
    _lots: deque[tuple[Trade, Fraction]] = field(default_factory=deque)  # with the remaining quantity

    def add(self, purchase: Trade) -> None:
        self._lots.append((purchase, Fraction(purchase.quantity)))

    def take(self, quantity: Fraction) -> _Taken:
        taken, cost, origin = _NOTHING, Cost(), None
        while taken < quantity and self._lots:
            purchase, left = self._lots.pop() if self.is_newest_first else self._lots.popleft()
            now = min(left, quantity - taken)
            taken, cost = taken + now, cost.plus(_cost_of(purchase).times(Fraction(now, Fraction(purchase.quantity))))
            origin = origin or purchase
            if left > now:
                put_back = self._lots.append if self.is_newest_first else self._lots.appendleft
                put_back((purchase, left - now))
        return _Taken(taken, cost, origin)

    def held(self) -> Iterator[HeldLot]:
        for purchase, left in self._lots:
            yield HeldLot(purchase, left, _cost_of(purchase).times(Fraction(left, Fraction(purchase.quantity))))


class _Pool(Struct):
    """Purchases that are sold together: each sale takes the same share of all of them, at their average cost.

    `_left` is the remaining share of a purchase made when the pool began. For a later purchase it is `_left` divided by
    its value at that purchase.
    """

    _quantity: Fraction = _NOTHING
    _cost: Cost = field(default_factory=Cost)
    _left: Fraction = Fraction(1)
    _lots: list[tuple[Trade, Fraction]] = field(default_factory=list)  # with `_left` at the purchase

    def add(self, purchase: Trade) -> None:
        self._lots.append((purchase, self._left))
        self._quantity += Fraction(purchase.quantity)
        self._cost = self._cost.plus(_cost_of(purchase))

    def take(self, quantity: Fraction) -> _Taken:
        if not self._lots:
            return _Taken(_NOTHING, Cost(), None)
        now, origin = min(self._quantity, quantity), self._lots[0][0]
        share = Fraction(now, self._quantity)
        cost = self._cost.times(share)
        self._quantity -= now
        self._cost = self._cost.times(1 - share)
        self._left *= 1 - share
        if not self._quantity:
            self._left = Fraction(1)
            self._lots.clear()
        return _Taken(now, cost, origin)

    def held(self) -> Iterator[HeldLot]:
        for purchase, left_at_purchase in self._lots:
            quantity = Fraction(purchase.quantity) * Fraction(self._left, left_at_purchase)
            yield HeldLot(purchase, quantity, self._cost.times(Fraction(quantity, self._quantity)))


def match(trades: Iterable[Trade], method: str = FIFO) -> Matching:
    """Matches the trades, which must be in order of time, by one of METHODS for runes.

    Raises ValueError for another method.
    """
    if method not in METHODS:
        raise ValueError(f"no method {method!r}")
    runes = defaultdict[str, _Pool | _InOrder](_Pool if method == AVERAGE else lambda: _InOrder(is_newest_first=False))
    items = defaultdict[str | None, _InOrder](lambda: _InOrder(is_newest_first=True))
    sales = []
    for trade in trades:
        holding = runes[normal_slug("rune", trade.slug or "")] if trade.is_rune else items[trade.inscription_id]
        if trade.side == BUY:
            holding.add(trade)
        else:
            sales.append(_sold(trade, holding))
    held = (lot for holding in (*runes.values(), *items.values()) for lot in holding.held())
    return Matching(tuple(sales), tuple(held))


def _sold(sale: Trade, holding: _Pool | _InOrder) -> MatchedSale:
    if not sale.is_rune and sale.inscription_id is None:
        return MatchedSale(sale, _NOTHING, Cost(), None)
    quantity = Fraction(sale.quantity)
    taken = holding.take(quantity)
    return MatchedSale(sale, Fraction(taken.quantity, quantity), taken.cost, taken.origin)


def _cost_of(purchase: Trade) -> Cost:
    return Cost(Fraction(purchase.price_sats + purchase.known_fee_sats), Fraction(purchase.known_fee_sats))


GROUPS = ("none", "slug", "task", "month")
Key = str | int | None


class ProfitRow(Struct):
    """The trades of one group in a period. `held` is what was bought in it and not sold since.

    A sale that was only partly bought here counts as matched and as unmatched. `unknown_fees` is the number of trades
    whose fee is unknown and therefore missing from all sums.
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
        """The gain on sold purchases, net of fees."""
        return floor(self._realized)

    @property
    def fees_sats(self) -> int:
        """The fees in that gain: the venue's for the sales, the network's for their purchases."""
        return floor(sum((each.fees_sats for each in self.sold), Fraction(0)))

    @property
    def realized_percent(self) -> Decimal | None:
        """The gain in percent of its cost, to a tenth; None if the sales had no cost."""
        cost = sum((each.cost.sats for each in self.sold), Fraction(0))
        return Decimal(floor(Fraction(self._realized * 1000, cost))).scaleb(-1) if cost else None

    @property
    def held_sats(self) -> int:
        """The cost of the holdings."""
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
    """Returns the rows of the trades, which must be in order of time and complete from the first one.

    `month_of` names the month of a time (Unix ms). Trades before `from_ms` are in no row, but count in the costs.
    Grouped by task or slug, a sale belongs to its purchase (of several: the first); a sale of something not bought here
    belongs to its own task or slug. Without a group there is always one row.
    """
    found = list(trades)
    matching = match(found, method)
    rows: dict[Key, ProfitRow] = {None: ProfitRow(None)} if group_by == "none" else {}

    def row(trade: Trade, origin: Trade | None = None) -> ProfitRow:
        of = origin or trade
        key = month_of(trade.at_ms) if group_by == "month" else {"slug": of.slug, "task": of.task_id}.get(group_by)
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
    # Numbers in numeric order, texts in alphabetical order, rows without a key last.
    return sorted(rows.values(), key=lambda r: (r.key is None, r.key if isinstance(r.key, int) else 0, str(r.key)))


def cost_and_profit(sale: MatchedSale) -> tuple[int, int] | None:
    """Returns the cost and profit of a whole sale, in whole sats that add up; None unless all of it was bought here."""
    if sale.share < 1:
        return None
    profit = floor(sale.realized_sats)
    return sale.sale.price_sats - sale.sale.known_fee_sats - profit, profit
