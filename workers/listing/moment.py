"""The data of one auto-list cycle, and the reconciliation of the ledger's listing with the venue's.

A shown listing counts immediately, absence slowly. A read proves absence only if it began after the listing had reached
its present state, and if no unreadable row may be the listing; a failed read proves nothing. A second pass over the
same answer changes nothing.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection
from decimal import Decimal

from msgspec import Struct, field

from markets.base import NotSupported, Sale, VenueError
from markets.items import ItemLook, ListingMarket, LocatedInscription
from markets.orders import OwnListing, OwnListings
from models import venue_memory
from models.ledger import fills, listings
from models.ledger.listings import SoldFor
from models.ledger.states import (
    CANCELLED,
    CANCELLING,
    CLOSED,
    GONE,
    LATE_MS,
    LIVE,
    LOST,
    REFUSED,
    REPLACED,
    RESERVED,
    SIGNED,
    SOLD,
    SUBMITTED,
    UNKNOWN,
    Listing,
    date_back,
    saw,
)
from models.tasks import cycles
from models.tasks.tasks import Task
from models.users import RUN, User
from strategy.config.listing import ListingConfig, load_listing_config, problems, unstartable
from strategy.plan_listing import ListingPlan, foreign_prices, least_believed, scheduled
from strategy.reasons import FaultCode, ListingResult, Step
from wallet.signer_client import SignerError
from wallet.terms import escrow_terms_of
from workers.context import WRITE_MS, Context, Faults
from workers.cycle import (
    CLOCKS_MS,
    LOST_READS,
    VANISHED_READS,
    WantedMoment,
    config_of,
    count_miss,
    read_user_keys,
    wanted_task,
)
from workers.listing.places import ItemToList, JudgedDrafts


def read_own_listings(context: Context, wallet: str, max_age_s: float, faults: Faults) -> OwnListings | None:
    """Reads the vault's listings at the venue; None if the read failed, which differs from no listings."""
    try:
        return context.market.own_listings(wallet, max_age_s)
    except VenueError as error:
        faults.add(Step.READ_OWN_LISTINGS, "read our own listings", error)
        return None


def shown_of(read: OwnListings | None, inscription_id: str, wallet: str) -> OwnListing | None:
    """Returns this wallet's listing of this inscription in the read, or None."""
    for found in read.listings if read else ():
        if found.inscription_id == inscription_id and found.owner == wallet:
            return found
    return None


def is_hidden(read: OwnListings, inscription_id: str, wallet: str, faults: Faults) -> bool:
    """Tells whether the inscription's listing may be in an unreadable row; if so, adds a fault."""
    if shown_of(read, inscription_id, wallet) is not None or not read.may_hold(inscription_id):
        return False
    text = "one of them cannot be understood, and may be this inscription's"
    code = FaultCode.VENUE_NOT_UNDERSTOOD
    faults.add(Step.READ_OWN_LISTINGS, "read our own listings", text, backs_off=False, code=code)
    return True


def settle_unsent(context: Context, listing: Listing, faults: Faults) -> None:
    """Settles a listing that a crashed worker began: closes it if never signed, makes it `unknown` if signed.

    If the signer does not answer, a reserved listing stays reserved.
    """
    now_ms = context.clock_ms()
    if listing.state in (SIGNED, SUBMITTED):
        listings.move(listing, UNKNOWN, now_ms)
    if listing.state != RESERVED:
        return
    try:
        was_signed = context.signer.was_signed(listing.intent)
    except SignerError as error:
        faults.add(Step.ASK_SIGNER, "ask the signer about a reserved listing", error)
        return
    if was_signed:
        listings.move(listing, UNKNOWN, now_ms)
    else:
        listings.give_up(listing, REFUSED, now_ms)
        context.crash("listing-freed")


def settle_listing(
    context: Context, listing: Listing, shown: OwnListing | None, read_ms: int, *, is_acknowledged: bool = False
) -> None:
    """Moves the open listing to the state that a read begun at `read_ms` shows.

    `is_acknowledged`: the venue has just confirmed its cancel. A live listing that is not shown stays live, and its
    misses are counted; the caller decides by the inscription's place whether it was dropped.
    """
    now_ms = context.clock_ms()
    date_back(listing, now_ms)
    if listing.state == RESERVED or read_ms <= listing.updated_ms:
        return
    if shown is not None and shown.price == listing.price_sats:
        if listing.state == LIVE:
            saw(listing, shown.listing_id, now_ms)
        elif not is_acknowledged:
            listings.move(listing, LIVE, now_ms, venue_id=shown.listing_id)
            context.crash("listing-adopted")
    elif shown is not None:
        _settle_repriced(listing, read_ms, now_ms)
    elif listing.state == CANCELLING:
        if is_acknowledged or count_miss(listing, read_ms) >= VANISHED_READS:
            listings.move(listing, CLOSED, now_ms, reason=CANCELLED)
    elif count_miss(listing, read_ms) >= LOST_READS and listing.state == UNKNOWN and _is_late(listing, read_ms):
        listings.move(listing, CLOSED, now_ms, reason=LOST)


