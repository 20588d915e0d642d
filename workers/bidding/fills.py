"""Why a bid is no longer shown: somebody sold into it, or the venue cancelled it for want of cover.

A sale explains one order only, and an explanation that could not be looked up is not "there is none".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from markets.base import NotSupported, Sale, Sales, VenueError
from markets.look import kind_of_slug
from markets.market_client import MarketClient
from models.ledger import orders
from models.ledger.order_table import Order
from strategy import entry
from workers.faults import Faults

CLOCKS_MS = 2_000  # how far the venue's clock may be behind ours; it may tell whole seconds only
LONG_AGO_MS = 600_000  # what was at the venue when we last looked was not sold longer ago than this


class Explainer:
    """Looks up, for one pass over a task's orders, what became of them. Sales are read when needed.

    `buyers` are the addresses that a sale to us may name. `cover` tells how dear a bid (sats) the bidding wallet
    covers now, fees considered, or None when that cannot be told. `partly` are orders that were last seen sold in part:
    what is gone of them was not all cancelled.
    """

    def __init__(
        self,
        market: MarketClient,
        buyers: frozenset[str],
        task_id: int,
        faults: Faults,
        cover: Callable[[], int | None] = lambda: None,
        partly: Collection[int] = (),
    ) -> None:
        self._market = market
        self._buyers = buyers
        self._faults = faults
        self._cover = cover
        self.partly = partly
        self._task_id = task_id
        self._sales: dict[str, Sales | None] = {}
        self._covered: tuple[int | None] | None = None  # what `cover` told, if it was asked
        self._coins: dict[str, frozenset[str] | None] = {}  # by payment address, as far as they were asked for

    def fill(self, order: Order, now_ms: int) -> bool:
        """Closes the order as filled if a sale explains that it is gone."""
        found = self._sales_of(order.slug)
        for sale in found.sales if found else ():
            if self._explains(sale, order) and orders.fill(order, now_ms, sale.sale_id):
                return True
        return False

    def is_in_the_dark(self, order: Order) -> bool:
        """Whether the sales that might explain the order could not be read, or not far enough back."""
        found = self._sales_of(order.slug)
        return found is None or found.since_ms > max(order.created_ms, order.updated_ms - LONG_AGO_MS)

    def is_uncovered(self, order: Order) -> bool:
        """Whether the wallet no longer covers the order, so that the venue will have cancelled it."""
        if self._covered is None:
            self._covered = (self._cover(),)
        sats = self._covered[0]
        return sats is not None and sats < order.price_sats

    def has_lost_coins(self, order: Order) -> bool:
        """Whether a coin that the order was to be paid with is spent, so that nobody can sell into it any more."""
        wanted = frozenset(str(order.coins).split())
        if wanted and order.wallet not in self._coins:
            self._coins[order.wallet] = self._unspent(order.wallet)
        unspent = self._coins.get(order.wallet)
        return unspent is not None and not wanted <= unspent

    def told(self, slug: str) -> tuple[entry.SaleIntoBid, ...] | None:
        """The sales into bids on `slug` that were read, for the journal; None when none were asked for."""
        found = self._sales.get(slug)
        if found is None:
            return None
        return tuple(
            entry.SaleIntoBid(s.sale_id, s.price, s.quantity, s.sold_ms, s.bid_id, None, s.buyer in self._buyers)
            for s in found.sales
            if s.bid_id  # others were listings that somebody bought, as far as one can tell
        )

    def _explains(self, sale: Sale, order: Order) -> bool:
        if order.venue_id and order.venue_id in (sale.bid_id, sale.sale_id):
            return True
        if order.venue_id and sale.bid_id:
            return False  # sold to another bid, which may be of the same price
        if sale.bid_id and any(other.venue_id == sale.bid_id for other in orders.wallet_orders(order.wallet)):
            return False  # it was another bid of ours; the id of this one was never told
        is_price = sale.price == order.price_sats or (order.id in self.partly and sale.price < order.price_sats)
        return is_price and sale.buyer in self._buyers and sale.sold_ms + CLOCKS_MS >= order.created_ms

    def _unspent(self, wallet: str) -> frozenset[str] | None:
        try:
            return frozenset(coin.outpoint for coin in self._market.coins(wallet, 0))
        except VenueError as error:
            self._faults.add("read the coins that bids are paid with", error)
            return None

    def _sales_of(self, slug: str) -> Sales | None:
        if slug not in self._sales:
            self._sales[slug] = self._read(slug)
        return self._sales[slug]

    def _read(self, slug: str) -> Sales | None:
        # Once for all orders on the slug, so as far back as the oldest of them.
        oldest_ms = min(order.created_ms for order in orders.open_orders(self._task_id) if order.slug == slug)
        since_ms = oldest_ms - CLOCKS_MS
        try:
            found = self._market.sales(slug, kind_of_slug(slug), since_ms, 0)
        except NotSupported:
            return Sales((), 0, 0)  # this venue does not tell sales: what is gone is judged without them
        except VenueError as error:
            self._faults.add("read the sales that may explain why a bid is gone", error)
            return None
        oldest_first = sorted(found.sales, key=lambda sale: (sale.sold_ms, sale.sale_id))
        return replace(found, sales=tuple(oldest_first))
