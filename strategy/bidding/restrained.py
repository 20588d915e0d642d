"""Plans that do less than the market would allow: under halt, emptied, or without places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strategy.bid_config import BidConfig
from strategy.fill import RAISE
from strategy.plan import BidNote, BidPlan, Entry, Memory, OwnOrder, PlannedCancel, RungNote
from strategy.ranking import highest_first
from strategy.reasons import Reason


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
        to_cancel=tuple(PlannedCancel(order.id, order.price_sats, True, Reason.HALT) for order in live),
        to_place=(),
        rungs=tuple(RungNote(index, None, Reason.HALT) for index in range(config.bid_count)),
        bids=tuple(BidNote(order_id, reasons[order_id]) for order_id in sorted(reasons)),
        memory=memory,
    )


def emptied(plan: BidPlan, entry: Entry, reason: Reason) -> BidPlan:
    """Returns the plan with nothing placed and every live order cancelled, even while our own bids are unknown.

    Rungs and orders without an action of their own get `reason`.
    """
    reasons = {cancel.order_id: cancel.reason for cancel in plan.to_cancel if cancel.hard}
    live = [order for order in entry.own if order.state == "live" and order.expires_ms > entry.now_ms]
    going = sorted(live, key=lambda order: (-order.price_sats, order.id))  # as every plan has its cancels
    for order in going:
        reasons.setdefault(order.id, reason)
    blocked = (Reason.IN_FLIGHT, Reason.CANCELLING, Reason.EXPIRED, Reason.PLAN_BIDS)
    return replace(
        plan,
        to_cancel=tuple(PlannedCancel(order.id, order.price_sats, True, reasons[order.id]) for order in going),
        to_place=(),
        rungs=tuple(
            note if note.reason in blocked else replace(note, reason=reason, order_id=None, detail="")
            for note in plan.rungs
        ),
        bids=tuple(replace(note, reason=reasons.get(note.order_id, note.reason)) for note in plan.bids),
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
        to_place=tuple(bid for bid in plan.to_place if bid.rung not in rungs),
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
