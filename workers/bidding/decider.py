"""The decisions of one cycle, each on a look at the market."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from markets.gateway_client import stretch_s
from markets.look import BidderWallet, MarketLook, history_key
from models import market_memory
from models.database.base import unless_full
from models.ledger import listings, orders
from models.ledger.limits import Holder, Readings, limits_of, may_be_full, own_orders, with_others
from models.ledger.states import LATE_MS, LIVE, Order
from strategy.bid_config import BidConfig, is_on
from strategy.bidding.patience import patience_of
from strategy.bidding.plan_bids import plan_bids
from strategy.entry import Entry, SaleIntoBid
from strategy.fates import WorkerReason
from strategy.plan import BidPlan
from strategy.plan_inputs import Limits, Memory, Rules
from strategy.reasons import Reason
from wallet.signer_client import SignerError
from workers.bidding.decision import Decision
from workers.bidding.inputs import CycleInputs
from workers.bidding.own_bids import Found, as_shown

log = logging.getLogger(__name__)

NOTHING_SEEN = MarketLook(None, 0, None, None)


class Decider:
    """The maker of one cycle's decisions, which keeps each in the journal."""

    def __init__(self, inputs: CycleInputs) -> None:
        self._inputs = inputs
        self._context = inputs.context
        self._config = inputs.config
        self._state = inputs.state

    def decide(
        self,
        found: Found | None,
        sales: tuple[SaleIntoBid, ...] | None,
        max_age_s: float,
        memory: Memory,
        *,
        by_floor: bool = False,
        replaced: Collection[int] = (),
    ) -> Decision:
        """Decides on books that are `max_age_s` old at most; our bids are as `found` (None: unknown).

        `by_floor`: the present floor may confirm older asks. Orders with the ids of `replaced` are as good as gone.
        Our bids are unknown, too, while a row that could not be read may be any of them, or may fill all limits.
        """
        assignment, config = self._inputs.assignment, self._config
        restraint, is_blind = assignment.restraint, found is None or found.may_hide_strays
        if is_blind and restraint is not Reason.HALT:
            restraint = Reason.OWN_BIDS_UNKNOWN
        own = as_shown(orders.open_orders(self._context.task_id), found)
        seen = NOTHING_SEEN if restraint is Reason.HALT else self._seen(max_age_s, by_floor=by_floor)
        limits = self._limits(seen, found or Found())
        planned = own_orders(own, config, replaced)
        own_sats = sum(order.price_sats for order in planned)
        if restraint is None and not config.dry_run and may_be_full(limits, own_sats, found or Found()):
            restraint = Reason.OWN_BIDS_UNKNOWN
        now_ms = self._context.clock_ms()
        entry = Entry(
            now_ms=now_ms,
            config=config,
            profile=self._inputs.profile,
            snapshot=seen.snapshot,
            own=planned,
            limits=limits,
            rules=self._rules(),
            memory=memory,
            restraint=restraint,
            sales=sales,
        )
        plan = plan_bids(entry)
        if self._wants_rooms(plan):
            before = self._state.rooms
            self._ask_rooms()
            if self._state.rooms != before:
                rooms = with_others(self._state.rooms, assignment.user.id, self._context.task_id)
                entry = replace(entry, limits=replace(entry.limits, signed=rooms))
                plan = plan_bids(entry)
        self._state.journal.write(replace(entry, plan=plan))
        self._sample(plan, now_ms)
        return Decision(entry, plan, seen, own, _overruled(own, config, now_ms), is_blind=is_blind)

    def _wants_rooms(self, plan: BidPlan) -> bool:
        """Tells whether the signer's ceilings matter: a bid will be placed, or they made the task patient."""
        return not self._config.dry_run and (bool(plan.to_place) or patience_of(self._state.rooms) > 1)

    def _ask_rooms(self) -> None:
        context = self._context
        try:
            self._state.rooms = context.signer.rooms(context.task_id, context.token, context.secret)
        except SignerError as error:
            # Its last answer stands. A signer that is away shows by the signature that it does not give.
            log.info("task %d: failed to ask how much may be signed: %s", context.task_id, error)

    def _sample(self, plan: BidPlan, now_ms: int) -> None:
        """Stores the reference as the minute's sample.

        Not if a fixed range made no use of it (a guard does), nor if a collection's floor stands in for a trait's own.
        """
        if plan.reference is None or not self._config.wants_history or Reason.TRAIT_FLOOR_MISSING in plan.marks:
            return
        with unless_full("the minute's reference"):
            market_memory.record(*self._history_key(), plan.reference, now_ms, plan.raw_reference)

    def _seen(self, max_age_s: float, *, by_floor: bool) -> MarketLook:
        config, faults, now_ms = self._config, self._inputs.faults, self._context.clock_ms()
        history = market_memory.history_for(config, self._history_key(), now_ms)
        by_floor = by_floor and self._context.venue.floors_tell_asks
        return self._state.looker.look(config, self._wallet(), history, max_age_s, faults, by_floor=by_floor)

    def _history_key(self) -> tuple[str, str, str]:
        return history_key(self._config, self._context.venue.name, self._context.settings.market)

    def _wallet(self) -> BidderWallet:
        keys, user = self._inputs.keys, self._inputs.assignment.user
        wallet = BidderWallet(keys.payment, keys.payment_pubkey, user.ordinals_address, self._inputs.addresses)
        if self._config.hangs_on_floor:
            return replace(wallet, ask_prices=listings.open_prices(user.id))
        if not self._config.wants_bids:
            return wallet
        venue = self._context.venue.name
        own = [order for order in orders.wallet_orders(keys.payment) if order.venue == venue]
        ids = self._state.bids_seen.keys() | {order.venue_id for order in own if order.venue_id}
        return replace(wallet, bid_ids=frozenset(ids), bid_prices=frozenset(order.price_sats for order in own))

    def _rules(self) -> Rules:
        settings = self._context.settings
        stretched_s = stretch_s(self._context.market, is_rune=self._config.is_rune)
        return Rules.of(self._config.loop_s, stretched_s, settings.tolerance, settings.min_age_seconds)

    def _limits(self, seen: MarketLook, found: Found) -> Limits:
        context, assignment = self._context, self._inputs.assignment
        read = Readings(
            balance_sats=seen.balance_sats,
            fee_reserve_sats=seen.fee_reserve_sats,
            untracked_sats=found.untracked_sats,
            rungs=context.market.scarcity.rungs,
            skew_s=context.market.skew_s,
            signed=() if self._config.dry_run else self._state.rooms,
        )
        holder = Holder(assignment.user.id, context.task_id, self._config, assignment.plan)
        return limits_of(holder, read, context.settings.max_exposure_sats, context.clock_ms())


def _overruled(own: tuple[Order, ...], config: BidConfig, now_ms: int) -> dict[int, str]:
    """Returns the orders (by id) that the strategy cannot judge, with the reason to cancel each."""
    reasons = dict[int, str]()
    for order in own:
        if order.dry_run != config.dry_run:
            reasons[order.id] = WorkerReason.DRY_RUN
        elif not is_on(config, order.slug):
            reasons[order.id] = WorkerReason.WRONG_SLUG
        elif order.state == LIVE and now_ms > order.expires_ms + LATE_MS and not order.misses:  # it is shown
            reasons[order.id] = WorkerReason.OVERDUE
    return reasons
