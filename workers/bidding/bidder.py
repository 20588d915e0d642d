"""A bidding task's cycles: settle, read the market, decide, place and cancel, and the time of the next cycle."""

from __future__ import annotations

import logging
import math
import random
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from core.local_time import next_change_ms
from markets.base import VenueError
from markets.client import stretch_s
from markets.look import BidderWallet, Looker, MarketLook, history_key, kind_of
from models.database.base import unless_full
from models.ledger import orders
from models.ledger.limits import Holder, Readings, limits_of, may_be_full, own_orders, with_others
from models.ledger.states import CANCELLING, LATE_MS, LIVE, Order, open_prices
from models.tasks import cycles
from models.users import HALT
from strategy.book import VenueProfile
from strategy.config.bid import BidConfig, is_on
from strategy.decision import BidPlan, Entry, LastMove, Limits, Memory, Rules, margin_ms, patience_of
from strategy.plan_bids import memory_without_raise, plan_bids, raise_rung
from strategy.reasons import PlaceResult, Reason, Step, WorkerReason
from wallet.signer_client import SignerError
from workers.bidding import report, writes
from workers.bidding.moment import BidderState, BiddingMoment, Decision, Found, Journal, read_bidding_moment
from workers.bidding.own_bids import as_shown, needs_fresh_read, read_own_bids, settle_again, settle_at_first
from workers.bidding.report import QuotaWords, note_fills, note_restraints
from workers.bidding.writes import ENDS_PLACING, BidPlacer, Canceller
from workers.context import Context, Faults
from workers.cycle import APART_MS, Keeping, until_rare_cycle

log = logging.getLogger(__name__)

NOTHING_SEEN = MarketLook(None, 0, None, None)


def decide(
    moment: BiddingMoment,
    found: Found | None,
    max_age_s: float,
    memory: Memory,
    *,
    by_floor: bool = False,
    replaced: Collection[int] = (),
) -> Decision:
    """Decides on books at most `max_age_s` old and on our bids in `found`, and writes the decision to the journal.

    `by_floor`: an unchanged floor may confirm older asks. Orders with ids in `replaced` count as cancelled. Our bids
    are also unknown, as with None, while an unreadable row may be any of them, or may use up all limits.
    """
    config, context = moment.config, moment.context
    restraint, is_blind = moment.restraint, found is None or found.may_hide_strays
    if is_blind and restraint is not Reason.HALT:
        restraint = Reason.OWN_BIDS_UNKNOWN
    own = as_shown(orders.open_orders(context.task_id), found)
    seen = NOTHING_SEEN if restraint is Reason.HALT else _seen(moment, max_age_s, by_floor=by_floor)
    now_ms = context.clock_ms()
    limits = _limits(moment, seen, found or Found(), now_ms)
    planned = own_orders(own, config, replaced)
    own_sats = sum(order.price_sats for order in planned)
    if restraint is None and not config.dry_run and may_be_full(limits, own_sats, found or Found()):
        restraint = Reason.OWN_BIDS_UNKNOWN
    entry = Entry(
        now_ms=now_ms,
        config=config,
        profile=moment.profile,
        snapshot=seen.snapshot,
        own=planned,
        limits=limits,
        rules=_rules(moment),
        memory=memory,
        restraint=restraint,
        sales=moment.sales,
    )
    plan = plan_bids(entry)
    if _wants_rooms(moment, plan) and _has_new_rooms(moment):
        rooms = with_others(moment.state.rooms, moment.user.id, context.task_id)
        entry = replace(entry, limits=replace(entry.limits, signed=rooms))
        plan = plan_bids(entry)
    moment.state.journal.write(replace(entry, plan=plan))
    _sample(moment, plan, now_ms)
    return Decision(entry, plan, seen, own, _overruled(own, config, now_ms), is_blind=is_blind)


def _wants_rooms(moment: BiddingMoment, plan: BidPlan) -> bool:
    """Tells whether the signer's ceilings matter: a bid will be placed, or they have increased the task's patience."""
    return not moment.config.dry_run and (bool(plan.to_place) or patience_of(moment.state.rooms) > 1)


