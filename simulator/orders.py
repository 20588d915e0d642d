"""The contents of an order book: orders, their market, the rules for bids, and an index of all that are open."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, Literal

from simulator.wallets import Trait
from simulator.wire import EXACT, decimal_places, plain

Kind = Literal["ordinals", "runes"]
Side = Literal["bid", "ask"]
Origin = Literal["dialect", "scripted", "trader"]
MarketKey = tuple[Kind, str]

BULLET = "\u2022"


def ticker_key(ticker: str) -> str:
    """Returns a form that all spellings of a rune share: no bullets, upper case."""
    return ticker.replace(BULLET, "").upper()


def market_key(kind: Kind, slug: str) -> MarketKey:
    """Returns the key of a market: a collection's lower-case slug, a rune's `ticker_key`."""
    return kind, slug.lower() if kind == "ordinals" else ticker_key(slug)


@dataclass(slots=True)
class Order:
    """One ask or bid. `price` is the whole order's sats, `unit_price` sats per whole token (or per inscription).

    `maker` is the seller's address or the bidder's payment address, `receive` the address for bought goods. With
    `expires_ms` None it lives until it is cancelled. `visible_ms`: reads do not show the order before that time. A
    signed listing has the `outpoint` that it sells and the PSBT (base64) that its seller signed for any buyer. A
    client's order has its `venue`; those of scripts and traders have none and stand at every venue. A bid ends when one
    of the outputs in `funding` is spent; a bid with an `inscription` is for that one alone. `papers`: a venue's further
    data of the order, in its own form.
    """

    order_id: str
    sequence: int
    kind: Kind
    side: Side
    slug: str
    maker: str
    receive: str
    price: int
    quantity: Decimal
    unit_price: Decimal
    placed_ms: int
    expires_ms: int | None = None
    visible_ms: int = 0
    traits: tuple[Trait, ...] = ()
    inscription: str | None = None
    origin: Origin = "scripted"
    message: str = ""
    signature: str = ""
    outpoint: str = ""
    psbt: str = ""
    venue: str = ""
    funding: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()

    def at(self, venue: str | None) -> bool:
        """Tells whether the order stands at `venue`; None means any."""
        return venue is None or self.venue in ("", venue)

    @property
    def trait(self) -> Trait | None:
        """The one trait that a trait bid asks for, the first when it takes others as well."""
        return self.traits[0] if self.side == "bid" and self.traits else None

    def takes(self, traits: tuple[Trait, ...]) -> bool:
        """Tells whether a bid takes an inscription of these traits: of each type that it names, one of the values."""
        return all(any(t in traits for t in self.traits if t[0] == kind) for kind in {t[0] for t in self.traits})

    def rank(self) -> tuple[Decimal, int, int]:
        """Returns the sort key, best first: the lowest ask; the highest bid; among equals the older."""
        price = -self.unit_price if self.side == "bid" else self.unit_price
        return price, self.placed_ms, self.sequence

    def dump(self) -> dict[str, Any]:
        """Returns plain JSON values that `load_order` reads back."""
        row = {name: getattr(self, name) for name in _ORDER_FIELDS}
        return row | {"quantity": plain(self.quantity), "unit_price": plain(self.unit_price)}


_ORDER_FIELDS = tuple(each.name for each in fields(Order))


def load_order(row: dict[str, Any]) -> Order:
    """Makes the order that `Order.dump` wrote."""
    traits = tuple((str(key), str(value)) for key, value in row["traits"])
    decimals = {"quantity": Decimal(row["quantity"]), "unit_price": Decimal(row["unit_price"])}
    tuples = {name: tuple(row[name]) for name in ("funding", "papers")}
    return Order(**(row | decimals | tuples | {"traits": traits}))


@dataclass(slots=True)
class Market:
    """One collection or rune with its open orders by id. `slug` is as first written, with a rune's bullets.

    `scripted`: a control call set its book, so background traders leave it alone. `listing_traits`: listings tell
    their traits, which the venue's documentation does not promise. `creator`: the address of one who takes a part of
    each price at Ordinals Wallet.
    """

    kind: Kind
    slug: str
    name: str
    divisibility: int = 0
    scripted: bool = False
    listing_traits: bool = True
    creator: str = ""
    asks: dict[str, Order] = field(default_factory=dict)
    bids: dict[str, Order] = field(default_factory=dict)

    @property
    def key(self) -> MarketKey:
        return market_key(self.kind, self.slug)

    def side(self, side: Side) -> dict[str, Order]:
        return self.asks if side == "ask" else self.bids

    def orders(self) -> Iterator[Order]:
        yield from self.asks.values()
        yield from self.bids.values()

    def best(self, side: Side, now_ms: int, venue: str | None = None) -> list[Order]:
        """Returns the visible orders of one side, best first: those at `venue`, or at any.

        Bids on one inscription are left out: they do not compete for the collection.
        """
        shown = (order for order in self.side(side).values() if order.visible_ms <= now_ms and order.at(venue))
        return sorted((order for order in shown if side == "ask" or order.inscription is None), key=Order.rank)

    def dump(self) -> dict[str, Any]:
        row = {name: getattr(self, name) for name in _MARKET_FIELDS}
        return row | {"orders": [order.dump() for order in self.orders()]}


_MARKET_FIELDS = tuple(each.name for each in fields(Market) if each.name not in ("asks", "bids"))


def load_market(row: dict[str, Any]) -> Market:
    """Makes the market that `Market.dump` wrote."""
    market = Market(**{name: row[name] for name in _MARKET_FIELDS})
    for order in map(load_order, row["orders"]):
        market.side(order.side)[order.order_id] = order
    return market


def unit_price(price: int, quantity: Decimal) -> Decimal:
    """Returns sats per token of a whole order, exact to far more digits than any book shows."""
    return EXACT.divide(Decimal(price), quantity).quantize(Decimal("1e-18"), context=EXACT).normalize(EXACT)


TICK = {"ordinals": 1_000, "runes": 1}
MIN_BID = {"ordinals": 10_000, "runes": 1}
MIN_DURATION_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class BidTerms:
    """The terms of a bid. `price` is the whole order's sats, `maker` the payment address.

    It is placed at `venue`.
    """

    slug: str
    maker: str
    receive: str
    price: int
    quantity: Decimal
    expires_ms: int
    trait: Trait | None = None
    message: str = ""
    signature: str = ""
    venue: str = "satflow"


class Refusal(Exception):
    """A refusal of the market; the text gives the reason in the venue's words."""


