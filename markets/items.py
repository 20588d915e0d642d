"""Reads the market values for a listing's price, and locates its inscription by index and chain.

Used by live cycles and previews. A value that cannot be read or is doubtful is None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from markets.base import AskBook, NotSupported, OutpointFacts, VenueError, Whereabouts
from markets.client import MarketClient
from markets.look import Notes
from strategy.book import NO_HISTORY, Ask, History
from strategy.config.bid import normal_slug
from strategy.config.listing import ListingConfig
from strategy.guards import without_addresses
from strategy.plan_listing import MOST_OUTLIERS, SALES, InscriptionState
from strategy.reasons import Step

# Maximum age of a book for pricing, so that tasks on one collection share it.
BOOK_S = 10.0
SALES_S = 60.0
LAST_SALE_MS = 30 * 86_400_000  # older sales say nothing about today's price


class ListingMarket(Struct, frozen=True):
    """The values read; None = unknown. `asks` include our own. `key` identifies the asks' history, which comes from our
    own samples. `unread_asks` and `unread_sales` rows could not be read; `hidden_asks` of these may be asks.
    """

    asks: tuple[Ask, ...] | None = None
    trait_asks: tuple[Ask, ...] | None = None
    last_sales: tuple[int, ...] | None = None
    history: History = NO_HISTORY
    key: tuple[str, str, str] | None = None
    unread_asks: int = 0
    unread_sales: int = 0
    hidden_asks: int = 0

    def without_doubt(self, own_wallets: Collection[str]) -> ListingMarket:
        """Returns these values, without the asks if an unread ask could make the price too low.

        Up to two low asks are dropped as bait when the next higher ask shows it. With three or more asks of others, a
        missing ask can only raise the price; with fewer, the price may be the bait's.
        """
        asks = self.asks if self.asks is not None else self.trait_asks
        others = sum(ask.maker not in own_wallets for ask in asks or ())
        if not self.hidden_asks or others > MOST_OUTLIERS:
            return self
        return replace(self, asks=None, trait_asks=None)

    def with_history(self, history: Callable[[str, str, str, int], History], now_ms: int) -> ListingMarket:
        """Returns these values with the history of the asks, if `key` is set."""
        return self if self.key is None else replace(self, history=history(*self.key, now_ms))


class ItemLook(Struct, frozen=True):
    """Reads an item's market values through the gateway. Thread-safe.

    `elsewhere` is the name of `market`'s venue, None for the default venue.
    """

    market: MarketClient
    elsewhere: str | None
    now_ms: int

    def read(self, config: ListingConfig, slug: str | None, notes: Notes) -> ListingMarket:
        """Reads the values that this config's price depends on."""
        wants_sale = config.price_mode == "percent" and config.reference == "lastSale"
        if not config.wants_asks and not wants_sale:
            return ListingMarket()
        if slug is None:
            notes.add(Step.LIST, "price the listing", "the inscription's collection is not known", backs_off=False)
            return ListingMarket()
        if wants_sale:
            sales, unread = self._last_sales(slug, notes)
            return ListingMarket(last_sales=sales, unread_sales=unread)
        # Each venue's asks have their own history.
        measured = measure(config) if self.elsewhere is None else f"{measure(config)} at {self.elsewhere}"
        key = ("ordinals", normal_slug("ordinals", slug), measured)
        book = self._book(slug, config.trait, notes)
        if book is None:
            return ListingMarket(key=key)
        found = ListingMarket(key=key, unread_asks=book.unread, hidden_asks=book.hidden)
        return replace(found, asks=book.asks) if config.trait is None else replace(found, trait_asks=book.asks)

    def _book(self, slug: str, trait: tuple[str, str] | None, notes: Notes) -> AskBook | None:
        try:
            return self.market.asks(slug, BOOK_S, trait)
        except NotSupported:
            return None
        except VenueError as error:
            notes.add(Step.READ_ASKS, "read the asks", error)
            return None

    def _last_sales(self, slug: str, notes: Notes) -> tuple[tuple[int, ...] | None, int]:
        """Returns the prices of the collection's sales, newest first (None = unknown), and the number of unread sales.

        The median of five sales tolerates two odd ones, so two older sales may replace two unread ones. If more are
        unread, or there are fewer than five, the prices are unknown.
        """
        since_ms = self.now_ms - LAST_SALE_MS
        try:
            found = self.market.sales(slug, "ordinals", since_ms, SALES_S)
        except VenueError as error:
            notes.add(Step.READ_SALES, "read the sales", error)
            return None, 0
        # The cached answer may have been read for another task that wanted older sales.
        newest_first = sorted(
            (each for each in found.sales if each.sold_ms >= since_ms), key=lambda each: -each.sold_ms
        )
        unread = [at_ms for at_ms in found.unread_ms if at_ms is None or at_ms >= since_ms]
        last_ms = newest_first[SALES - 1].sold_ms if len(newest_first) >= SALES else since_ms
        missing = sum(at_ms is None or at_ms >= last_ms for at_ms in unread)
        if missing > MOST_OUTLIERS or (missing and len(newest_first) < SALES):
            text = f"{missing} of the newest cannot be understood"
            notes.add(Step.READ_SALES, "read the sales", text, backs_off=False)
            return None, len(unread)
        return tuple(sale.price for sale in newest_first), len(unread)


