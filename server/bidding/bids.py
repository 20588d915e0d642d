"""The live bids of a task, as the marketplace shows them now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from markets.base import BidBook, Kind, OwnBid, OwnBids, VenueError
from markets.look import kind_of_slug
from markets.market_client import MarketClient
from models.ledger import orders
from models.ledger.order_table import LIVE, Order
from models.tasks.table import Task
from server.bidding.tasks import BiddingTaskHandler
from server.http import json_out
from strategy.book import Bid

MAX_AGE_S = 2.0


class _Competition(NamedTuple):
    """The book that bids compete in: one collection, one of its traits, or one rune."""

    slug: str
    kind: Kind
    trait: tuple[str, str] | None


class BidsHandler(BiddingTaskHandler):
    """GET /api/tasks/:id/bids"""

    async def get(self, task_id: str) -> None:
        task = self.task(task_id)
        placed = [order for order in orders.open_orders(task.id) if not order.dry_run]
        wallets = {order.wallet for order in placed}
        if not wallets:
            keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
            wallets = {keys.payment}
        venue, slugs = task.venue, {order.slug for order in placed} or {task.slug}
        own = await self._own_bids(wallets, sorted(slugs), venue)
        found = [pair for wallet, read in own.items() for pair in _of_task(task, wallet, read)]
        # More than one market only after a change of the task's slug or trait.
        markets = {_market_of(bid, order) for bid, order in found}
        read = await asyncio.gather(*(self._book(market, venue) for market in markets))
        books = dict(zip(markets, read, strict=True))
        shown = [_as_json(bid, order, books[_market_of(bid, order)]) for bid, order in found]
        self.answer(sorted(shown, key=lambda bid: (bid["rank"] is None, bid["rank"], bid["id"])))

    async def _own_bids(self, wallets: Iterable[str], slugs: list[str], venue: str) -> dict[str, OwnBids]:
        """Returns each wallet's live bids; usually there is one wallet, two after other keys were imported."""

        def ask(market: MarketClient) -> dict[str, OwnBids]:
            return {wallet: market.at(venue).own_bids(wallet, MAX_AGE_S, slugs) for wallet in wallets}

        return await self.ask_market(ask)

    async def _book(self, market: _Competition, venue: str) -> BidBook | str:
        """Returns the book, or why it is not known: that hides no bid, only how it stands."""
        slug, kind, trait = market
        try:
            return await self.look(lambda client: client.at(venue).bids(slug, kind, MAX_AGE_S, trait))
        except VenueError as error:
            return error.message


def _market_of(bid: OwnBid, order: Order) -> _Competition:
    return _Competition(order.slug, bid.kind, order.trait)


def _of_task(task: Task, wallet: str, read: OwnBids) -> Iterable[tuple[OwnBid, Order]]:
    """Yields the bids of a wallet that this task placed, with their orders.

    Where a venue gives no id to an accepted bid, the signed expiry, unique in its wallet, identifies it. A live order
    that may be in a row that could not be read is yielded as the ledger has it.
    """
    by_expiry = orders.orders_by_expiry(wallet, [bid.expires_ms for bid in read.bids if bid.expires_ms is not None])
    open_ = [order for order in orders.open_orders(task.id) if not order.dry_run and order.wallet == wallet]
    by_id = {order.venue_id: order for order in open_ if order.venue_id}
    yielded = set[int]()
    for bid in read.bids:
        order = by_id.get(bid.venue_id) or (by_expiry.get(bid.expires_ms) if bid.expires_ms is not None else None)
        if order is not None and order.task_id == task.id:
            yielded.add(order.id)
            yield bid, order
    for order in open_:
        if order.id not in yielded and order.state == LIVE and read.may_hold(order.venue_id):
            yield _as_placed(order), order


def _as_placed(order: Order) -> OwnBid:
    kind = kind_of_slug(order.slug)
    return OwnBid(str(order.venue_id), order.slug, kind, order.price_sats, None, order.expires_ms, order.trait)


def _as_json(bid: OwnBid, order: Order, book: BidBook | str) -> dict[str, Any]:
    quantity, trait = Decimal(order.quantity), bid.trait or order.trait
    rank, why = None, book if isinstance(book, str) else None
    if isinstance(book, BidBook):
        rank = rank_of(bid.venue_id, bid.price / quantity, order.created_ms, book.bids)
        if rank > 1 and book.hidden:  # none of them is the best, but they may be ahead of this one
            rank, why = None, f"{book.hidden} bids of the book cannot be understood, and may be ahead of this one"
    return {
        "id": bid.venue_id,
        "price": bid.price,
        "quantity": quantity,
        "quantityLeft": quantity if bid.quantity is None else min(bid.quantity, quantity),
        "slug": order.slug,
        "type": "rune" if bid.kind == "runes" else "ordinals",
        "budgetId": order.budget_id,
        "trait": None if trait is None else {"type": trait[0], "value": trait[1]},
        "expiresAt": json_out.iso(order.expires_ms if bid.expires_ms is None else bid.expires_ms),
        "rank": rank,
        "isHighest": None if rank is None else rank == 1,
        "rankUnknown": why,
    }


def rank_of(venue_id: str, unit_price: Decimal, placed_ms: int, book: Iterable[Bid]) -> int:
    """Returns the rank, from 1, among all bids of a book: the higher unit price first, of equal ones the older.

    `unit_price` and `placed_ms` stand in if the book does not show the bid (yet) or its age. A bid of unknown age
    counts as older: to believe oneself ahead is the worse mistake.
    """
    others = []
    for bid in book:
        if bid.order_id == venue_id:
            unit_price = bid.unit_price
            placed_ms = placed_ms if bid.placed_ms is None else bid.placed_ms
        else:
            others.append(bid)
    me = (placed_ms, venue_id)
    return 1 + sum(
        bid.unit_price > unit_price or (bid.unit_price == unit_price and (bid.placed_ms or 0, bid.order_id) < me)
        for bid in others
    )
