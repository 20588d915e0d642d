"""An auto-list task's cycles: settle, find the item, read the market, decide, list, report, time the next cycle."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from markets import items
from markets.items import LocatedInscription
from models.ledger import listings
from models.ledger.listings import OpenElsewhere
from models.ledger.states import CANCELLING, CLOSED, GONE, LIVE, LOST, Listing
from models.tasks import tasks
from models.tasks.cycles import Sample
from strategy.config.listing import ListingConfig
from strategy.plan_listing import CONFIRMING_READS, SALES, Listed, ListingInputs, ListingPlan, guard, plan_listing
from strategy.reasons import FaultCode, ListingResult, Reason, Step
from wallet.terms import escrow_terms_of
from workers.context import Context, Faults
from workers.cycle import Keeping, note_machine_and_rights, record, record_nothing_done
from workers.listing import moment as own_listings
from workers.listing.moment import (
    CollectionFinder,
    EndFinder,
    ListerState,
    ListingMoment,
    floor_of,
    is_dropped,
    is_hidden,
    needs_fresh_read,
    read_listing_moment,
    read_market,
    read_own_listings,
    record_floor,
    shown_of,
)
from workers.listing.places import ListingPlacer, bring_home

# Reasons that keep a task from listing although nothing has failed.
_OBSTACLES = {
    Reason.NO_REFERENCE,
    Reason.IMPOSSIBLE_PRICE,
    Reason.HOLDING_UNKNOWN,
    Reason.DELISTED_OFTEN,
}


def record_listing(moment: ListingMoment) -> None:
    """Records the cycle and logs it."""
    _note_obstacles(moment)
    record(moment, _action(moment), _detail(moment), _sample(moment))


def _sample(moment: ListingMoment) -> Sample:
    """Returns the cycle in numbers: the listing's present price, its minimum price, and the floor."""
    listing, config, context = moment.listing, moment.config, moment.context
    is_open = listing is not None and listing.state in (LIVE, CANCELLING)
    price = None if listing is None or not is_open else Decimal(listing.price_sats)
    least = guard(config, context.settings.seller_fee_ppm(context.venue.name), context.venue.listing_tick)
    floor = None if moment.floor_sats is None else Decimal(moment.floor_sats)
    return Sample(floor=floor, own_top=price, own_low=price, guard_sats=least or None, open_count=int(is_open))


def _note_obstacles(moment: ListingMoment) -> None:
    plan, faults = moment.plan, moment.faults
    if moment.error is not None:
        faults.add(Step.LIST, "keep the item listed", moment.error, backs_off=False, code=FaultCode.NOT_IN_VAULT)
    note_machine_and_rights(moment, Step.LIST, "list")
    if plan is not None and plan.action in ("wait", "pause") and plan.reason in _OBSTACLES:
        faults.add(Step.LIST, "list", plan.note, backs_off=False, code=FaultCode(plan.reason.value))


def _action(moment: ListingMoment) -> str:
    """Returns, for example, `listed at 105,000: 1.05 x floor 100,000` or `control halt (user): kept at 105,000`."""
    plan = moment.plan
    text = moment.words if plan is None else _decided(plan, moment)
    if moment.adopted_sats is not None:
        text = f"adopted the listing at {moment.adopted_sats:,}; {text}"
    return text


def _decided(plan: ListingPlan, moment: ListingMoment) -> str:
    if plan.action in ("list", "reprice"):
        return _written(plan, moment)
    if plan.action == "keep":
        return f"kept {plan.note}" if plan.note.startswith("at ") else _kept(plan)
    word = {"wait": "waiting", "pause": "paused"}.get(plan.action, "ended")
    return f"{word}: {plan.note}"


def _kept(plan: ListingPlan) -> str:
    return f"kept: {plan.note}" if plan.price is None else f"kept at {plan.price:,}: {plan.note}"


