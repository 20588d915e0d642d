"""The places of a task's bids in the book, as they stand once a cycle is done."""

from __future__ import annotations

from collections.abc import Iterable

from models.ledger.limits import own_orders
from models.ledger.states import LIVE, Order
from strategy.fates import PlaceResult
from strategy.ranking import ranks
from workers.bidding.done import Done


def ranks_after(done: Done, filled: Iterable[Order]) -> dict[int, int]:
    """Returns the rank of each standing order by its id; none when the bids of others were not read.

    With a bid in the book that could not be read only the first rank is known: the best bid never is.
    The orders that the cycle found to be `filled` stand no more. Beside others' bids only the task's own count.
    """
    entry = done.last.entry
    if entry.snapshot is None or entry.snapshot.bids is None:
        return {}
    placed = [tried.order for tried in done.tries if tried.order is not None and tried.result == PlaceResult.PLACED]
    standing = {order.id: order for order in entry.own if order.state == LIVE}
    standing |= {order.id: order for order in own_orders(placed, entry.config)}
    for order in (*done.cancelled, *filled):
        standing.pop(order.id, None)
    found, books = ranks(standing.values(), entry.snapshot.bids), done.last.seen.books
    is_first_only = books is not None and books.bids is not None and books.bids.hidden > 0
    return {order: rank for order, rank in found.items() if rank == 1 or not is_first_only}
