"""What a decision looks at besides its own orders: the book, the balance, the fees. For live cycles and previews alike.

What cannot be read is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Protocol, TypeVar

from core.errors import BidkeeperError
from markets.base import AskBook, Balance, BidBook, Fees, Kind, NotSupported, VenueError
from markets.client import MarketClient
from strategy.bidding.plan_bids import measure
from strategy.book import Ask, Bid, History, Snapshot
from strategy.config import BidConfig, is_ticker, normal_slug

# An accepted bid costs its bidder a purchase transaction: about this size for ordinals and runes alike. Venues state
# some 600 sats for it at low rates.
PURCHASE_VBYTES = 250
SLOW_READ_S = 60.0  # balance and fees
KNOWN_SLUG_S = 300.0  # whether the market knows a slug at all
FEES_USABLE_MS = 30 * 60_000
DAY_S = 86_400.0  # what a rune is does not change

Value = TypeVar("Value")


class Notes(Protocol):
    """Where a look says what it failed to do."""

    def add(self, failed_to: str, error: BidkeeperError | str, *, backs_off: bool = True) -> None:
        """`failed_to` completes "failed to ..."; `backs_off` False where trying again soon does no harm."""


@dataclass(frozen=True, slots=True)
class Wallet:
    """Whose bids they are: paid from `payment`, what they buy goes to `receive`.

    `addresses` are all of the user's, of every task. Since a venue may not tell who makes a bid, `bid_ids` are the
    venue's ids of the user's own bids as far as they are known, and `bid_prices` the prices (sats) of the open ones:
    a bid of an untold maker at one of these is taken for our own, lest we outbid ourselves. `ask_prices` (sats) are
    those of the user's own listings.
    """

    payment: str
    payment_pubkey: str
    receive: str
    addresses: frozenset[str]
    bid_ids: frozenset[str] = frozenset()
    bid_prices: frozenset[int] = frozenset()
    ask_prices: frozenset[int] = frozenset()

    def owns_ask(self, ask: Ask) -> bool:
        """Whether the user made this ask."""
        return ask.maker in self.addresses

    def owns_bid(self, bid: Bid) -> bool:
        """Whether the user made this bid, or may have."""
        if bid.maker in self.addresses or bid.order_id in self.bid_ids:
            return True
        return not bid.maker and bid.price in self.bid_prices

    def may_be_floor(self, book: AskBook) -> bool:
        """Whether a listing of the user's may be the cheapest: then the floor does not tell what others ask."""
        lowest = min(ask.price for ask in book.asks)
        return lowest in self.ask_prices or any(ask.price == lowest and self.owns_ask(ask) for ask in book.asks)


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at the market; `asks_read` counts the asks before the user's own were removed."""

    snapshot: Snapshot | None
    asks_read: int
    balance_sats: int | None
    fee_reserve_sats: int | None


@dataclass(frozen=True, slots=True)
class _Books:
    asks: AskBook
    trait_asks: AskBook | None
    bids: BidBook | None


