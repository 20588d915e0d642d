"""A market on paper: our orders, and the recorded sales that would have filled them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from strategy.bid_config import BidConfig
from strategy.book import Bid, VenueProfile
from strategy.entry import Entry, SaleIntoBid
from strategy.plan import BidPlan
from strategy.plan_inputs import OwnOrder
from strategy.pricing import times

FILL_RULE = (
    "a recorded sale into a bid at price s fills our simulated bid p if p > s, or p = s and ours is older; "
    "the recorded bidder then does not get it. Our bids do not change what others recorded"
)


@dataclass(frozen=True, slots=True)
class Fill:
    """One of our simulated bids, and the sale that filled it."""

    order: OwnOrder
    sale: SaleIntoBid


class PaperMarket:
    """Our simulated orders. Every write succeeds at once; a bid lives until it is cancelled, filled or expired."""

    def __init__(self) -> None:
        self.own: list[OwnOrder] = []
        self.fills: list[Fill] = []
        self._bids: Sequence[Bid] | None = None  # other makers', as last recorded
        self._counted: set[str] = set()
        self._next_id = 1

    def settle(self, entry: Entry, config: BidConfig) -> tuple[list[Fill], list[OwnOrder]]:
        """Moves on to the entry's time; returns the fills, and the orders that expired."""
        fills = []
        for sale in sorted(entry.sales or (), key=lambda sale: (sale.sold_ms, sale.sale_id)):
            if sale.sale_id in self._counted:
                continue
            self._counted.add(sale.sale_id)
            order = taken_by(sale, self.own, self._bids, config)
            if order is not None:
                self.own.remove(order)
                fills.append(Fill(order, sale))
        self.fills += fills
        expired = [order for order in self.own if order.expires_ms <= entry.now_ms]
        self.own = [order for order in self.own if order.expires_ms > entry.now_ms]
        if entry.snapshot is not None:
            self._bids = entry.snapshot.bids
        return fills, expired

    def carry_out(self, plan: BidPlan, config: BidConfig, profile: VenueProfile, now_ms: int) -> None:
        """Cancels and places as planned."""
        gone = {cancel.order_id for cancel in plan.to_cancel}
        self.own = [order for order in self.own if order.id not in gone]
        expires_ms = now_ms + max(config.expiry_ms, profile.min_duration_s * 1000)
        for place in plan.to_place:
            self.own.append(
                OwnOrder(self._next_id, "live", place.price_sats, place.quantity, now_ms, expires_ms, place.trait)
            )
            self._next_id += 1

    def is_top(self, bids: Iterable[Bid]) -> bool:
        """Tells whether our best bid ranks ahead of all of these: its price is higher, or equal and surely older."""
        best = min(self.own, key=_rank, default=None)
        return best is not None and all(_is_ahead(best, bid.price, bid.quantity, bid.placed_ms) for bid in bids)


def taken_by(
    sale: SaleIntoBid, own: Iterable[OwnOrder], bids: Sequence[Bid] | None, config: BidConfig
) -> OwnOrder | None:
    """Returns our order that the sale would have filled by the fill rule, None for none.

    Prices of runes are compared per token, and an order for more tokens than were sold is not filled. The unknown
    counts against us: the age of the recorded bid, the quantity sold, the traits of the sold item.
    """
    placed_ms = sale.placed_ms if sale.placed_ms is not None else _age_of_recorded(sale, bids or ())
    for order in sorted(own, key=_rank):
        if not order.created_ms < sale.sold_ms < order.expires_ms:
            continue
        if config.is_rune and (sale.quantity is None or sale.quantity < order.quantity):
            continue
        if order.trait is not None and not sale.is_own:
            continue
        sold = sale.quantity if config.is_rune and sale.quantity is not None else order.quantity
        if _is_ahead(order, sale.price, sold, placed_ms) or (sale.is_own and _is_level(order, sale.price, sold)):
            return order
    return None


def _age_of_recorded(sale: SaleIntoBid, bids: Iterable[Bid]) -> int | None:
    """Returns when the bid that was sold into was placed: found by its id, else the oldest at its price."""
    bids = list(bids)
    same = [bid for bid in bids if bid.order_id == sale.bid_id]
    if not same:
        sold = Decimal(1) if sale.quantity is None else sale.quantity
        same = [bid for bid in bids if times(bid.price, sold) == times(sale.price, bid.quantity)]
    ages = [bid.placed_ms for bid in same if bid.placed_ms is not None]
    return min(ages) if ages and len(ages) == len(same) else None


def _rank(order: OwnOrder) -> tuple[Decimal, int, int]:
    """Returns the sort key, best first: price per token, then age."""
    return -order.price_sats / order.quantity, order.created_ms, order.id


def _is_ahead(order: OwnOrder, price: int, quantity: Decimal, placed_ms: int | None) -> bool:
    ours, theirs = times(order.price_sats, quantity), times(price, order.quantity)
    return ours > theirs or (ours == theirs and placed_ms is not None and order.created_ms < placed_ms)


def _is_level(order: OwnOrder, price: int, quantity: Decimal) -> bool:
    return times(order.price_sats, quantity) == times(price, order.quantity)
