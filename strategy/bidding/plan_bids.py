"""The decision of one cycle: an entry (config, market, own orders, limits) in, a plan out.

The steps, in order: reference price, range, rungs, the bids that the range forbids, the walk of the rungs through the
budget with the own orders that hold them, the fate of the other live bids, renewals and new bids. The plan assumes that
its cancels succeed; the worker reserves each new bid on its own, which guards the limits when a cancel fails.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from strategy.bid_config import BidConfig, unsupported
from strategy.bidding.planner import BidPlanner
from strategy.bidding.restrained import emptied, halted, without_places
from strategy.book import NO_HISTORY, Snapshot, VenueProfile
from strategy.guards import MarketPrices, guard_reason, read_prices
from strategy.ladders import ladder_for
from strategy.outbid import Contest
from strategy.patience import paced, rules_of
from strategy.plan import BidPlan, Entry, Memory
from strategy.reasons import Reason


def plan_bids(entry: Entry) -> BidPlan:
    """Decides what to cancel and to place now, with one reason for every rung and every own order.

    `entry.snapshot` is None when the market could not be read. `entry.own` are the open orders of this task, in any
    order. `entry.rules` are the service's: the task's own fields come before them (`rules_of`), and the signatures in
    use make them more patient (`paced`). The config must be free of `problems`. Raises ValueError for a wish that is
    not built (`unsupported`): it must never be treated as something else.
    """
    if entry.restraint is Reason.HALT:
        return halted(entry.config, entry.own, entry.memory)
    plan = _unrestrained(entry)
    if entry.restraint is None:
        return plan
    return without_places(plan, entry.restraint, soft_cancels=entry.restraint is not Reason.OWN_BIDS_UNKNOWN)


def _unrestrained(entry: Entry) -> BidPlan:
    config, snapshot, now_ms = entry.config, entry.snapshot, entry.now_ms
    if asked := unsupported(config):
        raise ValueError("; ".join(f"{problem.field}: {problem.text}" for problem in asked))
    rules = paced(rules_of(config, entry.rules), entry.limits.signed, nominal_life_ms(config, entry.profile))
    if snapshot is not None and config.ignore_addresses:
        snapshot = without_makers(snapshot, frozenset(config.ignore_addresses))
    market = read_prices(config, snapshot, rules, now_ms)
    is_blind = market.reference is None and config.bid_mode == "percent"
    memory = _noted(entry.memory, is_blind=is_blind, now_ms=now_ms)
    ladder = ladder_for(config, entry.profile, rules, market, snapshot.divisibility if snapshot else None)
    planner = BidPlanner(config, entry.profile, entry.limits, rules, memory, now_ms, market, ladder)
    planner.sort(entry.own)
    if is_blind:
        planner.rest_without_reference()
    elif config.wants_bids and market.bids is None:
        planner.rest(Reason.BIDS_UNKNOWN)
    elif not ladder.is_known:
        planner.rest(Reason.UNIT_UNKNOWN)
    else:
        if ladder.cause:
            planner.skip_all(Reason.RANGE_EMPTY, ladder.cause)
        # A trait may be worth more than the collection's floor: then no ask tells which bid is implausible.
        dearest_meant = None if Reason.TRAIT_FLOOR_MISSING in market.marks else market.lowest_ask
        contest = Contest(config, ladder, market.bids, dearest_meant)
        planner.walk(contest)
        if contest.has_implausible:
            planner.marks = (Reason.RIVAL_ABOVE_ASK,)
    return _held_back(planner.plan(), entry, market, snapshot)


def _held_back(plan: BidPlan, entry: Entry, market: MarketPrices, snapshot: Snapshot | None) -> BidPlan:
    """Returns the plan with no more than the hours, the guards, the fills and the key's quota leave of it."""
    limits = entry.limits
    if limits.hold is Reason.ACTIVE_HOURS:
        return emptied(plan, entry, Reason.ACTIVE_HOURS)
    guard = None
    if entry.config.is_guarded:
        guard = guard_reason(entry.config, market, snapshot.history if snapshot else NO_HISTORY, entry.now_ms)
    if guard is Reason.FLOOR_DROP:
        return emptied(plan, entry, guard)
    if guard is not None or limits.hold is Reason.FILL_BURST:
        return without_places(plan, guard or Reason.FILL_BURST, soft_cancels=True)
    if limits.rungs is not None:
        return without_places(plan, Reason.QUOTA, soft_cancels=True, from_rung=limits.rungs)
    return plan


def without_makers(snapshot: Snapshot, makers: Collection[str]) -> Snapshot:
    """Returns the snapshot without the orders of these addresses."""
    return replace(
        snapshot,
        asks=tuple(ask for ask in snapshot.asks if ask.maker not in makers),
        bids=None if snapshot.bids is None else tuple(bid for bid in snapshot.bids if not bid.is_by(makers)),
        trait_asks=None
        if snapshot.trait_asks is None
        else tuple(ask for ask in snapshot.trait_asks if ask.maker not in makers),
    )


def _noted(memory: Memory, *, is_blind: bool, now_ms: int) -> Memory:
    """Returns the memory with the time since which there is no reference, if so."""
    if is_blind == (memory.no_reference_since_ms is not None):
        return memory
    return replace(memory, no_reference_since_ms=now_ms if is_blind else None)


def nominal_life_ms(config: BidConfig, profile: VenueProfile) -> int:
    """Returns about how long a bid is signed for: a venue that counts in hours rounds it up."""
    return max(config.expiry_ms, profile.min_duration_s * 1000)
