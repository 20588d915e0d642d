"""The decision of one cycle: an entry (config, market, own orders, limits) in, a plan out.

The steps, in order: reference price, range, rungs, the bids that the range forbids, the walk of the rungs through the
budget with the own orders that hold them, the fate of the other live bids, renewals and new bids. The plan assumes that
its cancels succeed; the worker reserves each new bid on its own, which guards the limits when a cancel fails.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from strategy.bid_config import BidConfig, unsupported
from strategy.bidding.filling import RAISE
from strategy.bidding.guards import guard_reason
from strategy.bidding.ladders import ladder_for
from strategy.bidding.outbid import Contest
from strategy.bidding.pairing import highest_first
from strategy.bidding.patience import paced
from strategy.bidding.planner import BidPlanner
from strategy.bidding.reference import read_prices
from strategy.bidding.rules import rules_of
from strategy.book import NO_HISTORY, Snapshot, VenueProfile
from strategy.entry import Entry
from strategy.intents import BidNote, BidPlan, CancelIntent, Memory, OwnOrder, RungNote
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
    config, limits, snapshot, now_ms = entry.config, entry.limits, entry.snapshot, entry.now_ms
    if asked := unsupported(config):
        raise ValueError("; ".join(f"{problem.field}: {problem.text}" for problem in asked))
    rules = paced(rules_of(config, entry.rules), limits.signed, nominal_life_ms(config, entry.profile))
    if snapshot is not None and config.ignore_addresses:
        snapshot = without_makers(snapshot, frozenset(config.ignore_addresses))
    market = read_prices(config, snapshot, rules, now_ms)
    is_blind = market.reference is None and config.bid_mode == "percent"
    memory = _noted(entry.memory, is_blind=is_blind, now_ms=now_ms)
    ladder = ladder_for(config, entry.profile, rules, market, snapshot.divisibility if snapshot else None)
    planner = BidPlanner(config, entry.profile, limits, rules, memory, now_ms, market, ladder)
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
        contest = Contest(config, ladder, market.bids, market.lowest_ask)
        planner.walk(contest)
        if contest.has_implausible:
            planner.marks = (Reason.RIVAL_ABOVE_ASK,)
    plan = planner.plan()
    if limits.hold is Reason.ACTIVE_HOURS:
        return withdrawn(plan, entry, Reason.ACTIVE_HOURS)
    guard = None
    if config.is_guarded:
        guard = guard_reason(config, market, snapshot.history if snapshot else NO_HISTORY, now_ms)
    if guard is Reason.FLOOR_DROP:
        return withdrawn(plan, entry, guard)
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
        bids=None if snapshot.bids is None else tuple(bid for bid in snapshot.bids if bid.maker not in makers),
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


def measure(config: BidConfig) -> str:
    """Returns the measure of this config's reference: tasks of one slug with the same measure share its history."""
    return _measured(config) + without(config.ignore_addresses)


def without(ignored: Collection[str]) -> str:
    """Returns the end of a measure for which the orders of these addresses do not count."""
    return f" without {' '.join(sorted(ignored))}" if ignored else ""


def _measured(config: BidConfig) -> str:
    if config.bid_type == "trait":
        kind = config.trait_type.replace("\\", "\\\\").replace("=", "\\=")  # "A=B" of "c" is not "A" of "B=c"
        return f"trait:{kind}={config.trait_value}"
    return f"vwap:{config.depth_sats}" if config.is_rune and config.use_vwap else "floor"


def halted(config: BidConfig, own: Sequence[OwnOrder], memory: Memory) -> BidPlan:
    """Makes the plan under halt: every live order is cancelled, nothing is placed."""
    live = [order for order in highest_first(own) if order.state == "live"]
    others = {
        order.id: Reason.CANCELLING if order.state == "cancelling" else Reason.IN_FLIGHT
        for order in own
        if order.state != "live"
    }
    reasons = others | {order.id: Reason.HALT for order in live}
    return BidPlan(
        reference=None,
        to_cancel=tuple(CancelIntent(order.id, order.price_sats, True, Reason.HALT) for order in live),
        to_place=(),
        rungs=tuple(RungNote(index, None, Reason.HALT) for index in range(config.bid_count)),
        bids=tuple(BidNote(order_id, reasons[order_id]) for order_id in sorted(reasons)),
        memory=memory,
    )


def withdrawn(plan: BidPlan, entry: Entry, reason: Reason) -> BidPlan:
    """Returns the plan with nothing placed and every live order cancelled: those that need not go at once softly.

    Rungs and orders without an action of their own get `reason`.
    """
    hard = tuple(cancel for cancel in plan.to_cancel if cancel.hard)
    gone = {cancel.order_id for cancel in hard}
    going = [
        order
        for order in highest_first(entry.own)
        if order.state == "live" and order.expires_ms > entry.now_ms and order.id not in gone
    ]
    soft = tuple(CancelIntent(order.id, order.price_sats, False, reason) for order in going)
    ids = {order.id for order in going}
    blocked = (Reason.IN_FLIGHT, Reason.CANCELLING, Reason.EXPIRED, Reason.PLAN_BIDS)
    return replace(
        plan,
        to_cancel=(*hard, *sorted(soft, key=lambda cancel: (-cancel.price_sats, cancel.order_id))),
        to_place=(),
        rungs=tuple(
            note if note.reason in blocked else RungNote(note.rung, note.price_sats, reason) for note in plan.rungs
        ),
        bids=tuple(replace(note, reason=reason) if note.order_id in ids else note for note in plan.bids),
        memory=memory_without_raise(plan),
    )


def without_places(plan: BidPlan, reason: Reason, *, soft_cancels: bool, from_rung: int = 0) -> BidPlan:
    """Returns the plan with nothing placed, renewed or raised at the rungs from `from_rung` on.

    `soft_cancels` False leaves the hard cancels only: our own bids could not be read (`own_bids_unknown`). True is for
    the control state reduce: an order without a successor to wait for goes at once. Rungs and bids that lose their
    action get `reason`.
    """
    undone = [note for note in plan.rungs if note.rung >= from_rung and note.reason in (Reason.PLACE, Reason.RENEW)]
    rungs = {note.rung for note in undone}
    kept = {note.order_id for note in undone if note.reason is Reason.RENEW}
    is_unraised = from_rung == 0 or raise_rung(plan) in rungs
    left = tuple(
        replace(c, after_rung=None) if c.after_rung in rungs else c
        for c in plan.to_cancel
        if c.hard or (soft_cancels and c.order_id not in kept and not (is_unraised and c.reason is Reason.OUTBID))
    )
    spared = {c.order_id for c in plan.to_cancel} - {c.order_id for c in left}
    return replace(
        plan,
        to_cancel=left,
        to_place=tuple(intent for intent in plan.to_place if intent.rung not in rungs),
        rungs=tuple(replace(note, reason=reason, detail="") if note in undone else note for note in plan.rungs),
        bids=tuple(replace(note, reason=reason) if note.order_id in spared else note for note in plan.bids),
        memory=memory_without_raise(plan) if is_unraised else plan.memory,
    )


def raise_rung(plan: BidPlan) -> int | None:
    """Returns the rung at which the plan raises to outbid; None when it raises nothing."""
    return next((note.rung for note in plan.rungs if note.detail == RAISE), None)


def memory_without_raise(plan: BidPlan) -> Memory:
    """Returns the memory of a plan whose raise, if it has one, was not made after all."""
    if raise_rung(plan) is None:
        return plan.memory
    return replace(plan.memory, raises_ms=plan.memory.raises_ms[:-1])
