"""One order-book engine for collections and runes: every change of an order goes through here.

It knows no HTTP, no signature and no dialect; time and randomness are arguments.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from simulator.bitcoin.chain import Chain
from simulator.history import Event, History, Sales
from simulator.orders import (
    BidTerms,
    Kind,
    Market,
    MarketKey,
    OpenOrders,
    Order,
    Origin,
    Refusal,
    Side,
    check_bid,
    load_market,
    market_key,
    unit_price,
)
from simulator.wallets import Trait, Wallets
from wallet import address


class Engine:
    """All markets, wallets and events. `clock` gives ms since the epoch."""

    def __init__(self, clock: Callable[[], int], rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self.markets: dict[MarketKey, Market] = {}
        self.wallets = Wallets()
        self.chain = Chain(clock)
        self.history = History()
        self.sales = Sales()
        self._open = OpenOrders()
        self._sequence = 0
        self.seller_fee_ppm = 0  # millionths of a listing's price that its seller is not paid
        # Grows with every change, so that the state file's writer sees one.
        self.changes = 0

    # Time and names

    def now_ms(self) -> int:
        return self._clock()

    def new_id(self) -> str:
        """Makes an id of 24 hex digits, like the venue's order ids."""
        while (found := f"{self._rng.getrandbits(96):024x}") in self._open:
            pass
        return found

    def new_address(self, kind: str = "p2wpkh") -> str:
        """Makes a valid mainnet address without a known key: "p2wpkh" to pay from, "p2tr" to hold inscriptions."""
        if kind == "p2tr":
            return address.p2tr(self._rng.randbytes(32))
        return address.p2wpkh(self._rng.randbytes(20))

    def new_inscription(self) -> str:
        return f"{self._rng.getrandbits(256):064x}i0"

    # Markets

    def market(self, kind: Kind, slug: str) -> Market | None:
        """Returns the market of `slug` without its ended orders; None when unknown."""
        self.expire()
        return self.markets.get(market_key(kind, slug))

    def find(self, slug: str) -> Market | None:
        """Returns the collection of that slug, else the rune of that name."""
        return self.market("ordinals", slug) or self.market("runes", slug)

    def open_market(self, kind: Kind, slug: str, name: str = "", divisibility: int = 0) -> Market:
        """Returns the market of `slug`, made if it is new."""
        market = self.market(kind, slug)
        if market is None:
            market = Market(kind, slug.lower() if kind == "ordinals" else slug, name or slug)
            self.markets[market.key] = market
        market.divisibility = divisibility
        self.changes += 1
        return market

    def floor(self, market: Market, venue: str | None = None) -> Decimal | None:
        """Returns the lowest ask: sats of an inscription, sats per whole token of a rune. None without listings."""
        asks = market.best("ask", self.now_ms(), venue)
        return asks[0].unit_price if asks else None

    def bids_of(self, maker: str, *, hidden: bool = False, venue: str | None = None) -> list[Order]:
        """Returns every open bid of a payment address, oldest first; `hidden` adds those that reads do not show yet."""
        self.expire()
        now = self.now_ms()
        bids = (o for o in self._open.of(maker) if o.side == "bid" and o.at(venue))
        return [bid for bid in bids if hidden or bid.visible_ms <= now]

    def asks_of(self, inscription: str) -> list[Order]:
        """Returns the open asks for an inscription at all venues, oldest first."""
        self.expire()
        return self._open.asks_of(inscription)

    def ask_of(self, inscription: str, venue: str | None = None) -> Order | None:
        """Returns the open ask for an inscription at `venue`, or the oldest at any."""
        return next((ask for ask in self.asks_of(inscription) if ask.at(venue)), None)

    def bids_on(self, inscription: str, venue: str) -> list[Order]:
        """Returns the open bids for one inscription alone that reads of `venue` show, oldest first."""
        self.expire()
        now = self.now_ms()
        return [bid for bid in self._open.bids_on(inscription) if bid.at(venue) and bid.visible_ms <= now]

    def ask_on(self, outpoint: str, maker: str, venue: str | None = None) -> Order | None:
        """Returns the open ask by which `maker` sells an output."""
        self.expire()
        asks = (order for order in self._open.of(maker) if order.side == "ask" and order.at(venue))
        return next((ask for ask in asks if ask.outpoint == outpoint), None)

    def listing_of(self, inscription: str, venue: str | None = None) -> Order | None:
        """Returns the open ask for an inscription, as reads show it."""
        ask = self.ask_of(inscription, venue)
        return ask if ask is not None and ask.visible_ms <= self.now_ms() else None

    def order(self, order_id: str) -> Order | None:
        self.expire()
        return self._open.get(order_id)

    # Changes

    def add(
        self,
        market: Market,
        side: Side,
        maker: str,
        price: int,
        quantity: Decimal = Decimal(1),
        *,
        receive: str = "",
        unit: Decimal | None = None,
        placed_ms: int | None = None,
        expires_ms: int | None = None,
        traits: tuple[Trait, ...] = (),
        inscription: str | None = None,
        origin: Origin = "scripted",
    ) -> Order:
        """Puts an order into the book without any check: for scripts and traders."""
        order = Order(
            order_id=self.new_id(),
            sequence=self._next(),
            kind=market.kind,
            side=side,
            slug=market.slug,
            maker=maker,
            receive=receive or maker,
            price=price,
            quantity=quantity,
            unit_price=unit if unit is not None else unit_price(price, quantity),
            placed_ms=self.now_ms() if placed_ms is None else placed_ms,
            expires_ms=expires_ms,
            traits=traits,
            inscription=inscription,
            origin=origin,
        )
        self._enter(market, order)
        return order

    def place_bid(self, market: Market, terms: BidTerms, visible_ms: int = 0) -> Order:
        """Enters a bid of a dialect, or notes the reason and raises Refusal. Equal bids are allowed."""
        self.expire()
        try:
            check_bid(market, terms, self.now_ms(), self.wallets.backing(terms.maker))
        except Refusal as refusal:
            self.refuse(market.kind, terms, str(refusal))
            raise
        order = self._order(terms, self.new_id(), market.kind, market.slug)
        order.sequence, order.visible_ms = self._next(), visible_ms
        self._enter(market, order)
        self.record("accepted", order)
        return order

    def enter(self, market: Market, order: Order) -> None:
        """Puts the checked order of a dialect into the book, giving it an id unless it has one."""
        order.order_id, order.sequence = order.order_id or self.new_id(), self._next()
        self._enter(market, order)
        self.record("accepted", order)

    def refuse(self, kind: Kind, terms: BidTerms, reason: str) -> None:
        """Notes a bid that is not taken."""
        self.record("refused", self._order(terms, "", kind, terms.slug), reason)

    def cancel(self, order: Order, reason: str | None = None) -> None:
        """Takes an open order out of the book."""
        self.remove(order)
        self.record("cancelled", order, reason)

    def cancel_at(self, order: Order, end_ms: int) -> None:
        """Takes an open order out at `end_ms`: a cancel that the venue confirms before it takes effect."""
        self._open.end_at(order, end_ms)
        self.changes += 1

    def replace_book(self, market: Market) -> None:
        """Takes out every order that did not come through a dialect, without an event: a script sets a new scene."""
        for order in [order for order in market.orders() if order.origin != "dialect"]:
            self.remove(order)
        market.scripted = True

    def reprice(self, order: Order, price: int, unit: Decimal | None = None) -> None:
        """Changes the price of an ask in place, as when a seller lists again."""
        order.price = price
        order.unit_price = unit if unit is not None else unit_price(price, order.quantity)
        self.changes += 1

    def expire(self) -> None:
        """Takes out ended orders. Every read and change calls it first, so that no dead order is seen."""
        now = self.now_ms()
        for end_ms, order in self._open.ended(now):
            over = order.expires_ms is not None and order.expires_ms <= end_ms
            self.remove(order)
            self.history.record("expired" if over else "cancelled", order, end_ms)
        for outpoint in self.chain.take_spent():
            for order in self._open.funded_by(outpoint):
                self.cancel(order, "invalidated: a coin behind it is spent")

    def _order(self, terms: BidTerms, order_id: str, kind: Kind, slug: str) -> Order:
        return Order(
            order_id=order_id,
            sequence=0,
            kind=kind,
            side="bid",
            slug=slug,
            maker=terms.maker,
            receive=terms.receive,
            price=terms.price,
            quantity=terms.quantity,
            unit_price=unit_price(terms.price, terms.quantity),
            placed_ms=self.now_ms(),
            expires_ms=terms.expires_ms,
            traits=(terms.trait,) if terms.trait else (),
            origin="dialect",
            message=terms.message,
            signature=terms.signature,
            venue=terms.venue,
        )

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _enter(self, market: Market, order: Order) -> None:
        market.side(order.side)[order.order_id] = order
        self._open.enter(order)
        self.changes += 1

    def remove(self, order: Order) -> None:
        """Takes an open order out of its book, without an event."""
        self._open.remove(order)
        del self.markets[market_key(order.kind, order.slug)].side(order.side)[order.order_id]
        self.changes += 1

    def record(self, event: Event, order: Order, reason: str | None = None, remaining: Decimal | None = None) -> None:
        """Notes an event of an order, as `History.record` describes."""
        self.history.record(event, order, self.now_ms(), reason, remaining)
        self.changes += 1

    # The state file

    def dump(self, *, with_history: bool = True) -> dict[str, Any]:
        """Returns plain JSON values that `load` reads back."""
        row: dict[str, Any] = {
            "sequence": self._sequence,
            "markets": [market.dump() for market in self.markets.values()],
            "wallets": self.wallets.dump(),
            "sales": self.sales.dump(),
            "chain": self.chain.dump(),
        }
        return row | {"history": self.history.dump()} if with_history else row

    def load(self, row: dict[str, Any]) -> None:
        """Fills an empty engine from a dump. Raises KeyError, TypeError or ValueError for anything else."""
        self._sequence = int(row["sequence"])
        for market in map(load_market, row["markets"]):
            self.markets[market.key] = market
        orders: Iterable[Order] = (order for market in self.markets.values() for order in market.orders())
        for order in sorted(orders, key=lambda order: order.sequence):
            self._open.enter(order)
        self.wallets.load(row["wallets"])
        self.sales.load(row["sales"])
        self.chain.load(row["chain"])
        if "history" in row:  # a frozen copy has none
            self.history.load(row["history"])
