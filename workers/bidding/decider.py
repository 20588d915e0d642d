"""The decisions of one cycle, each on a look at the market."""

from __future__ import annotations

import logging
from collections.abc import Collection

from msgspec.structs import replace

from markets.client import stretch_s
from markets.look import BidderWallet, MarketLook, history_key
from models import market_memory
from models.database.base import unless_full
from models.ledger import listings, orders
from models.ledger.limits import Holder, Readings, limits_of, may_be_full, own_orders, with_others
from models.ledger.states import LATE_MS, LIVE, Order
from strategy.config.bid import BidConfig, is_on
from strategy.decision import BidPlan, Entry, Limits, Memory, Rules, patience_of
from strategy.plan_bids import plan_bids
from strategy.reasons import Reason, WorkerReason
from wallet.signer_client import SignerError
from workers.bidding.moment import BiddingMoment, Decision, Found
from workers.bidding.own_bids import as_shown

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
    """Decides on books that are `max_age_s` old at most, and writes that to the journal; our bids are as `found`.

    `by_floor`: the present floor may confirm older asks. Orders with the ids of `replaced` are as good as gone.
    Our bids are unknown (None), too, while a row that could not be read may be any of them, or may fill all limits.
    """
    config, context = moment.config, moment.context
    restraint, is_blind = moment.restraint, found is None or found.may_hide_strays
    if is_blind and restraint is not Reason.HALT:
        restraint = Reason.OWN_BIDS_UNKNOWN
    own = as_shown(orders.open_orders(context.task_id), found)
    seen = NOTHING_SEEN if restraint is Reason.HALT else _seen(moment, max_age_s, by_floor=by_floor)
    limits = _limits(moment, seen, found or Found())
    planned = own_orders(own, config, replaced)
    own_sats = sum(order.price_sats for order in planned)
    if restraint is None and not config.dry_run and may_be_full(limits, own_sats, found or Found()):
        restraint = Reason.OWN_BIDS_UNKNOWN
    now_ms = context.clock_ms()
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
    """Tells whether the signer's ceilings matter: a bid will be placed, or they made the task patient."""
    return not moment.config.dry_run and (bool(plan.to_place) or patience_of(moment.state.rooms) > 1)


def _has_new_rooms(moment: BiddingMoment) -> bool:
    """Asks the signer how much may be signed; tells whether that has changed."""
    context, before = moment.context, moment.state.rooms
    try:
        moment.state.rooms = context.signer.rooms(context.task_id, context.token, context.secret)
    except SignerError as error:
        # Its last answer stands. A signer that is away shows by the signature that it does not give.
        log.info("task %d: failed to ask how much may be signed: %s", context.task_id, error)
    return moment.state.rooms != before


def _sample(moment: BiddingMoment, plan: BidPlan, now_ms: int) -> None:
    """Stores the reference as the minute's sample.

    Not if a fixed range made no use of it (a guard does), nor if a collection's floor stands in for a trait's own.
    """
    if plan.reference is None or not moment.config.wants_history or Reason.TRAIT_FLOOR_MISSING in plan.marks:
        return
    with unless_full("the minute's reference"):
        market_memory.record(*_history_key(moment), plan.reference, now_ms, plan.raw_reference)


def _seen(moment: BiddingMoment, max_age_s: float, *, by_floor: bool) -> MarketLook:
    config, faults, now_ms = moment.config, moment.faults, moment.context.clock_ms()
    history = market_memory.history_for(config, _history_key(moment), now_ms)
    by_floor = by_floor and moment.context.venue.floors_tell_asks
    return moment.state.looker.look(config, _wallet(moment), history, max_age_s, faults, by_floor=by_floor)


def _history_key(moment: BiddingMoment) -> tuple[str, str, str]:
    return history_key(moment.config, moment.context.venue.name, moment.context.settings.market)


def _wallet(moment: BiddingMoment) -> BidderWallet:
    keys, user, config = moment.keys, moment.user, moment.config
    wallet = BidderWallet(keys.payment, keys.payment_pubkey, user.ordinals_address, moment.addresses)
    if config.hangs_on_floor:
        return replace(wallet, ask_prices=listings.open_prices(user.id))
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


def _limits(moment: BiddingMoment, seen: MarketLook, found: Found) -> Limits:
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
