"""The market as a decision sees it: book, balance and fees, for live cycles and previews alike.

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

# An accepted bid costs its bidder a purchase transaction of about this size, for ordinals and runes alike. Venues state
# some 600 sats for it at low rates.
PURCHASE_VBYTES = 250
SLOW_READ_S = 60.0  # balance and fees
KNOWN_SLUG_S = 300.0  # whether the market knows a slug
FEES_USABLE_MS = 30 * 60_000
DAY_S = 86_400.0  # a rune does not change

Value = TypeVar("Value")
_UNIT_PRICE = attrgetter("unit_price")


class Notes(Protocol):
    """The log of failed reads."""

    def add(self, step: Step, failed_to: str, error: BidkeeperError | str, *, backs_off: bool = True) -> None:
        """Notes that a step failed, "failed to `failed_to`"; `backs_off` False if an early retry does no harm."""


class BidderWallet(Struct, frozen=True):
    """The user's side: `payment` pays for bids, the goods go to `receive`.

    `addresses` are all of the user's, of every task. Since a venue may not name a bid's maker, `bid_ids` are the
    venue's ids of the user's own bids as far as known, and `bid_prices` the prices (sats) of the open ones: a bid of an
    unknown maker at one of these counts as our own, so that we never outbid ourselves. `ask_prices` (sats) are those of
    the user's listings.
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
        """Tells whether the user made this bid, or may have."""
        if bid.is_by(self.addresses) or bid.order_id in self.bid_ids:
            return True
        return not bid.maker and bid.price in self.bid_prices

    def may_be_floor(self, book: base.AskBook) -> bool:
        """Tells whether the cheapest listing may be the user's: then the floor does not show the others' prices."""
        lowest = min(ask.price for ask in book.asks)
        return lowest in self.ask_prices or any(ask.price == lowest and self.owns_ask(ask) for ask in book.asks)


class Books(Struct, frozen=True):
    """The books of one look with the user's own orders; None was not, or could not be, read."""

    asks: base.AskBook
    trait_asks: base.AskBook | None
    bids: base.BidBook | None

    @property
    def unread(self) -> dict[str, int]:
        """The numbers of rows that were left out of the asks and of the bids."""
        return {"asks": self.asks.unread, "bids": 0 if self.bids is None else self.bids.unread}


class MarketLook(Struct, frozen=True):
    """One look at the market; `asks_read` counts the asks before the user's own were removed.

    `funded_at` is the address whose balance backs the bids, `balance_ms` when that was read.
    """

    snapshot: Snapshot | None
    asks_read: int
    balance_sats: int | None
    fee_reserve_sats: int | None
    funded_at: str | None = None
    balance_ms: int | None = None
    books: Books | None = None


def fund_of(entry: Entry, plan: BidPlan, seen: MarketLook) -> ToFund | None:
    """Returns the address and the sats that the bids of a plan lack, None if they lack none or it is unknown."""
    missing = missing_sats(entry, plan)
    return to_fund(seen.funded_at, missing) if missing else None


class Looker:
    """Reads the market and remembers the last fees that could be read."""

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
        """Reads the book at most `max_age_s` old, the rest at most a minute; notes failures.

        `history` goes into the snapshot as it is. The snapshot is as old as the oldest book in it. `by_floor`: asks of
        the last ten minutes are enough if the present floor confirms them and the config depends on nothing else.
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
        """Returns the rune's divisibility where quantities are computed from it; a stated quantity needs none."""
        if config.quantity_mode != "sats":
            return None
        rune = _try(lambda: self._market.rune(config.slug, DAY_S), Step.READ_RUNE, "read what the rune is", notes)
        return None if rune is None else rune.divisibility

    def _note_unknown(self, config: BidConfig, notes: Notes) -> None:
        """Notes that the slug is unknown, for the task's owner: its book looks empty, so the floors decide."""
        try:
            known = self._market.floors([config.slug], kind_of(config), KNOWN_SLUG_S)
        except VenueError:
            return  # the next read retries; nothing else depends on it
        if not known:
            what = "rune" if config.is_rune else "collection"
            notes.add(Step.MARKET, "find the market", f"it knows no {what} named {config.slug}", backs_off=False)

    def fee_reserve(self, fee_rate: str | Decimal, notes: Notes) -> int | None:
        """Returns the sats to keep for the fees of one purchase; None without a rate of the last half hour."""
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
    """Makes the snapshot of the reads. Measures that need an unreadable row are refused, not guessed.

    A missing ask makes a floor or an average too high, so the bids as well. A missing bid only makes ours lower, so
    others' bids count as they were read.
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
    """Tells whether the cheapest of `asks`, a part of the book, has no cheaper one among the hidden rows."""
    if not book.hidden:
        return True
    return bool(asks) and min(map(_UNIT_PRICE, asks)) == min(map(_UNIT_PRICE, book.asks))


def _foreign(book: base.AskBook, wallet: BidderWallet) -> tuple[Ask, ...]:
    return tuple(ask for ask in book.asks if not wallet.owns_ask(ask))


def kind_of(config: BidConfig) -> Kind:
    return "runes" if config.is_rune else "ordinals"


def kind_of_slug(slug: str) -> Kind:
    """Returns the kind of a stored slug: an order outlives a change of its task's type."""
    return "runes" if is_ticker(slug) else "ordinals"


def trait_of(config: BidConfig) -> tuple[str, str] | None:
    """Returns the trait (type, value) that is bid on, None for a whole collection or rune."""
    return (config.trait_type, config.trait_value) if config.bid_type == "trait" else None


def history_key(config: BidConfig, venue: str, default: str) -> tuple[str, str, str]:
    """Returns the key of a reference's history: kind, slug key and measure. Tasks that look at the same market share
    it.

    A reference at one venue is not another's history: the measure names a `venue` that is not the `default` one.
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
    """Returns the sats to keep for the fees of one purchase at `rate` sat/vB: 2.5 gives 625."""
    return int((rate * PURCHASE_VBYTES).to_integral_value(ROUND_CEILING))


def _try(read: Callable[[], Value], step: Step, failed_to: str, notes: Notes) -> Value | None:
    try:
        return read()
    except VenueError as error:
        notes.add(step, failed_to, error)
        return None
