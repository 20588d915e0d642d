"""The order books of collections and runes, their history, and the engine, through which every order changes.

It knows no HTTP, signatures or venue formats; time and randomness are arguments.
"""

from __future__ import annotations

import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from simulator.chain import BLOCK_SECONDS, KNOWN_HEIGHT, KNOWN_TIME, Chain
from simulator.wallets import Trait, Wallets
from simulator.wire import EXACT, ApiError, decimal_places, number
from wallet import address

Kind = Literal["ordinals", "runes"]
Side = Literal["bid", "ask"]
Origin = Literal["dialect", "scripted", "trader"]
MarketKey = tuple[Kind, str]

BULLET = "\u2022"


def ticker_key(ticker: str) -> str:
    """Returns the form that all spellings of a rune share: upper case without bullets."""
    return ticker.replace(BULLET, "").upper()


def market_key(kind: Kind, slug: str) -> MarketKey:
    """Returns the key of a market: a collection's lower-case slug, a rune's `ticker_key`."""
    return kind, slug.lower() if kind == "ordinals" else ticker_key(slug)


def takes(wanted: tuple[Trait, ...], traits: tuple[Trait, ...]) -> bool:
    """Returns True if the item has, for each trait type in `wanted`, one of the wanted values."""
    return all(any(t in traits for t in wanted if t[0] == kind) for kind in {t[0] for t in wanted})


class Order(Struct):
    """One ask or bid. `price` is the whole order's sats, `unit_price` sats per whole token (or per inscription).

    `maker` is the seller's address or the bidder's payment address, `receive` the address for bought goods. Reads do
    not show the order before `visible_ms`. A signed listing has the `outpoint` that it sells and the `psbt` (base64)
    that its seller signed for any buyer. An order without a `venue`, as from scripts and traders, is open at every
    venue. A bid ends when an output in `funding` is spent. `papers` are a venue's further data, in its own form.
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
        """Returns True if the order is open at `venue`; None means any venue."""
        return venue is None or self.venue in ("", venue)

    @property
    def trait(self) -> Trait | None:
        """The trait that a trait bid asks for; the first if it accepts several."""
        return self.traits[0] if self.side == "bid" and self.traits else None

    def rank(self) -> tuple[Decimal, int, int]:
        """Returns the sort key, best first: the lowest ask, the highest bid; the older of equals."""
        price = -self.unit_price if self.side == "bid" else self.unit_price
        return price, self.placed_ms, self.sequence


class Market(Struct):
    """One collection or rune with its open orders by id. `slug` is as first written, with a rune's bullets.

    `scripted`: a control call set its book, so background traders leave it alone. `listing_traits`: listings show their
    traits. `creator` gets a part of each price at Ordinals Wallet.
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
        """Returns the visible orders of one side at `venue` (None: any), best first.

        Leaves out bids on one inscription, because they do not compete for the collection.
        """
        shown = (order for order in self.side(side).values() if order.visible_ms <= now_ms and order.at(venue))
        return sorted((order for order in shown if side == "ask" or order.inscription is None), key=Order.rank)


def unit_price(price: int, quantity: Decimal) -> Decimal:
    """Returns an order's sats per token, with far more digits than any book shows."""
    return EXACT.divide(Decimal(price), quantity).quantize(Decimal("1e-18"), context=EXACT).normalize(EXACT)


TICK = {"ordinals": 1_000, "runes": 1}
MIN_BID = {"ordinals": 10_000, "runes": 1}
MIN_DURATION_MS = 15 * 60 * 1000


class BidTerms(Struct, frozen=True):
    """The terms of a bid. `price` is the whole order's sats, `maker` the payment address."""

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
    """The market refuses; the text gives the reason in the venue's words."""


def check_bid(market: Market, terms: BidTerms, now_ms: int, balance: int) -> None:
    """Raises Refusal if the bid breaks a rule. `balance` (sats) must cover each bid by itself."""
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


def _keys(order: Order) -> list[tuple[str, str]]:
    """Returns the index keys of an open order: its maker, an ask's inscription, its funding."""
    asked = [("ask", order.inscription)] if order.side == "ask" and order.inscription is not None else []
    return [("maker", order.maker), *asked, *(("funding", outpoint) for outpoint in order.funding)]


KEPT_SALES = 1_000