def _written(plan: ListingPlan, moment: ListingMoment) -> str:
    _, _, why = plan.note.partition(": ")
    if moment.config.dry_run:
        wanted = plan.note if moment.former_sats is None else f"{moment.former_sats:,} -> {plan.price:,}: {why}"
        return f"would {plan.action} {wanted}; {moment.verdict or 'no draft could be judged'}"
    if not moment.may_sign:
        return f"nothing signed; wanted {plan.note}"
    if moment.result is not ListingResult.LISTED:
        return f"failed to list at {plan.price:,} ({moment.result}): {why}"
    if moment.former_sats is None:
        return f"listed {plan.note}"
    return f"repriced {moment.former_sats:,} -> {plan.price:,}: {why}"


def _detail(moment: ListingMoment) -> dict[str, Any]:
    plan, market, control = moment.plan, moment.market, moment.control
    median = market.history.median
    return {
        "seen": {
            "asks": None if market.asks is None else len(market.asks),
            "trait_asks": None if market.trait_asks is None else len(market.trait_asks),
            "lowest_ask": min((ask.price for ask in market.asks or market.trait_asks or ()), default=None),
            "last_sales": None if market.last_sales is None else market.last_sales[:SALES],
            "median": None if median is None else str(median),
            "samples": market.history.samples,
        },
        "control": {"state": control.state, "scope": control.scope},
        "holding": moment.located.inscription_state,
        "outpoint": moment.located.outpoint,
        "planned": None
        if plan is None
        else {"action": plan.action, "price_sats": plan.price, "reason": str(plan.reason)},
        "dry_run": moment.config.dry_run,
        "verdict": moment.verdict or None,
        "fate": None if moment.result is None else str(moment.result),
        "adopted_sats": moment.adopted_sats,
        "listing": None if moment.listing is None else _listing(moment.listing),
        "unread_rows": _unread_rows(moment),
    }


def _unread_rows(moment: ListingMoment) -> dict[str, int]:
    market = moment.market
    many = {
        "asks": market.unread_asks,
        "own_listings": moment.unread_listings,
        "sales": market.unread_sales + moment.unread_sales,
    }
    return {what: count for what, count in many.items() if count}


def _listing(listing: Listing) -> dict[str, Any]:
    return {
        "listing": listing.id,
        "price_sats": listing.price_sats,
        "state": listing.state,
        "close_reason": listing.close_reason,
        "misses": listing.misses,
        "proceeds_sats": listing.proceeds_sats,
    }


HOUR_MS = 3_600_000
CHAIN_AGE_S = 5.0  # the maximum age of chain data before a signature; the signer reads the chain itself
# The maximum age while the venue shows the listing as we know it. A sold listing is no longer shown, and then the chain
# is read immediately. Reading it for each item in each cycle would overload a public explorer.
CHAIN_AGE_WHILE_SHOWN_S = 600.0
IN_DOUBT_S = 6.0  # until the next read, which may resolve a doubt