def _has_new_rooms(moment: BiddingMoment) -> bool:
    """Asks the signer for the remaining allowances; returns whether they have changed."""
    context, before = moment.context, moment.state.rooms
    try:
        moment.state.rooms = context.signer.rooms(context.task_id, context.token, context.secret)
    except SignerError as error:
        # The last answer stays valid. An absent signer is noticed when it gives no signature.
        log.info("task %d: failed to ask how much may be signed: %s", context.task_id, error)
    return moment.state.rooms != before


def _sample(moment: BiddingMoment, plan: BidPlan, now_ms: int) -> None:
    """Stores the reference as the minute's sample.

    Skipped if a fixed range without a guard does not use it, or if a collection's floor replaces a trait's own floor.
    """
    if plan.reference is None or not moment.config.wants_history or Reason.TRAIT_FLOOR_MISSING in plan.marks:
        return
    with unless_full("the minute's reference"):
        cycles.record_reference(*_history_key(moment), plan.reference, now_ms, plan.raw_reference)


def _seen(moment: BiddingMoment, max_age_s: float, *, by_floor: bool) -> MarketLook:
    config, faults, now_ms = moment.config, moment.faults, moment.context.clock_ms()
    history = cycles.history_for(config, _history_key(moment), now_ms)
    by_floor = by_floor and moment.context.venue.floors_tell_asks
    return moment.state.looker.look(config, _wallet(moment), history, max_age_s, faults, by_floor=by_floor)


def _history_key(moment: BiddingMoment) -> tuple[str, str, str]:
    return history_key(moment.config, moment.context.venue.name, moment.context.settings.market)


def _wallet(moment: BiddingMoment) -> BidderWallet:
    keys, user, config = moment.keys, moment.user, moment.config
    wallet = BidderWallet(keys.payment, keys.payment_pubkey, user.ordinals_address, moment.addresses)
    if config.hangs_on_floor:
        return replace(wallet, ask_prices=open_prices(user.id))
    if not config.wants_bids:
        return wallet
    venue = moment.context.venue.name
    own = [order for order in orders.wallet_orders(keys.payment) if order.venue == venue]
    ids = moment.state.bids_seen.keys() | {order.venue_id for order in own if order.venue_id}
    return replace(wallet, bid_ids=frozenset(ids), bid_prices=frozenset(order.price_sats for order in own))


def _rules(moment: BiddingMoment) -> Rules:
    config, settings = moment.config, moment.context.settings
    stretched_s = stretch_s(moment.context.market, is_rune=config.is_rune)
    return Rules.of(config.loop_s, stretched_s, settings.tolerance, settings.min_age_seconds)


def _limits(moment: BiddingMoment, seen: MarketLook, found: Found, now_ms: int) -> Limits:
    context, config = moment.context, moment.config
    read = Readings(
        balance_sats=seen.balance_sats,
        fee_reserve_sats=seen.fee_reserve_sats,
        untracked_sats=found.untracked_sats,
        rungs=context.market.scarcity.rungs,
        skew_s=context.market.skew_s,
        signed=() if config.dry_run else moment.state.rooms,
    )
    holder = Holder(moment.user.id, context.task_id, config, moment.plan)
    return limits_of(holder, read, context.settings.max_exposure_sats, now_ms)


def _overruled(own: tuple[Order, ...], config: BidConfig, now_ms: int) -> dict[int, str]:
    """Returns the orders (by id) that the strategy cannot judge, with the reason to cancel each."""
    reasons = dict[int, str]()
    for order in own:
        if order.dry_run != config.dry_run:
            reasons[order.id] = WorkerReason.DRY_RUN
        elif not is_on(config, order.slug):
            reasons[order.id] = WorkerReason.WRONG_SLUG
        elif order.state == LIVE and now_ms > order.expires_ms + LATE_MS and not order.misses:  # it is still shown
            reasons[order.id] = WorkerReason.OVERDUE
    return reasons


# A book for placements may be this old on arrival, so that tasks on one slug that place at the same time share it.
FRESH_BOOK_S = 3.0
LONGEST_PLACING_MS = 60_000  # or a loop; afterwards our own bids are read again before more bids are placed
SHORTEST_PAUSE_S = 1.0
AT_ONCE_S = 0.05
LOOK_AGAIN_S = APART_MS / 1000 + 1
LONGEST_REST_S = 30.0  # the maximum wait between cycles; a longer loop wakes up in between to check for stricter limits


