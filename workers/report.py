"""What a cycle leaves behind: one line for its owner, the detail behind it, and one log line for each bid."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from models import cycles
from models.orders import Order
from strategy.bidding import Memory, Plan, Reason, RungNote
from strategy.summary import summary
from workers.context import Context
from workers.executor import Done
from workers.faults import Faults
from workers.gather import Seen
from workers.own_bids import Found
from workers.places import Fate, Try

log = logging.getLogger(__name__)

MOST_FOREIGN = 50  # bids of others' making that a cycle's detail lists


@dataclass(frozen=True, slots=True)
class Outcome:
    """One finished cycle: what was seen, decided and done. `overruled` are the worker's own reasons, by order."""

    seen: Seen
    found: Found
    own: tuple[Order, ...]
    plan: Plan
    overruled: dict[int, str]
    done: Done


def record(context: Context, outcome: Outcome, faults: Faults) -> None:
    """Writes the cycle down and logs it."""
    action = _action(outcome)
    _write(context, action, _detail(outcome, faults), outcome.plan.memory, faults)
    task_id, reasons = context.task_id, _cancel_reasons(outcome)
    for order in outcome.done.cancelled:
        log.info(
            "task %d: cancelled %d of %s, order %d (%s)",
            task_id,
            order.price_sats,
            order.slug,
            order.id,
            reasons.get(order.id, ""),
        )
    for tried in outcome.done.tries:
        if tried.order is not None:
            order = tried.order
            log.info("task %d: %s %d of %s, order %d", task_id, tried.fate, order.price_sats, order.slug, order.id)


def record_nothing_done(context: Context, memory: Memory, faults: Faults) -> None:
    """Writes down a cycle that got nowhere."""
    _write(context, "nothing done", {"errors": faults.texts}, memory, faults)


def _write(context: Context, action: str, detail: dict[str, Any], memory: Memory, faults: Faults) -> None:
    log.info("task %d: %s", context.task_id, f"{action}; {faults.text}" if faults.texts else action)
    cycles.record_cycle(
        context.task_id,
        context.token,
        time_ms=context.clock_ms(),
        action=action,
        error=faults.text,
        detail=json.dumps(detail, separators=(",", ":")),
        memory=json.dumps(memory.as_dict()),
    )


def _action(outcome: Outcome) -> str:
    fates = {tried.intent.rung: tried for tried in outcome.done.tries}
    kept = sum(note.reason is Reason.KEPT for note in outcome.plan.rungs)
    placed = sum(tried.fate == Fate.PLACED for tried in fates.values())
    skipped = [reason for note in outcome.plan.rungs if (reason := _skipped(note, fates.get(note.rung)))]
    reasons = _cancel_reasons(outcome)
    cancelled = [reasons.get(order.id, "no_rung") for order in outcome.done.cancelled]
    return summary(placed, kept, cancelled, skipped)


def _skipped(note: RungNote, tried: Try | None) -> str | None:
    if tried is not None:
        return None if tried.fate == Fate.PLACED else str(tried.fate)
    return str(note.reason) if note.is_skipped else None


def _cancel_reasons(outcome: Outcome) -> dict[int, str]:
    return {note.order_id: str(note.reason) for note in outcome.plan.bids} | outcome.overruled


def _detail(outcome: Outcome, faults: Faults) -> dict[str, Any]:
    """The cycle as JSON values; money in sats, exact numbers as text."""
    plan, seen = outcome.plan, outcome.seen
    snapshot = seen.snapshot
    return {
        "seen": {
            "reference": None if plan.reference is None else str(plan.reference),
            "asks": None if snapshot is None else len(snapshot.asks),
            "own_asks": seen.asks_read - len(snapshot.asks) if snapshot else None,
            "taken_ms": None if snapshot is None else snapshot.taken_ms,
            "balance_sats": seen.balance_sats,
            "fee_reserve_sats": seen.fee_reserve_sats,
        },
        "marks": [str(mark) for mark in plan.marks],
        "rungs": _rungs(outcome),
        "bids": _bids(outcome),
        "cancelled": [order.id for order in outcome.done.cancelled],
        "strays": [bid.venue_id for bid in outcome.found.strays],
        "foreign": [
            {"venue_id": bid.venue_id, "slug": bid.slug, "price_sats": bid.price, "expires_ms": bid.expires_ms}
            for bid in outcome.found.foreign[:MOST_FOREIGN]
        ],
        "errors": faults.texts,
    }


def _rungs(outcome: Outcome) -> list[dict[str, Any]]:
    fates = {tried.intent.rung: tried for tried in outcome.done.tries}
    rows = []
    for note in outcome.plan.rungs:
        row: dict[str, Any] = {"rung": note.rung, "price_sats": note.price_sats, "reason": str(note.reason)}
        if note.detail:
            row["detail"] = note.detail
        if note.order_id is not None:
            row["order"] = note.order_id
        if tried := fates.get(note.rung):
            row["fate"] = str(tried.fate)
            row["placed_order"] = tried.order.id if tried.order else None
        rows.append(row)
    return rows


def _bids(outcome: Outcome) -> list[dict[str, Any]]:
    reasons = _cancel_reasons(outcome)
    return [
        {
            "order": order.id,
            "price_sats": order.price_sats,
            "state": order.state,
            "expires_ms": order.expires_ms,
            "reason": reasons.get(order.id),
        }
        for order in outcome.own
    ]
