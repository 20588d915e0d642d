"""Reads the market for a decision: book, balance and fees. Used by live cycles and previews.

A value that cannot be read is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from decimal import ROUND_CEILING, Decimal
from operator import attrgetter
from typing import Protocol, TypeVar

from msgspec import Struct

from core.errors import BidkeeperError
from markets import base
from markets.base import Kind, NotSupported, VenueError
from markets.client import MarketClient
from markets.venues import ToFund, to_fund
from strategy.book import Ask, Bid, History, Snapshot
from strategy.config.bid import BidConfig, is_ticker, normal_slug
from strategy.decision import BidPlan, Entry, missing_sats
from strategy.guards import measure
from strategy.reasons import Step

# Approximate size of the purchase transaction that the bidder pays for when a bid is accepted, for ordinals and runes.
# Venues estimate about 600 sats for it at low fee rates.
PURCHASE_VBYTES = 250
SLOW_READ_S = 60.0  # balance and fees
KNOWN_SLUG_S = 300.0  # maximum age of the answer whether the market knows a slug
FEES_USABLE_MS = 30 * 60_000
DAY_S = 86_400.0  # for a rune's facts, which do not change

Value = TypeVar("Value")
_UNIT_PRICE = attrgetter("unit_price")


class Notes(Protocol):
    """The log of failed reads."""

    def add(self, step: Step, failed_to: str, error: BidkeeperError | str, *, backs_off: bool = True) -> None:
        """Logs that a step failed to `failed_to`; pass `backs_off=False` if an early retry is harmless."""


class BidderWallet(Struct, frozen=True):
    """The user's addresses and orders: `payment` pays for bids, the goods go to `receive`.

    `addresses` are the user's, of all tasks. A venue may not name a bid's maker, so `bid_ids` are the known ids of the
    user's bids and `bid_prices` the prices (sats) of the open ones. A bid without a maker at one of these prices counts
    as the user's own, so that we never outbid ourselves. `ask_prices` (sats) are the user's listings'.
    """

    payment: str
    payment_pubkey: str
    receive: str
    addresses: frozenset[str]
    bid_ids: frozenset[str] = frozenset()
    bid_prices: frozenset[int] = frozenset()
    ask_prices: frozenset[int] = frozenset()

    def owns_ask(self, ask: Ask) -> bool:
        return ask.maker in self.addresses

    def owns_bid(self, bid: Bid) -> bool:
        """Returns whether the user made this bid, or may have made it."""
        if bid.is_by(self.addresses) or bid.order_id in self.bid_ids:
            return True
        return not bid.maker and bid.price in self.bid_prices

    def may_be_floor(self, book: base.AskBook) -> bool:
        """Returns whether the cheapest listing may be the user's own; the floor then does not show others' prices."""
        lowest = min(ask.price for ask in book.asks)
        return lowest in self.ask_prices or any(ask.price == lowest and self.owns_ask(ask) for ask in book.asks)


class Books(Struct, frozen=True):
    """The books of one read, including the user's own orders; None = not needed or not readable."""

    asks: base.AskBook
    trait_asks: base.AskBook | None
    bids: base.BidBook | None

    @property
    def unread(self) -> dict[str, int]:
        """The numbers of rows that were left out of the asks and of the bids."""
        return {"asks": self.asks.unread, "bids": 0 if self.bids is None else self.bids.unread}


class MarketLook(Struct, frozen=True):
    """One read of the market; `asks_read` counts the asks, including the user's own.

    `funded_at` is the address whose balance backs the bids, `balance_ms` the time of that read.
    """

    snapshot: Snapshot | None
    asks_read: int
    balance_sats: int | None
    fee_reserve_sats: int | None
    funded_at: str | None = None
    balance_ms: int | None = None
    books: Books | None = None


def fund_of(entry: Entry, plan: BidPlan, seen: MarketLook) -> ToFund | None:
    """Returns where to send the sats that a plan's bids lack; None if none are missing or the address is unknown."""
    missing = missing_sats(entry, plan)
    return to_fund(seen.funded_at, missing) if missing else None


