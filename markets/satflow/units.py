"""The unit of a price at Satflow, and a check that prices read back as they were sent.

Items: the documentation of bid/place says "unit bid price", so a bid for five at 100,000 costs 500,000. Runes: it says
the same, but Satflow's own sample bot sends the whole order's price. The practice market's prices are the whole
order's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

from msgspec.structs import replace

from markets.adapter import Latest
from markets.base import BidOrder, Kind, OwnBid
from markets.wire import MAX_SATS, Unreadable, amount, same, sats

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Units:
    """The unit of prices, by kind of goods: the whole "order", or one "item" or "token" of it."""

    ordinals: str
    runes: str

    def price(self, value: Any, kind: Kind, what: str) -> Decimal:
        """Reads a price: whole sats, and for a token perhaps a fraction."""
        return amount(value, what) if self._of(kind) == "token" else Decimal(sats(value, what, least=1))

    def total(self, told: Decimal, kind: Kind, quantity: Decimal) -> int:
        """Returns the whole order's price in sats; a fraction counts as one."""
        total = told if self._of(kind) == "order" else told * quantity
        if total > MAX_SATS:
            raise Unreadable(f"{told} for each of {quantity} is no amount of sats")
        return int(total.to_integral_value(ROUND_CEILING))

    def each(self, told: Decimal, kind: Kind, quantity: Decimal) -> Decimal:
        """Returns the price of one item or token."""
        return told / quantity if self._of(kind) == "order" else told

    def _of(self, kind: Kind) -> str:
        return self.ordinals if kind == "ordinals" else self.runes


PRACTICE = Units("order", "order")


def total_of(price: Decimal, unit_price: Decimal, quantity: Decimal) -> int:
    """Returns the whole order's price in sats, where the price of one is told as well: `price` is one of the two.

    Raises Unreadable when it is neither, to a sat or a thousandth: a unit price is printed rounded.
    """
    total = unit_price * quantity
    if price != unit_price:
        if abs(price - total) > max(Decimal(1), total / 1000):
            raise Unreadable(f"{quantity} at {unit_price} each cannot cost {price} sats")
        total = price
    if total > MAX_SATS:
        raise Unreadable(f"{unit_price} for each of {quantity} is no amount of sats")
    return int(total.to_integral_value(ROUND_CEILING))


class _Sent(NamedTuple):
    price: int
    quantity: Decimal


class ReadBack:
    """The rune bids that we sent, compared with those that are read. Safe in several threads.

    A bid that reads back at another price than was sent shows that the unit is not the configured one, and each further
    bid may cost a thousand times too much. `fault` says so from then on, for the life of the process.
    """

    def __init__(self) -> None:
        self.fault: str | None = None
        self._sent: Latest[_Sent] = Latest(_MOST_REMEMBERED)

    def sent(self, order: BidOrder) -> None:
        """Notes a rune bid that is about to be sent; its end, to the millisecond, identifies it."""
        key = (order.payment, same(order.slug), order.expires_ms)
        self._sent.note(key, _Sent(order.price, order.quantity))

    def checked(self, wallet: str, bids: Iterable[OwnBid]) -> tuple[OwnBid, ...]:
        """Returns the bids; one that differs from the sent one gets the larger of the two readings of its price."""
        return tuple(self._checked(wallet, bid) for bid in bids)

    def _checked(self, wallet: str, bid: OwnBid) -> OwnBid:
        if bid.kind != "runes" or bid.expires_ms is None or bid.quantity is None:
            return bid
        sent = self._sent.of((wallet, same(bid.slug), bid.expires_ms))
        # For a partly filled bid the meaning of the shown price is not known.
        if sent is None or bid.quantity != sent.quantity or bid.price == sent.price:
            return bid
        self.fault = (
            f"a bid of {sent.price} sats for {sent.quantity} tokens reads back as one of {bid.price}: "
            "BIDKEEPER_SATFLOW_RUNE_PRICE is not the unit of its prices"
        )
        each = int((bid.price * bid.quantity).to_integral_value(ROUND_CEILING))
        return replace(bid, price=min(max(bid.price, each, sent.price), MAX_SATS))
