"""The ranking of bids: the higher price of a token first, the older bid at equal prices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Protocol, TypeVar

from strategy.book import Bid
from strategy.plan_inputs import OwnOrder
from strategy.pricing import quotient_up, times

ONE = Decimal(1)
_unit_price = attrgetter("unit_price")


class Priced(Protocol):
    """An order of ours, as a plan or as the ledger has it."""

    @property
    def id(self) -> int: ...
    @property
    def price_sats(self) -> int: ...
    @property
    def created_ms(self) -> int: ...


Own = TypeVar("Own", bound=Priced)


def ratio(bid: Bid) -> tuple[Decimal | int, Decimal]:
    """Returns sats and tokens whose quotient is the bid's unit price: exact, unlike the quotient itself."""
    return (bid.price, bid.quantity) if bid.quantity > 0 else (bid.unit_price, ONE)


def is_above(price_sats: int, quantity: Decimal, bid: Bid) -> bool:
    """Tells whether an order pays more for a token than the bid: then it ranks ahead, however young it is."""
    sats, tokens = ratio(bid)
    return times(price_sats, tokens) > times(sats, quantity)


def ranks_ahead(order: OwnOrder, bid: Bid) -> bool:
    """Tells whether our order ranks ahead of the bid. One of unknown age is taken for the older."""
    sats, tokens = ratio(bid)
    ours: Decimal | int = order.price_sats
    theirs: Decimal | int = sats
    if tokens != order.quantity:
        ours, theirs = times(ours, tokens), times(theirs, order.quantity)
    if ours != theirs:
        return ours > theirs
    return bid.placed_ms is not None and order.created_ms < bid.placed_ms


def highest_first(orders: Iterable[Own]) -> list[Own]:
    """Sorts our orders by the price of the whole order, the older first at equal prices."""
    return sorted(orders, key=lambda order: (-order.price_sats, order.created_ms, order.id))


def by_price(bids: Iterable[Bid]) -> list[Bid]:
    """Sorts the bids, highest unit price first."""
    return sorted(bids, key=_unit_price, reverse=True)


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


def ranks(own: Iterable[OwnOrder], bids: Iterable[Bid]) -> dict[int, int]:
    """Returns the rank, from 1, of each own order by its id, among the bids of others and the own ones."""
    ranked = sorted(bids, key=lambda bid: (-bid.unit_price, -1 if bid.placed_ms is None else bid.placed_ms))
    ours = sorted(own, key=lambda order: (-quotient_up(order.price_sats, order.quantity), order.created_ms, order.id))
    return {
        order.id: 1 + ahead + bisect_left(ranked, True, key=partial(ranks_ahead, order))
        for ahead, order in enumerate(ours)
    }