class Looker:
    """Reads the market, and keeps the last fee rates for when a read of them fails."""

    def __init__(self, market: MarketClient, clock_ms: Callable[[], int]) -> None:
        self._market = market
        self._clock_ms = clock_ms
        self._fees: base.Fees | None = None

    def look(
        self,
        config: BidConfig,
        wallet: BidderWallet,
        history: History,
        max_age_s: float,
        notes: Notes,
        *,
        by_floor: bool = False,
        balance_age_s: float = SLOW_READ_S,
    ) -> MarketLook:
        """Reads the books (at most `max_age_s` old), the balance and the fees (at most a minute); notes failures.

        `history` is copied into the snapshot, whose time is its oldest book's. `by_floor`: asks of the last ten minutes
        are enough if the current floor confirms them and the config's price depends only on the floor.
        """
        books = self._books(config, wallet, max_age_s, notes, by_floor=by_floor)
        balance = _try(
            lambda: self._market.balance(wallet.payment, wallet.receive, wallet.payment_pubkey, balance_age_s),
            Step.READ_BALANCE,
            "read the balance",
            notes,
        )
        backing = (balance.sats, balance.address, balance.taken_ms) if balance else (None, None, None)
        balance_sats, funded_at, balance_ms = backing
        fee_reserve_sats = self.fee_reserve(config.fee_rate, notes)
        if books is None:
            return MarketLook(None, 0, balance_sats, fee_reserve_sats, funded_at, balance_ms)
        if not books.asks.asks:
            self._note_unknown(config, notes)
        snapshot = _snapshot(books, wallet, history, self._divisibility(config, notes), config.ignore_addresses)
        return MarketLook(snapshot, len(books.asks.asks), balance_sats, fee_reserve_sats, funded_at, balance_ms, books)

    def _books(
        self, config: BidConfig, wallet: BidderWallet, max_age_s: float, notes: Notes, *, by_floor: bool
    ) -> Books | None:
        market, trait = self._market, trait_of(config)
        is_floor_enough = by_floor and config.hangs_on_floor

        def read() -> base.AskBook:
            if config.is_rune:
                return market.rune_asks(config.slug, max_age_s)
            book = market.asks(config.slug, max_age_s, by_floor=is_floor_enough)
            if book.confirmed_ms is None or not wallet.may_be_floor(book):
                return book
            return market.asks(config.slug, max_age_s)

        asks = _try(read, Step.READ_ASKS, "read the asks", notes)
        if asks is None:
            return None
        trait_asks = None
        if trait is not None:
            trait_asks = _try(
                lambda: self._trait_asks(config.slug, max_age_s, trait), Step.READ_ASKS, "read the trait's asks", notes
            )
        bids = None
        if config.wants_bids:
            bids = _try(
                lambda: market.bids(config.slug, kind_of(config), max_age_s, trait),
                Step.READ_BIDS,
                "read the bids",
                notes,
            )
        return Books(asks, trait_asks, bids)

    def _trait_asks(self, slug: str, max_age_s: float, trait: tuple[str, str]) -> base.AskBook | None:
        try:
            return self._market.asks(slug, max_age_s, trait)
        except NotSupported:
            return None

    def _divisibility(self, config: BidConfig, notes: Notes) -> int | None:
        """Returns the rune's divisibility, or None if unreadable or if the config states its quantity in tokens."""
        if config.quantity_mode != "sats":
            return None
        rune = _try(lambda: self._market.rune(config.slug, DAY_S), Step.READ_RUNE, "read what the rune is", notes)
        return None if rune is None else rune.divisibility

    def _note_unknown(self, config: BidConfig, notes: Notes) -> None:
        """Notes for the task's owner if the market does not know the slug; an empty book alone does not show it."""
        try:
            known = self._market.floors([config.slug], kind_of(config), KNOWN_SLUG_S)
        except VenueError:
            return  # the next read checks again
        if not known:
            what = "rune" if config.is_rune else "collection"
            notes.add(Step.MARKET, "find the market", f"it knows no {what} named {config.slug}", backs_off=False)

    def fee_reserve(self, fee_rate: str | Decimal, notes: Notes) -> int | None:
        """Returns the sats to reserve for one purchase's fees; None without a fee rate of the last 30 minutes."""
        if isinstance(fee_rate, Decimal):
            return fee_reserve(fee_rate)
        fees = _try(lambda: self._market.fees(SLOW_READ_S), Step.READ_FEES, "read the fee rates", notes)
        self._fees = fees or self._fees
        if self._fees is None or self._clock_ms() - self._fees.taken_ms > FEES_USABLE_MS:
            return None
        return fee_reserve(tier_rate(self._fees, fee_rate))