def check_bid(market: Market, terms: BidTerms, now_ms: int, balance: int) -> None:
    """Raises Refusal for a bid that breaks a rule. Each bid alone must be covered by `balance` (sats)."""
    places = market.divisibility if market.kind == "runes" else 0
    if decimal_places(terms.quantity) > places:
        raise Refusal(f"quantity has more than {places} decimal places")
    if terms.trait is not None and market.kind == "runes":
        raise Refusal("a rune has no traits to bid on")
    if terms.price < MIN_BID[market.kind]:
        raise Refusal(f"price is below the minimum of {MIN_BID[market.kind]} sats")
    if terms.price % TICK[market.kind]:
        raise Refusal(f"price must be a multiple of {TICK[market.kind]} sats")
    if terms.expires_ms - now_ms < MIN_DURATION_MS:
        raise Refusal("bidExpiry must be at least 15 minutes away")
    if terms.price > balance:
        raise Refusal(f"insufficient funds: the bidding wallet holds {balance} sats, the bid needs {terms.price}")


class OpenOrders:
    """The orders of all books by id, by maker and, for asks, by inscription."""

    def __init__(self) -> None:
        self._by_id: dict[str, Order] = {}
        self._of_maker: dict[str, dict[str, Order]] = {}
        self._asks: dict[str, dict[str, Order]] = {}
        self._funded: dict[str, dict[str, Order]] = {}
        self._ends: list[tuple[int, str]] = []

    def __contains__(self, order_id: str) -> bool:
        return order_id in self._by_id

    def get(self, order_id: str) -> Order | None:
        return self._by_id.get(order_id)

    def of(self, maker: str) -> list[Order]:
        """Returns the orders of one address, oldest first."""
        return list(self._of_maker.get(maker, {}).values())

    def asks_of(self, inscription: str) -> list[Order]:
        """Returns the open asks for an inscription, oldest first: one a venue, but any number by scripts."""
        return list(self._asks.get(inscription, {}).values())

    def bids_on(self, inscription: str) -> list[Order]:
        """Returns the open bids for one inscription alone, oldest first."""
        return [o for o in self._by_id.values() if o.side == "bid" and o.inscription == inscription]

    def funded_by(self, outpoint: str) -> list[Order]:
        """Returns the orders that an output funds, oldest first."""
        return list(self._funded.get(outpoint, {}).values())

    def enter(self, order: Order) -> None:
        self._by_id[order.order_id] = order
        self._of_maker.setdefault(order.maker, {})[order.order_id] = order
        if order.side == "ask" and order.inscription is not None:
            self._asks.setdefault(order.inscription, {})[order.order_id] = order
        for outpoint in order.funding:
            self._funded.setdefault(outpoint, {})[order.order_id] = order
        if order.expires_ms is not None:
            self.end_at(order, order.expires_ms)

    def remove(self, order: Order) -> None:
        del self._by_id[order.order_id]
        _drop(self._of_maker, order.maker, order)
        if order.side == "ask" and order.inscription is not None:
            _drop(self._asks, order.inscription, order)
        for outpoint in order.funding:
            _drop(self._funded, outpoint, order)

    def end_at(self, order: Order, end_ms: int) -> None:
        """Makes the order end at `end_ms`, unless it ends before."""
        heapq.heappush(self._ends, (end_ms, order.order_id))

    def ended(self, now_ms: int) -> Iterator[tuple[int, Order]]:
        """Yields ended orders with their ends, earliest first; each must be removed before the next."""
        while self._ends and self._ends[0][0] <= now_ms:
            end_ms, order_id = heapq.heappop(self._ends)
            order = self._by_id.get(order_id)
            if order is not None:
                yield end_ms, order


def _drop(index: dict[str, dict[str, Order]], key: str, order: Order) -> None:
    del index[key][order.order_id]
    if not index[key]:
        del index[key]