class Sale(Struct, frozen=True):
    """One trade: `price` sats for `quantity` tokens or for one inscription.

    `buyer` pays, `receive` gets the goods. `bid_id` is the filled bid, or `ask_id` the bought listing. `txid` is empty
    if the trade made no transaction.
    """

    sale_id: str
    kind: Kind
    slug: str
    price: int
    quantity: Decimal
    sold_ms: int
    buyer: str
    receive: str
    seller: str
    bid_id: str | None = None
    inscription: str | None = None
    ask_id: str | None = None
    listed_ms: int | None = None
    venue: str = ""
    txid: str = ""

    def at(self, venue: str) -> bool:
        """Returns True if the filled order was open at `venue`."""
        return self.venue in ("", venue)

    @property
    def unit_price(self) -> Decimal:
        """Sats per whole token, or per inscription."""
        return unit_price(self.price, self.quantity)


def sale_height(chain: Chain, sale: Sale) -> int:
    """Returns the height of the block of a sale's transaction; without one, the height at the time of the sale."""
    found = chain.transactions.get(sale.txid)
    return found.height if found else KNOWN_HEIGHT + (sale.sold_ms // 1000 - KNOWN_TIME) // BLOCK_SECONDS


class Sales:
    def __init__(self) -> None:
        self.all_of: dict[MarketKey, deque[Sale]] = {}
        # For the scene `sale_names_other_item`: the inscription that answers name in sales into bids.
        self.other_item: str | None = None

    def record(self, sale: Sale) -> None:
        self.all_of.setdefault(market_key(sale.kind, sale.slug), deque(maxlen=KEPT_SALES)).append(sale)

    def of(self, key: MarketKey, since_ms: int = 0) -> list[Sale]:
        found = [sale for sale in self.all_of.get(key, ()) if sale.sold_ms >= since_ms]
        if self.other_item is None:
            return found
        return [replace(s, inscription=self.other_item) if s.bid_id and s.inscription else s for s in found]


Event = Literal["accepted", "refused", "cancelled", "expired", "filled"]

KEPT = 50_000
KEPT_OF_TRADERS = 1_000


class History:
    """The last KEPT events of orders from clients or scripts, and the last KEPT_OF_TRADERS of traders' orders.

    They are kept separately so that a night of background trading does not push out clients' events.
    """

    def __init__(self) -> None:
        self._kept: deque[dict[str, Any]] = deque()
        self._traders: deque[dict[str, Any]] = deque(maxlen=KEPT_OF_TRADERS)
        self._count = 0
        # The number of the newest deleted event, not counting the traders'.
        self._gone = 0

    def record(
        self, event: Event, order: Order, time_ms: int, reason: str | None = None, remaining: Decimal | None = None
    ) -> None:
        """Records an event of `order`; an order without an id was refused.

        `remaining` is the quantity left of a partly filled bid; price and quantity are then those of the filled part.
        """
        self._count += 1
        row: dict[str, Any] = {"number": self._count, "time": time_ms, "event": event, "kind": order.side}
        row |= {"orderId": order.order_id or None, "slug": order.slug, "maker": order.maker, "price": order.price}
        row |= {"quantity": number(order.quantity), "message": order.message, "signature": order.signature}
        if order.venue:
            row["venue"] = order.venue
        if order.inscription is not None:
            row["inscriptionId"] = order.inscription
        if reason is not None:
            row["reason"] = reason
        if remaining is not None:
            row["remaining"] = number(remaining)
        if order.origin == "trader":
            self._traders.append(row)
            return
        self._kept.append(row)
        if len(self._kept) > KEPT:
            self._gone = self._kept.popleft()["number"]

    def rows(self, since: int | None = None) -> list[dict[str, Any]]:
        """Returns all kept events, or those with a number above `since`, oldest first.

        Raises ApiError(410) if events after `since` (except the traders') were deleted.
        """
        if since is not None and since < self._gone:
            raise ApiError(410, f"events up to number {self._gone} are no longer kept", "GONE")
        every = heapq.merge(self._kept, self._traders, key=lambda row: row["number"])
        return [row for row in every if row["number"] > (since or 0)]

    def dump(self) -> dict[str, Any]:
        return {"kept": list(self._kept), "traders": list(self._traders), "count": self._count, "gone": self._gone}

    def load(self, row: dict[str, Any]) -> None:
        self._kept.extend(row["kept"])
        self._traders.extend(row["traders"])
        self._count, self._gone = int(row["count"]), int(row["gone"])


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


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
        self._orders: dict[str, Order] = {}
        self._index: dict[tuple[str, str], dict[str, Order]] = {}
        self._ends: list[tuple[int, str]] = []
        self._sequence = 0
        self.seller_fee_ppm = 0  # millionths of a listing's price that its seller is not paid
        # Grows with every change, so that the writer of the state file notices it.
        self.changes = 0

    # Time and names

    def now_ms(self) -> int:
        return self._clock()

    def new_id(self) -> str:
        """Makes an id of 24 hex digits, like the venue's order ids."""
        while (found := f"{self._rng.getrandbits(96):024x}") in self._orders:
            pass
        return found

    def new_address(self, kind: str = "p2wpkh") -> str:
        """Makes a valid mainnet address with an unknown key: "p2wpkh" to pay from, "p2tr" to hold inscriptions."""
        if kind == "p2tr":
            return address.p2tr(self._rng.randbytes(32))
        return address.p2wpkh(self._rng.randbytes(20))

    def new_inscription(self) -> str:
        return f"{self._rng.getrandbits(256):064x}i0"

    # Markets

    def market(self, kind: Kind, slug: str) -> Market | None:
        self.expire()
        return self.markets.get(market_key(kind, slug))

    def find(self, slug: str) -> Market | None:
        return self.market("ordinals", slug) or self.market("runes", slug)

    def open_market(self, kind: Kind, slug: str, name: str = "", divisibility: int = 0) -> Market:
        market = self.market(kind, slug)
        if market is None:
            market = Market(kind, slug.lower() if kind == "ordinals" else slug, name or slug)
            self.markets[market.key] = market
        market.divisibility = divisibility
        self.changes += 1
        return market

    def floor(self, market: Market, venue: str | None = None) -> Decimal | None:
        """Returns the lowest ask in sats per inscription or per whole token; None without listings."""
        asks = market.best("ask", self.now_ms(), venue)
        return asks[0].unit_price if asks else None

    def bids_of(self, maker: str, *, hidden: bool = False, venue: str | None = None) -> list[Order]:
        """Returns all open bids of a payment address, oldest first; `hidden` adds those that reads do not show yet."""
        self.expire()
        now = self.now_ms()
        bids = (o for o in self._under("maker", maker) if o.side == "bid" and o.at(venue))
        return [bid for bid in bids if hidden or bid.visible_ms <= now]

    def asks_of(self, inscription: str) -> list[Order]:
        self.expire()
        return self._under("ask", inscription)

    def ask_of(self, inscription: str, venue: str | None = None) -> Order | None:
        """Returns the open ask for an inscription at `venue`, or the oldest at any venue."""
        return next((ask for ask in self.asks_of(inscription) if ask.at(venue)), None)

    def bids_on(self, inscription: str, venue: str) -> list[Order]:
        self.expire()
        now = self.now_ms()
        bids = (o for o in self._orders.values() if o.side == "bid" and o.inscription == inscription)
        return [bid for bid in bids if bid.at(venue) and bid.visible_ms <= now]

    def ask_on(self, outpoint: str, maker: str, venue: str | None = None) -> Order | None:
        """Returns the open ask with which `maker` sells an output."""
        self.expire()
        asks = (order for order in self._under("maker", maker) if order.side == "ask" and order.at(venue))
        return next((ask for ask in asks if ask.outpoint == outpoint), None)

    def listing_of(self, inscription: str, venue: str | None = None) -> Order | None:
        """Returns the open ask for an inscription, as reads show it."""
        ask = self.ask_of(inscription, venue)
        return ask if ask is not None and ask.visible_ms <= self.now_ms() else None

    def order(self, order_id: str) -> Order | None:
        self.expire()
        return self._orders.get(order_id)

    def _under(self, kind: str, name: str) -> list[Order]:
        """Returns the open orders of one index key, oldest first."""
        return list(self._index.get((kind, name), {}).values())

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
        """Puts an order of a script or trader into the book, without checks."""
        unit, placed_ms = (
            unit_price(price, quantity) if unit is None else unit,
            self.now_ms() if placed_ms is None else placed_ms,
        )
        who = self.new_id(), self._next(), market.kind, side, market.slug, maker, receive or maker
        about: dict[str, Any] = {"traits": traits, "inscription": inscription, "origin": origin}
        order = Order(*who, price, quantity, unit, placed_ms, expires_ms, **about)
        self._enter(market, order)
        return order

    def place_bid(self, market: Market, terms: BidTerms, visible_ms: int = 0) -> Order:
        """Enters a client's bid, or records the reason and raises Refusal. Equal bids are allowed."""
        self.expire()
        try:
            check_bid(market, terms, self.now_ms(), self.wallets.backing(terms.maker))
        except Refusal as refusal:
            self.refuse(market.kind, terms, str(refusal))
            raise
        order = self._order(terms, self.new_id(), market.kind, market.slug)
        order.visible_ms = visible_ms
        self.enter(market, order)
        return order

    def enter(self, market: Market, order: Order) -> None:
        """Puts a client's checked order into the book, and gives it an id unless it has one."""
        order.order_id, order.sequence = order.order_id or self.new_id(), self._next()
        self._enter(market, order)
        self.record("accepted", order)

    def refuse(self, kind: Kind, terms: BidTerms, reason: str) -> None:
        self.record("refused", self._order(terms, "", kind, terms.slug), reason)

    def cancel(self, order: Order, reason: str | None = None) -> None:
        self.remove(order)
        self.record("cancelled", order, reason)

    def cancel_at(self, order: Order, end_ms: int) -> None:
        """Removes an open order at `end_ms`, for a cancel that the venue confirms before it takes effect."""
        heapq.heappush(self._ends, (end_ms, order.order_id))
        self.changes += 1

    def replace_book(self, market: Market) -> None:
        """Removes all orders that are not a client's, without events, because a script sets a new scene."""
        for order in [order for order in market.orders() if order.origin != "dialect"]:
            self.remove(order)
        market.scripted = True

    def reprice(self, order: Order, price: int, unit: Decimal | None = None) -> None:
        """Changes an ask's price in place, as when a seller lists again."""
        order.price = price
        order.unit_price = unit if unit is not None else unit_price(price, order.quantity)
        self.changes += 1

    def expire(self) -> None:
        """Removes expired orders. Every read and change calls it first, so that no expired order is seen."""
        now = self.now_ms()
        while self._ends and self._ends[0][0] <= now:
            end_ms, order_id = heapq.heappop(self._ends)
            if (order := self._orders.get(order_id)) is None:
                continue
            over = order.expires_ms is not None and order.expires_ms <= end_ms
            self.remove(order)
            self.history.record("expired" if over else "cancelled", order, end_ms)
        spent, self.chain.just_spent = self.chain.just_spent, []
        for outpoint in spent:
            for funded in self._under("funding", outpoint):
                self.cancel(funded, "invalidated: a coin behind it is spent")

    def _order(self, terms: BidTerms, order_id: str, kind: Kind, slug: str) -> Order:
        price = terms.price, terms.quantity, unit_price(terms.price, terms.quantity)
        about: dict[str, Any] = {"traits": (terms.trait,) if terms.trait else (), "origin": "dialect"}
        about |= {"message": terms.message, "signature": terms.signature, "venue": terms.venue}
        made = *price, self.now_ms(), terms.expires_ms
        return Order(order_id, 0, kind, "bid", slug, terms.maker, terms.receive, *made, **about)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _enter(self, market: Market, order: Order) -> None:
        market.side(order.side)[order.order_id] = order
        self._add(order)
        self.changes += 1

    def _add(self, order: Order) -> None:
        self._orders[order.order_id] = order
        for key in _keys(order):
            self._index.setdefault(key, {})[order.order_id] = order
        if order.expires_ms is not None:
            heapq.heappush(self._ends, (order.expires_ms, order.order_id))

    def remove(self, order: Order) -> None:
        """Removes an open order from its book, without an event."""
        del self._orders[order.order_id]
        for key in _keys(order):
            del self._index[key][order.order_id]
            if not self._index[key]:
                del self._index[key]
        del self.markets[market_key(order.kind, order.slug)].side(order.side)[order.order_id]
        self.changes += 1

    def record(self, event: Event, order: Order, reason: str | None = None, remaining: Decimal | None = None) -> None:
        self.history.record(event, order, self.now_ms(), reason, remaining)
        self.changes += 1

    # The state file

    def dump(self, *, with_history: bool = True) -> dict[str, Any]:
        row: dict[str, Any] = {
            "sequence": self._sequence,
            "markets": [_dumped(market) for market in self.markets.values()],
            "wallets": self.wallets.dump(),
            "sales": to_builtins([sale for sales in self.sales.all_of.values() for sale in sales]),
            "chain": self.chain.dump(),
        }
        return row | {"history": self.history.dump()} if with_history else row

    def load(self, row: dict[str, Any]) -> None:
        """Fills an empty engine from a dump. Raises KeyError, TypeError or ValueError if `row` is not a dump."""
        self._sequence = int(row["sequence"])
        orders: list[Order] = []
        for each in row["markets"]:
            market, of_it = convert(each, Market), convert(each["orders"], list[Order])
            self.markets[market.key] = market
            for order in of_it:
                market.side(order.side)[order.order_id] = order
            orders += of_it
        for order in sorted(orders, key=lambda order: order.sequence):
            self._add(order)
        self.wallets.load(row["wallets"])
        for sale in convert(row["sales"], list[Sale]):
            self.sales.record(sale)
        self.chain.load(row["chain"])
        if "history" in row:  # a frozen copy has no history
            self.history.load(row["history"])


def _dumped(market: Market) -> dict[str, Any]:
    row: dict[str, Any] = to_builtins(market)
    return row | {"orders": [*row.pop("asks").values(), *row.pop("bids").values()]}