def _snapshot(
    books: Books, wallet: BidderWallet, history: History, divisibility: int | None, ignored: Collection[str]
) -> Snapshot:
    """Builds the snapshot from the books. Measures that depend on an unreadable ask are marked as unsure.

    A missing ask would make a floor or an average too high, and so our bids. A missing bid can only make our bids
    lower, so the bids count as read.
    """
    read = [book for book in (books.asks, books.trait_asks, books.bids) if book is not None]
    asks, with_trait = _foreign(books.asks, wallet), books.trait_asks
    return Snapshot(
        taken_ms=min(book.taken_ms for book in read),
        asks=asks,
        bids=None if books.bids is None else tuple(bid for bid in books.bids.bids if not wallet.owns_bid(bid)),
        trait_asks=None if with_trait is None or with_trait.hidden else _foreign(with_trait, wallet),
        history=history,
        divisibility=divisibility,
        confirmed_ms=books.asks.confirmed_ms,
        is_floor_sure=is_sure_of(books.asks, [ask for ask in asks if ask.maker not in ignored]),
        is_depth_sure=not books.asks.hidden,
        are_bids_whole=books.bids is None or not books.bids.hidden,
    )


def is_sure_of(book: base.AskBook, asks: Sequence[Ask]) -> bool:
    """Returns whether no hidden row of the book can be cheaper than the cheapest of `asks`, a part of the book."""
    if not book.hidden:
        return True
    return bool(asks) and min(map(_UNIT_PRICE, asks)) == min(map(_UNIT_PRICE, book.asks))


def _foreign(book: base.AskBook, wallet: BidderWallet) -> tuple[Ask, ...]:
    return tuple(ask for ask in book.asks if not wallet.owns_ask(ask))


def kind_of(config: BidConfig) -> Kind:
    return "runes" if config.is_rune else "ordinals"


def kind_of_slug(slug: str) -> Kind:
    """Returns the kind of a stored order's slug, because the task's type may have changed since."""
    return "runes" if is_ticker(slug) else "ordinals"


def trait_of(config: BidConfig) -> tuple[str, str] | None:
    """Returns the trait (type, value) that the config bids on, None for a whole collection or rune."""
    return (config.trait_type, config.trait_value) if config.bid_type == "trait" else None


def history_key(config: BidConfig, venue: str, default: str) -> tuple[str, str, str]:
    """Returns the key of a reference's history: kind, slug key and measure. Tasks on the same market share it.

    The measure names the `venue` unless it is the `default` one, because each venue has its own history.
    """
    measured = measure(config) if venue == default else f"{measure(config)} at {venue}"
    return kind_of(config), normal_slug(config.type, config.slug), measured


def tier_rate(fees: base.Fees, tier: str) -> Decimal:
    """Returns the rate (sat/vB) of a tier by its name in a config."""
    return {
        "fastestFee": fees.fastest,
        "halfHourFee": fees.half_hour,
        "hourFee": fees.hour,
        "minimumFee": fees.minimum,
    }[tier]


def fee_reserve(rate: Decimal) -> int:
    """Returns the sats to reserve for one purchase's fees at `rate` sat/vB: 2.5 gives 625."""
    return int((rate * PURCHASE_VBYTES).to_integral_value(ROUND_CEILING))


def _try(read: Callable[[], Value], step: Step, failed_to: str, notes: Notes) -> Value | None:
    try:
        return read()
    except VenueError as error:
        notes.add(step, failed_to, error)
        return None
