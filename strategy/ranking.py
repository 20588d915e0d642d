"""The ranking of bids: the higher price of a token first, the older bid at equal prices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Protocol, TypeVar

from msgspec.structs import replace

from strategy.book import Bid, quotient_up, times
from strategy.plan import BidPlan, OwnOrder

ONE = Decimal(1)


class OwnPrice(Protocol):
    """An order of ours, as a plan or as the ledger has it."""

    @property
    def id(self) -> int: ...
    @property
    def price_sats(self) -> int: ...
    @property
    def created_ms(self) -> int: ...


Own = TypeVar("Own", bound=OwnPrice)


def ratio(bid: Bid) -> tuple[Decimal | int, Decimal]:
    """Returns sats and tokens whose quotient is the bid's unit price: exact, unlike the quotient itself."""
    return (bid.price, bid.quantity) if bid.quantity > 0 else (bid.unit_price, ONE)


def is_above(price_sats: int, quantity: Decimal, bid: Bid) -> bool:
    """Tells whether an order pays more for a token than the bid: then it ranks ahead, however young it is."""
    sats, tokens = ratio(bid)
    return times(price_sats, tokens) > times(sats, quantity)


def pays_as_much(order: OwnOrder, bid: Bid) -> bool:
    """Tells whether our order pays as much for a token as the bid, or more."""
    sats, tokens = ratio(bid)
    return times(order.price_sats, tokens) >= times(sats, order.quantity)


def ranks_ahead(order: OwnOrder, bid: Bid) -> bool:
    """Tells whether our order ranks ahead of the bid. A bid of unknown age counts as the older one."""
    return is_ahead(order, *ratio(bid), bid.placed_ms)


def is_ahead(order: OwnOrder, sats: Decimal | int, tokens: Decimal, placed_ms: int | None) -> bool:
    """Tells whether our order ranks ahead of a bid of `sats` for `tokens`; without `placed_ms` its age is unknown."""
    ours: Decimal | int = order.price_sats
    theirs: Decimal | int = sats
    if tokens != order.quantity:
        ours, theirs = times(ours, tokens), times(theirs, order.quantity)
    if ours != theirs:
        return ours > theirs
    return placed_ms is not None and order.created_ms < placed_ms


def highest_first(orders: Iterable[Own]) -> list[Own]:
    """Sorts our orders by the price of the whole order, the older first at equal prices."""
    return sorted(orders, key=lambda order: (-order.price_sats, order.created_ms, order.id))


def by_price(bids: Iterable[Bid]) -> list[Bid]:
    """Sorts the bids, highest unit price first."""
    return sorted(bids, key=attrgetter("unit_price"), reverse=True)


def first_of_equals(ranked: Sequence[Bid], at: int) -> Bid:
    """Returns the bid that ranks first among those with the unit price of the one at `at`, where these begin."""
    unit_price = ranked[at].unit_price
    oldest = ranked[at]
    for bid in ranked[at + 1 :]:
        if bid.unit_price != unit_price or oldest.placed_ms is None:
            break
        if bid.placed_ms is None or bid.placed_ms < oldest.placed_ms:
            oldest = bid
    return oldest


def best_first(own: Iterable[OwnOrder]) -> list[OwnOrder]:
    """Sorts our orders by the price of a token, the older first at equal prices."""
    return sorted(own, key=lambda order: (-quotient_up(order.price_sats, order.quantity), order.created_ms, order.id))


def ranks(own: Iterable[OwnOrder], bids: Iterable[Bid], *, is_whole: bool = True) -> dict[int, int]:
    """Returns the rank, from 1, of each own order by its id, among the bids of others and the own ones.

    Without `is_whole` some of the bids are not known, of which none is the best: then only the first rank is known.
    """
    ranked = sorted(bids, key=lambda bid: (-bid.unit_price, -1 if bid.placed_ms is None else bid.placed_ms))
    found = {
        order.id: 1 + ahead + bisect_left(ranked, True, key=partial(ranks_ahead, order))
        for ahead, order in enumerate(best_first(own))
    }
    return found if is_whole else {order: rank for order, rank in found.items() if rank == 1}


def ranks_of_plan(
    plan: BidPlan, own: Iterable[OwnOrder], bids: Iterable[Bid], now_ms: int, *, is_whole: bool = True
) -> dict[int, int]:
    """Returns the rank of each rung's bid, by the rung, once the plan is carried out. Rungs without a bid have none."""
    gone = {cancel.order_id for cancel in plan.to_cancel}
    left = {order.id: order for order in own if order.id not in gone and order.state != "cancelling"}
    placed, standing = {bid.rung: bid for bid in plan.to_place}, list[OwnOrder]()
    for note in plan.rungs:
        if bid := placed.get(note.rung):
            standing.append(OwnOrder(note.rung, "live", bid.price_sats, bid.quantity, now_ms, now_ms))
        elif order := left.pop(note.order_id or 0, None):
            standing.append(replace(order, id=note.rung))
    standing += [replace(order, id=-order.id) for order in left.values()]  # held by no rung, and ahead all the same
    return {rung: rank for rung, rank in ranks(standing, bids, is_whole=is_whole).items() if rung >= 0}