class Looker:
    """Reads the market, and remembers the last fees that could be read."""

    def __init__(self, market: MarketClient, clock_ms: Callable[[], int]) -> None:
        self._market = market
        self._clock_ms = clock_ms
        self._fees: Fees | None = None

    def look(
        self,
        config: BidConfig,
        wallet: Wallet,
        history: History,
        max_age_s: float,
        notes: Notes,
        *,
        by_floor: bool = False,
        balance_age_s: float = SLOW_READ_S,
    ) -> Seen:
        """Reads what may be `max_age_s` old for the book, a minute for the rest; notes what fails.

        `history` goes into the snapshot as it is. The snapshot is as old as the oldest book in it. `by_floor`: asks of
        the last ten minutes will do where the floor of now confirms them and the config hangs on nothing else.
        """
        books = self._books(config, wallet, max_age_s, notes, by_floor=by_floor)
        balance = _try(lambda: self._balance(wallet, balance_age_s), "read the balance", notes)
        balance_sats = balance.sats if balance else None
        fee_reserve_sats = self.fee_reserve(config.fee_rate, notes)
        if books is None:
            return Seen(None, 0, balance_sats, fee_reserve_sats)
        if not books.asks.asks:
            self._note_unknown(config, notes)
        snapshot = _snapshot(books, wallet, history, self._divisibility(config, notes))
        return Seen(snapshot, len(books.asks.asks), balance_sats, fee_reserve_sats)

    def _books(
        self, config: BidConfig, wallet: Wallet, max_age_s: float, notes: Notes, *, by_floor: bool
    ) -> _Books | None:
        market, trait = self._market, trait_of(config)
        is_floor_enough = by_floor and config.hangs_on_floor

        def read() -> AskBook:
            if config.is_rune:
                return market.rune_asks(config.slug, max_age_s)
            book = market.asks(config.slug, max_age_s, by_floor=is_floor_enough)
            if book.confirmed_ms is None or not wallet.may_be_floor(book):
                return book
            return market.asks(config.slug, max_age_s)

        asks = _try(read, "read the asks", notes)
        if asks is None:
            return None
        trait_asks = None
        if trait is not None:
            trait_asks = _try(lambda: self._trait_asks(config.slug, max_age_s, trait), "read the trait's asks", notes)
        bids = None
        if config.wants_bids:
            bids = _try(lambda: market.bids(config.slug, kind_of(config), max_age_s, trait), "read the bids", notes)
        return _Books(asks, trait_asks, bids)

    def _trait_asks(self, slug: str, max_age_s: float, trait: tuple[str, str]) -> AskBook | None:
        try:
            return self._market.asks(slug, max_age_s, trait)
        except NotSupported:
            return None

    def _divisibility(self, config: BidConfig, notes: Notes) -> int | None:
        """Only where quantities are computed; who states one has to know it."""
        if config.quantity_mode != "sats":
            return None
        rune = _try(lambda: self._market.rune(config.slug, DAY_S), "read what the rune is", notes)
        return None if rune is None else rune.divisibility

    def _note_unknown(self, config: BidConfig, notes: Notes) -> None:
        """An empty book and one that does not exist look alike; the floors tell them apart, for the task's owner."""
        try:
            known = self._market.floors([config.slug], kind_of(config), KNOWN_SLUG_S)
        except VenueError:
            return  # the next look asks again; nothing else hangs on it
        if not known:
            what = "rune" if config.is_rune else "collection"
            notes.add("find the market", f"it knows no {what} named {config.slug}", backs_off=False)

    def _balance(self, wallet: Wallet, max_age_s: float) -> Balance:
        return self._market.balance(wallet.payment, wallet.receive, wallet.payment_pubkey, max_age_s)

    def fee_reserve(self, fee_rate: str | Decimal, notes: Notes) -> int | None:
        """Sats to keep for the fees of one purchase; None without a rate of the last half hour."""
        if isinstance(fee_rate, Decimal):
            return fee_reserve(fee_rate)
        fees = _try(lambda: self._market.fees(SLOW_READ_S), "read the fee rates", notes)
        self._fees = fees or self._fees
        if self._fees is None or self._clock_ms() - self._fees.taken_ms > FEES_USABLE_MS:
            return None
        return fee_reserve(tier_rate(self._fees, fee_rate))


def _snapshot(books: _Books, wallet: Wallet, history: History, divisibility: int | None) -> Snapshot:
    read = [book for book in (books.asks, books.trait_asks, books.bids) if book is not None]
    return Snapshot(
        taken_ms=min(book.taken_ms for book in read),
        asks=_foreign(books.asks, wallet),
        bids=None if books.bids is None else tuple(bid for bid in books.bids.bids if not wallet.owns_bid(bid)),
        trait_asks=None if books.trait_asks is None else _foreign(books.trait_asks, wallet),
        history=history,
        divisibility=divisibility,
        confirmed_ms=books.asks.confirmed_ms,
    )


def _foreign(book: AskBook, wallet: Wallet) -> tuple[Ask, ...]:
    return tuple(ask for ask in book.asks if not wallet.owns_ask(ask))


def kind_of(config: BidConfig) -> Kind:
    """The venue's word for the goods."""
    return "runes" if config.is_rune else "ordinals"


def kind_of_slug(slug: str) -> Kind:
    """The kind of a stored slug: an order outlives a change of its task's type."""
    return "runes" if is_ticker(slug) else "ordinals"


def trait_of(config: BidConfig) -> tuple[str, str] | None:
    """The trait (type, value) that is bid on, None for a whole collection or rune."""
    return (config.trait_type, config.trait_value) if config.bid_type == "trait" else None


def history_key(config: BidConfig, venue: str, default: str) -> tuple[str, str, str]:
    """Kind, slug key and measure, by which the references of all tasks that look at the same are kept together.

    What is asked at one venue is no history of another's: the measure names a `venue` that is not the `default` one.
    """
    measured = measure(config) if venue == default else f"{measure(config)} at {venue}"
    return kind_of(config), normal_slug(config.type, config.slug), measured


def tier_rate(fees: Fees, tier: str) -> Decimal:
    """The rate (sat/vB) of a tier by its name in a config."""
    return {
        "fastestFee": fees.fastest,
        "halfHourFee": fees.half_hour,
        "hourFee": fees.hour,
        "minimumFee": fees.minimum,
    }[tier]


def fee_reserve(rate: Decimal) -> int:
    """Sats to keep for the fees of one purchase at `rate` sat/vB: 2.5 gives 625."""
    return int((rate * PURCHASE_VBYTES).to_integral_value(ROUND_CEILING))


def _try(read: Callable[[], Value], failed_to: str, notes: Notes) -> Value | None:
    try:
        return read()
    except VenueError as error:
        notes.add(failed_to, error)
        return None