def settle_hidden(listing: Listing, read: OwnListings, now_ms: int, *, is_acknowledged: bool) -> None:
    """Settles the cancel of a listing that may be in an unreadable row.

    A row with its id shows that it still exists. If the row's id is unreadable, confirmed cancels replace the missing
    reads: the same number of them, well apart.
    """
    date_back(listing, now_ms)
    is_heard = listing.state == CANCELLING and is_acknowledged and listing.inscription_id not in read.unread
    if is_heard and count_miss(listing, read.taken_ms) >= VANISHED_READS:
        listings.move(listing, CLOSED, now_ms, reason=CANCELLED)


def is_dropped(listing: Listing) -> bool:
    """Tells whether enough successful reads do not show a listing that was live."""
    return bool(listing.state == LIVE and listing.misses >= VANISHED_READS)


def needs_fresh_read(listing: Listing | None) -> bool:
    """Tells whether the next read decides the state of the listing."""
    return listing is not None and (listing.state != LIVE or listing.misses > 0)


def _settle_repriced(listing: Listing, read_ms: int, now_ms: int) -> None:
    """Handles our listing at another price: the venue never accepted this one, or accepted another after it."""
    misses = count_miss(listing, read_ms)
    if listing.state == UNKNOWN and misses >= LOST_READS and _is_late(listing, read_ms):
        listings.give_up(listing, LOST, now_ms)
    elif listing.state == LIVE and misses >= VANISHED_READS:
        listings.move(listing, CLOSED, now_ms, reason=REPLACED)


def _is_late(listing: Listing, read_ms: int) -> bool:
    return read_ms > (listing.signed_ms or listing.created_ms) + WRITE_MS + LATE_MS


SPEND_AGE_S = 60.0  # the maximum age of chain data about the spend of the output
SALE_LATE_MS = 120_000  # how late after the spend the venue may report a sale
UNREAD_SALE_MS = 3_600_000  # how long an unreadable sale that may be the listing's is waited for

log = logging.getLogger(__name__)


class ListingEnd(Struct, frozen=True):
    """The end of a listing: the `sale`, if there was one. `is_dark`: the sales could not be read, or may appear later.

    `unread_sales` is the number of unreadable sales since the listing, any of which may be the sale.
    """

    sale: SoldFor | None = None
    is_dark: bool = False
    unread_sales: int = 0


class EndFinder:
    """Finds out how a task's listing ended; keeps the output that the inscription left, and when that was first seen.

    Both are only in memory: after a restart the wait for a late sale begins again, which delays only the record.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._outpoint: str | None = None
        self._since_ms = 0

    def ending(self, newest: Listing, slug: str | None, faults: Faults) -> ListingEnd:
        """Reads the end from the sales since the output was first listed; `newest` is its last listing."""
        now_ms = self._context.clock_ms()
        if self._outpoint != newest.outpoint:
            self._outpoint, self._since_ms = newest.outpoint, now_ms
        if slug is None:
            return ListingEnd()
        try:
            sale, unread = self._sale(newest, slug, faults)
        except VenueError as error:
            faults.add(Step.READ_SALES, "read the sales that may explain where the inscription went", error)
            return ListingEnd(is_dark=True)
        if sale is not None:
            return ListingEnd(self._sold_for(sale, newest))
        late_ms = UNREAD_SALE_MS if unread else SALE_LATE_MS
        return ListingEnd(is_dark=now_ms - self._since_ms < late_ms, unread_sales=unread)

    def _sale(self, newest: Listing, slug: str, faults: Faults) -> tuple[Sale | None, int]:
        # No earlier sales, because we may have bought the item ourselves, perhaps by a recent bid.
        since_ms = listings.first_ms(newest.outpoint) - CLOCKS_MS
        try:
            found = self._context.market.sales(slug, "ordinals", since_ms, 0)
        except NotSupported:
            return None, 0
        ours = [
            sale for sale in found.sales if sale.inscription_id == newest.inscription_id and sale.sold_ms >= since_ms
        ]
        # Sales to the user are excluded, because they are purchases by a bid here or by hand.
        user = User.get_by_id(newest.user_id)
        keys = read_user_keys(self._context, user.address, faults) if ours else None
        buyers = {user.address, user.ordinals_address, *((keys.payment, keys.vault) if keys else ())}
        ours = [each for each in ours if each.buyer not in buyers]
        ours = [each for each in ours if not fills.is_purchase(user.id, newest.venue, each.sale_id)]
        # The first sale since then spent our output; later ones are the buyer's own sales. An earlier sale counts only
        # if there is no later one, because the venue's clock may be behind.
        first_ms = since_ms + CLOCKS_MS
        first = min(ours, key=lambda sale: (sale.sold_ms < first_ms, sale.sold_ms), default=None)
        return first, sum(at_ms is None or at_ms >= since_ms for at_ms in found.unread_ms)

    def _sold_for(self, sale: Sale, newest: Listing) -> SoldFor:
        # The signer signs for the whole price, minus the fee that the operator lets the venue keep.
        fee_sats = self._context.settings.known_seller_fee(newest.venue, sale.price)
        # From an escrow the sale spends another output, unknown to the ledger, so the venue's transaction id is used.
        is_in_escrow = newest.venue in escrow_terms_of(self._context.settings)
        txid = sale.txid if is_in_escrow else self._spent_by(newest.outpoint)
        return SoldFor(sale.price, sale.sale_id, sale.sold_ms, fee_sats, txid)

    def _spent_by(self, outpoint: str) -> str | None:
        """Returns the id of the confirmed transaction that spends the output; None if unknown."""
        try:
            facts = self._context.market.outpoint(outpoint, SPEND_AGE_S)
        except VenueError as error:
            log.info("failed to read which transaction the sale of %s is: %s", outpoint, error)
            return None
        return facts.spent_by if facts.is_spent_in_block else None


def close_left(listing: Listing, sale: SoldFor | None, now_ms: int) -> None:
    """Closes the open listing, whose output is spent: as sold by the `sale`, or as gone without one."""
    listings.move(listing, CLOSED, now_ms, reason=GONE if sale is None else SOLD, sale=sale)


ITEM_S = 86_400.0  # an inscription's collection does not change


class CollectionFinder:
    """Finds the collection of the task's inscription; asks the venue last."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._found: str | None = None

    def slug(self, task: Task, shown: str | None, faults: Faults) -> str | None:
        """Returns the collection's slug, None if unknown; `shown` is the slug that the venue shows with our listing."""
        known = task.collection_id or shown or self._found or venue_memory.collection_of(task.inscription_id)
        if known is None:
            known = self._found = self._asked(task.inscription_id, faults)
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
    return found.with_history(cycles.history_of_asks(elsewhere), now_ms)


