"""A plan that is not carried out, as callers see it. Sats are of whole orders."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from markets.look import Seen
from server import json_out
from strategy.bidding import Plan, RungNote
from strategy.config import BidConfig
from strategy.entry import Entry

_MONTH_S = 30 * 86_400
_SLOW_READ_S = 60


def plan_as_json(entry: Entry, plan: Plan, seen: Seen) -> dict[str, Any]:
    """What was decided, on what, and what a month of it costs."""
    limits = entry.limits
    return {
        "rungs": _rungs(entry, plan),
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
        "limits": {
            "taskTotal": limits.task_total or None,
            "exposure": limits.user_headroom,
            "bids": limits.plan_bids,
            "fills": limits.fills_left,
            "spend": limits.spend_left_sats,
            "hold": None if limits.hold is None else str(limits.hold),
        },
        "callsPerMonth": calls_per_month(entry.config, len(plan.to_place)),
    }


def _rungs(entry: Entry, plan: Plan) -> list[dict[str, Any]]:
    quantities = {intent.rung: intent.quantity for intent in plan.to_place}
    own = {order.id: order.quantity for order in entry.own}

    def quantity(note: RungNote) -> Decimal | None:
        held = None if note.order_id is None else own.get(note.order_id)
        return quantities.get(note.rung, held)

    return [
        {
            "rung": note.rung,
            "price": note.price_sats,
            "quantity": quantity(note),
            "reason": str(note.reason),
            "detail": note.detail,
            "order": note.order_id,
        }
        for note in plan.rungs
    ]


def _market(seen: Seen) -> dict[str, Any] | None:
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


def calls_per_month(config: BidConfig, bids: int) -> dict[str, int]:
    """Requests to marketplaces in 30 days, were nothing shared with other tasks and did the market stand still.

    Each cycle reads asks, own bids and, where they matter, the bids of others; the balance once a minute at most. Each
    bid is placed again before it expires; of each such round the bids are cancelled together, by two requests.
    Example: 30 s cycles of 5 bids that live 16 minutes: 216,000 reads (3 a cycle) and 20,853 writes.
    """
    life_s = config.expiry_ms // 1000
    life_s -= min(life_s // 4, max(3 * config.loop_s, 60))
    cycles = _MONTH_S // config.loop_s
    rounds = _MONTH_S // life_s if bids else 0
    reads = cycles * (3 if config.wants_bids else 2) + _MONTH_S // max(config.loop_s, _SLOW_READ_S)
    return {"reads": reads, "writes": rounds * (bids + 2)}
