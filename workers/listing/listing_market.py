"""The market values behind a listing's price, read for a worker, and the collection that they are of."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from markets.base import VenueError
from markets.items.item_market import ItemLook, ListingMarket
from models import market_memory
from models.tasks.tasks import Task
from strategy.fault_codes import Step
from strategy.listing.listing_config import ListingConfig
from strategy.listing.reference import foreign_prices, least_believed
from workers.context import Context
from workers.faults import Faults

ITEM_S = 86_400.0  # an inscription's collection does not change


class CollectionFinder:
    """The search for the collection of the task's inscription, at the venue last."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._told: str | None = None

    def slug(self, task: Task, shown: str | None, faults: Faults) -> str | None:
        """Returns the collection's slug; `shown` is the venue's word beside our listing."""
        known = task.collection_id or shown or self._told or market_memory.collection_of(task.inscription_id)
        if known is None:
            known = self._told = self._asked(task.inscription_id, faults)
        return known

    def _asked(self, inscription_id: str, faults: Faults) -> str | None:
        try:
            named = self._context.market.item(inscription_id, ITEM_S).collection_id
        except VenueError as error:
            faults.add(Step.FIND_ITEM, "learn the inscription's collection", error, backs_off=False)
            return None
        return named if named is not None and 0 < len(named) <= 100 else None


def read_market(context: Context, config: ListingConfig, slug: str | None, faults: Faults) -> ListingMarket:
    """Reads the values that this config's price depends on."""
    now_ms, venue = context.clock_ms(), context.venue.name
    elsewhere = None if venue == context.settings.market else venue
    found = ItemLook(context.market, elsewhere, now_ms).read(config, slug, faults)
    return found.with_history(market_memory.history_of_asks(elsewhere), now_ms)


def floor_of(market: ListingMarket, own_wallets: Collection[str]) -> int | None:
    """Returns the lowest ask of others; None without one."""
    asks = market.asks if market.asks is not None else market.trait_asks
    return next(iter(foreign_prices(asks or (), own_wallets)), None)


def sample(market: ListingMarket, floor_sats: int | None, now_ms: int) -> None:
    """Stores the believed floor as the minute's sample."""
    if market.key is not None and floor_sats is not None:
        believed = least_believed(market.history.median) or Decimal(0)
        market_memory.record(*market.key, max(Decimal(floor_sats), believed), now_ms)