def floor_of(market: ListingMarket, own_wallets: Collection[str]) -> int | None:
    """Returns the lowest ask of others, or None."""
    asks = market.asks if market.asks is not None else market.trait_asks
    return next(iter(foreign_prices(asks or (), own_wallets)), None)


def record_floor(market: ListingMarket, floor_sats: int | None, now_ms: int) -> None:
    """Stores the plausible floor as the minute's sample."""
    if market.key is not None and floor_sats is not None:
        believed = least_believed(market.history.median) or Decimal(0)
        cycles.record_reference(*market.key, max(Decimal(floor_sats), believed), now_ms)


class ListerState(Struct):
    """The state that one worker keeps between cycles. `new_intent` returns 64 unique hex digits."""

    finder: CollectionFinder
    end_finder: EndFinder
    new_intent: Callable[[], str]
    has_read: bool = False  # our own listings, since the worker began
    drafts: JudgedDrafts = field(default_factory=JudgedDrafts)  # of a dry run


@dataclasses.dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ListingMoment(WantedMoment[ListingConfig]):
    """One cycle of an auto-list task.

    Settled:
    - `shown`: the venue's listing of the inscription; `is_read`: whether that is known; `open`: the ledger's listing.
    - `located`: the inscription's place; `slug`: its collection.
    - `adopted_sats`: the price of a listing that the ledger did not have.
    - `unread_listings` and `unread_sales`: the numbers of unreadable rows.

    Decided:
    - `plan`: None if the strategy was not asked; `words` then has the reason.
    - `floor_sats`: the lowest ask of others.
    - `is_over`: the task has nothing left to do; `sale` is the sale that ended it, `error` a text for its owner.

    Done:
    - `former_sats`: the price that was replaced. `verdict`: the signer's judgement of a dry run's draft.
    - `listing`: the task's newest listing afterwards. `is_in_doubt`: the next read may resolve a doubt.
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
        """Whether the item may be listed or repriced. An existing listing stays in any case."""
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
        """The addresses whose asks do not count: our own and ignored ones."""
        return self.addresses.union(self.config.ignore_addresses)

    @property
    def config_of_now(self) -> ListingConfig:
        """The config with the price of the schedule's current step."""
        if not self.config.price_schedule:
            return self.config
        first_ms = listings.first_listed_ms(self.context.task_id)
        return scheduled(self.config, first_ms, self.context.clock_ms())

    def item(self, outpoint: str) -> ItemToList:
        """Returns the item to list from this output."""
        task, venue = self.task, self.context.venue.name
        return ItemToList(task.inscription_id, outpoint, self.slug, task.user_id, self.keys, venue, task.revision)


def read_listing_moment(context: Context, state: ListerState) -> ListingMoment | None:
    """Reads the present assignment; None if the task is no longer wanted or another worker has taken over.

    If the config cannot be run, sets the task's `last_error` and raises BadConfig.
    """
    task = wanted_task(context)
    if task is None:
        return None
    config = config_of(task, load_listing_config, lambda config: problems(config) or unstartable(config))
    return ListingMoment(context=context, task=task, config=config, state=state)
