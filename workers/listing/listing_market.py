"""The market values behind a listing's price: the asks of others, their median of the last hour, the last sales."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from markets.base import NotSupported, VenueError
from models import floor_samples, inscriptions
from models.tasks.table import Task
from strategy.bid_config import normal_slug
from strategy.bidding.plan_bids import without
from strategy.book import NO_HISTORY, Ask, History
from strategy.listing.listing_config import ListingConfig
from strategy.listing.reference import foreign_prices, least_believed
from workers.context import Context
from workers.faults import Faults

# A book for pricing may be this old, so that tasks on one collection share it.
BOOK_S = 10.0
SALES_S = 60.0
ITEM_S = 86_400.0  # an inscription's collection does not change
LAST_SALE_MS = 30 * 86_400_000  # an older one says nothing about today


@dataclass(frozen=True, slots=True)
class ListingMarket:
    """The values read; None is unknown. `asks` include our own. `key` is that of the asks' history."""

    asks: tuple[Ask, ...] | None = None
    trait_asks: tuple[Ask, ...] | None = None
    last_sales: tuple[int, ...] | None = None
    history: History = NO_HISTORY
    key: tuple[str, str, str] | None = None


class CollectionFinder:
    """The search for the collection of the task's inscription, at the venue last."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._told: str | None = None

    def slug(self, task: Task, shown: str | None, faults: Faults) -> str | None:
        """Returns the collection's slug; `shown` is the venue's word beside our listing."""
        known = task.collection_id or shown or self._told or inscriptions.collection_of(task.inscription_id)
        if known is None:
            known = self._told = self._asked(task.inscription_id, faults)
        return known

    def _asked(self, inscription_id: str, faults: Faults) -> str | None:
        try:
            named = self._context.market.item(inscription_id, ITEM_S).collection_id
        except VenueError as error:
            faults.add("learn the inscription's collection", error, backs_off=False)
            return None
        return named if named is not None and 0 < len(named) <= 100 else None


def read_market(context: Context, config: ListingConfig, slug: str | None, faults: Faults) -> ListingMarket:
    """Reads the values that this config's price depends on."""
    wants_sale = config.price_mode == "percent" and config.reference == "lastSale"
    if not config.wants_asks and not wants_sale:
        return ListingMarket()
    if slug is None:
        faults.add("price the listing", "the inscription's collection is not known", backs_off=False)
        return ListingMarket()
    if wants_sale:
        return ListingMarket(last_sales=_last_sales(context, slug, faults))
    # The asks at one venue are no history of another's.
    is_default = context.venue.name == context.settings.market
    measured = measure(config) if is_default else f"{measure(config)} at {context.venue.name}"
    key = ("ordinals", normal_slug("ordinals", slug), measured)
    return ListingMarket(
        asks=_asks(context, slug, None, faults) if config.trait is None else None,
        trait_asks=None if config.trait is None else _asks(context, slug, config.trait, faults),
        history=_history(key, context.clock_ms()) if is_default else floor_samples.history(*key, context.clock_ms()),
        key=key,
    )


def measure(config: ListingConfig) -> str:
    """Returns the measure of this config's asks. Sellers and bidders trust different values, so each keep their own."""
    measured = "ask" if config.trait is None else f"ask:{config.trait_type}={config.trait_value}"
    return measured + without(config.ignore_addresses)


def sample(market: ListingMarket, own_wallets: Collection[str], now_ms: int) -> None:
    """Stores the believed floor as the minute's sample."""
    asks = market.asks if market.asks is not None else market.trait_asks
    prices = foreign_prices(asks or (), own_wallets)
    if market.key is not None and prices:
        believed = least_believed(market.history.median) or Decimal(0)
        floor_samples.record(*market.key, max(Decimal(prices[0]), believed), now_ms)


def _history(key: tuple[str, str, str], now_ms: int) -> History:
    """Returns our history; without one, that of bidders on the same."""
    kind, slug_key, measured = key
    found = floor_samples.history(*key, now_ms)
    if found.samples:
        return found
    rest = measured.removeprefix("ask")
    of_bidders = f"trait{rest}" if rest.startswith(":") else f"floor{rest}"
    return floor_samples.history(kind, slug_key, of_bidders, now_ms)


def _asks(context: Context, slug: str, trait: tuple[str, str] | None, faults: Faults) -> tuple[Ask, ...] | None:
    try:
        return context.market.asks(slug, BOOK_S, trait).asks
    except NotSupported:
        return None
    except VenueError as error:
        faults.add("read the asks", error)
        return None


def _last_sales(context: Context, slug: str, faults: Faults) -> tuple[int, ...] | None:
    """Returns the prices of the collection's sales, newest first."""
    since_ms = context.clock_ms() - LAST_SALE_MS
    try:
        found = context.market.sales(slug, "ordinals", since_ms, SALES_S)
    except VenueError as error:
        faults.add("read the sales", error)
        return None
    newest_first = sorted(found.sales, key=lambda sale: sale.sold_ms, reverse=True)
    # An answer made for another task may reach further back.
    return tuple(sale.price for sale in newest_first if sale.sold_ms >= since_ms)