def measure(config: ListingConfig) -> str:
    """Returns the history's name for this config's asks, different from a bidder's, who trusts other values."""
    measured = "ask" if config.trait is None else f"ask:{config.trait_type}={config.trait_value}"
    return measured + without_addresses(config.ignore_addresses)


FactsOf = Callable[[str], OutpointFacts | None]


class LocatedInscription(Struct, frozen=True):
    """An inscription's state and its output `outpoint` (txid:vout), which is known if it is `held` or `moved`.

    `is_untraced`: its output is spent, and no index knows the new one. `is_in_escrow`: its listing's transfer moved it
    to an escrow that the vault's key can spend; it can be sold from there.
    """

    inscription_state: InscriptionState
    outpoint: str | None = None
    is_untraced: bool = False
    is_in_escrow: bool = False


_UNKNOWN = LocatedInscription("unknown")
_PENDING = LocatedInscription("pending")
_SPENT = LocatedInscription("spent")


def locate(
    market: MarketClient,
    inscription_id: str,
    vault: str,
    signed_at: str | None,
    max_age_s: float,
    notes: Notes,
    escrows: Collection[str] = (),
) -> LocatedInscription:
    """Locates the inscription by index and chain; `signed_at` is the open listing's output, if there is one.

    `escrows` are the escrow addresses that the vault's key can spend from.
    """

    def facts_of(outpoint: str) -> OutpointFacts | None:
        try:
            return market.outpoint(outpoint, max_age_s)
        except VenueError as error:
            notes.add(Step.FIND_ITEM, "read what becomes of the inscription's output", error)
            return None

    try:
        where = market.whereabouts(inscription_id, max_age_s)
    except VenueError as error:
        notes.add(Step.FIND_ITEM, "find the inscription", error, backs_off=False)
        where = None
    return judged(vault, signed_at, where, facts_of, escrows)


def judged(
    vault: str,
    signed_at: str | None,
    where: Whereabouts | None,
    facts_of: FactsOf,
    escrows: Collection[str] = (),
) -> LocatedInscription:
    """Locates the inscription from the answers. An index covers only blocks, so a spend it lacks counts as pending."""
    if where is None:
        return _UNKNOWN if signed_at is None else _without_index(signed_at, facts_of(signed_at))
    if where.outpoint is None:
        return _UNKNOWN
    is_in_escrow = where.address is not None and where.address in escrows
    in_escrow = LocatedInscription("held", where.outpoint, is_in_escrow=True)
    if signed_at is None or where.outpoint == signed_at:
        found = facts_of(where.outpoint)
        if is_in_escrow:
            return _settled(found, in_escrow)
        if where.address != vault:
            # If our listing was signed, another wallet's output is a contradiction; otherwise the item is elsewhere.
            return _UNKNOWN if signed_at is not None else _settled(found, _SPENT)
        return _settled(found, LocatedInscription("held", where.outpoint))
    former = facts_of(signed_at)
    if former is None or former.is_unspent is not False:
        return _UNKNOWN  # because the index says that it moved, and the chain that its output is unspent
    found = facts_of(where.outpoint)
    if is_in_escrow:
        return _settled(found, in_escrow)
    return _settled(found, LocatedInscription("moved", where.outpoint) if where.address == vault else _SPENT)


def _settled(found: OutpointFacts | None, if_so: LocatedInscription) -> LocatedInscription:
    """Returns `if_so` if the inscription's output is confirmed and, unless `if_so` is "spent", unspent.

    Otherwise returns "pending", or "unknown" if a fact is missing.
    """
    if found is None or found.is_confirmed is None:
        return _UNKNOWN
    if not found.is_confirmed:
        return _PENDING
    if if_so.inscription_state == "spent" or found.is_unspent:
        return if_so
    return _UNKNOWN if found.is_unspent is None else _PENDING


def _without_index(signed_at: str, found: OutpointFacts | None) -> LocatedInscription:
    if found is not None and found.is_unspent is False:
        return LocatedInscription("pending", is_untraced=True)
    return _settled(found, LocatedInscription("held", signed_at))
