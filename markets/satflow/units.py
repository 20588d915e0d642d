"""What a price at Satflow is the price of, and whether it reads back as what was sent.

Items: the documentation of bid/place says "unit bid price", so a bid for five at 100,000 costs 500,000. Runes: it says
the same, and Satflow's own sample bot sends the whole order's. The practice market's prices are the whole order's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

from markets.base import BidOrder, Kind, OwnBid
from markets.wire import MAX_SATS, Unreadable, amount, same, sats

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Units:
    """What prices are of, by kind of goods: the whole "order", or one "item" or "token" of it."""

    ordinals: str
    runes: str

    def price(self, value: Any, kind: Kind, what: str) -> Decimal:
        """A price as it is told: whole sats, and for a token perhaps a part of one."""
        return amount(value, what) if self._of(kind) == "token" else Decimal(sats(value, what, least=1))

    def total(self, told: Decimal, kind: Kind, quantity: Decimal) -> int:
        """The whole order's price in sats; a part of one counts as one."""
        total = told if self._of(kind) == "order" else told * quantity
        if total > MAX_SATS:
            raise Unreadable(f"{told} for each of {quantity} is no amount of sats")
        return int(total.to_integral_value(ROUND_CEILING))

    def each(self, told: Decimal, kind: Kind, quantity: Decimal) -> Decimal:
        """The price of one item or token."""
        return told / quantity if self._of(kind) == "order" else told

    def _of(self, kind: Kind) -> str:
        return self.ordinals if kind == "ordinals" else self.runes


PRACTICE = Units("order", "order")


def total_of(price: Decimal, unit_price: Decimal, quantity: Decimal) -> int:
    """The whole order's price in sats, where the price of one is told as well: `price` is one of these two.

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
    """Rune bids of ours that were sent, against those that are read. Safe in several threads.

    A price that is another than was sent means that the unit is another than is set here, and each further bid may
    cost a thousand times what it should. `fault` says so from then on, for as long as the process lives.
    """

    def __init__(self) -> None:
        self.fault: str | None = None
        self._lock = threading.Lock()
        self._sent: dict[tuple[str, str, int], _Sent] = {}

    def sent(self, order: BidOrder) -> None:
        """A rune bid is about to be sent; its end, to the millisecond, is how it is known again."""
        with self._lock:
            while len(self._sent) >= _MOST_REMEMBERED:
                del self._sent[next(iter(self._sent))]
            self._sent[order.payment, same(order.slug), order.expires_ms] = _Sent(order.price, order.quantity)

    def checked(self, wallet: str, bids: Iterable[OwnBid]) -> tuple[OwnBid, ...]:
        """The bids, each that does not agree with what was sent at the larger of the two ways to read its price."""
        return tuple(self._checked(wallet, bid) for bid in bids)

    def _checked(self, wallet: str, bid: OwnBid) -> OwnBid:
        if bid.kind != "runes" or bid.expires_ms is None or bid.quantity is None:
            return bid
        with self._lock:
            sent = self._sent.get((wallet, same(bid.slug), bid.expires_ms))
        # Of a bid that was filled in part it is not said which price is shown.
        if sent is None or bid.quantity != sent.quantity or bid.price == sent.price:
            return bid
        self.fault = (
            f"a bid of {sent.price} sats for {sent.quantity} tokens reads back as one of {bid.price}: "
            "BIDKEEPER_SATFLOW_RUNE_PRICE is not the unit of its prices"
        )
        each = int((bid.price * bid.quantity).to_integral_value(ROUND_CEILING))
        return replace(bid, price=min(max(bid.price, each, sent.price), MAX_SATS))