class Bidder(Keeping[BiddingMoment]):
    """Keeps the bids of one task as its config wants them.

    If our own bids cannot be read, nothing is placed, but known bids forbidden by cap, range or limits are cancelled.
    """

    def __init__(
        self,
        context: Context,
        *,
        rng: random.Random | None = None,
        new_intent: Callable[[], str] = lambda: uuid.uuid4().hex,
        monotonic: Callable[[], float] = time.monotonic,
        journal: Journal | None = None,
        until_cycle: Callable[[str, float, float], float] | None = None,
    ) -> None:
        """Wires the job. `until_cycle` (see workers/cycle.py) times the cycles; without it they begin a loop apart."""
        super().__init__(context, rng)
        self._monotonic = monotonic
        self._until_cycle = until_cycle
        looker = Looker(context.market, context.clock_ms)
        self._state = BidderState(looker, journal or Journal(None), new_intent)
        self._month = QuotaWords(context)
        self._profiles: dict[str, VenueProfile] = {}
        self._due = 0.0  # on the monotonic clock
        self._limits: object = None  # of the last finished cycle
        self._was_late = False

    def _assigned(self) -> BiddingMoment | None:
        began = self._monotonic()
        moment = read_bidding_moment(self._context, self._state)
        if moment is not None:
            moment.began = began
            # Under a halt the manager cancels, so this cycle need not hurry.
            moment.is_braked = self._limits not in (None, moment.limits) and moment.control.state != HALT
        return moment

    def _rest(self, moment: BiddingMoment) -> float | None:
        if moment.began < self._due and moment.limits == self._limits:
            return min(self._due - moment.began, LONGEST_REST_S)
        self._due = 0.0
        return None

    def _is_ready(self, moment: BiddingMoment) -> bool:
        has_keys, profile = super()._is_ready(moment), self._known_profile(moment.config, moment.faults)
        if profile is not None:
            moment.profile = profile
        return has_keys and profile is not None

    def _known_profile(self, config: BidConfig, faults: Faults) -> VenueProfile | None:
        if config.type not in self._profiles:
            try:
                self._profiles[config.type] = self._context.market.profile(kind_of(config))
            except VenueError as error:
                faults.add(Step.PROFILE, "learn what the market asks of bids", error)
        return self._profiles.get(config.type)

    def _settle(self, moment: BiddingMoment) -> None:
        settle_at_first(moment)

    def _decide(self, moment: BiddingMoment) -> None:
        decision = self._decided(moment)
        if decision.wants_anything and moment.is_reused:
            # The previous cycle's read suffices to see that nothing needs doing, but not to act on.
            moment.found = settle_again(moment, moment.max_age_s)
            decision = self._decided(moment)
        moment.first = moment.last = decision
        self._context.crash("after_plan")

    def _decided(self, moment: BiddingMoment) -> Decision:
        memory = Memory.loads(moment.task.memory)
        return decide(moment, moment.found, moment.max_age_s, memory, by_floor=True)

    def _carry_out(self, moment: BiddingMoment) -> None:
        """Cancels orders and strays that must go first, places bids, then cancels the replaced bids.

        Nothing is placed if the first cancels could not be sent, if no read shows their result, or while a stray is
        still open. A failed cancel stops nothing, because its order still counts, and each new bid is reserved against
        the limits. A replaced order is kept unless its new bid was clearly accepted.
        """
        canceller = Canceller(self._context, moment.keys.payment, moment.faults, self._state.unstored)
        left = self._cancel_what_must_go(moment, canceller)
        if left is None:
            moment.put_off()
        elif moment.untried:
            moment.left = left
            if moment.cancelled:
                self._context.crash("before_replace")
            with unless_full("a bid"):  # nothing is sent that is not stored
                self._place(moment)
            moment.put_off()
            self._cancel_what_was_replaced(moment, canceller)
            if moment.cancelled:
                self._context.crash("after_replace")

    def _cancel_what_must_go(self, moment: BiddingMoment, canceller: Canceller) -> Found | None:
        """Sends the first cancels; returns our bids left at the venue, None if nothing may be placed."""
        self._note_forced(moment.first)
        hard, soft, strays = moment.first.hard, moment.first.soft, moment.shown.stray_ids
        self._cancel(canceller, hard)
        self._cancel(canceller, soft, strays)
        left: Found | None = moment.shown
        if _real([*hard, *soft]) or strays:
            left = None if canceller.is_stuck else settle_again(moment, 0.0, canceller.asked)
            canceller.note_denied()
        moment.cancelled = _closed([*hard, *soft])
        if left is not None and left is not moment.found:
            moment.filled_since = left.filled
        return None if left is None or left.stray_ids or left.may_hide_strays else left

    def _note_forced(self, decision: Decision) -> None:
        """Records that the market forced bids off, and the shortest time for which a forced replacement was open.

        A single forced bid says little, because a cheap listing may come and go.
        """
        state, now_ms, forced = self._state, self._context.clock_ms(), decision.forced
        stood = [now_ms - order.created_ms for order in forced if order.id in state.followers]
        state.stood_ms = min([*stood, *([] if state.stood_ms is None else [state.stood_ms])], default=None)
        state.is_forced = state.is_forced or bool(forced)

    def _place(self, moment: BiddingMoment) -> None:
        """Tries each bid of the decision, in order, until a result shows that the remaining ones cannot succeed.

        If the decision is too old, or a bid was sold since, a new one is made on fresh books for the untried rungs. If
        the new decision needs cancels first, or cannot be made, the remaining bids are put off, because no bid is
        placed on an old book.
        """
        clock_ms, placer = self._context.clock_ms, BidPlacer(moment)
        is_current = not moment.filled_since
        while moment.untried:
            if not (is_current and moment.last.is_fresh(clock_ms())):
                newer = self._decided_again(moment)
                moment.last = newer or moment.last
                if newer is None or newer.wants_cancels or not newer.is_fresh(clock_ms()):
                    moment.is_outdated = True
                    break
                is_current = True
                continue
            attempt = placer.place_one(moment.untried[0])
            moment.add(attempt)
            if attempt.result in ENDS_PLACING or moment.faults.rejected is not None:
                break
        self._note_followers(moment)
        moment.put_off()

    def _note_followers(self, moment: BiddingMoment) -> None:
        """Records the bids placed after a forced cancel, and resets the record of forced cancels."""
        state = self._state
        placed = [tried.order.id for tried in moment.tries if tried.result is PlaceResult.PLACED and tried.order]
        if placed:
            still = state.followers & {order.id for order in moment.last.own}
            state.followers = still | frozenset(placed) if state.is_forced else still
            state.is_forced, state.stood_ms = False, None

    def _decided_again(self, moment: BiddingMoment) -> Decision | None:
        """Decides on the present market; returns None if the task's settings or limits have changed meanwhile.

        Own bids are not read again, so this is limited in time; otherwise a fill could stay unseen.
        """
        if self._context.clock_ms() - moment.settled_ms > max(LONGEST_PLACING_MS, moment.config.loop_s * 1000):
            return None
        now = read_bidding_moment(self._context, self._state)
        if now is None or now.restraint is not None:
            return None
        if (now.task.revision, now.plan, now.config) != (moment.task.revision, moment.plan, moment.config):
            return None
        # A raise counts if the last decision made it. A raise that it did not get to is still the same raise.
        last = moment.last.plan
        is_made = raise_rung(last) is None or raise_rung(last) in moment.tried
        memory = last.memory if is_made else memory_without_raise(last)
        gone = frozenset(order.id for order in moment.replaced)
        newer = decide(moment, moment.left, FRESH_BOOK_S, memory, replaced=gone)
        if not is_made and newer.plan.to_place and raise_rung(newer.plan) is None:
            # The outbid bid is already cancelled, so its replacement looks like a first bid.
            return replace(newer, plan=replace(newer.plan, memory=last.memory))
        return newer

    def _cancel_what_was_replaced(self, moment: BiddingMoment, canceller: Canceller) -> None:
        # The present state counts, because an order that a read has not shown since the decision may be in doubt.
        replaced = frozenset(order.id for order in moment.replaced)
        doomed = [o for o in orders.open_orders(self._context.task_id) if o.id in replaced and o.state == LIVE]
        if not doomed:
            return
        self._context.crash("before_break")
        self._cancel(canceller, doomed)
        if _real(doomed) and (looked := settle_again(moment, 0.0, canceller.asked)) is not None:
            moment.filled_since = (*moment.filled_since, *looked.filled)
        canceller.note_denied()
        moment.cancelled = (*moment.cancelled, *_closed(doomed))

    def _cancel(self, canceller: Canceller, doomed: Sequence[Order], strays: Sequence[str] = ()) -> None:
        if doomed or strays:
            writes.cancel_on_paper((order for order in doomed if order.dry_run), self._context.clock_ms)
            canceller.cancel(_real(doomed), strays)

    def _report(self, moment: BiddingMoment) -> None:
        note_restraints(moment)
        with unless_full("a note on a fill"):
            note_fills(moment)
        self._note_last_move(moment)
        report.record_bidding(moment, self._month.words(moment))

    def _report_nothing_done(self, moment: BiddingMoment) -> None:
        report.record_no_bidding(moment)

    def _note_last_move(self, moment: BiddingMoment) -> None:
        first, state, found, filled = moment.first, self._state, moment.found, moment.filled
        state.is_quiet = found is not None and not (filled or first.wants_anything or found.stray_ids)
        is_done = not filled and all(tried.result == PlaceResult.PLACED for tried in moment.tries)
        state.last_move = state.last_move.after(first.entry, first.plan) if is_done else LastMove()

    def _look(self, moment: BiddingMoment, looked: Faults) -> None:
        read_own_bids(self._context, moment.keys.payment, moment.config.slug, 0.0, looked)

    def _pause(self, moment: BiddingMoment) -> float | None:
        self._limits = moment.limits
        return super()._pause(moment)

    def _until_next(self, moment: BiddingMoment) -> float:
        if moment.is_late:
            self._was_late = not self._was_late
            return AT_ONCE_S if self._was_late else SHORTEST_PAUSE_S
        self._was_late = False
        pause_s = max(self._until_due(moment), SHORTEST_PAUSE_S)
        for order in orders.open_orders(self._context.task_id):
            if order.state == LIVE and order.misses and order.expires_ms <= self._context.clock_ms():
                pause_s = min(pause_s, LOOK_AGAIN_S)  # it keeps its slot until a second read
            elif order.state == CANCELLING or order.misses:
                pause_s = min(pause_s, LONGEST_REST_S)  # its state is checked before the end of a long loop
        if pause_s > LONGEST_REST_S:
            self._due = self._monotonic() + pause_s
        return min(pause_s, LONGEST_REST_S)

    def _until_due(self, moment: BiddingMoment) -> float:
        config, now_ms = moment.config, self._context.clock_ms()
        if self._until_cycle is None:
            first_s = config.loop_s - (self._monotonic() - moment.began)
        else:
            first_s = self._until_cycle(moment.task.slug_key, config.loop_s, now_ms / 1000)
        every = self._state.last_move.loops(config, now_ms)
        if every > 1:
            due_s = self._next_due_ms(config, now_ms) / 1000
            first_s = until_rare_cycle(first_s, config.loop_s, now_ms / 1000, every=every, due_s=due_s)
        if hours := config.active_hours:
            # Otherwise bids could stay open for up to a long loop after their hours.
            change_ms = next_change_ms(hours.tz, hours.begin, hours.end, now_ms, int(first_s * 1000))
            return first_s if change_ms is None else (change_ms - now_ms) / 1000
        return first_s

    def _next_due_ms(self, config: BidConfig, now_ms: int) -> float:
        """Returns when one of our orders next needs a cycle, whatever the market does."""
        own = orders.open_orders(self._context.task_id)
        if needs_fresh_read(own, now_ms):
            return now_ms
        return min((order.expires_ms - margin_ms(config) for order in own), default=math.inf)


def _real(found: Iterable[Order]) -> list[Order]:
    return [order for order in found if not order.dry_run]


def _closed(doomed: Sequence[Order]) -> tuple[Order, ...]:
    """Returns the doomed orders that are now cancelled, without those sold before their cancel arrived."""
    if not doomed:
        return ()
    open_ids = {order.id for order in orders.open_orders(doomed[0].task_id)}
    return tuple(
        order for order in doomed if order.id not in open_ids and Order.get_by_id(order.id).close_reason == "cancelled"
    )
