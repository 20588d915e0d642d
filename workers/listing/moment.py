"""All that one cycle of an auto-list task knows, the market behind its price, and the state from cycle to cycle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from decimal import Decimal

from msgspec import Struct, field

from markets.base import VenueError
from markets.items import ItemLook, ListingMarket, LocatedInscription
from markets.orders import OwnListing
from models import market_memory
from models.controls import RUN
from models.ledger import listings
from models.ledger.listings import SoldFor
from models.ledger.states import LIVE, Listing
from models.tasks.tasks import Task
from strategy.config.listing import ListingConfig, load_listing_config, problems, unstartable
from strategy.plan_listing import ListingPlan, foreign_prices, least_believed, scheduled
from strategy.reasons import ListingResult, Step
from workers.context import Context
from workers.cycle import WantedMoment, config_of, wanted_task
from workers.faults import Faults
from workers.listing.own_listings import EndFinder
from workers.listing.places import ItemToList, JudgedDrafts

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


def record_floor(market: ListingMarket, floor_sats: int | None, now_ms: int) -> None:
    """Stores the believed floor as the minute's sample."""
    if market.key is not None and floor_sats is not None:
        believed = least_believed(market.history.median) or Decimal(0)
        market_memory.record(*market.key, max(Decimal(floor_sats), believed), now_ms)


class ListerState(Struct):
    """The state that one worker keeps from cycle to cycle. `new_intent` gives 64 hex digits, never the same again."""

    finder: CollectionFinder
    end_finder: EndFinder
    new_intent: Callable[[], str]
    has_read: bool = False  # our own listings, since the worker began
    drafts: JudgedDrafts = field(default_factory=JudgedDrafts)  # of a dry run


@dataclasses.dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ListingMoment(WantedMoment[ListingConfig]):
    """One cycle of an auto-list task.

    Settled: `shown` is the venue's listing of the inscription, `is_read` whether that is known, `open` the ledger's.
        `located` is the inscription's place, `slug` its collection. `adopted_sats` is the price of a listing that only
        the venue knew. `unread_listings` and `unread_sales` could not be read.
    Decided: without a `plan` the strategy was not asked, and `words` says why. `floor_sats` is the lowest ask of
        others. `is_over`: the task has nothing left to do; `sale` is what ended it, `error` is for its owner.
    Done: `former_sats` is the price that was replaced. `verdict` is the signer's on a dry run's draft. `listing` is the
        task's newest one afterwards. `is_in_doubt`: the next read may resolve a doubt.
    """

    state: ListerState

    shown: OwnListing | None = None
    is_read: bool = False
    open: Listing | None = None
    located: LocatedInscription = dataclasses.field(init=False)
    slug: str | None = None
    adopted_sats: int | None = None
    unread_listings: int = 0
    unread_sales: int = 0

    plan: ListingPlan | None = None
    market: ListingMarket = dataclasses.field(default_factory=ListingMarket)
    floor_sats: int | None = None
    words: str = ""
    is_over: bool = False
    sale: SoldFor | None = None
    error: str | None = None

    result: ListingResult | None = None
    former_sats: int | None = None
    verdict: str = ""
    listing: Listing | None = None
    is_in_doubt: bool = False

    @property
    def may_sign(self) -> bool:
        """Whether the item may be listed or its price changed. An existing listing stays in any case."""
        is_free = self.refusal is None and self.control.state == RUN
        return is_free and not (self.is_short_of_disk or self.damage or self.config.dry_run)

    @property
    def is_as_known(self) -> bool:
        """Whether the venue shows the listing that the ledger has."""
        return self.open is not None and self.open.state == LIVE and self.shown is not None and self.open.misses == 0

    @property
    def has_left(self) -> bool:
        """Whether the inscription has left the output that it was listed at."""
        return self.located.inscription_state == "spent" or self.located.is_untraced

    @property
    def not_the_market(self) -> frozenset[str]:
        """The addresses whose asks do not count: our own, and those to ignore."""
        return self.addresses.union(self.config.ignore_addresses)

    @property
    def config_of_now(self) -> ListingConfig:
        """The config with the price that its schedule has for this hour."""
        if not self.config.price_schedule:
            return self.config
        first_ms = listings.first_listed_ms(self.context.task_id)
        return scheduled(self.config, first_ms, self.context.clock_ms())

    def item(self, outpoint: str) -> ItemToList:
        """Returns the item as it is listed from this output."""
        task, venue = self.task, self.context.venue.name
        return ItemToList(task.inscription_id, outpoint, self.slug, task.user_id, self.keys, venue, task.revision)


def read_listing_moment(context: Context, state: ListerState) -> ListingMoment | None:
    """Reads the assignment of this moment; None when the task is no longer wanted or another worker has taken over.

    Raises BadConfig, with the task's `last_error` written, when its config cannot be carried out.
    """
    task = wanted_task(context)
    if task is None:
        return None
    config = config_of(task, load_listing_config, lambda config: problems(config) or unstartable(config))
    return ListingMoment(context=context, task=task, config=config, state=state)
