"""A preview's answer: a plan that is not carried out, as callers see it. Sats are of whole orders."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from markets.funding import ToFund
from markets.look import MarketLook, fund_of
from server.http import json_out
from strategy.bidding.exposure import missing_sats
from strategy.entry import Entry
from strategy.hints import hints
from strategy.monthly import Bidding, MonthlyQuota, MonthlyVerdict
from strategy.plan import BidPlan, RungNote
from strategy.plan_inputs import BudgetRoom
from strategy.reasons import Reason

_FOR_NOW = (Reason.QUOTA, Reason.CLOCK_SKEW, Reason.SIGNED_LIMIT)  # a bid is wanted there all the same


def plan_as_json(entry: Entry, plan: BidPlan, seen: MarketLook, quota: MonthlyQuota, user_id: int) -> dict[str, Any]:
    """Returns the decision, its basis, and the cost of a month of it beside the other tasks of `quota`."""
    limits, fund = entry.limits, fund_of(entry, plan, seen)
    task = Bidding(entry.config, 0 if entry.config.dry_run else len(_wanted(plan)), user_id)
    return {
        "rungs": rungs_as_json(entry, plan, fund),
        "cancels": [
            {"order": cancel.order_id, "price": cancel.price_sats, "reason": str(cancel.reason), "hard": cancel.hard}
            for cancel in plan.to_cancel
        ],
        "total": sum(intent.price_sats for intent in plan.to_place),
        "reference": plan.reference,
        "rawReference": plan.raw_reference,
        "marks": [str(mark) for mark in plan.marks],
        "market": _market(seen),
        "balance": seen.balance_sats,
        "feeReserve": seen.fee_reserve_sats,
        "fundedAt": seen.funded_at,
        "missing": missing_sats(entry, plan),
        "limits": {
            "taskTotal": limits.task_total or None,
            "exposure": limits.user_headroom,
            "bids": limits.plan_bids,
            "fills": limits.fills_left,
            "spend": limits.spend_left_sats,
            "fillsToday": limits.fills_left_today,
            "spendToday": limits.spend_left_today_sats,
            "budget": _budget(limits.budget),
            "hold": None if limits.hold is None else str(limits.hold),
            "signed": [
                {"whose": room.whose, "most": room.most_sats, "signed": room.signed_sats} for room in limits.signed
            ],
        },
        "monthlyCalls": _monthly(quota.judged(task)),
        "hints": hints(task, quota.costs, _ladder_sats(plan), limits),
    }


def _budget(room: BudgetRoom | None) -> dict[str, Any] | None:
    if room is None:
        return None
    return {"id": room.budget_id, "name": room.name, "sats": room.sats, "fills": room.orders}


def _wanted(plan: BidPlan) -> list[RungNote]:
    """Returns the rungs that have or get a bid, or would if nothing held the task back for now."""
    return [note for note in plan.rungs if not note.is_skipped or note.reason in _FOR_NOW]


def _ladder_sats(plan: BidPlan) -> int:
    return sum(note.price_sats or 0 for note in _wanted(plan))


def rungs_as_json(entry: Entry, plan: BidPlan, fund: ToFund | None = None) -> list[dict[str, Any]]:
    """Returns the fate of each rung, with the bid that holds it or is to come; `fund` is the way to enough balance."""
    own = {order.id: order.quantity for order in entry.own}

    def quantity(note: RungNote) -> Decimal | None:
        """Returns what the new bid asks for, else the one that holds the rung, else one that there could be."""
        is_held = note.order_id is not None and note.reason is not Reason.RENEW
        return own.get(note.order_id or 0, note.quantity) if is_held else note.quantity

    return [
        {
            "rung": note.rung,
            "price": note.price_sats,
            "quantity": quantity(note),
            "reason": str(note.reason),
            "detail": fund.words if fund and note.reason is Reason.INSUFFICIENT_BALANCE else note.detail,
            "order": note.order_id,
        }
        for note in plan.rungs
    ]


def _market(seen: MarketLook) -> dict[str, Any] | None:
    snapshot = seen.snapshot
    if snapshot is None:
        return None
    bids = snapshot.bids
    return {
        "takenAt": json_out.iso(snapshot.taken_ms),
        "asks": len(snapshot.asks),
        "ownAsks": seen.asks_read - len(snapshot.asks),
        "lowestAsk": min((ask.unit_price for ask in snapshot.asks), default=None),
        "traitAsks": None if snapshot.trait_asks is None else len(snapshot.trait_asks),
        "bids": None if bids is None else len(bids),
        "highestBid": max((bid.unit_price for bid in bids), default=None) if bids else None,
        "median": snapshot.history.median,
        "samples": snapshot.history.samples,
    }


def _monthly(found: MonthlyVerdict) -> dict[str, Any]:
    """Returns the cost of all bids of the plan in 30 days."""
    return {
        "reads": found.alone.reads,
        "writes": found.alone.writes,
        "fits": found.fits,
        "fitsFromExpiryMinutes": found.from_minutes,
    }