class Lister(Keeping[ListingMoment]):
    """Keeps one inscription listed at the configured price, until it is sold or has left the vault."""

    def __init__(
        self,
        context: Context,
        *,
        rng: random.Random | None = None,
        new_intent: Callable[[], str] = lambda: os.urandom(32).hex(),
        until_cycle: Callable[[str, float, float], float] | None = None,
    ) -> None:
        """Wires the job. `until_cycle` (see workers/cycle.py) times the cycles; without it they are a loop apart."""
        super().__init__(context, rng)
        self._until_cycle = until_cycle
        self._state = ListerState(CollectionFinder(context), EndFinder(context), new_intent)

    def _assigned(self) -> ListingMoment | None:
        return read_listing_moment(self._context, self._state)

    def _settle(self, moment: ListingMoment) -> None:
        context = self._context
        open_ = listings.open_listing(context.task_id)
        if open_ is not None:
            own_listings.settle_unsent(context, open_, moment.faults)
        is_urgent = not self._state.has_read or needs_fresh_read(open_)
        self._read(moment, 0.0 if is_urgent else moment.config.loop_s / 2)
        context.crash("listing-settled")
        moment.open = listings.open_listing(context.task_id)
        moment.located = self._locate(moment, CHAIN_AGE_WHILE_SHOWN_S if moment.is_as_known else CHAIN_AGE_S)
        shown_slug = moment.shown.slug if moment.shown else None
        moment.slug = self._state.finder.slug(moment.task, shown_slug, moment.faults)
        if moment.has_left:
            return
        place, now_ms = moment.located.inscription_state, context.clock_ms()
        if moment.open is not None and place == "moved":
            listings.move(moment.open, CLOSED, now_ms, reason=GONE)
            moment.open = None
        if moment.open is not None and place == "held" and is_dropped(moment.open):
            listings.move(moment.open, CLOSED, now_ms, reason=LOST)
            moment.open = None
        if moment.open is None:
            moment.open = self._adopted(moment)

    def _read(self, moment: ListingMoment, max_age_s: float) -> None:
        context, item, vault = self._context, moment.task.inscription_id, moment.keys.vault
        read = read_own_listings(context, vault, max_age_s, moment.faults)
        moment.is_read = read is not None
        if read is None:
            return
        self._state.has_read, moment.unread_listings = True, len(read.unread)
        moment.shown = shown_of(read, item, vault)
        if is_hidden(read, item, vault, moment.faults):
            moment.is_read = False  # this read neither shows the listing nor proves its absence
            return
        listing = listings.open_listing(context.task_id)
        if listing is not None:
            own_listings.settle_listing(context, listing, moment.shown, read.taken_ms)

    def _locate(self, moment: ListingMoment, max_age_s: float) -> LocatedInscription:
        outpoint = None if moment.open is None else moment.open.outpoint
        market, item, keys = self._context.market, moment.task.inscription_id, moment.keys
        escrows = frozenset(keys.escrows)
        return items.locate(market, item, keys.vault, outpoint, max_age_s, moment.faults, escrows)

    def _adopted(self, moment: ListingMoment) -> Listing | None:
        """Records a listing that the venue shows and the ledger does not have.

        Skipped if the inscription has moved since, because such a listing cannot be bought.
        """
        outpoint, former = moment.located.outpoint, listings.newest_listed(self._context.task_id)
        if moment.shown is None or outpoint is None or moment.located.inscription_state != "held":
            return None
        if moment.located.is_in_escrow and former is not None:
            outpoint = former.outpoint  # its listing refers to the output from which it went into the escrow
        if former is not None and former.outpoint != outpoint:
            return None
        new = self._placer(moment).new(moment.item(outpoint), moment.shown.price)
        try:
            adopted = listings.adopt(new, self._context.clock_ms())
        except OpenElsewhere as error:
            failed_to = "adopt the listing that the marketplace shows"
            moment.faults.add(Step.READ_OWN_LISTINGS, failed_to, str(error), backs_off=False)
            return None
        moment.adopted_sats = adopted.price_sats
        self._context.crash("listing-adopted")
        return adopted

    def _decide(self, moment: ListingMoment) -> None:
        if moment.has_left:
            self._decide_end(moment)
        elif moment.open is not None and moment.open.state != LIVE:
            price_sats = moment.open.price_sats
            moment.words = f"waiting: whether the listing at {price_sats:,} reached the market is looked for"
        else:
            config = moment.config_of_now
            read = read_market(self._context, config, moment.slug, moment.faults)
            moment.market = read.without_doubt(moment.not_the_market)
            moment.floor_sats = floor_of(moment.market, moment.not_the_market)
            record_floor(moment.market, moment.floor_sats, self._context.clock_ms())
            moment.plan = plan_listing(self._inputs(moment, config))
            self._context.crash("listing-planned")

    def _decide_end(self, moment: ListingMoment) -> None:
        """Ends the task, or waits, after the inscription left the vault: sold, gone, or not known yet."""
        newest = self._newest_signed(moment)
        if newest is None:
            moment.words, moment.is_over = "ended: the inscription is not in the vault", True
            moment.error = f"the inscription is not at the vault {moment.keys.vault}: send it there and start again"
            return
        ending = self._state.end_finder.ending(newest, moment.slug, moment.faults)
        moment.unread_sales = ending.unread_sales
        # On its way into an escrow the item leaves its output without a sale, and only an index can locate it.
        is_in_doubt = moment.located.is_untraced and self._context.venue.lists_in_escrow
        if ending.sale is not None and not is_in_doubt:
            moment.sale = ending.sale
            moment.words, moment.is_over = f"sold for {ending.sale.price_sats:,}", True
        elif ending.is_dark or moment.located.is_untraced:
            moment.words = "waiting: the inscription has left its output; whether it was sold is looked for"
        else:
            moment.words, moment.is_over = "ended: the inscription has left the vault", True
            moment.error = "the inscription has left the vault, and no sale of it is known"
            if ending.unread_sales:
                moment.error += f"; sales of that time that could not be read: {ending.unread_sales}"

    def _newest_signed(self, moment: ListingMoment) -> Listing | None:
        if moment.open is not None and moment.open.signed_ms is not None:
            return moment.open
        return listings.newest_listed(self._context.task_id)

    def _inputs(self, moment: ListingMoment, config: ListingConfig) -> ListingInputs:
        now_ms, context, market = self._context.clock_ms(), self._context, moment.market
        listed, misses = _listed(moment.open or listings.newest_listed(context.task_id))
        item, vault, hour_ago_ms = moment.task.inscription_id, moment.keys.vault, now_ms - HOUR_MS
        return ListingInputs(
            now_ms=now_ms,
            config=config,
            tick=context.venue.listing_tick,
            fee_ppm=context.settings.seller_fee_ppm(context.venue.name),
            asks=market.asks,
            trait_asks=market.trait_asks,
            own_wallets=moment.not_the_market,
            median_60m=market.history.median,
            last_sales=market.last_sales,
            listed=listed,
            own_read=moment.is_read,
            highest_last_hour=listings.highest_since(item, vault, hour_ago_ms),
            delistings_last_hour=listings.delistings(context.task_id, hour_ago_ms),
            missing_reads=misses,
            inscription_state=moment.located.inscription_state,
        )

    def _carry_out(self, moment: ListingMoment) -> None:
        if moment.is_over:
            self._end(moment)
        plan = moment.plan
        if plan is None:
            return
        if moment.located.is_in_escrow and plan.action == "keep" and moment.may_sign:
            self._free(moment)
        elif plan.action in ("list", "reprice"):
            if moment.config.dry_run:
                self._judge(moment)
            elif moment.may_sign:
                self._put_up(moment)

    def _end(self, moment: ListingMoment) -> None:
        """Closes the listing of an inscription that left the vault; if it is already closed, notes the late sale."""
        late = None if moment.open is not None or moment.sale is None else self._newest_signed(moment)
        if moment.open is not None:
            own_listings.close_left(moment.open, moment.sale, self._context.clock_ms())
        self._context.crash("listing-ended")
        if late is not None and moment.sale is not None:
            listings.note_late_sale(late, moment.sale, self._context.clock_ms())

    def _judge(self, moment: ListingMoment) -> None:
        outpoint, plan = moment.located.outpoint, moment.plan
        assert outpoint is not None and plan is not None and plan.price is not None
        moment.former_sats = None if moment.open is None else moment.open.price_sats
        about = moment.item(outpoint), plan.price
        moment.verdict = self._state.drafts.judge(self._context, moment.user, moment.config, *about, moment.faults)

    def _put_up(self, moment: ListingMoment) -> None:
        """Lists the item once, or begins its return from an escrow; first reads again where it is."""
        if moment.is_as_known:
            moment.located = self._locate(moment, CHAIN_AGE_S)
            if moment.located.inscription_state != "held":
                moment.plan = None
                moment.words = f"waiting: the inscription is {moment.located.inscription_state}, so nothing is signed"
                return
        outpoint, plan, open_ = moment.located.outpoint, moment.plan, moment.open
        assert outpoint is not None and plan is not None and plan.price is not None
        if moment.located.is_in_escrow:
            if self._would_be_unlisted(open_, plan.price):
                moment.words = f"waiting: the marketplace's quota of calls lets nothing be listed; wanted {plan.note}"
                moment.plan = None
            else:
                self._bring_home(moment)
            return
        moment.former_sats = None if open_ is None else open_.price_sats
        moment.result = self._placer(moment).put_up(moment.item(outpoint), plan.price, open_)
        self._read(moment, 0.0)
        left = listings.open_listing(self._context.task_id)
        if moment.result is ListingResult.UNKNOWN and left is not None and left.state == LIVE:
            moment.result = ListingResult.LISTED  # the answer was lost, but the listing exists

    def _free(self, moment: ListingMoment) -> None:
        """Begins the return from an escrow with a lock, because an item there without a sale can no longer be sold."""
        terms = escrow_terms_of(self._context.settings).get(self._context.venue.name)
        if terms is not None and terms.lock_blocks:
            self._bring_home(moment)

    def _would_be_unlisted(self, open_: Listing | None, price_sats: int) -> bool:
        """Tells whether returning the item would only end its listing, because the gateway accepts no new listing now.

        False if it is for sale at less than `price_sats`, because a listing that is too cheap must end anyway.
        """
        is_too_cheap = open_ is not None and open_.price_sats < price_sats
        return self._context.market.scarcity.rungs == 0 and not is_too_cheap

    def _bring_home(self, moment: ListingMoment) -> None:
        """Begins the return from the escrow, because another price can be signed only for an output of the vault."""
        item, outpoint, plan = moment.task.inscription_id, moment.located.outpoint, moment.plan
        assert outpoint is not None and plan is not None
        how = bring_home(self._context, moment.user, moment.keys, item, outpoint, moment.faults, plan.price)
        moment.words = f"waiting: the inscription is {how} from its escrow; wanted {plan.note}"
        moment.plan = None

    def _placer(self, moment: ListingMoment) -> ListingPlacer:
        return ListingPlacer(self._context, moment.faults, self._state.new_intent)

    def _report(self, moment: ListingMoment) -> None:
        moment.listing = listings.newest(self._context.task_id)
        moment.is_in_doubt = needs_fresh_read(listings.open_listing(self._context.task_id))
        record_listing(moment)

    def _report_nothing_done(self, moment: ListingMoment) -> None:
        record_nothing_done(moment)

    def _look(self, moment: ListingMoment, looked: Faults) -> None:
        read_own_listings(self._context, moment.keys.vault, 0.0, looked)

    def _pause(self, moment: ListingMoment) -> float | None:
        if moment.is_over:
            tasks.stop_wanting(self._context.task_id, moment.error, (FaultCode.NOT_IN_VAULT, {}))
            return None
        return super()._pause(moment)

    def _until_next(self, moment: ListingMoment) -> float:
        loop_s = float(moment.config.loop_s)
        if moment.is_in_doubt:
            return min(IN_DOUBT_S, loop_s)
        if self._until_cycle is None:
            return loop_s
        place = str(moment.task.collection_id or moment.task.inscription_id)
        return self._until_cycle(place, loop_s, self._context.clock_ms() / 1000)


def _listed(newest: Listing | None) -> tuple[Listed | None, int]:
    """Returns the present listing, or the one that the venue dropped, and the number of reads that do not show it."""
    if newest is None or newest.listed_ms is None:
        return None, 0
    if newest.state == LIVE:
        return Listed(newest.price_sats, newest.listed_ms), newest.misses
    if newest.close_reason == LOST:
        return Listed(newest.price_sats, newest.listed_ms), max(newest.misses, CONFIRMING_READS)
    return None, 0
