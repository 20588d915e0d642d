"""One cycle of an auto-list task: settle, find the inscription, look, decide, carry out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from markets.items import whereabouts
from markets.items.item_market import ListingMarket
from markets.items.whereabouts import LocatedInscription
from markets.listings import OwnListing
from models.ledger import listings
from models.ledger.listings import OpenElsewhere, SoldFor
from models.ledger.states import CLOSED, GONE, LIVE, LOST, Listing
from strategy.fates import ListingResult
from strategy.fault_codes import Step
from strategy.listing.inputs import Listed, ListingInputs
from strategy.listing.listing_config import ListingConfig
from strategy.listing.plan_listing import CONFIRMING_READS, plan_listing
from strategy.listing.schedule import scheduled
from wallet.escrow_terms import escrow_terms_of
from wallet.protocol import UserKeys
from workers.context import Context
from workers.faults import Faults
from workers.listing import listing_end, listing_market, own_listings
from workers.listing.assignment import ListingAssignment
from workers.listing.dry_run import JudgedDrafts
from workers.listing.homecoming import bring_home
from workers.listing.listing_end import EndFinder
from workers.listing.listing_market import CollectionFinder
from workers.listing.outcome import ListingOutcome
from workers.listing.own_listings import is_dropped, is_hidden, needs_fresh_read, read_own_listings, shown_of
from workers.listing.places import ItemToList, ListingPlacer

HOUR_MS = 3_600_000
CHAIN_AGE_S = 5.0  # how old the chain's facts may be when something is to be signed; the signer asks for itself
# ... while the venue shows the listing as we know it: a sold one is not shown, and then the chain is asked at once.
# Asking for each item at each cycle would be too much for a public explorer.
CHAIN_AGE_WHILE_SHOWN_S = 600.0


@dataclass(slots=True)
class ListerState:
    """The state that one worker keeps from cycle to cycle."""

    finder: CollectionFinder
    end_finder: EndFinder
    new_intent: Callable[[], str]
    has_read: bool = False  # our own listings, since the worker began
    drafts: JudgedDrafts = field(default_factory=JudgedDrafts)  # of a dry run


class ListingCycle:
    """One cycle, for one `run`."""

    def __init__(
        self,
        context: Context,
        assignment: ListingAssignment,
        keys: UserKeys,
        state: ListerState,
        faults: Faults,
    ) -> None:
        self._context = context
        self._assignment = assignment
        self._task = assignment.task
        self._keys = keys
        self._state = state
        self._faults = faults
        self._shown: OwnListing | None = None
        self._is_read = False
        self._unread = 0  # rows left out of the last read of our own listings
        self._slug: str | None = None

    def run(self) -> ListingOutcome:
        """Runs the whole cycle and returns its outcome."""
        self._settle()
        self._context.crash("listing-settled")
        open_ = listings.open_listing(self._context.task_id)
        located = self._locate(open_, CHAIN_AGE_WHILE_SHOWN_S if self._is_as_known(open_) else CHAIN_AGE_S)
        outcome = ListingOutcome(self._assignment, located)
        self._slug = self._state.finder.slug(self._task, self._shown.slug if self._shown else None, self._faults)
        if located.inscription_state == "spent" or located.is_untraced:
            self._end(open_, outcome)
        else:
            self._keep(open_, outcome)
        outcome.unread_listings = self._unread
        outcome.listing = listings.newest(self._context.task_id)
        outcome.is_in_doubt = needs_fresh_read(listings.open_listing(self._context.task_id))
        return outcome

    def _settle(self) -> None:
        """Reconciles ledger and venue."""
        context, faults = self._context, self._faults
        listing = listings.open_listing(context.task_id)
        if listing is not None:
            own_listings.settle_unsent(context, listing, faults)
        is_urgent = not self._state.has_read or needs_fresh_read(listing)
        self._read(0.0 if is_urgent else self._assignment.config.loop_s / 2)

    def _read(self, max_age_s: float) -> None:
        context = self._context
        read = read_own_listings(context, self._keys.vault, max_age_s, self._faults)
        self._is_read = read is not None
        if read is None:
            return
        self._state.has_read, self._unread = True, len(read.unread)
        self._shown = shown_of(read, self._task.inscription_id, self._keys.vault)
        if is_hidden(read, self._task.inscription_id, self._keys.vault, self._faults):
            self._is_read = False  # by this read it is neither listed nor gone
            return
        listing = listings.open_listing(context.task_id)
        if listing is not None:
            own_listings.settle(context, listing, self._shown, read.taken_ms)

    def _locate(self, open_: Listing | None, max_age_s: float) -> LocatedInscription:
        return whereabouts.locate(
            self._context.market,
            self._task.inscription_id,
            self._keys.vault,
            None if open_ is None else open_.outpoint,
            max_age_s,
            self._faults,
            frozenset(self._keys.escrows),
        )

    def _is_as_known(self, open_: Listing | None) -> bool:
        return open_ is not None and open_.state == LIVE and self._shown is not None and open_.misses == 0

    def _end(self, open_: Listing | None, outcome: ListingOutcome) -> None:
        """Ends the task, or waits, when the inscription left the vault: sold, gone, or not known yet."""
        newest = listings.newest_listed(self._context.task_id)
        if open_ is not None and open_.signed_ms is not None:
            newest = open_
        if newest is None:
            self._close(open_, None)
            outcome.words, outcome.is_over = "ended: the inscription is not in the vault", True
            outcome.error = f"the inscription is not at the vault {self._keys.vault}: send it there and start again"
            return
        ending = self._state.end_finder.ending(newest, self._slug, self._faults)
        outcome.unread_sales = ending.unread_sales
        # On its way into an escrow it leaves its output without a sale, and only an index tells where it is then.
        is_in_doubt = outcome.located.is_untraced and self._context.venue.lists_in_escrow
        if ending.sale is not None and not is_in_doubt:
            self._close(open_, ending.sale)
            if open_ is None:
                listings.note_late_sale(newest, ending.sale, self._context.clock_ms())
            outcome.words, outcome.is_over = f"sold for {ending.sale.price_sats:,}", True
        elif ending.is_dark or outcome.located.is_untraced:
            outcome.words = "waiting: the inscription has left its output; whether it was sold is looked for"
        else:
            self._close(open_, None)
            outcome.words, outcome.is_over = "ended: the inscription has left the vault", True
            outcome.error = "the inscription has left the vault, and no sale of it is known"
            if ending.unread_sales:
                outcome.error += f"; sales of that time that could not be read: {ending.unread_sales}"

    def _close(self, open_: Listing | None, sale: SoldFor | None) -> None:
        if open_ is not None:
            listing_end.close(open_, sale, self._context.clock_ms())
        self._context.crash("listing-ended")

    def _keep(self, open_: Listing | None, outcome: ListingOutcome) -> None:
        located, now_ms = outcome.located, self._context.clock_ms()
        if open_ is not None and located.inscription_state == "moved":
            listings.move(open_, CLOSED, now_ms, reason=GONE)
            open_ = None
        if open_ is not None and located.inscription_state == "held" and is_dropped(open_):
            listings.move(open_, CLOSED, now_ms, reason=LOST)
            open_ = None
        if open_ is None:
            open_ = self._adopted(outcome)
        if open_ is not None and open_.state != LIVE:
            outcome.words = f"waiting: whether the listing at {open_.price_sats:,} reached the market is looked for"
            return
        config = self._config_of_now()
        read = listing_market.read_market(self._context, config, self._slug, self._faults)
        outcome.market = read.without_doubt(self._not_the_market)
        outcome.floor_sats = listing_market.floor_of(outcome.market, self._not_the_market)
        listing_market.sample(outcome.market, outcome.floor_sats, self._context.clock_ms())
        outcome.plan = plan_listing(self._inputs(config, open_, located, outcome.market))
        self._context.crash("listing-planned")
        if located.is_in_escrow and outcome.plan.action == "keep" and self._assignment.may_sign:
            self._free(outcome)
        if outcome.plan is None or outcome.plan.action not in ("list", "reprice"):
            return
        if self._assignment.config.dry_run:
            self._judge(open_, outcome)
        elif self._assignment.may_sign:
            self._carry_out(open_, outcome)

    def _adopted(self, outcome: ListingOutcome) -> Listing | None:
        """Writes a row for a listing that the venue shows and the ledger does not know.

        Not when the inscription has moved since: such a listing cannot be bought.
        """
        outpoint, former = outcome.located.outpoint, listings.newest_listed(self._context.task_id)
        if self._shown is None or outpoint is None or outcome.located.inscription_state != "held":
            return None
        if outcome.located.is_in_escrow and former is not None:
            outpoint = former.outpoint  # its listing is of the output that it came from
        if former is not None and former.outpoint != outpoint:
            return None
        new = self._placer.new(self._item(outpoint), self._shown.price)
        try:
            adopted = listings.adopt(new, self._context.clock_ms())
        except OpenElsewhere as error:
            self._faults.add(
                Step.READ_OWN_LISTINGS, "adopt the listing that the marketplace shows", str(error), backs_off=False
            )
            return None
        outcome.adopted_sats = adopted.price_sats
        self._context.crash("listing-adopted")
        return adopted

    def _judge(self, open_: Listing | None, outcome: ListingOutcome) -> None:
        outpoint, plan = outcome.located.outpoint, outcome.plan
        assert outpoint is not None and plan is not None and plan.price is not None
        outcome.former_sats = None if open_ is None else open_.price_sats
        outcome.verdict = self._state.drafts.judge(
            self._context, self._assignment, self._item(outpoint), plan.price, self._faults
        )

    def _carry_out(self, open_: Listing | None, outcome: ListingOutcome) -> None:
        if self._is_as_known(open_):
            outcome.located = self._locate(open_, CHAIN_AGE_S)
            if outcome.located.inscription_state != "held":
                outcome.plan = None
                outcome.words = f"waiting: the inscription is {outcome.located.inscription_state}, so nothing is signed"
                return
        outpoint, plan = outcome.located.outpoint, outcome.plan
        assert outpoint is not None and plan is not None and plan.price is not None
        if outcome.located.is_in_escrow:
            if self._would_be_unlisted(open_, plan.price):
                outcome.words = f"waiting: the marketplace's quota of calls lets nothing be listed; wanted {plan.note}"
                outcome.plan = None
            else:
                self._bring_home(outcome)
            return
        outcome.former_sats = None if open_ is None else open_.price_sats
        outcome.result = self._placer.put_up(self._item(outpoint), plan.price, open_)
        self._read(0.0)
        left = listings.open_listing(self._context.task_id)
        if outcome.result is ListingResult.UNKNOWN and left is not None and left.state == LIVE:
            outcome.result = ListingResult.LISTED  # the answer was lost, and the listing is there

    def _free(self, outcome: ListingOutcome) -> None:
        """Begins the way home from an escrow with a lock: what lies there without a sale is sold there no more."""
        terms = escrow_terms_of(self._context.settings).get(self._context.venue.name)
        if terms is not None and terms.lock_blocks:
            self._bring_home(outcome)

    def _would_be_unlisted(self, open_: Listing | None, price_sats: int) -> bool:
        """Tells whether an item that comes home for this price only loses its listing: the gateway takes no new one.

        One that is for sale for less comes home all the same.
        """
        is_too_cheap = open_ is not None and open_.price_sats < price_sats
        return self._context.market.scarcity.rungs == 0 and not is_too_cheap

    def _bring_home(self, outcome: ListingOutcome) -> None:
        """Begins the way home from the escrow: another price is signed for an output of the vault only."""
        user, item, outpoint = self._assignment.user, self._task.inscription_id, outcome.located.outpoint
        assert outpoint is not None and outcome.plan is not None
        how = bring_home(self._context, user, self._keys, item, outpoint, self._faults, outcome.plan.price)
        outcome.words = f"waiting: the inscription is {how} from its escrow; wanted {outcome.plan.note}"
        outcome.plan = None

    @property
    def _placer(self) -> ListingPlacer:
        return ListingPlacer(self._context, self._faults, self._state.new_intent)

    def _item(self, outpoint: str) -> ItemToList:
        task, venue = self._task, self._context.venue.name
        return ItemToList(task.inscription_id, outpoint, self._slug, task.user_id, self._keys, venue, task.revision)

    @property
    def _own_wallets(self) -> frozenset[str]:
        user, keys = self._assignment.user, self._keys
        return frozenset({user.address, user.ordinals_address, keys.payment, keys.vault})

    @property
    def _not_the_market(self) -> frozenset[str]:
        """The addresses whose asks do not count: our own, and those to ignore."""
        return self._own_wallets.union(self._assignment.config.ignore_addresses)

    def _config_of_now(self) -> ListingConfig:
        """Returns the config with the price that its schedule has for this hour."""
        config = self._assignment.config
        if not config.price_schedule:
            return config
        return scheduled(config, listings.first_listed_ms(self._context.task_id), self._context.clock_ms())

    def _inputs(
        self, config: ListingConfig, open_: Listing | None, located: LocatedInscription, market: ListingMarket
    ) -> ListingInputs:
        now_ms, context = self._context.clock_ms(), self._context
        listed, misses = _listed(open_ or listings.newest_listed(context.task_id))
        return ListingInputs(
            now_ms=now_ms,
            config=config,
            tick=self._context.venue.listing_tick,
            fee_ppm=context.settings.seller_fee_ppm(context.venue.name),
            asks=market.asks,
            trait_asks=market.trait_asks,
            own_wallets=self._not_the_market,
            median_60m=market.history.median,
            last_sales=market.last_sales,
            listed=listed,
            own_read=self._is_read,
            highest_last_hour=listings.highest_since(self._task.inscription_id, self._keys.vault, now_ms - HOUR_MS),
            delistings_last_hour=listings.delistings(context.task_id, now_ms - HOUR_MS),
            missing_reads=misses,
            inscription_state=located.inscription_state,
        )


def _listed(newest: Listing | None) -> tuple[Listed | None, int]:
    """Returns the present listing, or the one that the venue dropped, and the number of reads that do not show it."""
    if newest is None or newest.listed_ms is None:
        return None, 0
    if newest.state == LIVE:
        return Listed(newest.price_sats, newest.listed_ms), newest.misses
    if newest.close_reason == LOST:
        return Listed(newest.price_sats, newest.listed_ms), max(newest.misses, CONFIRMING_READS)
    return None, 0
